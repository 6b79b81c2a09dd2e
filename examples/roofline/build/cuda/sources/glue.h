// What op.cpp and op_tokens.cpp share of torch: the words of refusals, checks of one tensor, scratch, streams, launches.
#pragma once

#include <dlfcn.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "op.h"

namespace sgemv {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// The operands of one call, by the names of the schema; at most five, in no memory of the heap's, since a call's own time
// is measured too.
class Named {
 public:
  using Pair = std::pair<std::string_view, const Tensor*>;
  Named(std::initializer_list<Pair> all) {
    for (const Pair& each : all)
      if (each.second != nullptr) pairs_[count_++] = each;
  }
  const Pair* begin() const { return pairs_.data(); }
  const Pair* end() const { return pairs_.data() + count_; }

 private:
  std::array<Pair, 5> pairs_{};
  std::size_t count_ = 0;
};

[[noreturn]] inline void refuse(const char* kernel, const std::string& what) {
  throw std::runtime_error(std::string(kernel) + ": " + what);
}

inline std::string dtype_name(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Float: return "float32";
    case ScalarType::Double: return "float64";
    case ScalarType::Half: return "float16";
    case ScalarType::BFloat16: return "bfloat16";
    case ScalarType::Char: return "int8";
    case ScalarType::Byte: return "uint8";
    case ScalarType::Short: return "int16";
    case ScalarType::Int: return "int32";
    case ScalarType::Long: return "int64";
    case ScalarType::Bool: return "bool";
    case ScalarType::ComplexFloat: return "complex64";
    case ScalarType::ComplexDouble: return "complex128";
    default: return torch::headeronly::toString(dtype);
  }
}

inline std::string device_name(const Tensor& tensor) {
  if (tensor.is_cuda()) return "cuda:" + std::to_string(tensor.get_device_index());
  return tensor.is_cpu() ? "cpu" : "another kind of device";
}

inline std::string tuple(std::int64_t first, std::int64_t second) {
  return "(" + std::to_string(first) + ", " + std::to_string(second) + ")";
}

inline std::string shape_of(const Tensor& matrix) { return tuple(matrix.size(0), matrix.size(1)); }

// All on one device of the kernel's kind: that of the first.
inline void check_devices(const char* kernel, bool on_cuda, const Named& operands) {
  const Tensor& a = *operands.begin()->second;
  for (const auto& [label, tensor] : operands) {
    std::string wanted;
    if (on_cuda && !tensor->is_cuda()) wanted = "a CUDA tensor; move it with .cuda()";
    else if (!on_cuda && !tensor->is_cpu()) wanted = "a CPU tensor; move it with .cpu()";
    else if (device_name(*tensor) != device_name(a)) wanted = device_name(a) + " where a is; move one of them";
    if (!wanted.empty()) refuse(kernel, std::string(label) + " is on " + device_name(*tensor) + ", wanted " + wanted);
  }
}

inline void check_dims(const char* kernel, std::string_view label, const Tensor& tensor, int wanted, const char* form) {
  if (tensor.dim() != wanted)
    refuse(kernel, std::string(label) + " has " + std::to_string(tensor.dim()) + " dimensions, wanted " +
                       std::to_string(wanted) + ": " + form);
}

inline void check_dtype(const char* kernel, std::string_view label, const Tensor& tensor, ScalarType wanted,
                        const char* advice) {
  if (tensor.scalar_type() != wanted)
    refuse(kernel, std::string(label) + " is " + dtype_name(tensor.scalar_type()) + ", wanted " + dtype_name(wanted) +
                       "; " + advice);
}

inline void check_alignment(const char* kernel, std::string_view label, const Tensor& tensor, std::int64_t bytes) {
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % bytes);
  if (past == 0 || tensor.numel() == 0) return;
  refuse(kernel, std::string(label) + " starts " + std::to_string(past) + " bytes past a multiple of " +
                     std::to_string(bytes) + " bytes, wanted none; copy it with .clone()");
}

// `label`: of the input that out overlaps, or null.
inline void check_overlap(const char* kernel, const char* label) {
  if (label != nullptr)
    refuse(kernel, std::string("out overlaps ") + label + ", wanted memory of its own; allocate it with torch.empty");
}

// torch 2.13 has torch::stable::accelerator::Stream::nativeHandle(); until that is the least torch, the function lives
// in libtorch_cuda, which a process with a CUDA tensor has loaded.
inline void* current_cuda_stream(const char* kernel, std::int32_t device_index) {
  using Getter = std::int32_t (*)(std::int32_t, void**);
  static const Getter getter = [] {
    void* library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    return library ? reinterpret_cast<Getter>(dlsym(library, "aoti_torch_get_current_cuda_stream")) : nullptr;
  }();
  void* stream = nullptr;
  if (getter == nullptr) refuse(kernel, "libtorch_cuda.so has no current stream, wanted torch 2.11 or newer with CUDA");
  if (getter(device_index, &stream) != 0)
    refuse(kernel, "torch gave no current stream for cuda:" + std::to_string(device_index));
  return stream;
}

// From torch's allocator, in the order of the current stream: what comes after the launch may have the memory again.
class TorchScratch final : public Scratch {
 public:
  explicit TorchScratch(const Tensor& like) : like_(like) {}
  float* floats(std::int64_t count) override {
    tensors_.push_back(torch::stable::new_empty(like_, {count}, ScalarType::Float));
    return static_cast<float*>(tensors_.back().data_ptr());
  }

 private:
  const Tensor& like_;
  std::vector<Tensor> tensors_;
};

// Launches on a's device and its current stream, with scratch; null, or the words of the error.
template <class AnySpec, class AnyArgs>
const char* launch(const AnySpec& spec, AnyArgs args, const Tensor& a) {
  TorchScratch scratch(a);
  args.scratch = &scratch;
  std::optional<torch::stable::accelerator::DeviceGuard> guard;
  if (spec.on_cuda) {
    const std::int32_t device_index = a.get_device_index();
    guard.emplace(device_index);
    args.stream = current_cuda_stream(spec.name, device_index);
  }
  return spec.launch(args);
}

// Torch forgets an op when its library object dies, so they live as long as the process.
inline void define_op(const char* kernel, const std::string& operands, BoxedFunction boxed, const char* file,
                      std::uint32_t line) {
  using torch::stable::detail::StableLibrary;
  static std::vector<std::unique_ptr<StableLibrary>> libraries;
  libraries.push_back(std::make_unique<StableLibrary>(StableLibrary::Kind::FRAGMENT, "sgemv", nullptr, file, line));
  libraries.back()->def((std::string(kernel) + "(" + operands + ") -> ()").c_str());
  for (const char* key : {"CUDA", "CPU"}) {  // both: the wrong one is refused by `check_devices` in words
    libraries.push_back(std::make_unique<StableLibrary>(StableLibrary::Kind::IMPL, "sgemv", key, file, line));
    libraries.back()->impl(kernel, boxed);
  }
}

// The kernels of this library of one kind of spec.
template <class AnySpec>
std::map<std::string, const AnySpec*>& specs() {
  static std::map<std::string, const AnySpec*> by_name;
  return by_name;
}

}  // namespace sgemv
