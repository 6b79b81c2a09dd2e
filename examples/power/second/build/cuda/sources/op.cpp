// All that knows torch: checks operands, finds the caller's stream, registers ops. Built on the LibTorch stable ABI, so
// that one library loads in every torch from 2.11 on; nothing links against libtorch_cuda, so CPU-only ones included.
// kernels/ops.py says the same words for meta tensors; tests hold the two together.
#include "op.h"

#include <dlfcn.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sgemv {
namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using torch::stable::detail::StableLibrary;

[[noreturn]] void refuse(const Spec& spec, const std::string& what) {
  throw std::runtime_error(std::string(spec.name) + ": " + what);
}

std::string dtype_name(ScalarType dtype) {
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

std::string device_name(const Tensor& tensor) {
  if (tensor.is_cuda()) return "cuda:" + std::to_string(tensor.get_device_index());
  return tensor.is_cpu() ? "cpu" : "another kind of device";
}

std::string tuple(std::int64_t first, std::int64_t second) {
  return "(" + std::to_string(first) + ", " + std::to_string(second) + ")";
}

void check_device(const Spec& spec, const char* label, const Tensor& tensor, const Tensor& a) {
  if (spec.on_cuda && !tensor.is_cuda())
    refuse(spec, std::string(label) + " is on " + device_name(tensor) + ", wanted a CUDA tensor; move it with .cuda()");
  if (!spec.on_cuda && !tensor.is_cpu())
    refuse(spec, std::string(label) + " is on " + device_name(tensor) + ", wanted a CPU tensor; move it with .cpu()");
  if (device_name(tensor) != device_name(a))
    refuse(spec, std::string(label) + " is on " + device_name(tensor) + ", wanted " + device_name(a) +
                     " where a is; move one of them");
}

void check_shape(const Spec& spec, const char* label, const Tensor& tensor, std::int64_t rows, const Tensor& a) {
  if (tensor.size(0) == rows && tensor.size(1) == 1) return;
  refuse(spec, std::string(label) + " has shape " + tuple(tensor.size(0), tensor.size(1)) + ", wanted " +
                   tuple(rows, 1) + " to fit a's " + tuple(a.size(0), a.size(1)));
}

void check_packed(const Spec& spec, const char* label, const Tensor& tensor) {
  if (tensor.is_contiguous()) return;
  refuse(spec, std::string(label) + " has strides " + tuple(tensor.stride(0), tensor.stride(1)) + ", wanted " +
                   tuple(tensor.size(1), 1) + ", row-major and packed; copy it with .contiguous()");
}

void check_k(const Spec& spec, std::int64_t k) {
  const std::string found = "K=" + std::to_string(k) + " is not ";
  const std::string wanted = std::to_string(spec.k_value);
  if (spec.k_rule == K_MULTIPLE_OF && k % spec.k_value != 0)
    refuse(spec, found + "a multiple of " + wanted + "; pad a and x with zeros or use another kernel");
  if (spec.k_rule == K_EQUAL_TO && k != spec.k_value) refuse(spec, found + wanted + "; use another kernel");
}

void check_alignment(const Spec& spec, const char* label, const Tensor& tensor, std::int64_t alignment_bytes) {
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % alignment_bytes);
  if (past == 0 || tensor.numel() == 0) return;
  refuse(spec, std::string(label) + " starts " + std::to_string(past) + " bytes past a multiple of " +
                   std::to_string(alignment_bytes) + " bytes, wanted none; copy it with .clone()");
}

void check(const Spec& spec, const Tensor& a, const Tensor& x, const Tensor& out) {
  const std::pair<const char*, const Tensor&> all[] = {{"a", a}, {"x", x}, {"out", out}};
  for (const auto& [label, tensor] : all) check_device(spec, label, tensor, a);
  for (const auto& [label, tensor] : all)
    if (tensor.dim() != 2)
      refuse(spec, std::string(label) + " has " + std::to_string(tensor.dim()) +
                       " dimensions, wanted 2: a is (M, K), x is (K, 1), out is (M, 1)");
  for (const auto& [label, tensor] : all)
    if (tensor.scalar_type() != ScalarType::Float)
      refuse(spec, std::string(label) + " is " + dtype_name(tensor.scalar_type()) +
                       ", wanted float32; convert it with .float()");
  check_shape(spec, "x", x, a.size(1), a);
  check_shape(spec, "out", out, a.size(0), a);
  for (const auto& [label, tensor] : all) check_packed(spec, label, tensor);
  check_k(spec, a.size(1));
  check_alignment(spec, "a", a, spec.alignment_bytes);
  check_alignment(spec, "x", x, spec.alignment_bytes);
  check_alignment(spec, "out", out, alignof(float));
}

// torch 2.13 has torch::stable::accelerator::Stream::nativeHandle(); until that is the least torch, the function lives
// in libtorch_cuda, which a process with a CUDA tensor has loaded.
void* current_cuda_stream(const Spec& spec, std::int32_t device_index) {
  using Getter = std::int32_t (*)(std::int32_t, void**);
  static const Getter getter = [] {
    void* library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    return library ? reinterpret_cast<Getter>(dlsym(library, "aoti_torch_get_current_cuda_stream")) : nullptr;
  }();
  void* stream = nullptr;
  if (getter == nullptr) refuse(spec, "libtorch_cuda.so has no current stream, wanted torch 2.11 or newer with CUDA");
  if (getter(device_index, &stream) != 0)
    refuse(spec, "torch gave no current stream for cuda:" + std::to_string(device_index));
  return stream;
}

void launch(const Spec& spec, Args args) {
  const char* error = spec.launch(args);
  if (error != nullptr)
    refuse(spec, "the launch for M=" + std::to_string(args.m) + ", K=" + std::to_string(args.k) + " failed: " + error);
}

void run(const Spec& spec, const Tensor& a, const Tensor& x, const Tensor& out) {
  check(spec, a, x, out);
  Args args{};
  args.a = static_cast<const float*>(a.data_ptr());
  args.x = static_cast<const float*>(x.data_ptr());
  args.y = static_cast<float*>(out.data_ptr());
  args.m = a.size(0);
  args.k = a.size(1);
  if (args.m == 0) return;
  if (!spec.on_cuda) return launch(spec, args);
  const std::int32_t device_index = a.get_device_index();
  const torch::stable::accelerator::DeviceGuard guard(device_index);
  args.stream = current_cuda_stream(spec, device_index);
  launch(spec, args);
}

}  // namespace

void call(const Spec& spec, std::uint64_t* stack) {
  // Taking a tensor off the stack takes its reference over, so take all three before anything can throw.
  const Tensor a = torch::stable::detail::to<Tensor>(stack[0]);
  const Tensor x = torch::stable::detail::to<Tensor>(stack[1]);
  const Tensor out = torch::stable::detail::to<Tensor>(stack[2]);
  run(spec, a, x, out);
}

Registration::Registration(const Spec& spec, BoxedFunction boxed, const char* file, std::uint32_t line) {
  static std::vector<std::unique_ptr<StableLibrary>> libraries;  // torch forgets an op when its library object dies
  const std::string schema = std::string(spec.name) + "(Tensor a, Tensor x, Tensor(a!) out) -> ()";
  libraries.push_back(
      std::make_unique<StableLibrary>(StableLibrary::Kind::FRAGMENT, "sgemv", nullptr, file, line));
  libraries.back()->def(schema.c_str());
  for (const char* key : {"CUDA", "CPU"}) {  // both: the wrong one is refused by `check` in words
    libraries.push_back(std::make_unique<StableLibrary>(StableLibrary::Kind::IMPL, "sgemv", key, file, line));
    libraries.back()->impl(spec.name, boxed);
  }
}

}  // namespace sgemv
