// Asynchronous copies from global to shared memory, which pass no register by, by the PTX instruction `cp.async`.
#pragma once

#include "common.cuh"

namespace sgemv {

// Sends 16 bytes on their way, zeros unless `there`: then nothing is read. They are there once `wait_for_copies` has
// returned in the lane that started them, for the others when they have met it. `again`: others will want the same, so L1
// has it. The instruction could end at any byte, but compute-sanitizer takes it for a read of all 16.
template <bool again>
__device__ __forceinline__ void start_copy(uint4* to, const void* from, bool there) {
  const int bytes = there ? 16 : 0;
#if defined(__CUDA_ARCH__)
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (again)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
#elif defined(CUDA_ON_CPU)
  cuda::start_copy(to, from, bytes);
#endif
}

// What was started since the last call is one group, which may be empty.
__device__ __forceinline__ void close_group() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#elif defined(CUDA_ON_CPU)
  cuda::close_group();
#endif
}

// Until at most the `newest` last groups are still on their way.
template <int newest>
__device__ __forceinline__ void wait_for_copies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_group %0;" ::"n"(newest) : "memory");
#elif defined(CUDA_ON_CPU)
  cuda::wait_for_copies(newest);
#endif
}

}  // namespace sgemv
