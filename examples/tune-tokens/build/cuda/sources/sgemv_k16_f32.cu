// Two rows a warp, 16 lanes a row. Aims at: K = 16, where a whole warp a row would leave half its lanes idle. Two
// neighbouring rows are 128 contiguous bytes, so a warp still reads whole lines; the two halves reduce on their own.
#include "common.cuh"

namespace sgemv {

// block (32, 4), grid ceil(m / 8)
__global__ void sgemv_k16_f32_kernel(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ y,
                                     std::int64_t m) {
  constexpr int k = 16;
  const int column = threadIdx.x % k;
  const std::int64_t warp = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const std::int64_t row = warp * 2 + threadIdx.x / k;
  // With m odd the last warp has one row: its other half adds zeros, since every lane must take part in the shuffles.
  float sum = row < m ? a[row * k + column] * x[column] : 0.0f;
  sum = sum_over_lanes<k>(sum);
  if (column == 0 && row < m) y[row] = sum;
}

}  // namespace sgemv

SGEMV_KERNEL(sgemv_k16_f32, K_EQUAL_TO, 16, PACKED, 4, "two rows a warp, 16 lanes a row, 8 rows a block") {
  const unsigned blocks = sgemv::grid_of(sgemv::ceil_div(args.m, 8));
  sgemv::sgemv_k16_f32_kernel<<<blocks, dim3(32, 4), 0, sgemv::stream_of(args)>>>(args.a, args.x, args.y, args.m);
}
