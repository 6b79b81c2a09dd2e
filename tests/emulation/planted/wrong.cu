// Kernels with one fault each, which the emulation must find. Each shows it on one small problem.
#include "common.cuh"

namespace planted {

__device__ float dot(const float* a_row, const float* x, std::int64_t k) {
  float sum = 0.0f;
  for (std::int64_t column = 0; column < k; ++column) sum += a_row[column] * x[column];
  return sum;
}

__global__ void a_overrun_kernel(sgemv::Args args) {
  if (threadIdx.x >= args.m) return;
  args.y[threadIdx.x] = dot(args.a + threadIdx.x * args.k, args.x, args.k) + 0.0f * args.a[(threadIdx.x + 1) * args.k];
}

__global__ void a_underrun_kernel(sgemv::Args args) {
  const float* before = args.a - 1;
  if (threadIdx.x < args.m) args.y[threadIdx.x] = dot(before + threadIdx.x * args.k, args.x, args.k);
}

__global__ void x_overrun_kernel(sgemv::Args args) {
  if (threadIdx.x >= args.m) return;
  args.y[threadIdx.x] = dot(args.a + threadIdx.x * args.k, args.x, args.k) + 0.0f * args.x[args.k];
}

__global__ void y_overrun_kernel(sgemv::Args args) {
  if (threadIdx.x <= args.m) args.y[threadIdx.x] = 0.0f;
}

__global__ void changes_a_kernel(sgemv::Args args) {
  const_cast<float*>(args.a)[threadIdx.x] = 1.0f;
  if (threadIdx.x < args.m) args.y[threadIdx.x] = dot(args.a + threadIdx.x * args.k, args.x, args.k);
}

__global__ void misaligned_kernel(sgemv::Args args) {
  const float4 first = *reinterpret_cast<const float4*>(args.a);
  args.y[0] = first.x + first.y + first.z + first.w;
}

// With m odd the second half of the last warp has ended when the first one shuffles.
__global__ void shuffle_without_some_kernel(sgemv::Args args) {
  const std::int64_t row = std::int64_t{blockIdx.x} * 2 + threadIdx.x / 16;
  if (row >= args.m) return;
  float sum = 0.0f;
  for (std::int64_t column = threadIdx.x % 16; column < args.k; column += 16)
    sum += args.a[row * args.k + column] * args.x[column];
  sum = sgemv::sum_over_lanes<16>(sum);
  if (threadIdx.x % 16 == 0) args.y[row] = sum;
}

__global__ void two_shuffles_kernel(sgemv::Args args) {
  float value = args.a[threadIdx.x];
  if (threadIdx.x < 16)
    value += __shfl_xor_sync(sgemv::kAllLanes, value, 1);
  else
    value += __shfl_down_sync(sgemv::kAllLanes, value, 1);
  args.y[0] = value;
}

__global__ void asks_one_left_out_kernel(sgemv::Args args) {
  if (threadIdx.x < 16) args.y[0] = __shfl_xor_sync(0xffffu, args.a[threadIdx.x], 16);
}

__global__ void left_out_kernel(sgemv::Args args) { args.y[0] = __ballot_sync(0xffffu, args.a[threadIdx.x] > 0.0f); }

__global__ void barrier_without_some_kernel(sgemv::Args args) {
  if (threadIdx.x < 32) __syncthreads();
  args.y[0] = args.a[0];
}

// One row, 64 threads. A warp's sum goes through shared memory; what is wrong there is the argument.
enum SharedFault { kUnwritten, kNoBarrier, kStaticOverrun, kDynamicOverrun, kMisaligned };

template <SharedFault fault>
__global__ void shared_fault_kernel(sgemv::Args args) {
  __shared__ float sums[2];
  extern __shared__ float products[];
  const unsigned warp = threadIdx.x / 32;
  products[threadIdx.x] = args.a[threadIdx.x] * args.x[threadIdx.x];
  if (fault == kDynamicOverrun) products[threadIdx.x + 1] += 0.0f;
  if (fault == kMisaligned) *reinterpret_cast<float2*>(sums) = float2{};
  const float sum = sgemv::sum_over_lanes<32>(products[threadIdx.x]);
  if (fault != kUnwritten || warp == 0) sums[warp + (fault == kStaticOverrun)] = sum;
  if (fault != kNoBarrier) __syncthreads();
  if (threadIdx.x == 0) args.y[0] = sums[0] + sums[1];
}

// Only the first warp writes what the second one reads. Where it runs first, nothing shows.
__global__ void late_reader_kernel(sgemv::Args args) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = dot(args.a, args.x, args.k);
  if (threadIdx.x == 32) args.y[0] = sum;
}

// The last thread sums each tile of 64 products, and the others do not wait for it before they write the next one.
__global__ void early_writer_kernel(sgemv::Args args) {
  __shared__ float products[64];
  float sum = 0.0f;
  for (std::int64_t first = 0; first < args.k; first += 64) {
    products[threadIdx.x] = args.a[first + threadIdx.x] * args.x[first + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 63)
      for (int i = 0; i < 64; ++i) sum += products[i];
  }
  if (threadIdx.x == 63) args.y[0] = sum;
}

__global__ void endless_kernel(sgemv::Args args) {
  volatile const float* y = args.y;
  while (y[0] != 1.0f) {
  }
}

void start(void (*kernel)(sgemv::Args), const sgemv::Args& args, int threads, int blocks = 1) {
  kernel<<<blocks, threads, 64 * sizeof(float)>>>(args);
}

}  // namespace planted

using planted::start;

SGEMV_KERNEL(a_overrun, K_ANY, 1, 4, "reads the first element behind A") { start(planted::a_overrun_kernel, args, 32); }
SGEMV_KERNEL(a_underrun, K_ANY, 1, 4, "reads the last element before A") {
  start(planted::a_underrun_kernel, args, 32);
}
SGEMV_KERNEL(x_overrun, K_ANY, 1, 4, "reads the first element behind x") { start(planted::x_overrun_kernel, args, 32); }
SGEMV_KERNEL(y_overrun, K_ANY, 1, 4, "writes the first element behind y") {
  start(planted::y_overrun_kernel, args, 32);
}
SGEMV_KERNEL(changes_a, K_ANY, 1, 4, "writes to A") { start(planted::changes_a_kernel, args, 32); }
SGEMV_KERNEL(misaligned, K_ANY, 1, 4, "promises to read A from anywhere") {
  start(planted::misaligned_kernel, args, 1);
}
SGEMV_KERNEL(shuffle_without_some, K_ANY, 1, 4, "half a warp ends before a shuffle of all") {
  start(planted::shuffle_without_some_kernel, args, 32, static_cast<int>(sgemv::ceil_div(args.m, 2)));
}
SGEMV_KERNEL(two_shuffles, K_ANY, 1, 4, "the halves of a warp shuffle otherwise") {
  start(planted::two_shuffles_kernel, args, 32);
}
SGEMV_KERNEL(part_of_a_warp, K_ANY, 1, 4, "the mask names lanes that the block has not") {
  start(planted::two_shuffles_kernel, args, 16);
}
SGEMV_KERNEL(asks_one_left_out, K_ANY, 1, 4, "reads a lane that the mask leaves out") {
  start(planted::asks_one_left_out_kernel, args, 32);
}
SGEMV_KERNEL(left_out, K_ANY, 1, 4, "the mask leaves out who calls") { start(planted::left_out_kernel, args, 32); }
SGEMV_KERNEL(barrier_without_some, K_ANY, 1, 4, "a warp passes a barrier by") {
  start(planted::barrier_without_some_kernel, args, 64);
}
SGEMV_KERNEL(unwritten, K_ANY, 1, 4, "reads shared memory that nobody wrote") {
  start(planted::shared_fault_kernel<planted::kUnwritten>, args, 64);
}
SGEMV_KERNEL(no_barrier, K_ANY, 1, 4, "a race: reads what another warp writes") {
  start(planted::shared_fault_kernel<planted::kNoBarrier>, args, 64);
}
SGEMV_KERNEL(late_reader, K_ANY, 1, 4, "a race that only one order of the warps shows") {
  start(planted::late_reader_kernel, args, 64);
}
SGEMV_KERNEL(early_writer, K_MULTIPLE_OF, 64, 4, "a race: writes what another warp may not have read yet") {
  start(planted::early_writer_kernel, args, 64);
}
SGEMV_KERNEL(static_overrun, K_ANY, 1, 4, "writes behind a shared array") {
  start(planted::shared_fault_kernel<planted::kStaticOverrun>, args, 64);
}
SGEMV_KERNEL(dynamic_overrun, K_ANY, 1, 4, "writes behind the dynamic shared memory") {
  start(planted::shared_fault_kernel<planted::kDynamicOverrun>, args, 64);
}
SGEMV_KERNEL(shared_misaligned, K_ANY, 1, 4, "float2 in a shared array of float") {
  start(planted::shared_fault_kernel<planted::kMisaligned>, args, 64);
}
SGEMV_KERNEL(endless, K_ANY, 1, 4, "waits for what nobody writes") { start(planted::endless_kernel, args, 1); }
SGEMV_KERNEL(block_too_large, K_ANY, 1, 4, "1,025 threads a block") { start(planted::endless_kernel, args, 1025); }
SGEMV_KERNEL(no_block, K_ANY, 1, 4, "an empty grid") { start(planted::endless_kernel, args, 32, 0); }
