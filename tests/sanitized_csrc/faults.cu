// One right kernel, and one for each tool of compute-sanitizer that is wrong in the way that the tool is there to find.
// All of them compute y = A x.
#include "common.cuh"

namespace sgemv {

__device__ float dot(const Args& args, std::int64_t row) {
  float sum = 0.0f;
  for (std::int64_t column = 0; column < args.k; ++column) sum += args.a[row * args.k + column] * args.x[column];
  return sum;
}

// A load whose value nothing depends on is left out, by ptxas at the latest: so y could be this one value, and never is.
__device__ void look_at(float value, const Args& args) {
  if (value == 1.2345e-30f) args.y[0] = value;
}

// block 64, grid ceil(m / 64), as all below
__global__ void planted_right_kernel(const Args args) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row < args.m) args.y[row] = dot(args, row);
}

__global__ void planted_memcheck_kernel(const Args args) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row == args.m - 1) look_at(args.a[args.m * args.k], args);  // behind A
  if (row < args.m) args.y[row] = dot(args, row);
}

__global__ void planted_racecheck_kernel(const Args args) {
  __shared__ volatile float passed_on[64];
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  passed_on[threadIdx.x] = 1.0f;
  look_at(passed_on[(threadIdx.x + 32) % 64], args);  // of the other warp, with no barrier between
  if (row < args.m) args.y[row] = dot(args, row);
}

__global__ void planted_initcheck_kernel(const Args args, const float* scratch) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  look_at(scratch[threadIdx.x], args);  // nobody has written it
  if (row < args.m) args.y[row] = dot(args, row);
}

__global__ void planted_synccheck_kernel(const Args args) {
  __shared__ volatile float passed_on[64];
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  passed_on[threadIdx.x] = 1.0f;
  __syncwarp(0x0000ffffu >> (args.m < 0));  // called by those whom the mask leaves out too; m is never negative
  look_at(passed_on[threadIdx.x ^ 1], args);
  if (row < args.m) args.y[row] = dot(args, row);
}

inline unsigned blocks_for(const Args& args) { return static_cast<unsigned>(ceil_div(args.m, 64)); }

}  // namespace sgemv

SGEMV_KERNEL(planted_right, K_ANY, 1, PACKED, 4, "right") {
  sgemv::planted_right_kernel<<<sgemv::blocks_for(args), 64, 0, sgemv::stream_of(args)>>>(args);
}
SGEMV_KERNEL(planted_memcheck, K_ANY, 1, PACKED, 4, "reads behind A") {
  sgemv::planted_memcheck_kernel<<<sgemv::blocks_for(args), 64, 0, sgemv::stream_of(args)>>>(args);
}
SGEMV_KERNEL(planted_racecheck, K_ANY, 1, PACKED, 4, "reads what another warp may not have written yet") {
  sgemv::planted_racecheck_kernel<<<sgemv::blocks_for(args), 64, 0, sgemv::stream_of(args)>>>(args);
}
SGEMV_KERNEL(planted_initcheck, K_ANY, 1, PACKED, 4, "reads scratch that nobody has written") {
  const float* const scratch = args.scratch->floats(64);
  sgemv::planted_initcheck_kernel<<<sgemv::blocks_for(args), 64, 0, sgemv::stream_of(args)>>>(args, scratch);
}
SGEMV_KERNEL(planted_synccheck, K_ANY, 1, PACKED, 4, "lanes call a barrier whose mask leaves them out") {
  sgemv::planted_synccheck_kernel<<<sgemv::blocks_for(args), 64, 0, sgemv::stream_of(args)>>>(args);
}
