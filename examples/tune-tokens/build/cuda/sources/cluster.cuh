// What blocks of one thread-block cluster need to pass sums on: compute capability 9.0 on.
//
// One block receives: an mbarrier in its shared memory waits for a number of bytes, and every warp of the cluster sends
// its own by st.async, which writes a remote value and counts its bytes in one. No block but the receiver waits.
#pragma once

#include "common.cuh"

namespace sgemv {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

__device__ inline unsigned cluster_block_rank() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ inline unsigned cluster_blocks() {
  unsigned count;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
  return count;
}

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// The receiver's first warp calls this before `cluster_arrive`. The phase cannot end before the arrival in it, so it does
// not matter that bytes may be counted before they are expected.
__device__ inline void init_barrier(std::uint64_t* barrier, unsigned bytes) {
  const bool first = threadIdx.x == 0;
  if (first) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncwarp();
  if (first)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
  __syncwarp();
}

// Every thread of the cluster calls both: after `cluster_wait` the barrier is there, and its block has started. The former
// has a fence of its own, so arriving orders nothing else.
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Writes `value` to *slot of the block `receiver` and counts its bytes in that block's barrier.
__device__ inline void store_async(float* slot, std::uint64_t* barrier, unsigned receiver, float value) {
  unsigned remote_slot, remote_barrier;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_slot) : "r"(shared_address(slot)), "r"(receiver));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_barrier) : "r"(shared_address(barrier)), "r"(receiver));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(remote_slot),
               "r"(__float_as_uint(value)), "r"(remote_barrier)
               : "memory");
}

// The receiver's threads: until all bytes have arrived.
__device__ inline void wait_barrier(std::uint64_t* barrier) {
  unsigned arrived = 0;
  while (arrived == 0)
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(arrived)
        : "r"(shared_address(barrier))
        : "memory");
}

#endif

}  // namespace sgemv
