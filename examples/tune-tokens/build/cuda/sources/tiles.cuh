// Up to 8 tokens in one pass over A, by tensor cores: a warp has 16 rows, and the warps of a block share the columns of
// the same rows.
#pragma once

#include "mma.cuh"

namespace sgemv {

constexpr int kTokens = 8;
constexpr int kTileRows = 16;

// 16 bytes of a row from anywhere, of which only `count` elements are there: the others are 0.
template <class Item>
__device__ __forceinline__ uint4 gather_items(const char* a, std::int64_t count) {
  Word words[4] = {};
#pragma unroll
  for (int i = 0; i < Item::kItems; ++i) {
    if (i >= count) continue;
    Word item;
    if constexpr (Item::kBytes == 1)
      item = __ldg(reinterpret_cast<const unsigned char*>(a) + i);
    else
      item = __ldg(reinterpret_cast<const HalfBits*>(a) + i);
    words[i * Item::kBytes / 4] |= item << (i * Item::kBytes % 4 * 8);
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

// What lane 4g + t of a warp has of the 16 rows from `first` on: rows g and g + 8, and token g.
template <class Item, bool vectors>
class TileShare {
  static constexpr int kItems = Item::kItems;

 public:
  static constexpr int kColumns = 4 * kItems;  // of a warp at a time
  using Sums = float[2][4];                    // of the lane, whose sum counts
  using Weights = uint4[2];                    // 16 bytes of both rows
  using Pairs = Word[kItems / 2];              // the token's x for them

  __device__ __forceinline__ TileShare(const TokenArgs& args, std::int64_t first) : k_(args.k) {
    const int group = static_cast<int>(threadIdx.x) % 32 / 4;
    own_ = static_cast<int>(threadIdx.x) % 4 * kItems;
#pragma unroll
    for (int r = 0; r < 2; ++r) {  // a row beyond the last counts as the last: its sums are not used
      const std::int64_t own = first + r * 8 + group, row = own < args.m ? own : args.m - 1;
      a_[r] = static_cast<const char*>(args.a) + (row * args.a_stride + own_) * Item::kBytes;
      excess_[r] = Item::excess_of_halves(args, row);
    }
    has_token_ = group < args.n;
    x_ = static_cast<const HalfBits*>(args.x) + (has_token_ ? group : 0) * args.x_stride + own_;
  }

  // At kColumns columns from `column` on; `whole`: all of them are there.
  template <bool whole>
  __device__ __forceinline__ void load(Weights& a, std::int64_t column) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (vectors && (whole || there(column) >= kItems))
        a[r] = load_items<true>(a_[r] + column * Item::kBytes);
      else
        a[r] = gather_items<Item>(a_[r] + column * Item::kBytes, whole ? kItems : there(column));
    }
  }

  template <bool whole>
  __device__ __forceinline__ void load(Pairs& x, std::int64_t column) const {
#pragma unroll
    for (Word& pair : x) pair = 0;
    if (!has_token_) return;
    if (vectors && (whole || there(column) >= kItems))
      load_x<Item>(x, x_ + column);
    else
      gather_x<Item>(x, x_ + column, whole ? kItems : there(column));
  }

  __device__ __forceinline__ void multiply_add(Sums& sums, const Weights& a, const Pairs& x) const {
    multiply_add_rows<Item, 2>(sums, a[0], a[1], excess_[0], excess_[1], x);
  }

 private:
  // Elements from the lane's first of those at `column` on that are in the row.
  __device__ __forceinline__ std::int64_t there(std::int64_t column) const { return k_ - column - own_; }

  std::int64_t k_;
  const char* a_[2];
  Word excess_[2];
  const HalfBits* x_;
  int own_;  // the lane's first column of kColumns
  bool has_token_;
};

constexpr int kTileOutputs = kTokens * kTileRows;

// Adds the parts of a block's warps, in their order, and writes the block's tiles, from row `first` on. `parts`: shared
// memory, in which a warp has its own part at each `apart` floats.
template <class Item, int tiles, int warps, int apart>
__device__ __forceinline__ void write_tiles(const TokenArgs& args, std::int64_t first, const float (&sums)[tiles][2][4],
                                            float* parts) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  float* part = parts + warp * apart + lane % 4 * 2 * kTileRows + lane / 4;
#pragma unroll
  for (int i = 0; i < 4 * tiles; ++i)
    part[i / 4 * kTileOutputs + i % 2 * kTileRows + i % 4 / 2 * 8] = sums[i / 4][0][i % 4] + sums[i / 4][1][i % 4];
  __syncthreads();
  const int outputs = static_cast<int>(args.n) * kTileRows;  // of a tile
  for (int i = static_cast<int>(threadIdx.x); i < tiles * outputs; i += 32 * warps) {
    const int tile = tiles == 1 ? 0 : i / outputs, own = i - tile * outputs;
    const std::int64_t row = first + tile * kTileRows + own % kTileRows;
    if (row >= args.m) continue;
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < warps; ++w) total += parts[w * apart + tile * kTileOutputs + own];
    static_cast<HalfBits*>(args.y)[own / kTileRows * args.y_stride + row] = Item::result(args, row, total);
  }
}

// block 32 * warps, grid: 16 rows a block. Of each of its rows a lane has `loads` loads in flight, in a ring: what was
// multiplied is loaded anew before the next is. `blocks`: of a multiprocessor, that the compiler must leave registers for.
template <class Item, int warps, int loads, int blocks, bool vectors>
__global__ void __launch_bounds__(32 * warps, blocks) gemv_tiles_kernel(const TokenArgs args) {
  using Share = TileShare<Item, vectors>;
  constexpr int columns = loads * Share::kColumns, step = warps * columns;
  const std::int64_t first = std::int64_t{blockIdx.x} * kTileRows;
  const Share share(args, first);
  float sums[1][2][4] = {};
  typename Share::Weights a[loads];
  typename Share::Pairs x;
  std::int64_t column = static_cast<int>(threadIdx.x) / 32 * columns;
  if (column + columns <= args.k) {
#pragma unroll
    for (int i = 0; i < loads; ++i) share.template load<true>(a[i], column + i * Share::kColumns);
  }
#pragma unroll 1
  for (; column + columns <= args.k; column += step) {
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      const std::int64_t own = column + i * Share::kColumns;
      share.template load<true>(x, own);
      share.multiply_add(sums[0], a[i], x);
      if (column + step + columns <= args.k) share.template load<true>(a[i], own + step);
    }
  }
#pragma unroll 1
  for (; column < args.k; column += Share::kColumns) {  // the last, not whole
    share.template load<false>(a[0], column);
    share.template load<false>(x, column);
    share.multiply_add(sums[0], a[0], x);
  }
  __shared__ float parts[warps * kTileOutputs];
  write_tiles<Item, 1, warps, kTileOutputs>(args, first, sums, parts);
}

// Where rows or tokens do not start on 16 bytes, whichever variant was asked for.
template <class Item>
void start_by_element(const TokenArgs& args) {
  gemv_tiles_kernel<Item, 8, 1, 2, false><<<grid_of(ceil_div(args.m, kTileRows)), 256, 0, stream_of(args)>>>(args);
}

template <class Item, int warps, int loads, int blocks>
void start_tiles(const TokenArgs& args) {
  if (!by_vectors<Item>(args)) return start_by_element<Item>(args);
  const auto grid = grid_of(ceil_div(args.m, kTileRows));
  gemv_tiles_kernel<Item, warps, loads, blocks, true><<<grid, 32 * warps, 0, stream_of(args)>>>(args);
}

}  // namespace sgemv
