// One line declares a kernel: name, rule for K, layout, alignment of A and x in bytes, summary. It stands in the kernel's
// own file, is followed by the launcher's body, and is read by the compiler and by kernels/declarations.py alike:
//
//   SGEMV_KERNEL(name, K_MULTIPLE_OF, 32, PACKED, 4, "one line on the design") {
//     name_kernel<<<grid, block, 0, stream_of(args)>>>(args.a, args.x, args.y, args.m, args.k);
//   }
//
// It defines and registers the op `sgemv::name(Tensor a, Tensor x, Tensor(a!) out) -> ()`. op.cpp checks the tensors
// and knows torch; this header and the kernels do not, so that they compile in a second and anywhere.
#pragma once

#include <cstdint>

namespace sgemv {

// Device memory for one launch, from torch's allocator: ordered like the launch itself on the caller's stream.
struct Scratch {
  virtual float* floats(std::int64_t count) = 0;  // valid until the launcher returns and whatever it started has run

 protected:
  ~Scratch() = default;
};

// What a launcher gets: checked operands on the device, m >= 1, k >= 0. Strides are in elements and never negative.
struct Args {
  const float* a;  // (m, k): element (i, j) is a[i * a_stride + j], by_columns: a[i + j * a_stride]
  const float* x;  // (k): element j is x[j * x_stride]
  float* y;        // (m): element i is y[i * y_stride]
  std::int64_t m;
  std::int64_t k;
  std::int64_t a_stride;
  std::int64_t x_stride;
  std::int64_t y_stride;
  bool by_columns;
  void* stream;  // the caller's current cudaStream_t; null on the CPU
  Scratch* scratch;
};

enum KRule { K_ANY, K_MULTIPLE_OF, K_EQUAL_TO, K_AT_MOST };

// What a launcher can be given.
enum LayoutRule {
  PACKED,           // A row-major with a_stride == k, x_stride == y_stride == 1
  ROWS,             // A row-major, any strides
  COLUMNS,          // A column-major, any strides
  ROWS_OR_COLUMNS,  // any of these
};

struct Spec {
  const char* name;
  KRule k_rule;
  std::int64_t k_value;  // of every rule but K_ANY, where it is 1
  LayoutRule layout;
  std::int64_t alignment_bytes;  // of A's and x's first element
  bool on_cuda;
  void (*start)(const Args&);          // launches; whether that worked is to be asked
  const char* (*launch)(const Args&);  // the same, and asks: null, or the words of the error
};

inline bool is_packed(const Args& args) {
  return !args.by_columns && args.a_stride == args.k && args.x_stride == 1 && args.y_stride == 1;
}

// What of `args` the kernel does not take, or null: for one that hands its own operands on.
inline const char* misfit(const Spec& spec, const Args& args) {
  const bool k_fits = spec.k_rule == K_ANY || (spec.k_rule == K_MULTIPLE_OF && args.k % spec.k_value == 0) ||
                      (spec.k_rule == K_EQUAL_TO && args.k == spec.k_value) ||
                      (spec.k_rule == K_AT_MOST && args.k <= spec.k_value);
  const bool layout_fits = spec.layout == ROWS_OR_COLUMNS || (spec.layout == PACKED && is_packed(args)) ||
                           (spec.layout == ROWS && !args.by_columns) || (spec.layout == COLUMNS && args.by_columns);
  const auto past = [&](const float* first) { return reinterpret_cast<std::uintptr_t>(first) % spec.alignment_bytes; };
  if (!k_fits) return "does not take this K";
  if (!layout_fits) return "does not take this layout";
  return past(args.a) == 0 && past(args.x) == 0 ? nullptr : "does not take this alignment";
}

// The kernel of that name among those of this library, or null. Not before all of it is loaded.
const Spec* find(const char* name);

// The same, to be handed `args`. Throws std::runtime_error: there is none, or it does not take them.
const Spec& pick(const char* name, const Args& args);

// Checks the three tensors on torch's stack, launches, and takes them off the stack. Throws std::runtime_error.
void call(const Spec& spec, std::uint64_t* stack);

using BoxedFunction = void (*)(std::uint64_t* stack, std::uint64_t inputs, std::uint64_t outputs);

// Registers schema and implementations when the library is loaded.
struct Registration {
  Registration(const Spec& spec, BoxedFunction boxed, const char* file, std::uint32_t line);
};

#ifdef __CUDACC__
constexpr bool kOnCuda = true;
inline cudaStream_t stream_of(const Args& args) { return static_cast<cudaStream_t>(args.stream); }
inline const char* launch_error() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
#else
constexpr bool kOnCuda = false;
inline const char* launch_error() { return nullptr; }
#endif

}  // namespace sgemv

#define SGEMV_OP(name, k_rule, k_value, layout, alignment)                                                          \
  static void name##_start(const sgemv::Args& args);                                                                \
  static const char* name##_launch(const sgemv::Args& args) {                                                       \
    name##_start(args);                                                                                             \
    return sgemv::launch_error();                                                                                   \
  }                                                                                                                 \
  static const sgemv::Spec name##_spec = {#name,     sgemv::k_rule,  k_value,      sgemv::layout,                   \
                                          alignment, sgemv::kOnCuda, name##_start, name##_launch};                  \
  static void name##_boxed(std::uint64_t* stack, std::uint64_t, std::uint64_t) { sgemv::call(name##_spec, stack); } \
  static const sgemv::Registration name##_registration(name##_spec, name##_boxed, __FILE__, __LINE__);              \
  static void name##_start(const sgemv::Args& args)

// Computes y = A x.
#define SGEMV_KERNEL(name, k_rule, k_value, layout, alignment, summary) \
  SGEMV_OP(name, k_rule, k_value, layout, alignment)
// The same, as a candidate for the rule of `sgemv`: measured only when asked for by name.
#define SGEMV_VARIANT(name, k_rule, k_value, layout, alignment, summary) \
  SGEMV_OP(name, k_rule, k_value, layout, alignment)
// Reads A and x and writes m values: a variant of `read`.
#define SGEMV_LIMIT(name, k_rule, k_value, layout, alignment, summary) SGEMV_OP(name, k_rule, k_value, layout, alignment)
// Does nothing: `empty`.
#define SGEMV_FLOOR(name, k_rule, k_value, layout, alignment, summary) SGEMV_OP(name, k_rule, k_value, layout, alignment)
