// All that knows torch: checks operands, finds the caller's stream, registers ops. Built on the LibTorch stable ABI, so
// that one library loads in every torch from 2.11 on; nothing links against libtorch_cuda, so CPU-only ones included.
// kernels/ops.py says the same words for meta tensors; tests hold the two together.
#include "op.h"

#include <dlfcn.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "overlap.h"

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

// Sizes of 0 or 1 leave a stride without meaning.
bool is_row_major(const Tensor& a) { return a.stride(1) == 1 || a.size(1) <= 1 || a.size(0) == 0; }
bool is_column_major(const Tensor& a) { return a.stride(0) == 1 || a.size(0) <= 1 || a.size(1) == 0; }

void check_strides(const Spec& spec, const Tensor& a, const Tensor& out) {
  const std::string found = "a has strides " + tuple(a.stride(0), a.stride(1)) + ", wanted ";
  const bool rows = is_row_major(a);
  const bool columns = is_column_major(a);
  if (spec.layout == ROWS && !rows) refuse(spec, found + "(any, 1), row-major; copy it with .contiguous()");
  if (spec.layout == COLUMNS && !columns)
    refuse(spec, found + "(1, any), column-major; copy it with .t().contiguous().t()");
  if (!rows && !columns)
    refuse(spec, found + "(any, 1) or (1, any), row- or column-major; copy it with .contiguous()");
  if (out.size(0) > 1 && out.stride(0) == 0)
    refuse(spec, "out has stride 0, wanted a place for each of its " + std::to_string(out.size(0)) +
                     " values; allocate it with torch.empty");
}

void check_k(const Spec& spec, std::int64_t k) {
  const std::string found = "K=" + std::to_string(k) + " is not ";
  const std::string wanted = std::to_string(spec.k_value);
  if (spec.k_rule == K_MULTIPLE_OF && k % spec.k_value != 0)
    refuse(spec, found + "a multiple of " + wanted + "; pad a and x with zeros or use another kernel");
  if (spec.k_rule == K_EQUAL_TO && k != spec.k_value) refuse(spec, found + wanted + "; use another kernel");
  if (spec.k_rule == K_AT_MOST && k > spec.k_value)
    refuse(spec, "K=" + std::to_string(k) + " is more than " + wanted + "; use another kernel");
}

void check_alignment(const Spec& spec, const char* label, const Tensor& tensor, std::int64_t alignment_bytes) {
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % alignment_bytes);
  if (past == 0 || tensor.numel() == 0) return;
  refuse(spec, std::string(label) + " starts " + std::to_string(past) + " bytes past a multiple of " +
                   std::to_string(alignment_bytes) + " bytes, wanted none; copy it with .clone()");
}

void check_overlap(const Spec& spec, const Args& args) {
  const char* const label = overlapped(args);
  if (label != nullptr)
    refuse(spec, std::string("out overlaps ") + label + ", wanted memory of its own; allocate it with torch.empty");
}

// Strides without meaning become those of packed operands.
Args arguments(const Spec& spec, const Tensor& a, const Tensor& x, const Tensor& out) {
  Args args{};
  args.a = static_cast<const float*>(a.data_ptr());
  args.x = static_cast<const float*>(x.data_ptr());
  args.y = static_cast<float*>(out.data_ptr());
  args.m = a.size(0);
  args.k = a.size(1);
  args.by_columns = spec.layout == COLUMNS || !is_row_major(a);
  if (args.by_columns)
    args.a_stride = args.k > 1 && args.m > 0 ? a.stride(1) : args.m;
  else
    args.a_stride = args.m > 1 && args.k > 0 ? a.stride(0) : args.k;
  args.x_stride = args.k > 1 ? x.stride(0) : 1;
  args.y_stride = args.m > 1 ? out.stride(0) : 1;
  return args;
}

Args checked(const Spec& spec, const Tensor& a, const Tensor& x, const Tensor& out) {
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
  if (spec.layout == PACKED)
    for (const auto& [label, tensor] : all) check_packed(spec, label, tensor);
  else
    check_strides(spec, a, out);
  check_k(spec, a.size(1));
  check_alignment(spec, "a", a, spec.alignment_bytes);
  check_alignment(spec, "x", x, spec.alignment_bytes);
  check_alignment(spec, "out", out, alignof(float));
  const Args args = arguments(spec, a, x, out);
  check_overlap(spec, args);
  return args;
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

// From torch's allocator, in the order of the current stream: what comes after the launch may have the memory again.
class TorchScratch final : public Scratch {
 public:
  explicit TorchScratch(const Tensor& like) : like_(like) {}
  float* floats(std::int64_t count) override {
    tensors_.push_back(torch::stable::new_empty(like_, {count}));
    return static_cast<float*>(tensors_.back().data_ptr());
  }

 private:
  const Tensor& like_;
  std::vector<Tensor> tensors_;
};

void launch(const Spec& spec, const Args& args) {
  const char* error = spec.launch(args);
  if (error != nullptr)
    refuse(spec, "the launch for M=" + std::to_string(args.m) + ", K=" + std::to_string(args.k) + " failed: " + error);
}

void run(const Spec& spec, const Tensor& a, const Tensor& x, const Tensor& out) {
  Args args = checked(spec, a, x, out);
  TorchScratch scratch(a);
  args.scratch = &scratch;
  if (args.m == 0) return;
  if (!spec.on_cuda) return launch(spec, args);
  const std::int32_t device_index = a.get_device_index();
  const torch::stable::accelerator::DeviceGuard guard(device_index);
  args.stream = current_cuda_stream(spec, device_index);
  launch(spec, args);
}

std::map<std::string, const Spec*>& specs() {
  static std::map<std::string, const Spec*> by_name;
  return by_name;
}

}  // namespace

const Spec* find(const char* name) {
  const auto found = specs().find(name);
  return found == specs().end() ? nullptr : found->second;
}

const Spec& pick(const char* name, const Args& args) {
  const Spec* const spec = find(name);
  const char* const why = spec == nullptr ? "is no kernel of this library" : misfit(*spec, args);
  if (why != nullptr) throw std::runtime_error("the rule picks " + std::string(name) + ", which " + why + "; mend rule.h");
  return *spec;
}

void call(const Spec& spec, std::uint64_t* stack) {
  // Taking a tensor off the stack takes its reference over, so take all three before anything can throw.
  const Tensor a = torch::stable::detail::to<Tensor>(stack[0]);
  const Tensor x = torch::stable::detail::to<Tensor>(stack[1]);
  const Tensor out = torch::stable::detail::to<Tensor>(stack[2]);
  run(spec, a, x, out);
}

Registration::Registration(const Spec& spec, BoxedFunction boxed, const char* file, std::uint32_t line) {
  specs().emplace(spec.name, &spec);
  static std::vector<std::unique_ptr<StableLibrary>> libraries;  // torch forgets an op when its library object dies
  const std::string schema = std::string(spec.name) + "(Tensor a, Tensor x, Tensor(a!) out) -> ()";
  libraries.push_back(
      std::make_unique<StableLibrary>(StableLibrary::Kind::FRAGMENT, "sgemv", nullptr, file, line));
  libraries.back()->def(schema.c_str());
  for (const char* key : {"CUDA", "CPU"}) {  // both: the wrong one is refused by `checked` in words
    libraries.push_back(std::make_unique<StableLibrary>(StableLibrary::Kind::IMPL, "sgemv", key, file, line));
    libraries.back()->impl(spec.name, boxed);
  }
}

}  // namespace sgemv
