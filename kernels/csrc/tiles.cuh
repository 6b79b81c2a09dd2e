// Up to 8 tokens in one pass over A, by tensor cores: a warp has tiles of 8 rows, and the warps of a block share the
// columns of the same rows. Each load of x serves all tiles of its warp.
//
// An mma multiplies X (16 tokens, of which 8 are here, by 16 columns) by W (16 columns by 8 rows). Lane 4g + t has
// token g of X and row g of W, and of both the columns of the same 16 bytes of W: which these are does not matter to a
// sum over columns as long as both operands agree. So every lane loads neighbours, and nothing moves between lanes.
#pragma once

#include <type_traits>

#include "items.cuh"

namespace sgemv {

constexpr int kTokens = 8;
constexpr int kTileRows = 8;

// sums[0], sums[1] of lane 4g + t: token g with rows 2t and 2t + 1. Columns 2t, 2t + 1 of token g and row g are `low`,
// 2t + 8 and 2t + 9 are `high`.
template <class Item>
__device__ __forceinline__ void multiply_tiles(float (&sums)[4], Word x_low, Word x_high, Word w_low, Word w_high) {
#if defined(__CUDA_ARCH__)
  constexpr Word none = 0;  // tokens 8 to 15
  if constexpr (std::is_same_v<Item, BFloat16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%5}, {%7,%8}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(x_low), "r"(none), "r"(x_high), "r"(w_low), "r"(w_high));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%5}, {%7,%8}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(x_low), "r"(none), "r"(x_high), "r"(w_low), "r"(w_high));
#else
  // What the instruction does, by words of CUDA that a CPU can emulate.
  const unsigned group = threadIdx.x % 32 / 4, own = threadIdx.x % 4;
  const auto both = [](Word low, Word high) { return static_cast<unsigned long long>(high) << 32 | low; };
  for (unsigned t = 0; t < 4; ++t) {
    const auto x = __shfl_sync(kAllLanes, both(x_low, x_high), 4 * group + t);
    for (unsigned c = 0; c < 2; ++c) {
      const auto w = __shfl_sync(kAllLanes, both(w_low, w_high), 4 * (2 * own + c) + t);
      for (unsigned half = 0; half < 2; ++half) {
        const float2 a = Item::floats(static_cast<Word>(x >> 32 * half));
        const float2 b = Item::floats(static_cast<Word>(w >> 32 * half));
        sums[c] = fmaf(a.y, b.y, fmaf(a.x, b.x, sums[c]));
      }
    }
  }
#endif
}

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

// What a lane of a warp has of `tiles` tiles: the rows g, g + 8, … from `first` on, and token g.
template <class Item, int tiles, bool vectors>
class TileShare {
  static constexpr int kItems = Item::kItems;

 public:
  static constexpr int kColumns = 4 * kItems;  // of a warp at a time

  __device__ __forceinline__ TileShare(const TokenArgs& args, std::int64_t first) : k_(args.k) {
    const int group = static_cast<int>(threadIdx.x) % 32 / 4;
    own_ = static_cast<int>(threadIdx.x) % 4 * kItems;
#pragma unroll
    for (int j = 0; j < tiles; ++j) {  // a row beyond the last counts as the last: its sums are not used
      const std::int64_t own = first + j * kTileRows + group, row = own < args.m ? own : args.m - 1;
      a_[j] = static_cast<const char*>(args.a) + (row * args.a_stride + own_) * Item::kBytes;
      excess_[j] = Item::excess_of_halves(args, row);
    }
    has_token_ = group < args.n;
    x_ = static_cast<const HalfBits*>(args.x) + (has_token_ ? group : 0) * args.x_stride + own_;
  }

  // `loads` times kColumns columns from `column` on; `whole`: all of them are there.
  template <int loads, bool whole>
  __device__ __forceinline__ void add(float (&sums)[tiles][4], std::int64_t column) const {
    uint4 a[tiles][loads];
    Word x[loads][kItems / 2];
#pragma unroll
    for (int i = 0; i < loads; ++i) {
#pragma unroll
      for (int j = 0; j < tiles; ++j) a[j][i] = items<whole>(a_[j], column + i * kColumns);
    }
#pragma unroll
    for (int i = 0; i < loads; ++i) token<whole>(x[i], column + i * kColumns);
#pragma unroll
    for (int i = 0; i < loads; ++i) {
#pragma unroll
      for (int j = 0; j < tiles; ++j) {
        Word w[kItems / 2];
        Item::halves(w, a[j][i], excess_[j]);
#pragma unroll
        for (int p = 0; p < kItems / 2; p += 2) multiply_tiles<Item>(sums[j], x[i][p], x[i][p + 1], w[p], w[p + 1]);
      }
    }
  }

 private:
  // Elements from the lane's first of those at `column` on that are in the row.
  __device__ __forceinline__ std::int64_t there(std::int64_t column) const { return k_ - column - own_; }

  template <bool whole>
  __device__ __forceinline__ uint4 items(const char* a, std::int64_t column) const {
    if (vectors && (whole || there(column) >= kItems)) return load_items(a + column * Item::kBytes);
    return gather_items<Item>(a + column * Item::kBytes, whole ? kItems : there(column));
  }

  template <bool whole>
  __device__ __forceinline__ void token(Word (&pairs)[kItems / 2], std::int64_t column) const {
#pragma unroll
    for (Word& pair : pairs) pair = 0;
    if (!has_token_) return;
    if (vectors && (whole || there(column) >= kItems))
      load_x<Item>(pairs, x_ + column);
    else
      gather_x<Item>(pairs, x_ + column, whole ? kItems : there(column));
  }

  std::int64_t k_;
  const char* a_[tiles];
  Word excess_[tiles];
  const HalfBits* x_;
  int own_;  // the lane's first column of kColumns
  bool has_token_;
};

// Adds the parts of a block's warps, in their order, and writes.
template <class Item, int tiles, int warps>
__device__ __forceinline__ void write_tiles(const TokenArgs& args, std::int64_t first, const float (&sums)[tiles][4]) {
  constexpr int rows = tiles * kTileRows;
  __shared__ float parts[warps * kTokens * rows];
  const int warp = static_cast<int>(threadIdx.x) / 32, token = static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
  for (int j = 0; j < tiles; ++j) {
    float* part = parts + (warp * kTokens + token) * rows + j * kTileRows + threadIdx.x % 4 * 2;
    part[0] = sums[j][0];
    part[1] = sums[j][1];
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kTokens * rows; i += 32 * warps) {
    const std::int64_t row = first + i % rows;
    if (i / rows >= args.n || row >= args.m) continue;
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < warps; ++w) total += parts[w * kTokens * rows + i];
    static_cast<HalfBits*>(args.y)[i / rows * args.y_stride + row] = Item::result(args, row, total);
  }
}

// Threads a multiprocessor that registers must be left for. With fewer each has more loads in flight.
template <class Item>
constexpr int tile_threads(int tiles, bool vectors) {
  return tiles > 2 || !vectors ? 512 : Item::kItems > 8 ? 768 : 1024;
}

// block 32 * warps, grid: 8 * tiles rows a block
template <class Item, int tiles, int warps, int loads, bool vectors>
__global__ void __launch_bounds__(32 * warps, tile_threads<Item>(tiles, vectors) / (32 * warps))
    gemv_tiles_kernel(const TokenArgs args) {
  using Share = TileShare<Item, tiles, vectors>;
  constexpr int columns = loads * Share::kColumns;
  const std::int64_t first = std::int64_t{blockIdx.x} * (tiles * kTileRows);
  const Share share(args, first);
  float sums[tiles][4] = {};
  std::int64_t column = static_cast<int>(threadIdx.x) / 32 * columns;
#pragma unroll 1
  for (; column + columns <= args.k; column += warps * columns) share.template add<loads, true>(sums, column);
#pragma unroll 1
  for (; column < args.k; column += Share::kColumns) share.template add<1, false>(sums, column);  // the last, not whole
  write_tiles<Item, tiles, warps>(args, first, sums);
}

template <class Item, int tiles, int warps>
void start_tiles(const TokenArgs& args) {
  const auto stream = stream_of(args);
  if (by_vectors<Item>(args)) {
    constexpr int loads = tiles > 2 ? 2 : 4 / tiles;
    const auto blocks = grid_of(ceil_div(args.m, tiles * kTileRows));
    gemv_tiles_kernel<Item, tiles, warps, loads, true><<<blocks, 32 * warps, 0, stream>>>(args);
  } else {  // an element at a time, whichever variant was asked for
    const auto blocks = grid_of(ceil_div(args.m, 2 * kTileRows));
    gemv_tiles_kernel<Item, 2, 8, 1, false><<<blocks, 256, 0, stream>>>(args);
  }
}

}  // namespace sgemv
