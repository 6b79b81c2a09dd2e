// One line declares a kernel: name, rule for K, alignment of A and x in bytes, summary. It stands in the kernel's own
// file, is followed by the launcher's body, and is read by the compiler and by kernels/declarations.py alike:
//
//   SGEMV_KERNEL(name, K_MULTIPLE_OF, 32, 4, "one line on the design") {
//     name_kernel<<<grid, block, 0, stream_of(args)>>>(args.a, args.x, args.y, args.m, args.k);
//   }
//
// It defines and registers the op `sgemv::name(Tensor a, Tensor x, Tensor(a!) out) -> ()`. op.cpp checks the tensors
// and knows torch; this header and the kernels do not, so that they compile in a second and anywhere.
#pragma once

#include <cstdint>

namespace sgemv {

// What a launcher gets: checked operands on the device, packed, m >= 1, k >= 0.
struct Args {
  const float* a;  // (m, k), row-major
  const float* x;  // (k)
  float* y;        // (m)
  std::int64_t m;
  std::int64_t k;
  void* stream;  // the caller's current cudaStream_t; null on the CPU
};

enum KRule { K_ANY, K_MULTIPLE_OF, K_EQUAL_TO };

struct Spec {
  const char* name;
  KRule k_rule;
  std::int64_t k_value;          // of K_MULTIPLE_OF and K_EQUAL_TO; 1 for K_ANY
  std::int64_t alignment_bytes;  // of A's and x's first element
  bool on_cuda;
  const char* (*launch)(const Args&);  // null, or the words of the error
};

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

#define SGEMV_OP(name, k_rule, k_value, alignment)                                                                    \
  static void name##_start(const sgemv::Args& args);                                                                  \
  static const char* name##_launch(const sgemv::Args& args) {                                                         \
    name##_start(args);                                                                                               \
    return sgemv::launch_error();                                                                                     \
  }                                                                                                                   \
  static const sgemv::Spec name##_spec = {#name,     sgemv::k_rule,  k_value,                                         \
                                          alignment, sgemv::kOnCuda, name##_launch};                                  \
  static void name##_boxed(std::uint64_t* stack, std::uint64_t, std::uint64_t) { sgemv::call(name##_spec, stack); }   \
  static const sgemv::Registration name##_registration(name##_spec, name##_boxed, __FILE__, __LINE__);                \
  static void name##_start(const sgemv::Args& args)

// Computes y = A x.
#define SGEMV_KERNEL(name, k_rule, k_value, alignment, summary) SGEMV_OP(name, k_rule, k_value, alignment)
// Reads A and x and writes m values: a variant of `read`.
#define SGEMV_LIMIT(name, k_rule, k_value, alignment, summary) SGEMV_OP(name, k_rule, k_value, alignment)
// Does nothing: `empty`.
#define SGEMV_FLOOR(name, k_rule, k_value, alignment, summary) SGEMV_OP(name, k_rule, k_value, alignment)
