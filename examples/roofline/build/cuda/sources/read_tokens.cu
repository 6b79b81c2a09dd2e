// Reads every element of A and of x once, for int8 the scales too, and writes n·m values: `read` of 16- and 8-bit
// operands and of several tokens. Aims at: what the memory system allows for these bytes, as read.cu for float32's.
//
// Every y is 0, without meaning; a thread that finds a mark (marks.h) makes y[0] NaN.
#include "read.cuh"
#include "tokens.h"

namespace sgemv {

using Float16Items = Marked<Float16Marks>;
using BFloat16Items = Marked<BFloat16Marks>;
using Int8Items = Marked<Int8Marks>;

struct ReadArgs {
  const void* a;               // (m, k), packed
  const std::uint16_t* x;      // (n, k), packed
  const std::uint16_t* scale;  // (m), may be null
  std::uint16_t* y;            // (n, m), packed
  std::int64_t m, k, n;
};

// 16 bytes at a time where y starts on 16.
__device__ inline void write_zeros(std::uint16_t* y, std::int64_t count, std::int64_t thread, std::int64_t threads) {
  constexpr int kItems = 16 / sizeof *y;
  const std::int64_t vector_count = reinterpret_cast<std::uintptr_t>(y) % 16 == 0 ? count / kItems : 0;
#pragma unroll 1
  for (std::int64_t vector = thread; vector < vector_count; vector += threads)
    reinterpret_cast<float4*>(y)[vector] = no_vector();
#pragma unroll 1
  for (std::int64_t item = vector_count * kItems + thread; item < count; item += threads) y[item] = 0;
}

// Whether the thread's share of x, of which `first` is already there, or of the scales has a mark.
template <class X>
__device__ bool has_marks(const ReadArgs& args, float4 first, std::int64_t thread, std::int64_t threads) {
  unsigned found = X::add(rest_of_x<X>(args.x, args.n * args.k, thread, threads), first);
  if (args.scale != nullptr) found |= read_items<X>(args.scale, args.m, thread, threads);
  return X::any(found);
}

__device__ inline void tell_mark(bool found, const ReadArgs& args) {
  if (!found) return;
  wait_for_others(args.m * args.k + args.n * (args.m + args.k));
  args.y[0] = kNan16;
}

// The whole of A as one array: grid-stride loops, any grid.
template <class A, class X, int loads>
__global__ void __launch_bounds__(kStreamThreads, kResidentThreads / kStreamThreads)
    read_tokens_stream_kernel(const ReadArgs args) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  const auto* const a = static_cast<const typename A::Item*>(args.a);
  const float4 x_first = first_of_x<X>(args.x, args.n * args.k, thread);
  const unsigned found = read_share<A, loads, ByLines>(a, args.m * args.k, thread, threads, thread);
  const bool in_x = has_marks<X>(args, x_first, thread, threads);
  write_zeros(args.y, args.n * args.m, thread, threads);
  tell_mark(A::any(found) || in_x, args);
}

// `width` threads, a block, a row; rows that do not start on 16 bytes: item by item.
template <class A, class X, int width, int loads>
__global__ void __launch_bounds__(width, kResidentThreads / width) read_tokens_rows_kernel(const ReadArgs args) {
  const std::int64_t row = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t thread = row * width + lane;
  const std::int64_t threads = std::int64_t{gridDim.x} * width;
  const auto* const a = static_cast<const typename A::Item*>(args.a) + row * args.k;
  const float4 x_first = first_of_x<X>(args.x, args.n * args.k, thread);
  unsigned found = 0;
  if (args.k * sizeof *a % 16 == 0)
    found = read_share<A, loads, ByLines>(a, args.k, lane, width, lane);
  else
    found = read_items<A>(a, args.k, lane, width);
  const bool in_x = has_marks<X>(args, x_first, thread, threads);
#pragma unroll 1
  for (std::int64_t token = lane; token < args.n; token += width) args.y[token * args.m + row] = 0;
  tell_mark(A::any(found) || in_x, args);
}

inline ReadArgs read_args(const TokenArgs& args) {
  const auto halves = [](const void* first) { return static_cast<const std::uint16_t*>(first); };
  return {args.a, halves(args.x), halves(args.scale), static_cast<std::uint16_t*>(args.y), args.m, args.k, args.n};
}

template <class A, class X, int loads>
void start_stream_of_tokens(const TokenArgs& args) {
  const std::int64_t item = sizeof(typename A::Item), half = sizeof(typename X::Item);
  const std::int64_t bytes = args.m * args.k * item + args.n * (args.k + args.m) * half;
  read_tokens_stream_kernel<A, X, loads>
      <<<stream_blocks(bytes, loads), kStreamThreads, 0, stream_of(args)>>>(read_args(args));
}

template <class A, class X, int width>
void start_rows_of_tokens(const TokenArgs& args) {
  read_tokens_rows_kernel<A, X, width, 4><<<grid_of(args.m), width, 0, stream_of(args)>>>(read_args(args));
}

}  // namespace sgemv

GEMV_LIMIT(read_float16_128_a_row, FLOAT16, 1048576, 16, "128 threads a row, 1 row a block, 4 loads in flight") {
  sgemv::start_rows_of_tokens<sgemv::Float16Items, sgemv::Float16Items, 128>(args);
}
GEMV_LIMIT(read_float16_256_a_row, FLOAT16, 1048576, 16, "256 threads a row, 1 row a block, 4 loads in flight") {
  sgemv::start_rows_of_tokens<sgemv::Float16Items, sgemv::Float16Items, 256>(args);
}
GEMV_LIMIT(read_float16_stream_2, FLOAT16, 1048576, 16, "A as one array, resident blocks, 2 loads in flight") {
  sgemv::start_stream_of_tokens<sgemv::Float16Items, sgemv::Float16Items, 2>(args);
}
GEMV_LIMIT(read_float16_stream_4, FLOAT16, 1048576, 16, "A as one array, resident blocks, 4 loads in flight") {
  sgemv::start_stream_of_tokens<sgemv::Float16Items, sgemv::Float16Items, 4>(args);
}
GEMV_LIMIT(read_float16_stream_8, FLOAT16, 1048576, 16, "A as one array, resident blocks, 8 loads in flight") {
  sgemv::start_stream_of_tokens<sgemv::Float16Items, sgemv::Float16Items, 8>(args);
}
GEMV_LIMIT(read_bfloat16_128_a_row, BFLOAT16, 1048576, 16, "128 threads a row, 1 row a block, 4 loads in flight") {
  sgemv::start_rows_of_tokens<sgemv::BFloat16Items, sgemv::BFloat16Items, 128>(args);
}
GEMV_LIMIT(read_bfloat16_256_a_row, BFLOAT16, 1048576, 16, "256 threads a row, 1 row a block, 4 loads in flight") {
  sgemv::start_rows_of_tokens<sgemv::BFloat16Items, sgemv::BFloat16Items, 256>(args);
}
GEMV_LIMIT(read_bfloat16_stream_2, BFLOAT16, 1048576, 16, "A as one array, resident blocks, 2 loads in flight") {
  sgemv::start_stream_of_tokens<sgemv::BFloat16Items, sgemv::BFloat16Items, 2>(args);
}
GEMV_LIMIT(read_bfloat16_stream_4, BFLOAT16, 1048576, 16, "A as one array, resident blocks, 4 loads in flight") {
  sgemv::start_stream_of_tokens<sgemv::BFloat16Items, sgemv::BFloat16Items, 4>(args);
}
GEMV_LIMIT(read_bfloat16_stream_8, BFLOAT16, 1048576, 16, "A as one array, resident blocks, 8 loads in flight") {
  sgemv::start_stream_of_tokens<sgemv::BFloat16Items, sgemv::BFloat16Items, 8>(args);
}
GEMV_LIMIT(read_int8_128_a_row, INT8, 1048576, 16, "128 threads a row, 1 row a block, 4 loads in flight") {
  sgemv::start_rows_of_tokens<sgemv::Int8Items, sgemv::Float16Items, 128>(args);
}
GEMV_LIMIT(read_int8_256_a_row, INT8, 1048576, 16, "256 threads a row, 1 row a block, 4 loads in flight") {
  sgemv::start_rows_of_tokens<sgemv::Int8Items, sgemv::Float16Items, 256>(args);
}
GEMV_LIMIT(read_int8_stream_2, INT8, 1048576, 16, "A as one array, resident blocks, 2 loads in flight") {
  sgemv::start_stream_of_tokens<sgemv::Int8Items, sgemv::Float16Items, 2>(args);
}
GEMV_LIMIT(read_int8_stream_4, INT8, 1048576, 16, "A as one array, resident blocks, 4 loads in flight") {
  sgemv::start_stream_of_tokens<sgemv::Int8Items, sgemv::Float16Items, 4>(args);
}
GEMV_LIMIT(read_int8_stream_8, INT8, 1048576, 16, "A as one array, resident blocks, 8 loads in flight") {
  sgemv::start_stream_of_tokens<sgemv::Int8Items, sgemv::Float16Items, 8>(args);
}
