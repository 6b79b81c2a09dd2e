// One warp a row, one float4 a lane and iteration. Aims at: a quarter of the load instructions of sgemv_k32_f32 for the
// same bytes; a warp reads 512 contiguous bytes of A at a time.
#include "common.cuh"

namespace sgemv {

// block (32, 4), grid ceil(m / 4); a and x aligned to 16 bytes
__global__ void sgemv_k128_f32x4_kernel(const float* __restrict__ a, const float* __restrict__ x,
                                        float* __restrict__ y, std::int64_t m, std::int64_t k) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= m) return;  // the same for all lanes of the warp
  const float4* a_row = reinterpret_cast<const float4*>(a + row * k);
  const float4* x_vectors = reinterpret_cast<const float4*>(x);
  float sum = 0.0f;
  for (std::int64_t vector = threadIdx.x; vector < k / 4; vector += 32) {
    const float4 a4 = a_row[vector];
    const float4 x4 = x_vectors[vector];
    sum += a4.x * x4.x;
    sum += a4.y * x4.y;
    sum += a4.z * x4.z;
    sum += a4.w * x4.w;
  }
  sum = sum_over_lanes<32>(sum);
  if (threadIdx.x == 0) y[row] = sum;
}

}  // namespace sgemv

SGEMV_KERNEL(sgemv_k128_f32x4, K_MULTIPLE_OF, 128, PACKED, 16, "one warp a row, float4 loads, 4 rows a block") {
  const unsigned blocks = sgemv::grid_of(sgemv::ceil_div(args.m, 4));
  sgemv::sgemv_k128_f32x4_kernel<<<blocks, dim3(32, 4), 0, sgemv::stream_of(args)>>>(args.a, args.x, args.y, args.m,
                                                                                      args.k);
}
