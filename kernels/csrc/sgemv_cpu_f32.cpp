// One row after the other on one CPU thread, with several independent partial sums. Aims at: a plain kernel with which
// the whole harness runs on a machine without a GPU; not at the CPU's peak.
#include "op.h"

// One machine-code version for CPUs with AVX2 and FMA and one for any, chosen when the library is loaded: -march=native
// would make a cached library crash on another machine.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define SGEMV_BY_CPU __attribute__((target_clones("arch=haswell", "default")))
#else
#define SGEMV_BY_CPU
#endif

namespace sgemv {

constexpr int kPartialSums = 32;  // independent, so that no addition waits for the one before

SGEMV_BY_CPU float dot(const float* __restrict__ a_row, const float* __restrict__ x, std::int64_t k) {
  float partial[kPartialSums] = {};
  std::int64_t column = 0;
  for (; column + kPartialSums <= k; column += kPartialSums)
    for (int i = 0; i < kPartialSums; ++i) partial[i] += a_row[column + i] * x[column + i];
  float sum = 0.0f;
  for (; column < k; ++column) sum += a_row[column] * x[column];
  for (int i = 0; i < kPartialSums; ++i) sum += partial[i];
  return sum;
}

}  // namespace sgemv

SGEMV_KERNEL(sgemv_cpu_f32, K_ANY, 1, PACKED, 4, "one CPU thread, row after row, 32 partial sums") {
  for (std::int64_t row = 0; row < args.m; ++row) args.y[row] = sgemv::dot(args.a + row * args.k, args.x, args.k);
}
