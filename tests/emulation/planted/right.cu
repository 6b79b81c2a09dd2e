// Right kernels that use what those of the project may use one day: the emulation must run each as a GPU does.
#include "common.cuh"
#include "copies.cuh"

namespace planted {

// One warp a row; the sum comes down to lane 0, which hands it to all by __shfl_sync.
__global__ void __launch_bounds__(64) down_kernel(const float* __restrict__ a, const float* __restrict__ x,
                                                  float* __restrict__ y, std::int64_t m, std::int64_t k) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= m) return;
  float sum = 0.0f;
  for (std::int64_t column = threadIdx.x; column < k; column += 32)
    sum = fmaf(__ldg(a + row * k + column), __ldg(x + column), sum);
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(sgemv::kAllLanes, sum, distance);
  sum = __shfl_sync(sgemv::kAllLanes, sum, 0);
  if (threadIdx.x == 31) y[row] = sum;
}

// Two rows a warp: each half reduces on its own, by its own mask, as often as its row needs; the masks meet again.
__global__ void halves_kernel(const float* a, const float* x, float* y, std::int64_t m, std::int64_t k) {
  const unsigned half = threadIdx.x / 16;
  const unsigned mask = 0xffffu << 16 * half;
  const std::int64_t row = std::int64_t{blockIdx.x} * 2 + half;
  float total = 0.0f;
  if (row < m) {
    for (std::int64_t first = 0; first < k; first += 16) {
      const std::int64_t column = first + threadIdx.x % 16;
      float value = column < k ? a[row * k + column] * x[column] : 0.0f;
      for (int bits = 8; bits > 0; bits /= 2) value += __shfl_xor_sync(mask, value, bits, 16);
      total += value;
    }
  }
  __syncwarp();
  if (threadIdx.x % 16 == 0 && row < m) y[row] = total;
}

// A block a row: float2 loads, and partial sums through shared memory of both kinds.
template <int threads>
__global__ void shared_kernel(const float* a, const float* x, float* y, std::int64_t k) {
  __shared__ float of_warp[threads / 32];
  extern __shared__ __align__(16) float of_thread[];
  const float2* a_row = reinterpret_cast<const float2*>(a + blockIdx.x * k);
  const float2* x_pairs = reinterpret_cast<const float2*>(x);
  of_thread[threadIdx.x] = 0.0f;
  for (std::int64_t pair = threadIdx.x; pair < k / 2; pair += threads)
    of_thread[threadIdx.x] += a_row[pair].x * x_pairs[pair].x + a_row[pair].y * x_pairs[pair].y;
  __syncthreads();
  const float sum = sgemv::sum_over_lanes<32>(of_thread[threads - 1 - threadIdx.x]);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int warp = 0; warp < threads / 32; ++warp) total += of_warp[warp];
  if (threadIdx.x == 0) y[blockIdx.x] = total;
}

// 32 values each: the first 16 bits of which elements of A are positive; what lane 40 of a group of 8 has; what a lane
// gets that asks 3 lanes down in a group of 4; and its own, within -8 to 8.
__global__ void words_kernel(const float* a, float* y) {
  const float own = a[threadIdx.x];
  y[threadIdx.x] = static_cast<float>(__ballot_sync(sgemv::kAllLanes, own > 0.0f) & 0xffffu);
  y[32 + threadIdx.x] = __shfl_sync(sgemv::kAllLanes, own, 40, 8);
  y[64 + threadIdx.x] = __shfl_down_sync(sgemv::kAllLanes, own, 3, 4);
  y[96 + threadIdx.x] = max(min(own, 8.0f), -8.0f);
}

// One thread a row, by whatever strides there are.
__global__ void views_kernel(const sgemv::Args args) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= args.m) return;
  const float* const first = args.a + (args.by_columns ? row : row * args.a_stride);
  const std::int64_t step = args.by_columns ? args.a_stride : 1;
  float sum = 0.0f;
  for (std::int64_t column = 0; column < args.k; ++column)
    sum = fmaf(first[column * step], args.x[column * args.x_stride], sum);
  args.y[row * args.y_stride] = sum;
}

void start_views(const sgemv::Args& args) {
  views_kernel<<<static_cast<unsigned>(sgemv::ceil_div(args.m, 32)), 32, 0, sgemv::stream_of(args)>>>(args);
}

// The two halves of a row go to two places in scratch, and a second kernel adds them.
__global__ void half_sums_kernel(const sgemv::Args args, float* evens, float* odds) {
  const std::int64_t row = blockIdx.x;
  float sum = 0.0f;
  for (std::int64_t column = threadIdx.x; column < args.k; column += 2)
    sum += args.a[row * args.a_stride + column] * args.x[column * args.x_stride];
  (threadIdx.x == 0 ? evens : odds)[row] = sum;
}
__global__ void add_halves_kernel(const sgemv::Args args, const float* evens, const float* odds) {
  args.y[blockIdx.x * args.y_stride] = evens[blockIdx.x] + odds[blockIdx.x];
}

// A row's elements of A and x come through shared memory, four at a time, in a ring of two groups; the last by hand.
__global__ void copied_kernel(const sgemv::Args args) {
  __shared__ uint4 copied[2][2];
  const float *const a = args.a + blockIdx.x * args.k, *const x = args.x;
  const auto copy = [&](std::int64_t column) {
    const bool there = column + 4 <= args.k;
    sgemv::start_copy<false>(&copied[column / 4 % 2][0], a + column, there);
    sgemv::start_copy<true>(&copied[column / 4 % 2][1], x + column, there);
    sgemv::close_group();
  };
  copy(0);
  copy(4);
  float sum = 0.0f;
  for (std::int64_t column = 0; column < args.k; column += 4) {
    sgemv::wait_for_copies<1>();
    const auto* const pair = reinterpret_cast<const float*>(copied[column / 4 % 2]);
    for (int i = 0; i < 4; ++i) sum = fmaf(pair[i], pair[4 + i], sum);
    copy(column + 8);
  }
  for (std::int64_t column = args.k / 4 * 4; column < args.k; ++column) sum = fmaf(a[column], x[column], sum);
  args.y[blockIdx.x] = sum;
}

}  // namespace planted

SGEMV_KERNEL(rows, K_ANY, 1, ROWS, 4, "row-major views") { planted::start_views(args); }
SGEMV_KERNEL(columns, K_ANY, 1, COLUMNS, 4, "column-major views") { planted::start_views(args); }
SGEMV_KERNEL(either, K_ANY, 1, ROWS_OR_COLUMNS, 4, "another kernel of the program, found by its name") {
  const sgemv::Spec* const found = sgemv::find(args.by_columns ? "columns" : "rows");
  if (found != nullptr && sgemv::find("nobody") == nullptr) found->launch(args);
}
SGEMV_KERNEL(stages, K_ANY, 1, ROWS, 4, "two stages, by way of scratch") {
  float* const evens = args.scratch->floats(args.m);
  float* const odds = args.scratch->floats(args.m);
  const unsigned blocks = static_cast<unsigned>(args.m);
  planted::half_sums_kernel<<<blocks, 2, 0, sgemv::stream_of(args)>>>(args, evens, odds);
  planted::add_halves_kernel<<<blocks, 1, 0, sgemv::stream_of(args)>>>(args, evens, odds);
}
SGEMV_KERNEL(copied, K_ANY, 1, PACKED, 4, "asynchronous copies, and of what is not there") {
  planted::copied_kernel<<<static_cast<unsigned>(args.m), 1, 0, sgemv::stream_of(args)>>>(args);
}
SGEMV_KERNEL(down, K_ANY, 1, PACKED, 4, "shuffles down, one broadcast, fmaf, __ldg") {
  const unsigned blocks = static_cast<unsigned>(sgemv::ceil_div(args.m, 2));
  planted::down_kernel<<<blocks, dim3(32, 2), 0, sgemv::stream_of(args)>>>(args.a, args.x, args.y, args.m, args.k);
}
SGEMV_KERNEL(halves, K_ANY, 1, PACKED, 4, "masks of half a warp") {
  const unsigned blocks = static_cast<unsigned>(sgemv::ceil_div(args.m, 2));
  planted::halves_kernel<<<blocks, 32, 0, sgemv::stream_of(args)>>>(args.a, args.x, args.y, args.m, args.k);
}
SGEMV_KERNEL(shared, K_MULTIPLE_OF, 2, PACKED, 8, "static and dynamic shared memory, float2") {
  const unsigned blocks = static_cast<unsigned>(args.m);
  planted::shared_kernel<96>
      <<<blocks, 96, 96 * sizeof(float), sgemv::stream_of(args)>>>(args.a, args.x, args.y, args.k);
}
SGEMV_KERNEL(words, K_EQUAL_TO, 1, PACKED, 4, "what ballots and shuffles give, lane by lane") {
  planted::words_kernel<<<1, 32>>>(args.a, args.y);
}
