// Device-side helpers that several kernels share.
#pragma once

#include "op.h"

namespace sgemv {

constexpr unsigned kAllLanes = 0xffffffffu;

__host__ __device__ constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// Sum over groups of `width` neighbouring lanes; every lane gets its group's sum. All 32 lanes must call it.
template <int width>
__device__ float sum_over_lanes(float value) {
#pragma unroll
  for (int distance = width / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

// 16 bytes that are read once: not kept in L1, and fetched into L2 256 bytes at a time.
__device__ inline float4 load_once(const float4* address) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float4 value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "l"(address));
  return value;
#else
  return *address;
#endif
}

}  // namespace sgemv
