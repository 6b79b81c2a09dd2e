// Reads every element of A and of x once and writes m values. Aims at: what the memory system allows for a GEMV's bytes
// at this size, with nothing to wait for but loads. Which way of reading is fastest depends on the size, so there are
// several, and the fastest is the limit.
//
// The value written to y[i] is the plain sum of what one thread happened to read: finite for finite operands, and else
// without meaning. A thread whose own sum is NaN writes it too, so that whoever puts a NaN into an operand can tell that
// its element was read.
#include "common.cuh"

namespace sgemv {

constexpr int kStreamThreads = 256;

// After this long, even on a slow GPU, y[0] is written: as if A were read at 1 TB/s while this thread waits.
__device__ inline std::int64_t others_write_ns(std::int64_t elements) { return 100000 + elements / 250; }

#if __CUDA_ARCH__ >= 700
__device__ inline std::int64_t nanoseconds() {
  std::int64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
#endif

// The compiler cannot know that a sum is no NaN, so every load must be added up. A thread that holds a NaN waits until
// whoever owns y[0] has written it.
__device__ inline void tell_nan(float sum, float* y, [[maybe_unused]] std::int64_t elements) {
  if (sum == sum) return;
#if __CUDA_ARCH__ >= 700
  const std::int64_t until = nanoseconds() + others_write_ns(elements);
  while (nanoseconds() < until) __nanosleep(1000);  // between 0 and 2 us, says PTX
#endif
  y[0] = sum;
}

// With the hint that load_once is better without, but for small problems.
struct ByLines {
  static __device__ __forceinline__ float4 load(const float4* address) { return load_once(address); }
};
struct By256Bytes {
  static __device__ __forceinline__ float4 load(const float4* address) {
#if defined(__CUDA_ARCH__)
    float4 value;
    asm("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
        : "l"(address));
    return value;
#else
    return *address;
#endif
  }
};

__device__ inline float sum_of(float4 value) { return (value.x + value.y) + (value.z + value.w); }

// Sum of the 16-byte vectors first, first + threads, … and of the last count % 4 elements; `loads` loads in flight.
// `values` is aligned to 16 bytes.
template <int loads, class Fetch>
__device__ float read_share(const float* values, std::int64_t count, std::int64_t thread, std::int64_t threads,
                            std::int64_t first) {
  const float4* vectors = reinterpret_cast<const float4*>(values);
  const std::int64_t vector_count = count / 4;
  float sum = 0.0f;
  std::int64_t vector = first;
#pragma unroll 1
  for (; vector + (loads - 1) * threads < vector_count; vector += loads * threads) {
    float4 loaded[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) loaded[i] = Fetch::load(vectors + vector + i * threads);
#pragma unroll
    for (int i = 0; i < loads; ++i) sum += sum_of(loaded[i]);
  }
  if (loads > 1)
#pragma unroll 1
    for (; vector < vector_count; vector += threads) sum += sum_of(Fetch::load(vectors + vector));
#pragma unroll 1
  for (std::int64_t element = vector_count * 4 + thread; element < count; element += threads) sum += values[element];
  return sum;
}

// The grid's threads share x out. A thread's first load of x is issued here and added up after A's, so that a small
// problem waits for memory once, not twice.
__device__ inline float4 first_of_x(const float* x, std::int64_t k, std::int64_t thread) {
  const float4* vectors = reinterpret_cast<const float4*>(x);
  return thread < k / 4 ? load_once(vectors + thread) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

__device__ inline float rest_of_x(const float* x, std::int64_t k, std::int64_t thread, std::int64_t threads) {
  return read_share<1, ByLines>(x, k, thread, threads, thread + threads);
}

// The whole of A as one array: grid-stride loops, any grid.
template <int loads, class Fetch>
__global__ void __launch_bounds__(kStreamThreads, kResidentThreads / kStreamThreads)
    read_stream_kernel(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ y, std::int64_t m,
                       std::int64_t k) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  const float4 x_first = first_of_x(x, k, thread);
  float sum = read_share<loads, Fetch>(a, m * k, thread, threads, thread);
  sum += sum_of(x_first) + rest_of_x(x, k, thread, threads);
#pragma unroll 1
  for (std::int64_t row = thread; row < m; row += threads) y[row] = sum;
  tell_nan(sum, y, m * k);
}

// Sum of elements lane, lane + threads, … by plain 4-byte loads.
__device__ inline float read_floats(const float* __restrict__ values, std::int64_t count, int lane, int threads) {
  float sum = 0.0f;
#pragma unroll 4
  for (std::int64_t element = lane; element < count; element += threads) sum += values[element];
  return sum;
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
  const float4 x_first = first_of_x(x, k, thread);
  float sum = 0.0f;
  if (row < m && k % 4 == 0)
    sum += read_share<loads, ByLines>(a + row * k, k, lane, width, lane);
  else if (row < m)
    sum += read_floats(a + row * k, k, lane, width);
  sum += sum_of(x_first) + rest_of_x(x, k, thread, threads);
  if (lane == 0 && row < m) y[row] = sum;
  tell_nan(sum, y, m * k);
}

// As many blocks as there is work for, at most as many as are resident at once.
template <int loads, class Fetch>
void start_stream(const Args& args) {
  const std::int64_t work = ceil_div(args.m * args.k, std::int64_t{4} * kStreamThreads * loads);
  const std::int64_t resident = multiprocessors() * (kResidentThreads / kStreamThreads);
  const std::int64_t blocks = work < 1 ? 1 : (work < resident ? work : resident);
  read_stream_kernel<loads, Fetch><<<static_cast<unsigned>(blocks), kStreamThreads, 0, stream_of(args)>>>(
      args.a, args.x, args.y, args.m, args.k);
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
