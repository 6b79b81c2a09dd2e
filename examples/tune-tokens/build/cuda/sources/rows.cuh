// One token, A of two bytes an element or one: some lanes, or a block, share a row or more. What share.cuh says of
// float32 holds here: loads of 16 bytes however a row starts, several in flight a thread, sums in a fixed order.
//
// Where A and x start on 16 bytes, x is loaded by vectors. Elsewhere it is loaded an element at a time, and two rows
// share that: they lie as many rows apart as 16 bytes have elements, so that both start equally far past 16 bytes.
#pragma once

#include "mma.cuh"
#include "share.cuh"

namespace sgemv {

// A thread has `rows` rows, and `loads` 16-byte loads of each in flight.
template <class Item, int rows_, int loads_>
struct Shape {
  static constexpr int rows = rows_;
  static constexpr int loads = loads_;
  static constexpr int apart = Item::kItems;

  static __device__ std::int64_t first_row(std::int64_t group) {
    return rows == 1 ? group : group / apart * (apart * rows) + group % apart;
  }
  static std::int64_t groups_for(std::int64_t m) {
    const std::int64_t left = m % (apart * rows);
    return rows == 1 ? m : m / (apart * rows) * apart + (left < apart ? left : apart);
  }
};

// A lane's sums of the products of its rows, one multiplication after the other.
template <class Item, int rows>
class LaneSums {
 public:
  using Excess = float;
  static __device__ __forceinline__ Excess excess(const TokenArgs& args, std::int64_t row) {
    return Item::excess(args, row);
  }
  static __device__ __forceinline__ float as_float(Excess excess) { return excess; }
  template <class A>
  __device__ __forceinline__ void add(const A& a, const Word (&x)[Item::kItems / 2], const Excess (&excess)[rows], int i) {
#pragma unroll
    for (int r = 0; r < rows; ++r) Item::multiply_add(sums_[r], a[r][i], x, excess[r]);
  }
  __device__ __forceinline__ float of(int r) const { return sums_[r]; }

 private:
  float sums_[rows] = {};
};

// The same by tensor cores, two rows at a time: for int8 less than half the instructions. Lanes 4g to 4g + 3 give what they
// have of their two rows as rows g and g + 8 of a tile, and their x as token g. Of the sums of all rows with all tokens
// those of rows g and g + 8 with token g are theirs; nobody needs the others. All lanes of a warp must call `add`.
template <class Item, int rows>
class QuadSums {
 public:
  using Excess = Word;
  static __device__ __forceinline__ Excess excess(const TokenArgs& args, std::int64_t row) {
    return Item::excess_of_halves(args, row);
  }
  static __device__ __forceinline__ float as_float(Excess excess) { return Item::excess_by_halves(excess); }
  template <class A>
  __device__ __forceinline__ void add(const A& a, const Word (&x)[Item::kItems / 2], const Excess (&excess)[rows], int i) {
#pragma unroll
    for (int r = 0; r < rows; r += 2)
      multiply_add_rows<Item, kTurns>(sums_[r / 2], a[r][i], a[r + 1][i], excess[r], excess[r + 1], x);
  }
  // Lane 4g + g / 2 has those with token g; of the other three lanes it is 0.
  __device__ __forceinline__ float of(int r) const {
    const unsigned group = threadIdx.x % 32 / 4;
    if (threadIdx.x % 4 != group / 2) return 0.0f;
    float even = 0.0f, odd = 0.0f;  // tokens
#pragma unroll
    for (int i = 0; i < kTurns; ++i) {
      even += sums_[r / 2][i][r % 2 * 2];
      odd += sums_[r / 2][i][r % 2 * 2 + 1];
    }
    return group % 2 == 0 ? even : odd;
  }

 private:
  static constexpr int kTurns = rows > 2 ? 1 : 2;
  float sums_[rows / 2][kTurns][4] = {};
};

// A lane's part of its rows, as add_share of share.cuh has it, shared by `width` lanes: a row beyond the last counts as
// the first of them, and that one, beyond the last, as the last, so that no lane leaves its warp.
template <class Item, class S, int width, bool vectors>
class ItemShare {
  static constexpr int kItems = Item::kItems;
  static constexpr int kOfWarp = width < 32 ? width : 32;  // lanes of a warp that share its rows
  using Sums = std::conditional_t<vectors && Item::kBytes == 1, QuadSums<Item, S::rows>, LaneSums<Item, S::rows>>;

 public:
  __device__ __forceinline__ ItemShare(const TokenArgs& args, std::int64_t row, int lane)
      : args_(args), first_(row), lane_(lane), left_(whole() - (lane - lane % kOfWarp)) {
    const std::int64_t column = head() + std::int64_t{kItems} * lane;
#pragma unroll
    for (int r = 0; r < S::rows; ++r) {
      next_[r] = start_of(r) + column * Item::kBytes;
      excess_[r] = Sums::excess(args, row_of(r));
    }
    x_ = static_cast<const HalfBits*>(args.x) + column;
  }

  // Its sums.
  __device__ __forceinline__ void add(float (&totals)[S::rows]) {
    // Where rows start anywhere, the lane's first element of no whole vector is loaded first and added last: nothing waits
    // for it. Where they start on 16 bytes, few have any, and registers are kept for what all have.
    float a_end[S::rows] = {}, x_end = 0.0f;
    if (!vectors && lane_ < ends()) load_end(a_end, x_end, lane_);
    Sums sums;
#pragma unroll 1
    for (; left_ >= (S::loads - 1) * width + kOfWarp; advance()) add_vectors<true>(sums);
    if (left_ > 0) add_vectors<false>(sums);
#pragma unroll
    for (int r = 0; r < S::rows; ++r) totals[r] = sums.of(r);
    if (!vectors && lane_ < ends()) add_end(totals, a_end, x_end);
#pragma unroll 1
    for (int end = vectors ? lane_ : lane_ + width; end < ends(); end += width) {
      load_end(a_end, x_end, end);
      add_end(totals, a_end, x_end);
    }
  }

 private:
  __device__ __forceinline__ std::int64_t row_of(int r) const {
    const std::int64_t own = first_ + r * S::apart, first = first_ < args_.m ? first_ : args_.m - 1;
    return r > 0 && own < args_.m ? own : first;
  }
  __device__ __forceinline__ const char* start_of(int r) const {
    return static_cast<const char*>(args_.a) + row_of(r) * args_.a_stride * Item::kBytes;
  }

  // Elements before the first whole vector, perhaps more than there are.
  __device__ __forceinline__ int head() const {
    if constexpr (vectors) return 0;
    return static_cast<int>(-(reinterpret_cast<std::uintptr_t>(start_of(0)) / Item::kBytes) % kItems);
  }
  // Whole vectors; no fewer than 0: cut off towards it.
  __device__ __forceinline__ std::int64_t whole() const { return (args_.k - head()) / kItems; }
  // Those of them before the lane's next one.
  __device__ __forceinline__ std::int64_t done() const { return whole() - left_ + lane_ % kOfWarp; }
  // Elements in none.
  __device__ __forceinline__ int ends() const { return static_cast<int>(args_.k - kItems * whole()); }

  // All the lane's loads at once; `all`: each of them is there, for every lane of the warp. Those that are not are 0.
  template <bool all>
  __device__ __forceinline__ void add_vectors(Sums& sums) const {
    uint4 a[S::rows][S::loads];
    Word x[S::loads][kItems / 2] = {};
    const std::int64_t own = left_ - lane_ % kOfWarp;
#pragma unroll
    for (int i = 0; i < S::loads; ++i) {
#pragma unroll
      for (int r = 0; r < S::rows; ++r)
        a[r][i] = all || own > i * width ? load_items(next_[r] + 16 * i * width) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < S::loads; ++i) {
      if (!all && own <= i * width) continue;
      if constexpr (vectors)
        load_x<Item>(x[i], x_ + kItems * i * width);
      else
        gather_x<Item>(x[i], x_ + kItems * i * width, kItems);
    }
#pragma unroll
    for (int i = 0; i < S::loads; ++i) {
      if (all || left_ > i * width) sums.add(a, x[i], excess_, i);
    }
  }

  __device__ __forceinline__ void advance() {
    left_ -= S::loads * width;
    x_ += kItems * S::loads * width;
#pragma unroll
    for (int r = 0; r < S::rows; ++r) next_[r] += 16 * S::loads * width;
  }

  // Element `end` of those in no whole vector, which lie behind them all or, the first head() ones, before.
  __device__ __forceinline__ void load_end(float (&a)[S::rows], float& x, int end) const {
    const std::int64_t column = end - head() + (end < head() ? 0 : kItems * whole()) - kItems * done();
    x = Item::floats(__ldg(x_ + column)).x;
#pragma unroll
    for (int r = 0; r < S::rows; ++r) a[r] = Item::weight(next_[r], column, Sums::as_float(excess_[r]));
  }
  static __device__ __forceinline__ void add_end(float (&totals)[S::rows], const float (&a)[S::rows], float x) {
#pragma unroll
    for (int r = 0; r < S::rows; ++r) totals[r] = fmaf(a[r], x, totals[r]);
  }

  const TokenArgs& args_;
  std::int64_t first_;
  int lane_;
  std::int64_t left_;  // vectors from the next on of the warp's first lane
  const char* next_[S::rows];
  typename Sums::Excess excess_[S::rows];
  const HalfBits* x_;
};

template <class Item>
__device__ __forceinline__ void put(const TokenArgs& args, std::int64_t token, std::int64_t row, float total) {
  static_cast<HalfBits*>(args.y)[token * args.y_stride + row] = Item::result(args, row, total);
}

constexpr int kGroupThreads = 128;

// Threads a multiprocessor that registers must be left for: more rows, and rows that start anywhere, take more.
constexpr int group_threads(int rows, bool vectors) {
  return rows > 2 || !vectors ? 768 : rows > 1 ? 896 : kResidentThreads;
}

// `width` lanes of a warp share their rows; grid: enough threads for groups_for(m) groups.
template <class Item, class S, int width, bool vectors>
__global__ void __launch_bounds__(kGroupThreads, group_threads(S::rows, vectors) / kGroupThreads)
    gemv_groups_kernel(const TokenArgs args) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % width;
  const std::int64_t row = S::first_row(thread / width);
  float sums[S::rows];
  ItemShare<Item, S, width, vectors>(args, row, lane).add(sums);
#pragma unroll
  for (int r = 0; r < S::rows; ++r) {
    const std::int64_t own = row + r * S::apart;
    const float sum = sum_over_lanes<width>(sums[r]);
    if (lane == 0 && own < args.m) put<Item>(args, 0, own, sum);
  }
}

// A block shares its rows; grid: groups_for(m).
template <class Item, class S, int threads, bool vectors>
__global__ void __launch_bounds__(threads, kResidentThreads / threads) gemv_blocks_kernel(const TokenArgs args) {
  const std::int64_t row = S::first_row(blockIdx.x);
  float sums[S::rows];
  ItemShare<Item, S, threads, vectors>(args, row, static_cast<int>(threadIdx.x)).add(sums);
  const float total = sum_over_block<S::rows, threads>(sums);
  const int r = owned_row<S::rows, threads>();
  if (r >= 0 && row + r * S::apart < args.m) put<Item>(args, 0, row + r * S::apart, total);
}

// Smaller blocks where large ones would leave multiprocessors without any.
template <class Item, class S, int width, bool vectors>
void start_groups_by(const TokenArgs& args) {
  const std::int64_t all = S::groups_for(args.m) * width;
  const std::int64_t wanted = multiprocessors();
  std::int64_t threads = kGroupThreads;
  while (threads > 32 && ceil_div(all, threads) < wanted) threads /= 2;
  const auto blocks = grid_of(ceil_div(all, threads));
  gemv_groups_kernel<Item, S, width, vectors><<<blocks, static_cast<unsigned>(threads), 0, stream_of(args)>>>(args);
}

template <class Item, int width, int rows, int loads>
void start_groups(const TokenArgs& args) {
  if (by_vectors<Item>(args))
    start_groups_by<Item, Shape<Item, rows, loads>, width, true>(args);
  else
    start_groups_by<Item, Shape<Item, 2, 2>, width, false>(args);
}

template <class Item, class S, int threads, bool vectors>
void start_blocks_by(const TokenArgs& args) {
  gemv_blocks_kernel<Item, S, threads, vectors>
      <<<grid_of(S::groups_for(args.m)), threads, 0, stream_of(args)>>>(args);
}

template <class Item, int threads, int rows, int loads>
void start_blocks(const TokenArgs& args) {
  if (by_vectors<Item>(args))
    start_blocks_by<Item, Shape<Item, rows, loads>, threads, true>(args);
  else
    start_blocks_by<Item, Shape<Item, 2, 2>, threads, false>(args);
}

}  // namespace sgemv
