// Kernels with one fault each, which the emulation must find. Each shows it on one small problem.
#include "common.cuh"
#include "copies.cuh"

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

// Of one row a thread adds four products, whose elements of A are copied; it waits for all copies but the last group.
__global__ void early_reader_kernel(sgemv::Args args) {
  __shared__ uint4 copied[32];
  sgemv::start_copy<false>(&copied[threadIdx.x], args.a + 4 * threadIdx.x, true);
  sgemv::close_group();
  sgemv::wait_for_copies<1>();
  const float sum = dot(reinterpret_cast<const float*>(&copied[threadIdx.x]), args.x + 4 * threadIdx.x, 4);
  const float total = sgemv::sum_over_lanes<32>(sum);
  if (threadIdx.x == 0) args.y[0] = total;
}

__global__ void endless_kernel(sgemv::Args args) {
  volatile const float* y = args.y;
  while (y[0] != 1.0f) {
  }
}

// A thread a row. What it does with strides is the argument.
enum StrideFault { kAsPacked, kReadsGap, kXAsPacked, kYAsPacked, kWritesGap, kWritesGapOfA, kAsRows };

template <StrideFault fault>
__global__ void stride_fault_kernel(sgemv::Args args) {
  if (threadIdx.x >= args.m) return;
  const bool by_columns = args.by_columns && fault != kAsRows;
  const std::int64_t to_row = by_columns ? 1 : fault == kAsPacked ? args.k : args.a_stride;
  const std::int64_t to_column = by_columns ? args.a_stride : 1;
  const float* const a = args.a + threadIdx.x * to_row;
  float sum = 0.0f;
  for (std::int64_t column = 0; column < args.k; ++column)
    sum += a[column * to_column] * args.x[column * (fault == kXAsPacked ? 1 : args.x_stride)];
  if (fault == kReadsGap && threadIdx.x + 1 < args.m) sum += 0.0f * a[args.k];
  float* const y = args.y + threadIdx.x * (fault == kYAsPacked ? 1 : args.y_stride);
  *y = sum;
  if (fault == kWritesGap && threadIdx.x + 1 < args.m) y[1] = 0.0f;
  if (fault == kWritesGapOfA && threadIdx.x + 1 < args.m) const_cast<float*>(a)[args.k] = 0.0f;
}

// It adds partial sums up, of which it has written one too few, or reads one too many.
__global__ void scratch_fault_kernel(sgemv::Args args, float* partial, int written, int read) {
  float sum = dot(args.a, args.x, args.k);
  for (int i = 0; i < written; ++i) partial[i] = i == 0 ? sum : 0.0f;
  sum = 0.0f;
  for (int i = 0; i < read; ++i) sum += partial[i];
  args.y[0] = sum;
}

void start(void (*kernel)(sgemv::Args), const sgemv::Args& args, int threads, int blocks = 1) {
  kernel<<<blocks, threads, 64 * sizeof(float)>>>(args);
}

}  // namespace planted

using planted::start;

SGEMV_KERNEL(a_overrun, K_ANY, 1, PACKED, 4, "reads the first element behind A") { start(planted::a_overrun_kernel, args, 32); }
SGEMV_KERNEL(a_underrun, K_ANY, 1, PACKED, 4, "reads the last element before A") {
  start(planted::a_underrun_kernel, args, 32);
}
SGEMV_KERNEL(x_overrun, K_ANY, 1, PACKED, 4, "reads the first element behind x") { start(planted::x_overrun_kernel, args, 32); }
SGEMV_KERNEL(y_overrun, K_ANY, 1, PACKED, 4, "writes the first element behind y") {
  start(planted::y_overrun_kernel, args, 32);
}
SGEMV_KERNEL(changes_a, K_ANY, 1, PACKED, 4, "writes to A") { start(planted::changes_a_kernel, args, 32); }
SGEMV_KERNEL(misaligned, K_ANY, 1, PACKED, 4, "promises to read A from anywhere") {
  start(planted::misaligned_kernel, args, 1);
}
SGEMV_KERNEL(shuffle_without_some, K_ANY, 1, PACKED, 4, "half a warp ends before a shuffle of all") {
  start(planted::shuffle_without_some_kernel, args, 32, static_cast<int>(sgemv::ceil_div(args.m, 2)));
}
SGEMV_KERNEL(two_shuffles, K_ANY, 1, PACKED, 4, "the halves of a warp shuffle otherwise") {
  start(planted::two_shuffles_kernel, args, 32);
}
SGEMV_KERNEL(part_of_a_warp, K_ANY, 1, PACKED, 4, "the mask names lanes that the block has not") {
  start(planted::two_shuffles_kernel, args, 16);
}
SGEMV_KERNEL(asks_one_left_out, K_ANY, 1, PACKED, 4, "reads a lane that the mask leaves out") {
  start(planted::asks_one_left_out_kernel, args, 32);
}
SGEMV_KERNEL(left_out, K_ANY, 1, PACKED, 4, "the mask leaves out who calls") { start(planted::left_out_kernel, args, 32); }
SGEMV_KERNEL(barrier_without_some, K_ANY, 1, PACKED, 4, "a warp passes a barrier by") {
  start(planted::barrier_without_some_kernel, args, 64);
}
SGEMV_KERNEL(unwritten, K_ANY, 1, PACKED, 4, "reads shared memory that nobody wrote") {
  start(planted::shared_fault_kernel<planted::kUnwritten>, args, 64);
}
SGEMV_KERNEL(no_barrier, K_ANY, 1, PACKED, 4, "a race: reads what another warp writes") {
  start(planted::shared_fault_kernel<planted::kNoBarrier>, args, 64);
}
SGEMV_KERNEL(late_reader, K_ANY, 1, PACKED, 4, "a race that only one order of the warps shows") {
  start(planted::late_reader_kernel, args, 64);
}
SGEMV_KERNEL(early_writer, K_MULTIPLE_OF, 64, PACKED, 4, "a race: writes what another warp may not have read yet") {
  start(planted::early_writer_kernel, args, 64);
}
SGEMV_KERNEL(early_reader, K_EQUAL_TO, 128, PACKED, 16, "reads what is still on its way") {
  start(planted::early_reader_kernel, args, 32);
}
SGEMV_KERNEL(static_overrun, K_ANY, 1, PACKED, 4, "writes behind a shared array") {
  start(planted::shared_fault_kernel<planted::kStaticOverrun>, args, 64);
}
SGEMV_KERNEL(dynamic_overrun, K_ANY, 1, PACKED, 4, "writes behind the dynamic shared memory") {
  start(planted::shared_fault_kernel<planted::kDynamicOverrun>, args, 64);
}
SGEMV_KERNEL(shared_misaligned, K_ANY, 1, PACKED, 4, "float2 in a shared array of float") {
  start(planted::shared_fault_kernel<planted::kMisaligned>, args, 64);
}
SGEMV_KERNEL(endless, K_ANY, 1, PACKED, 4, "waits for what nobody writes") { start(planted::endless_kernel, args, 1); }
SGEMV_KERNEL(block_too_large, K_ANY, 1, PACKED, 4, "1,025 threads a block") { start(planted::endless_kernel, args, 1025); }
SGEMV_KERNEL(no_block, K_ANY, 1, PACKED, 4, "an empty grid") { start(planted::endless_kernel, args, 32, 0); }
SGEMV_KERNEL(as_packed, K_ANY, 1, ROWS, 4, "takes a row for as long as k") {
  start(planted::stride_fault_kernel<planted::kAsPacked>, args, 32);
}
SGEMV_KERNEL(reads_gap, K_ANY, 1, ROWS, 4, "adds what lies between the rows, times zero") {
  start(planted::stride_fault_kernel<planted::kReadsGap>, args, 32);
}
SGEMV_KERNEL(x_as_packed, K_ANY, 1, ROWS, 4, "does not know of the stride of x") {
  start(planted::stride_fault_kernel<planted::kXAsPacked>, args, 32);
}
SGEMV_KERNEL(y_as_packed, K_ANY, 1, ROWS, 4, "does not know of the stride of y") {
  start(planted::stride_fault_kernel<planted::kYAsPacked>, args, 32);
}
SGEMV_KERNEL(writes_gap, K_ANY, 1, ROWS, 4, "writes between the elements of y") {
  start(planted::stride_fault_kernel<planted::kWritesGap>, args, 32);
}
SGEMV_KERNEL(writes_gap_of_a, K_ANY, 1, ROWS, 4, "writes between the rows of A") {
  start(planted::stride_fault_kernel<planted::kWritesGapOfA>, args, 32);
}
SGEMV_KERNEL(as_rows, K_ANY, 1, COLUMNS, 4, "takes columns for rows") {
  start(planted::stride_fault_kernel<planted::kAsRows>, args, 32);
}
SGEMV_KERNEL(scratch_unwritten, K_ANY, 1, PACKED, 4, "reads scratch that nobody wrote") {
  planted::scratch_fault_kernel<<<1, 1>>>(args, args.scratch->floats(8), 7, 8);
}
SGEMV_KERNEL(scratch_overrun, K_ANY, 1, PACKED, 4, "reads the first element behind scratch") {
  planted::scratch_fault_kernel<<<1, 1>>>(args, args.scratch->floats(8), 8, 9);
}
SGEMV_KERNEL(hands_k_on, K_ANY, 1, PACKED, 4, "finds a kernel that takes another K") {
  sgemv::pick("early_writer", args).start(args);
}
SGEMV_KERNEL(hands_strides_on, K_ANY, 1, ROWS, 4, "finds a kernel that takes no strides") {
  sgemv::pick("changes_a", args).start(args);
}
SGEMV_KERNEL(hands_columns_on, K_ANY, 1, ROWS_OR_COLUMNS, 4, "finds a kernel that takes rows") {
  sgemv::pick("as_packed", args).start(args);
}
SGEMV_KERNEL(hands_start_on, K_ANY, 1, ROWS, 4, "finds a kernel that takes aligned operands") {
  sgemv::pick("shared", args).start(args);
}
