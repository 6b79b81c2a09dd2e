// One token, A of two bytes an element or one: some lanes, or a block, share a row or two. What share.cuh says of float32
// holds here: loads of 16 bytes however a row starts, several in flight a thread, sums in a fixed order.
//
// Where A and x start on 16 bytes, x is loaded by vectors. Elsewhere it is loaded an element at a time, and two rows
// share that: they lie as many rows apart as 16 bytes have elements, so that both start equally far past 16 bytes.
#pragma once

#include "items.cuh"
#include "share.cuh"

namespace sgemv {

// How many rows a thread has, and how many 16-byte loads of each are in flight.
template <class Item, bool vectors>
struct Shape {
  static constexpr int rows = Item::kItems > 8 || !vectors ? 2 : 1;
  static constexpr int loads = 4 / rows;
  static constexpr int apart = Item::kItems;

  static __device__ std::int64_t first_row(std::int64_t group) {
    return rows == 1 ? group : group / apart * (apart * rows) + group % apart;
  }
  static std::int64_t groups_for(std::int64_t m) {
    const std::int64_t left = m % (apart * rows);
    return rows == 1 ? m : m / (apart * rows) * apart + (left < apart ? left : apart);
  }
};

// A lane's part of its rows, as add_share of share.cuh has it: a row beyond the last counts as the first.
template <class Item, bool vectors>
class ItemShare {
  using S = Shape<Item, vectors>;
  static constexpr int kItems = Item::kItems;

 public:
  __device__ __forceinline__ ItemShare(const TokenArgs& args, std::int64_t row, int lane, int width)
      : args_(args), first_(row), lane_(lane), width_(width) {
    int head = 0;  // elements before the first whole vector, perhaps more than there are
    if constexpr (!vectors)
      head = static_cast<int>(-(reinterpret_cast<std::uintptr_t>(start_of(0)) / Item::kBytes) % kItems);
    const std::int64_t count = (args.k - head) / kItems;  // no fewer than 0: cut off towards it
    head_ = head;
    ends_ = static_cast<int>(args.k - kItems * count);
    behind_ = kItems * count;
    left_ = count - lane;
#pragma unroll
    for (int r = 0; r < S::rows; ++r) {
      next_[r] = start_of(r) + (head + std::int64_t{kItems} * lane) * Item::kBytes;
      excess_[r] = Item::excess(args, row_of(r));
    }
    x_ = static_cast<const HalfBits*>(args.x) + head + std::int64_t{kItems} * lane;
  }

  __device__ __forceinline__ void add(float (&sums)[S::rows]) {
    // The lane's first element of no whole vector is loaded first and added last: nothing waits for it.
    float a_end[S::rows] = {}, x_end = 0.0f;
    if (lane_ < ends_) load_end(a_end, x_end, lane_);
#pragma unroll 1
    for (; left_ > (S::loads - 1) * width_; left_ -= S::loads * width_) add_vectors<true>(sums);
    if (S::loads > 1 && left_ > 0) add_vectors<false>(sums);
    if (lane_ < ends_) add_end(sums, a_end, x_end);
#pragma unroll 1
    for (int end = lane_ + width_; end < ends_; end += width_) {
      load_end(a_end, x_end, end);
      add_end(sums, a_end, x_end);
    }
  }

 private:
  __device__ __forceinline__ std::int64_t row_of(int r) const {
    const std::int64_t own = first_ + r * S::apart;
    return r == 0 || own < args_.m ? own : first_;
  }
  __device__ __forceinline__ const char* start_of(int r) const {
    return static_cast<const char*>(args_.a) + row_of(r) * args_.a_stride * Item::kBytes;
  }

  // All the lane's loads at once; `all`: each of them is there.
  template <bool all>
  __device__ __forceinline__ void add_vectors(float (&sums)[S::rows]) {
    uint4 a[S::rows][S::loads];
    Word x[S::loads][kItems / 2] = {};
#pragma unroll
    for (int i = 0; i < S::loads; ++i) {
#pragma unroll
      for (int r = 0; r < S::rows; ++r)
        a[r][i] = all || left_ > i * width_ ? load_items(next_[r] + 16 * i * width_) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < S::loads; ++i) {
      if (!all && left_ <= i * width_) continue;
      if constexpr (vectors)
        load_x<Item>(x[i], x_ + kItems * i * width_);
      else
        gather_x<Item>(x[i], x_ + kItems * i * width_, kItems);
    }
#pragma unroll
    for (int i = 0; i < S::loads; ++i) {
#pragma unroll
      for (int r = 0; r < S::rows; ++r) Item::multiply_add(sums[r], a[r][i], x[i], excess_[r]);
    }
#pragma unroll
    for (int r = 0; r < S::rows; ++r) next_[r] += 16 * S::loads * width_;
    x_ += kItems * S::loads * width_;
  }

  __device__ __forceinline__ void load_end(float (&a)[S::rows], float& x, int end) const {
    const std::int64_t column = end < head_ ? end : end + behind_;
    x = Item::floats(__ldg(static_cast<const HalfBits*>(args_.x) + column)).x;
#pragma unroll
    for (int r = 0; r < S::rows; ++r) a[r] = Item::weight(start_of(r), column, excess_[r]);
  }
  static __device__ __forceinline__ void add_end(float (&sums)[S::rows], const float (&a)[S::rows], float x) {
#pragma unroll
    for (int r = 0; r < S::rows; ++r) sums[r] = fmaf(a[r], x, sums[r]);
  }

  const TokenArgs& args_;
  std::int64_t first_;
  int lane_, width_;
  int head_, ends_;
  std::int64_t behind_;  // columns in whole vectors
  std::int64_t left_;    // vectors from the lane's next on
  const char* next_[S::rows];
  float excess_[S::rows];
  const HalfBits* x_;
};

template <class Item>
__device__ __forceinline__ void put(const TokenArgs& args, std::int64_t token, std::int64_t row, float total) {
  static_cast<HalfBits*>(args.y)[token * args.y_stride + row] = Item::result(args, row, total);
}

constexpr int kGroupThreads = 128;

// Rows that start anywhere take more registers.
constexpr int resident_groups(bool vectors) { return (vectors ? kResidentThreads : 768) / kGroupThreads; }

// `width` lanes of a warp share their rows; grid: enough threads for groups_for(m) groups.
template <class Item, int width, bool vectors>
__global__ void __launch_bounds__(kGroupThreads, resident_groups(vectors)) gemv_groups_kernel(const TokenArgs args) {
  using S = Shape<Item, vectors>;
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % width;
  const std::int64_t row = S::first_row(thread / width);
  float sums[S::rows] = {};
  if (row < args.m) ItemShare<Item, vectors>(args, row, lane, width).add(sums);
#pragma unroll
  for (int r = 0; r < S::rows; ++r) {
    const std::int64_t own = row + r * S::apart;
    const float sum = sum_over_lanes<width>(sums[r]);
    if (lane == 0 && own < args.m) put<Item>(args, 0, own, sum);
  }
}

// A block shares its rows; grid: groups_for(m).
template <class Item, int threads, bool vectors>
__global__ void __launch_bounds__(threads, kResidentThreads / threads) gemv_blocks_kernel(const TokenArgs args) {
  using S = Shape<Item, vectors>;
  const std::int64_t row = S::first_row(blockIdx.x);
  float sums[S::rows] = {};
  ItemShare<Item, vectors>(args, row, static_cast<int>(threadIdx.x), threads).add(sums);
  const float total = sum_over_block<S::rows, threads>(sums);
  const int r = owned_row<S::rows, threads>();
  if (r >= 0 && row + r * S::apart < args.m) put<Item>(args, 0, row + r * S::apart, total);
}

// Smaller blocks where large ones would leave multiprocessors without any.
template <class Item, int width, bool vectors>
void start_groups_by(const TokenArgs& args) {
  const std::int64_t all = Shape<Item, vectors>::groups_for(args.m) * width;
  const std::int64_t wanted = multiprocessors();
  std::int64_t threads = kGroupThreads;
  while (threads > 32 && ceil_div(all, threads) < wanted) threads /= 2;
  const auto blocks = grid_of(ceil_div(all, threads));
  gemv_groups_kernel<Item, width, vectors><<<blocks, static_cast<unsigned>(threads), 0, stream_of(args)>>>(args);
}

template <class Item, int width>
void start_groups(const TokenArgs& args) {
  by_vectors<Item>(args) ? start_groups_by<Item, width, true>(args) : start_groups_by<Item, width, false>(args);
}

template <class Item, int threads, bool vectors>
void start_blocks_by(const TokenArgs& args) {
  const auto blocks = grid_of(Shape<Item, vectors>::groups_for(args.m));
  gemv_blocks_kernel<Item, threads, vectors><<<blocks, threads, 0, stream_of(args)>>>(args);
}

template <class Item, int threads>
void start_blocks(const TokenArgs& args) {
  by_vectors<Item>(args) ? start_blocks_by<Item, threads, true>(args) : start_blocks_by<Item, threads, false>(args);
}

}  // namespace sgemv
