// What blocks of one thread-block cluster need to pass sums on: compute capability 9.0 on.
//
// One block receives. It opens a mailbox in its shared memory, an mbarrier that waits for a number of bytes; every warp
// of the cluster posts into it. Nobody waits for the posting blocks, and nobody but the receiver for the mail.
#pragma once

#include "common.cuh"

namespace sgemv {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

__device__ inline unsigned block_of_cluster() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ inline unsigned blocks_of_cluster() {
  unsigned count;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
  return count;
}

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// The receiver's first warp calls this before `meet_begin`.
__device__ inline void open_mailbox(std::uint64_t* mailbox, unsigned bytes) {
  const bool first = threadIdx.x == 0;
  if (first) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(mailbox)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncwarp();
  if (first)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(mailbox)), "r"(bytes)
                 : "memory");
  __syncwarp();
}

// Every thread of the cluster calls both: after `meet_end` the mailbox is open, and its block has started. Opening the
// mailbox has its own fence, so arriving orders nothing else.
__device__ inline void meet_begin() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ inline void meet_end() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Writes `value` to *slot of the block `receiver` and tells its mailbox.
__device__ inline void post(float* slot, std::uint64_t* mailbox, unsigned receiver, float value) {
  unsigned remote_slot, remote_mailbox;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_slot) : "r"(shared_address(slot)), "r"(receiver));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_mailbox) : "r"(shared_address(mailbox)), "r"(receiver));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(remote_slot),
               "r"(__float_as_uint(value)), "r"(remote_mailbox)
               : "memory");
}

// The receiver's threads: until all bytes have arrived.
__device__ inline void wait_for_mail(std::uint64_t* mailbox) {
  unsigned arrived = 0;
  while (arrived == 0)
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(arrived)
        : "r"(shared_address(mailbox))
        : "memory");
}

#endif

}  // namespace sgemv
