// What the `read` kernels of all dtypes share: how a thread reads its share of an array with several loads in flight,
// and how one that found what was planted tells it.
#pragma once

#include <cstring>

#include "common.cuh"
#include "marks.h"

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

// Until whoever owns y[0] has written it.
__device__ inline void wait_for_others([[maybe_unused]] std::int64_t elements) {
#if __CUDA_ARCH__ >= 700
  const std::int64_t until = nanoseconds() + others_write_ns(elements);
  while (nanoseconds() < until) __nanosleep(1000);  // between 0 and 2 us, says PTX
#endif
}

// With the hint that load_once is better without, but for small problems.
struct ByLines {
  static __device__ __forceinline__ float4 load(const float4* address) { return load_once(address); }
};
struct By256Bytes {
  static __device__ __forceinline__ float4 load(const float4* address) { return load_once<256>(address); }
};

// What a thread makes of float32: their plain sum, which is NaN where one of them is.
struct Floats {
  using Item = float;
  using Found = float;
  static __device__ float sum_of(float4 value) { return (value.x + value.y) + (value.z + value.w); }
  static __device__ float add(float sum, float4 value) { return sum + sum_of(value); }
  static __device__ float add(float sum, float value) { return sum + value; }
};

// Of other items: whether there was a mark.
template <class Marks>
struct Marked : Marks {
  using typename Marks::Item;
  using Found = unsigned;
  static __device__ unsigned add(unsigned found, float4 vector) {
    unsigned words[4];
    std::memcpy(words, &vector, sizeof words);
    for (const unsigned word : words) found = Marks::add(found, word);
    return found;
  }
  static __device__ unsigned add(unsigned found, Item item) { return Marks::add(found, item); }
};

// All items of 16 bytes that start at first, first + threads, … and of the last that fill no 16; `loads` loads in flight.
// `values` is aligned to 16 bytes.
template <class Items, int loads, class Fetch>
__device__ typename Items::Found read_share(const typename Items::Item* values, std::int64_t count, std::int64_t thread,
                                            std::int64_t threads, std::int64_t first) {
  constexpr int kItems = 16 / sizeof *values;
  const float4* vectors = reinterpret_cast<const float4*>(values);
  const std::int64_t vector_count = count / kItems;
  typename Items::Found found = 0;
  std::int64_t vector = first;
#pragma unroll 1
  for (; vector + (loads - 1) * threads < vector_count; vector += loads * threads) {
    float4 loaded[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) loaded[i] = Fetch::load(vectors + vector + i * threads);
#pragma unroll
    for (int i = 0; i < loads; ++i) found = Items::add(found, loaded[i]);
  }
  if (loads > 1)
#pragma unroll 1
    for (; vector < vector_count; vector += threads) found = Items::add(found, Fetch::load(vectors + vector));
#pragma unroll 1
  for (std::int64_t item = vector_count * kItems + thread; item < count; item += threads)
    found = Items::add(found, values[item]);
  return found;
}

// Items lane, lane + threads, … by plain loads of one each.
template <class Items, class Index>
__device__ typename Items::Found read_items(const typename Items::Item* __restrict__ values, std::int64_t count,
                                            Index lane, Index threads) {
  typename Items::Found found = 0;
#pragma unroll 4
  for (std::int64_t item = lane; item < count; item += threads) found = Items::add(found, values[item]);
  return found;
}

// The grid's threads share x out. A thread's first load of x is issued here and added up after A's, so that a small
// problem waits for memory once, not twice.
template <class Items>
__device__ float4 first_of_x(const typename Items::Item* x, std::int64_t count, std::int64_t thread) {
  constexpr int kItems = 16 / sizeof *x;
  return thread < count / kItems ? load_once(reinterpret_cast<const float4*>(x) + thread) : no_vector();
}

template <class Items>
__device__ typename Items::Found rest_of_x(const typename Items::Item* x, std::int64_t count, std::int64_t thread,
                                           std::int64_t threads) {
  return read_share<Items, 1, ByLines>(x, count, thread, threads, thread + threads);
}

// As many blocks as there is work for, 16 bytes a load, at most as many as are resident at once.
inline unsigned stream_blocks(std::int64_t bytes, int loads) {
  const std::int64_t work = ceil_div(bytes, std::int64_t{16} * kStreamThreads * loads);
  const std::int64_t resident = multiprocessors() * (kResidentThreads / kStreamThreads);
  return static_cast<unsigned>(work < 1 ? 1 : (work < resident ? work : resident));
}

}  // namespace sgemv
