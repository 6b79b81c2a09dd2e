// One warp a row, one float a lane and iteration. Aims at: the plainest kernel whose loads coalesce; a warp reads 128
// contiguous bytes of A at a time. Its limit is one 4-byte load in flight a lane, and 4 rows a block whatever M is.
#include "common.cuh"

namespace sgemv {

// block (32, 4), grid ceil(m / 4)
__global__ void sgemv_k32_f32_kernel(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ y,
                                     std::int64_t m, std::int64_t k) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= m) return;  // the same for all lanes of the warp
  const float* a_row = a + row * k;
  float sum = 0.0f;
  for (std::int64_t column = threadIdx.x; column < k; column += 32) sum += a_row[column] * x[column];
  sum = sum_over_lanes<32>(sum);
  if (threadIdx.x == 0) y[row] = sum;
}

}  // namespace sgemv

SGEMV_KERNEL(sgemv_k32_f32, K_MULTIPLE_OF, 32, PACKED, 4, "one warp a row, scalar loads, 4 rows a block") {
  const unsigned blocks = sgemv::grid_of(sgemv::ceil_div(args.m, 4));
  sgemv::sgemv_k32_f32_kernel<<<blocks, dim3(32, 4), 0, sgemv::stream_of(args)>>>(args.a, args.x, args.y, args.m,
                                                                                   args.k);
}
