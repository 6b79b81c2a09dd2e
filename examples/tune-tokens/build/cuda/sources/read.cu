// Reads every element of A and of x once and writes m values. Aims at: what the memory system allows for a GEMV's bytes
// at this size, with nothing to wait for but loads. Which way of reading is fastest depends on the size, so there are
// several, and the fastest is the limit.
//
// The value written to y[i] is the plain sum of what one thread happened to read: finite for finite operands, and else
// without meaning. A thread whose own sum is NaN writes it too, so that whoever puts a NaN into an operand can tell that
// its element was read.
#include "read.cuh"

namespace sgemv {

// The compiler cannot know that a sum is no NaN, so every load must be added up. A thread that holds a NaN waits until
// whoever owns y[0] has written it.
__device__ inline void tell_nan(float sum, float* y, std::int64_t elements) {
  if (sum == sum) return;
  wait_for_others(elements);
  y[0] = sum;
}

// The whole of A as one array: grid-stride loops, any grid.
template <int loads, class Fetch>
__global__ void __launch_bounds__(kStreamThreads, kResidentThreads / kStreamThreads)
    read_stream_kernel(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ y, std::int64_t m,
                       std::int64_t k) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  const float4 x_first = first_of_x<Floats>(x, k, thread);
  float sum = read_share<Floats, loads, Fetch>(a, m * k, thread, threads, thread);
  sum += Floats::sum_of(x_first) + rest_of_x<Floats>(x, k, thread, threads);
#pragma unroll 1
  for (std::int64_t row = thread; row < m; row += threads) y[row] = sum;
  tell_nan(sum, y, m * k);
}

// `width` threads a row, `rows` rows a block, `loads` 16-byte loads in flight; rows that do not start on 16 bytes:
// float by float. Blocks wait for no other, so m / rows of them keep every multiprocessor supplied to the end.
template <int width, int rows, int loads>
__global__ void __launch_bounds__(width* rows, kResidentThreads / (width * rows))
    read_rows_kernel(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ y, std::int64_t m,
                     std::int64_t k) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t row = thread / width;
  const int lane = static_cast<int>(thread % width);
  const float4 x_first = first_of_x<Floats>(x, k, thread);
  float sum = 0.0f;
  if (row < m && k % 4 == 0)
    sum += read_share<Floats, loads, ByLines>(a + row * k, k, lane, width, lane);
  else if (row < m)
    sum += read_items<Floats>(a + row * k, k, lane, width);
  sum += Floats::sum_of(x_first) + rest_of_x<Floats>(x, k, thread, threads);
  if (lane == 0 && row < m) y[row] = sum;
  tell_nan(sum, y, m * k);
}

template <int loads, class Fetch>
void start_stream(const Args& args) {
  const unsigned blocks = stream_blocks(args.m * args.k * std::int64_t{sizeof(float)}, loads);
  read_stream_kernel<loads, Fetch>
      <<<blocks, kStreamThreads, 0, stream_of(args)>>>(args.a, args.x, args.y, args.m, args.k);
}

template <int width, int rows, int loads>
void start_rows(const Args& args) {
  const unsigned blocks = grid_of(ceil_div(args.m, rows));
  read_rows_kernel<width, rows, loads>
      <<<blocks, width * rows, 0, stream_of(args)>>>(args.a, args.x, args.y, args.m, args.k);
}

}  // namespace sgemv

SGEMV_LIMIT(read_warp_a_row, K_ANY, 1, PACKED, 16, "32 threads a row, 4 rows a block, 4 loads in flight") {
  sgemv::start_rows<32, 4, 4>(args);
}
SGEMV_LIMIT(read_128_a_row, K_ANY, 1, PACKED, 16, "128 threads a row, 1 row a block, 4 loads in flight") {
  sgemv::start_rows<128, 1, 4>(args);
}
SGEMV_LIMIT(read_256_a_row, K_ANY, 1, PACKED, 16, "256 threads a row, 1 row a block, 4 loads in flight") {
  sgemv::start_rows<256, 1, 4>(args);
}
SGEMV_LIMIT(read_stream_2, K_ANY, 1, PACKED, 16, "A as one array, resident blocks, 2 loads in flight") {
  sgemv::start_stream<2, sgemv::ByLines>(args);
}
SGEMV_LIMIT(read_stream_2_by_256, K_ANY, 1, PACKED, 16, "A as one array, resident blocks, 2 loads in flight, fetched by 256 bytes") {
  sgemv::start_stream<2, sgemv::By256Bytes>(args);
}
SGEMV_LIMIT(read_stream_4, K_ANY, 1, PACKED, 16, "A as one array, resident blocks, 4 loads in flight") {
  sgemv::start_stream<4, sgemv::ByLines>(args);
}
SGEMV_LIMIT(read_stream_8, K_ANY, 1, PACKED, 16, "A as one array, resident blocks, 8 loads in flight") {
  sgemv::start_stream<8, sgemv::ByLines>(args);
}
