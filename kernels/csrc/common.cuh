// Device-side helpers that several kernels share.
#pragma once

#include "op.h"

namespace sgemv {

constexpr unsigned kAllLanes = 0xffffffffu;

// Threads a multiprocessor that the compiler must leave registers for. Left alone it takes 32, for 2,048 threads, and
// then waits for the first loads before it issues the last.
constexpr int kResidentThreads = 1024;

__host__ __device__ constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// Blocks of a launch. More than a grid takes become none, which CUDA refuses; a mere cast would wrap and leave rows out.
inline unsigned grid_of(std::int64_t blocks) { return blocks <= 2147483647 ? static_cast<unsigned>(blocks) : 0; }

// Of the current device.
inline std::int64_t multiprocessors() {
  int device = 0;
  int count = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

// Whether the current device, which has so many multiprocessors, can be trusted with thread-block clusters of 16 blocks: a
// small part of a GPU may not have enough of them side by side. kernels/explain.py says the same in Python.
inline bool has_clusters(std::int64_t multiprocessors) {
  int device = 0;
  int major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  return (major == 9 || major == 10) && multiprocessors >= 32;
}

// Sum over groups of `width` neighbouring lanes; every lane gets its group's sum. All 32 lanes must call it.
template <int width>
__device__ float sum_over_lanes(float value) {
#pragma unroll
  for (int distance = width / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

// 16 bytes that are read once: not kept in L1. `fetch`: bytes that the L2 is told to fetch at a time; 0: it is told
// nothing. 128 is for lanes that load but half a cache line at a time. 256 gains up to 2 % where all is a few
// microseconds, and costs 4 to 5 % on an H200 where A is much larger than the L2.
template <int fetch = 0>
__device__ __forceinline__ float4 load_once(const float4* address) {
  static_assert(fetch == 0 || fetch == 128 || fetch == 256);
#if defined(__CUDA_ARCH__)
  float4 v;
  if constexpr (fetch == 0)
    asm("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(address));
  else if constexpr (fetch == 128)
    asm("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(address));
  else
    asm("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(address));
  return v;
#else
  return *address;
#endif
}

__device__ __forceinline__ float4 no_vector() { return make_float4(0.0f, 0.0f, 0.0f, 0.0f); }

}  // namespace sgemv
