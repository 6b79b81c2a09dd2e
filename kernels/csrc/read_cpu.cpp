// Adds every element of A and of x up and writes m values, on one CPU thread. Aims at: what one thread can read at this
// size, the limit of sgemv_cpu_f32 (torch.matmul uses several threads and may be faster than it).
#include "op.h"

namespace sgemv {

constexpr int kPartialSums = 64;

float sum_of(const float* values, std::int64_t count) {
  float partial[kPartialSums] = {};
  std::int64_t element = 0;
  for (; element + kPartialSums <= count; element += kPartialSums)
    for (int i = 0; i < kPartialSums; ++i) partial[i] += values[element + i];
  float sum = 0.0f;
  for (; element < count; ++element) sum += values[element];
  for (int i = 0; i < kPartialSums; ++i) sum += partial[i];
  return sum;
}

}  // namespace sgemv

SGEMV_LIMIT(read_cpu_thread, K_ANY, 1, PACKED, 4, "one CPU thread, 64 partial sums") {
  const float sum = sgemv::sum_of(args.a, args.m * args.k) + sgemv::sum_of(args.x, args.k);
  for (std::int64_t row = 0; row < args.m; ++row) args.y[row] = sum;
}
