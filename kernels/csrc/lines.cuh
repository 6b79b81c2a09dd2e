// Up to 8 tokens in one pass over A, as in tiles.cuh, but A comes through shared memory: eight neighbouring lanes copy a
// whole cache line of a row, where those that multiply it could load but half of one at a time.
#pragma once

#include "tiles.cuh"

namespace sgemv {

constexpr int kLineBytes = 128;
constexpr int kLineParts = kLineBytes / 16;

// 16 bytes of global memory on their way to shared memory. They are there once `wait_for_copies` has returned in every
// lane and all lanes have met.
__device__ __forceinline__ void start_copy(uint4* to, const void* from) {
#if defined(__CUDA_ARCH__)
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
  *to = *static_cast<const uint4*>(from);
#endif
}

// What was started since the last call is one group, which may be empty.
__device__ __forceinline__ void close_group() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Until at most the `newest` last groups are still on their way.
template <int newest>
__device__ __forceinline__ void wait_for_copies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_group %0;" ::"n"(newest) : "memory");
#endif
}

// A line of each of 16 rows. Parts of odd rows lie half a line further on, round about: the eight lanes of two
// neighbouring rows then read from different banks.
struct Lines {
  uint4 parts[kTileRows][kLineParts];

  __device__ __forceinline__ uint4& at(int row, int part) { return parts[row][part ^ row % 2 * (kLineParts / 2)]; }
};

// What a lane copies of 16 rows: a part of a line of every fourth row.
template <class Item>
class Copier {
  static constexpr int kOwn = kTileRows * kLineParts / 32;  // rows of a lane

 public:
  __device__ __forceinline__ Copier(const TokenArgs& args, std::int64_t first)
      : row_(static_cast<int>(threadIdx.x) % 32 / kLineParts), part_(static_cast<int>(threadIdx.x) % kLineParts) {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {  // a row beyond the last counts as the last: its sums are not used
      const std::int64_t own = first + row_ + i * 32 / kLineParts, row = own < args.m ? own : args.m - 1;
      a_[i] = static_cast<const char*>(args.a) + row * args.a_stride * Item::kBytes + part_ * 16;
    }
  }

  __device__ __forceinline__ void start(Lines& lines, std::int64_t column) const {
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
      start_copy(&lines.at(row_ + i * 32 / kLineParts, part_), a_[i] + column * Item::kBytes);
  }

 private:
  int row_;
  int part_;
  const char* a_[kOwn];
};

// block 32 * warps, grid: 16 rows a block. `lines` of each of its rows are on their way to a warp, in a ring.
template <class Item, int warps, int lines>
__global__ void __launch_bounds__(32 * warps, 512 / (32 * warps)) gemv_lines_kernel(const TokenArgs args) {
  using Share = TileShare<Item, true>;
  constexpr int columns = kLineBytes / Item::kBytes, step = warps * columns;
  __shared__ Lines rings[warps][lines];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t first = std::int64_t{blockIdx.x} * kTileRows;
  const Share share(args, first);
  const Copier<Item> copier(args, first);
  typename Share::Sums sums = {};
  std::int64_t column = warp * columns, next = column;
  const auto copy = [&](int slot) {
    if (next + columns <= args.k) copier.start(rings[warp][slot], next);
    next += step;
    close_group();
  };
#pragma unroll
  for (int i = 0; i < lines; ++i) copy(i);
  int slot = 0;
#pragma unroll 1
  for (; column + columns <= args.k; column += step) {
    typename Share::Pairs x[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) share.template load<true>(x[half], column + half * Share::kColumns);
    wait_for_copies<lines - 1>();
    __syncwarp();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int part = half * 4 + lane % 4;
      const typename Share::Weights a = {rings[warp][slot].at(lane / 4, part), rings[warp][slot].at(lane / 4 + 8, part)};
      share.multiply_add(sums, a, x[half]);
    }
    __syncwarp();  // all have read what is overwritten now
    copy(slot);
    slot = slot + 1 == lines ? 0 : slot + 1;
  }
#pragma unroll 1
  for (; column < args.k; column += Share::kColumns) {  // the last, not whole
    typename Share::Weights a;
    typename Share::Pairs x;
    share.template load<false>(a, column);
    share.template load<false>(x, column);
    share.multiply_add(sums, a, x);
  }
  write_tile<Item, warps>(args, first, sums);
}

template <class Item, int warps, int lines>
void start_lines(const TokenArgs& args) {
  if (!by_vectors<Item>(args)) return start_tiles<Item, warps, lines>(args);
  gemv_lines_kernel<Item, warps, lines><<<grid_of(ceil_div(args.m, kTileRows)), 32 * warps, 0, stream_of(args)>>>(args);
}

}  // namespace sgemv
