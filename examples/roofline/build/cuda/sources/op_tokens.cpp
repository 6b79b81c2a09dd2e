// The ops of other dtypes and several tokens in torch, as op.cpp those of float32: checks operands, launches, registers.
// kernels/token_checks.py says the same words for meta tensors; tests hold the two together.
#include <algorithm>
#include <optional>

#include "glue.h"
#include "overlap.h"
#include "tokens.h"

namespace sgemv {
namespace {

constexpr std::int64_t kHalfBytes = 2;

struct Operands {
  Tensor a;
  std::optional<Tensor> scale;  // of INT8
  std::optional<Tensor> zero;   // of INT8, where there is one
  Tensor x;
  Tensor out;
};

// The matrices are lines of neighbours: rows of a, tokens of x and out, which are the columns of these.
struct Lines {
  std::int64_t count, length, stride, step;  // step: from one element of a line to the next

  Lines(const Tensor& matrix, bool by_columns)
      : count(matrix.size(by_columns ? 1 : 0)),
        length(matrix.size(by_columns ? 0 : 1)),
        stride(matrix.stride(by_columns ? 1 : 0)),
        step(matrix.stride(by_columns ? 0 : 1)) {}
  // Sizes of 0 or 1 leave a stride without meaning: it becomes that of packed operands.
  std::int64_t period() const { return count > 1 && length > 0 ? stride : length; }
  bool has_neighbours() const { return step == 1 || length <= 1 || count == 0; }
};

const Tensor* address(const std::optional<Tensor>& tensor) { return tensor ? &*tensor : nullptr; }

Named named(const Operands& all) {
  return {{"a", &all.a}, {"scale", address(all.scale)}, {"zero", address(all.zero)}, {"x", &all.x}, {"out", &all.out}};
}

bool is_vector(std::string_view label) { return label == "scale" || label == "zero"; }

void check_all_dims(const TokenSpec& spec, const Named& all) {
  const char* const form = spec.dtype == INT8 ? "a is (M, K), scale and zero are (M), x is (K, T), out is (M, T)"
                                              : "a is (M, K), x is (K, T), out is (M, T)";
  for (const auto& [label, tensor] : all) check_dims(spec.name, label, *tensor, is_vector(label) ? 1 : 2, form);
}

void check_dtypes(const TokenSpec& spec, const Named& all) {
  for (const auto& [label, tensor] : all) {
    if (spec.dtype == INT8 && (label == "a" || label == "zero"))
      check_dtype(spec.name, label, *tensor, ScalarType::Char, "make it with kernels.quantize.quantize");
    else if (spec.dtype == BFLOAT16)
      check_dtype(spec.name, label, *tensor, ScalarType::BFloat16, "convert it with .bfloat16()");
    else
      check_dtype(spec.name, label, *tensor, ScalarType::Half, "convert it with .half()");
  }
}

void check_shapes(const TokenSpec& spec, const Operands& all) {
  const std::int64_t m = all.a.size(0), k = all.a.size(1), tokens = all.x.size(1);
  const auto end = [&] { return " to fit a's " + shape_of(all.a); };
  for (const auto& [label, tensor] : named(all))
    if (is_vector(label) && tensor->size(0) != m)
      refuse(spec.name, std::string(label) + " has shape (" + std::to_string(tensor->size(0)) + "), wanted (" +
                            std::to_string(m) + ")" + end());
  if (all.x.size(0) != k)
    refuse(spec.name, "x has shape " + shape_of(all.x) + ", wanted (" + std::to_string(k) + ", T)" + end());
  if (tokens < 1 || tokens > spec.most_n)
    refuse(spec.name, "x has T=" + std::to_string(tokens) + " columns, wanted from 1 to " +
                          std::to_string(spec.most_n) + "; use another kernel");
  if (all.out.size(0) != m || all.out.size(1) != tokens)
    refuse(spec.name, "out has shape " + shape_of(all.out) + ", wanted " + tuple(m, tokens) + end() + " and x's " +
                          shape_of(all.x));
}

void check_lines(const TokenSpec& spec, std::string_view label, const Tensor& matrix, bool by_columns) {
  const Lines lines(matrix, by_columns);
  const std::int64_t period = lines.period();
  if (lines.has_neighbours() && (period == lines.length || (!spec.packed && period > lines.length))) return;
  const std::string length = std::to_string(lines.length) + (spec.packed ? "" : " or more");
  const std::string wanted = by_columns ? "(1, " + length + "), column-major" : "(" + length + ", 1), row-major";
  refuse(spec.name, std::string(label) + " has strides " + tuple(matrix.stride(0), matrix.stride(1)) + ", wanted " +
                        wanted + (spec.packed ? " and packed" : "") + "; copy it with " +
                        (by_columns ? ".t().contiguous().t()" : ".contiguous()"));
}

void check_strides(const TokenSpec& spec, const Named& all) {
  for (const auto& [label, tensor] : all) {
    if (!is_vector(label))
      check_lines(spec, label, *tensor, label != "a");
    else if (tensor->size(0) > 1 && tensor->stride(0) != 1)
      refuse(spec.name, std::string(label) + " has stride " + std::to_string(tensor->stride(0)) +
                            ", wanted 1; copy it with .contiguous()");
  }
}

void check_alignments(const TokenSpec& spec, const Operands& all) {
  check_alignment(spec.name, "a", all.a, spec.alignment_bytes);
  if (all.scale) check_alignment(spec.name, "scale", *all.scale, kHalfBytes);
  check_alignment(spec.name, "x", all.x, std::max(spec.alignment_bytes, kHalfBytes));
  check_alignment(spec.name, "out", all.out, kHalfBytes);
}

TokenArgs arguments(const Operands& all) {
  TokenArgs args{};
  args.a = all.a.data_ptr();
  args.x = all.x.data_ptr();
  args.y = all.out.data_ptr();
  if (all.scale) args.scale = all.scale->data_ptr();
  if (all.zero) args.zero = static_cast<const signed char*>(all.zero->data_ptr());
  args.m = all.a.size(0);
  args.k = all.a.size(1);
  args.n = all.x.size(1);
  args.a_stride = Lines(all.a, false).period();
  args.x_stride = Lines(all.x, true).period();
  args.y_stride = Lines(all.out, true).period();
  return args;
}

TokenArgs checked(const TokenSpec& spec, const Operands& operands) {
  const Named all = named(operands);
  check_devices(spec.name, spec.on_cuda, all);
  check_all_dims(spec, all);
  check_dtypes(spec, all);
  check_shapes(spec, operands);
  check_strides(spec, all);
  check_alignments(spec, operands);
  const TokenArgs args = arguments(operands);
  check_overlap(spec.name, overlapped(args, spec.dtype));
  return args;
}

// Taking a tensor off the stack takes its reference over, so all are taken before anything can throw.
Operands taken(const TokenSpec& spec, std::uint64_t* stack) {
  using torch::stable::detail::to;
  if (spec.dtype == INT8)
    return {to<Tensor>(stack[0]), to<Tensor>(stack[1]), to<std::optional<Tensor>>(stack[2]), to<Tensor>(stack[3]),
            to<Tensor>(stack[4])};
  return {to<Tensor>(stack[0]), std::nullopt, std::nullopt, to<Tensor>(stack[1]), to<Tensor>(stack[2])};
}

}  // namespace

const TokenSpec* find_for_tokens(const char* name) {
  const auto found = specs<TokenSpec>().find(name);
  return found == specs<TokenSpec>().end() ? nullptr : found->second;
}

const TokenSpec& pick(const TokenSpec& chooser, const char* stem, const TokenArgs& args) {
  const std::string name = std::string(chooser.name) + "_" + stem;
  const TokenSpec* const spec = find_for_tokens(name.c_str());
  const char* const why = spec == nullptr ? "is no kernel of this library" : misfit(*spec, chooser.dtype, args);
  if (why != nullptr) throw std::runtime_error("the rule picks " + name + ", which " + why + "; mend that rule");
  return *spec;
}

void call(const TokenSpec& spec, std::uint64_t* stack) {
  const Operands operands = taken(spec, stack);
  const TokenArgs args = checked(spec, operands);
  const char* const error = args.m > 0 ? launch(spec, args, operands.a) : nullptr;
  if (error != nullptr)
    refuse(spec.name, "the launch for M=" + std::to_string(args.m) + ", K=" + std::to_string(args.k) +
                          ", T=" + std::to_string(args.n) + " failed: " + error);
}

TokenRegistration::TokenRegistration(const TokenSpec& spec, BoxedFunction boxed, const char* file, std::uint32_t line) {
  specs<TokenSpec>().emplace(spec.name, &spec);
  const char* const operands = spec.dtype == INT8 ? "Tensor a, Tensor scale, Tensor? zero, Tensor x, Tensor(a!) out"
                                                  : "Tensor a, Tensor x, Tensor(a!) out";
  define_op(spec.name, operands, boxed, file, line);
}

}  // namespace sgemv
