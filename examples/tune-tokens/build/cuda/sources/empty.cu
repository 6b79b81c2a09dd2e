// A kernel that does nothing. Aims at: what a launch and the timer themselves cost, to stand beside every short time.
#include "common.cuh"

namespace sgemv {

__global__ void empty_kernel() {}

}  // namespace sgemv

SGEMV_FLOOR(empty, K_ANY, 1, PACKED, 4, "one warp that does nothing") {
  sgemv::empty_kernel<<<1, 32, 0, sgemv::stream_of(args)>>>();
}
