// Sums in two stages, where a cluster cannot add them up: a first kernel leaves `parts` partial sums of each row in scratch
// memory, a second one adds them up in a fixed order. Nothing is accumulated by atomics, so the same bits come out every
// time.
#pragma once

#include "common.cuh"

namespace sgemv {

constexpr int kRowsPerBlockOfParts = 8;

// y[row] = sum of partial[part * m + row]; a warp a row, block (32, kRowsPerBlockOfParts)
static __global__ void __launch_bounds__(32 * kRowsPerBlockOfParts)
    add_parts_kernel(const Args args, const float* __restrict__ partial, int parts) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kRowsPerBlockOfParts + threadIdx.y;
  if (row >= args.m) return;  // the same for all lanes of the warp
  float sum = 0.0f;
  for (int part = static_cast<int>(threadIdx.x); part < parts; part += 32) sum += partial[part * args.m + row];
  sum = sum_over_lanes<32>(sum);
  if (threadIdx.x == 0) args.y[row * args.y_stride] = sum;
}

inline void add_parts(const Args& args, const float* partial, int parts) {
  const auto blocks = grid_of(ceil_div(args.m, kRowsPerBlockOfParts));
  add_parts_kernel<<<blocks, dim3(32, kRowsPerBlockOfParts), 0, stream_of(args)>>>(args, partial, parts);
}

}  // namespace sgemv
