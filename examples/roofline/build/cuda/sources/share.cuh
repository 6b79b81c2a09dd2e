// What every kernel for row-major A is made of: a thread's share of the dot products of some rows, summed in registers.
//
// `width` lanes share the rows: lane l takes 16-byte vectors l, l + width, … of each. Rows of one thread lie four apart,
// so that all start equally far past a multiple of 16 bytes whatever the row stride is (four rows are a multiple of 16
// bytes), and one load of x serves all of them.
#pragma once

#include "common.cuh"
#include "rule.h"

namespace sgemv {

constexpr int kRowsApart = 4;

// The first row of a group of lanes with `rows` rows; the others follow kRowsApart apart. Four neighbouring groups take
// 4 * rows neighbouring rows.
template <int rows>
__device__ inline std::int64_t first_row(std::int64_t group) {
  return group / kRowsApart * (kRowsApart * rows) + group % kRowsApart;
}

// The groups of `rows` rows whose first row is one of m.
template <int rows>
__host__ __device__ constexpr std::int64_t groups_for(std::int64_t m) {
  const std::int64_t left = m % (kRowsApart * rows);
  return m / (kRowsApart * rows) * kRowsApart + (left < kRowsApart ? left : kRowsApart);
}

__device__ inline void multiply_add(float& sum, float4 a, float4 x) {
  sum = fmaf(a.x, x.x, sum);
  sum = fmaf(a.y, x.y, sum);
  sum = fmaf(a.z, x.z, sum);
  sum = fmaf(a.w, x.w, sum);
}

// One lane's vectors of x: neighbouring elements, or four by four where x has a stride or A's rows start anywhere.
template <bool vectors>
struct LaneOfX {
  const float* next;
  std::int64_t stride;

  __device__ __forceinline__ LaneOfX(const Args& args, std::int64_t first)
      : next(args.x + (vectors ? first : first * args.x_stride)), stride(vectors ? 1 : args.x_stride) {}

  __device__ __forceinline__ float4 vector(int ahead) const {
    if constexpr (vectors) return __ldg(reinterpret_cast<const float4*>(next) + ahead);
    const float* x = next + 4 * ahead * stride;
    return make_float4(__ldg(x), __ldg(x + stride), __ldg(x + 2 * stride), __ldg(x + 3 * stride));
  }

  __device__ __forceinline__ void skip(int ahead) { next += 4 * ahead * stride; }
};

// Adds to sums[r] what `lane` of `width` has of row `row` + r * kRowsApart. A row beyond the last counts as `row`, which
// must be one: its sum is not used, and the loop has no branch for it. `loads` vectors of each row are in flight at a
// time. width >= 4, and >= 8 unless `narrow`. A row has at most 2^31 vectors: variants declare K_AT_MOST, 8000000000.
template <int rows, int loads, bool vectors, bool narrow = false>
__device__ __forceinline__ void add_share(float (&sums)[rows], const Args& args, std::int64_t row, int lane, int width) {
  const float* a[rows];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const std::int64_t own = row + r * kRowsApart;
    a[r] = args.a + (r == 0 || own < args.m ? own : row) * args.a_stride;
  }
  int head = 0;  // elements before the first whole vector
  if constexpr (!vectors) {
    head = static_cast<int>(-(reinterpret_cast<std::uintptr_t>(a[0]) / sizeof(float)) % 4);
    head = head < args.k ? head : static_cast<int>(args.k);
  }
  const int count = static_cast<int>((args.k - head) / 4);
  // At most six elements are in no whole vector. The lane's own is loaded first and added last: nothing waits for it.
  const int ends = static_cast<int>(args.k - std::int64_t{4} * count);
  const auto end_column = [=](int end) { return end < head ? end : end + std::int64_t{4} * count; };
  float a_end[rows] = {}, x_end = 0.0f;
  if (lane < ends) {
    x_end = __ldg(args.x + end_column(lane) * args.x_stride);
#pragma unroll
    for (int r = 0; r < rows; ++r) a_end[r] = __ldg(a[r] + end_column(lane));
  }
  const float4* next[rows];
#pragma unroll
  for (int r = 0; r < rows; ++r) next[r] = reinterpret_cast<const float4*>(a[r] + head) + lane;
  LaneOfX<vectors> x(args, head + std::int64_t{4} * lane);
  int left = count - lane;  // vectors from the lane's next on
#pragma unroll 1
  for (; left > (loads - 1) * width; left -= loads * width) {
    float4 a4[rows][loads], x4[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) {
#pragma unroll
      for (int r = 0; r < rows; ++r) a4[r][i] = load_once(next[r] + i * width);
    }
#pragma unroll
    for (int i = 0; i < loads; ++i) x4[i] = x.vector(i * width);
#pragma unroll
    for (int i = 0; i < loads; ++i) {
#pragma unroll
      for (int r = 0; r < rows; ++r) multiply_add(sums[r], a4[r][i], x4[i]);
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) next[r] += loads * width;
    x.skip(loads * width);
  }
  if (loads > 1 && left > 0) {  // fewer than `loads` vectors: all of them at once too
    constexpr int most = loads > 1 ? loads - 1 : 1;
    float4 a4[rows][most], x4[most];
#pragma unroll
    for (int i = 0; i < most; ++i) {
      const bool there = i == 0 || left > i * width;
#pragma unroll
      for (int r = 0; r < rows; ++r)
        a4[r][i] = there ? load_once(next[r] + i * width) : no_vector();
      x4[i] = there ? x.vector(i * width) : no_vector();
    }
#pragma unroll
    for (int i = 0; i < most; ++i) {
#pragma unroll
      for (int r = 0; r < rows; ++r) multiply_add(sums[r], a4[r][i], x4[i]);
    }
  }
  if (lane < ends) {
#pragma unroll
    for (int r = 0; r < rows; ++r) sums[r] = fmaf(a_end[r], x_end, sums[r]);
  }
  if (narrow && lane + width < ends) {
    const std::int64_t column = end_column(lane + width);
#pragma unroll
    for (int r = 0; r < rows; ++r) sums[r] = fmaf(__ldg(a[r] + column), __ldg(args.x + column * args.x_stride), sums[r]);
  }
}

// Every thread's sums over its block of `threads`: the total of row r comes back in thread r * threads / 32's value; see
// `owned_row`. All threads of the block must call it.
template <int rows, int threads>
__device__ __forceinline__ float sum_over_block(const float (&sums)[rows]) {
  constexpr int warps = threads / 32;
  static_assert(warps >= 2 && rows * warps <= threads);
  __shared__ float partial[rows * warps];
  const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const float sum = sum_over_lanes<32>(sums[r]);
    if (threadIdx.x % 32 == 0) partial[r * warps + warp] = sum;
  }
  __syncthreads();
  float total = 0.0f;
  if (warp * 32 < rows * warps) {  // the same for all lanes of a warp
    total = threadIdx.x < rows * warps ? partial[threadIdx.x] : 0.0f;
    total = sum_over_lanes<warps>(total);
  }
  return total;
}

// The row r whose total `sum_over_block` gave this thread, or -1.
template <int rows, int threads>
__device__ inline int owned_row() {
  constexpr int warps = threads / 32;
  return threadIdx.x < rows * warps && threadIdx.x % warps == 0 ? static_cast<int>(threadIdx.x) / warps : -1;
}

}  // namespace sgemv
