// The float32 ops in torch: checks operands, launches, registers. Built on the LibTorch stable ABI, so that one library
// loads in every torch from 2.11 on; nothing links against libtorch_cuda, so CPU-only ones included.
// kernels/checks.py says the same words for meta tensors; tests hold the two together.
#include "op.h"

#include "glue.h"
#include "overlap.h"

namespace sgemv {
namespace {

void check_shape(const Spec& spec, std::string_view label, const Tensor& tensor, std::int64_t rows, const Tensor& a) {
  if (tensor.size(0) == rows && tensor.size(1) == 1) return;
  refuse(spec.name, std::string(label) + " has shape " + shape_of(tensor) + ", wanted " + tuple(rows, 1) +
                        " to fit a's " + shape_of(a));
}

void check_packed(const Spec& spec, std::string_view label, const Tensor& tensor) {
  if (tensor.is_contiguous()) return;
  refuse(spec.name, std::string(label) + " has strides " + tuple(tensor.stride(0), tensor.stride(1)) + ", wanted " +
                        tuple(tensor.size(1), 1) + ", row-major and packed; copy it with .contiguous()");
}

// Sizes of 0 or 1 leave a stride without meaning.
bool is_row_major(const Tensor& a) { return a.stride(1) == 1 || a.size(1) <= 1 || a.size(0) == 0; }
bool is_column_major(const Tensor& a) { return a.stride(0) == 1 || a.size(0) <= 1 || a.size(1) == 0; }

void check_strides(const Spec& spec, const Tensor& a, const Tensor& out) {
  const std::string found = "a has strides " + tuple(a.stride(0), a.stride(1)) + ", wanted ";
  const bool rows = is_row_major(a);
  const bool columns = is_column_major(a);
  if (spec.layout == ROWS && !rows) refuse(spec.name, found + "(any, 1), row-major; copy it with .contiguous()");
  if (spec.layout == COLUMNS && !columns)
    refuse(spec.name, found + "(1, any), column-major; copy it with .t().contiguous().t()");
  if (!rows && !columns)
    refuse(spec.name, found + "(any, 1) or (1, any), row- or column-major; copy it with .contiguous()");
  if (out.size(0) > 1 && out.stride(0) == 0)
    refuse(spec.name, "out has stride 0, wanted a place for each of its " + std::to_string(out.size(0)) +
                          " values; allocate it with torch.empty");
}

void check_k(const Spec& spec, std::int64_t k) {
  const std::string found = "K=" + std::to_string(k) + " is not ";
  const std::string wanted = std::to_string(spec.k_value);
  if (spec.k_rule == K_MULTIPLE_OF && k % spec.k_value != 0)
    refuse(spec.name, found + "a multiple of " + wanted + "; pad a and x with zeros or use another kernel");
  if (spec.k_rule == K_EQUAL_TO && k != spec.k_value) refuse(spec.name, found + wanted + "; use another kernel");
  if (spec.k_rule == K_AT_MOST && k > spec.k_value)
    refuse(spec.name, "K=" + std::to_string(k) + " is more than " + wanted + "; use another kernel");
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
  const Named all = {{"a", &a}, {"x", &x}, {"out", &out}};
  check_devices(spec.name, spec.on_cuda, all);
  for (const auto& [label, tensor] : all)
    check_dims(spec.name, label, *tensor, 2, "a is (M, K), x is (K, 1), out is (M, 1)");
  for (const auto& [label, tensor] : all)
    check_dtype(spec.name, label, *tensor, ScalarType::Float, "convert it with .float()");
  check_shape(spec, "x", x, a.size(1), a);
  check_shape(spec, "out", out, a.size(0), a);
  if (spec.layout == PACKED)
    for (const auto& [label, tensor] : all) check_packed(spec, label, *tensor);
  else
    check_strides(spec, a, out);
  check_k(spec, a.size(1));
  check_alignment(spec.name, "a", a, spec.alignment_bytes);
  check_alignment(spec.name, "x", x, spec.alignment_bytes);
  check_alignment(spec.name, "out", out, alignof(float));
  const Args args = arguments(spec, a, x, out);
  check_overlap(spec.name, overlapped(args));
  return args;
}

}  // namespace

const Spec* find(const char* name) {
  const auto found = specs<Spec>().find(name);
  return found == specs<Spec>().end() ? nullptr : found->second;
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
  const Args args = checked(spec, a, x, out);
  const char* const error = args.m > 0 ? launch(spec, args, a) : nullptr;
  if (error != nullptr)
    refuse(spec.name, "the launch for M=" + std::to_string(args.m) + ", K=" + std::to_string(args.k) + " failed: " + error);
}

Registration::Registration(const Spec& spec, BoxedFunction boxed, const char* file, std::uint32_t line) {
  specs<Spec>().emplace(spec.name, &spec);
  define_op(spec.name, "Tensor a, Tensor x, Tensor(a!) out", boxed, file, line);
}

}  // namespace sgemv
