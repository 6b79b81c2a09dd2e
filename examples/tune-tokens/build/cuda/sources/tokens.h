// Kernels of other dtypes, which take some tokens at once: Y = X·Wᵀ with W = A, accumulated in float32. One line declares
// one, as in op.h: name, dtype of A, most tokens, alignment of A's and x's first element in bytes, summary. It is read by
// the compiler and by kernels/declarations.py alike:
//
//   GEMV_KERNEL(name, FLOAT16, 8, 2, "one line on the design") {
//     name_kernel<<<grid, block, 0, stream_of(args)>>>(…);  // args is a const sgemv::TokenArgs&, name_spec its spec
//   }
//
// It defines and registers `sgemv::name(Tensor a, Tensor x, Tensor(a!) out) -> ()`, of INT8
// `sgemv::name(Tensor a, Tensor scale, Tensor? zero, Tensor x, Tensor(a!) out) -> ()`: a (M, K), x (K, T), out (M, T),
// where x.t() and out.t() are row-major, a token after the other.
#pragma once

#include <cstdint>

#include "op.h"

namespace sgemv {

enum DType { FLOAT16, BFLOAT16, INT8 };  // of A; x and y are of the same, for INT8 float16

// What a launcher gets: checked operands on the device, m >= 1, k >= 0, 1 <= n <= most_n. Strides are in elements and at
// least as long as a row or token.
struct TokenArgs {
  const void* a;            // (m, k): element (i, j) is a[i * a_stride + j]
  const void* x;            // (n, k): token t's element j is x[t * x_stride + j]
  void* y;                  // (n, m): y[t * y_stride + i]
  const void* scale;        // (m), float16; INT8 only
  const signed char* zero;  // (m); INT8 only, may be null: w = scale * (a - zero)
  std::int64_t m;
  std::int64_t k;
  std::int64_t n;
  std::int64_t a_stride;
  std::int64_t x_stride;
  std::int64_t y_stride;
  void* stream;  // the caller's current cudaStream_t
  Scratch* scratch;
};

struct TokenSpec {
  const char* name;
  DType dtype;
  std::int64_t most_n;
  std::int64_t alignment_bytes;             // of A's and x's first element
  bool packed;                              // takes a_stride == x_stride == k and y_stride == m only
  bool on_cuda;
  void (*start)(const TokenArgs&);          // launches; whether that worked is to be asked
  const char* (*launch)(const TokenArgs&);  // the same, and asks: null, or the words of the error
};

inline bool is_packed(const TokenArgs& args) {
  return args.a_stride == args.k && args.x_stride == args.k && args.y_stride == args.m;
}

// What of `args`, whose A is of `dtype`, the kernel does not take, or null: for one that hands its own operands on.
inline const char* misfit(const TokenSpec& spec, DType dtype, const TokenArgs& args) {
  const auto past = [&](const void* first) { return reinterpret_cast<std::uintptr_t>(first) % spec.alignment_bytes; };
  if (spec.dtype != dtype) return "does not take this dtype";
  if (args.n > spec.most_n) return "does not take so many tokens";
  if (spec.packed && !is_packed(args)) return "does not take this layout";
  return past(args.a) == 0 && past(args.x) == 0 ? nullptr : "does not take this alignment";
}

// The kernel of that name among those of this library, or null. Not before all of it is loaded.
const TokenSpec* find_for_tokens(const char* name);

// The kernel named `chooser`_`stem`, of the chooser's dtype, to be handed `args`. Throws std::runtime_error: there is
// none, or it does not take them.
const TokenSpec& pick(const TokenSpec& chooser, const char* stem, const TokenArgs& args);

// Checks the tensors on torch's stack, launches, and takes them off the stack. Throws std::runtime_error.
void call(const TokenSpec& spec, std::uint64_t* stack);

// Registers schema and implementations when the library is loaded.
struct TokenRegistration {
  TokenRegistration(const TokenSpec& spec, BoxedFunction boxed, const char* file, std::uint32_t line);
};

#ifdef __CUDACC__
inline cudaStream_t stream_of(const TokenArgs& args) { return static_cast<cudaStream_t>(args.stream); }
#endif

}  // namespace sgemv

#define GEMV_OP(name, dtype, most_n, alignment, packed)                                                             \
  static void name##_start(const sgemv::TokenArgs& args);                                                           \
  static const char* name##_launch(const sgemv::TokenArgs& args) {                                                  \
    name##_start(args);                                                                                             \
    return sgemv::launch_error();                                                                                   \
  }                                                                                                                 \
  static const sgemv::TokenSpec name##_spec = {#name,  sgemv::dtype,    most_n,       alignment,                    \
                                               packed, sgemv::kOnCuda,  name##_start, name##_launch};               \
  static void name##_boxed(std::uint64_t* stack, std::uint64_t, std::uint64_t) { sgemv::call(name##_spec, stack); } \
  static const sgemv::TokenRegistration name##_registration(name##_spec, name##_boxed, __FILE__, __LINE__);         \
  static void name##_start(const sgemv::TokenArgs& args)

// Computes Y = X·Wᵀ.
#define GEMV_KERNEL(name, dtype, most_n, alignment, summary) GEMV_OP(name, dtype, most_n, alignment, false)
// The same, as a candidate for the rule of the kernel of its dtype: measured only when asked for by name.
#define GEMV_VARIANT(name, dtype, most_n, alignment, summary) GEMV_OP(name, dtype, most_n, alignment, false)
// Reads A, x and for INT8 the scales, and writes n·m values: a variant of `read`. Takes packed operands only.
#define GEMV_LIMIT(name, dtype, most_n, alignment, summary) GEMV_OP(name, dtype, most_n, alignment, true)
