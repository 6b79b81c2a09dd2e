// Up to 8 tokens in one pass over A, as in tiles.cuh, but A and x come through shared memory: eight neighbouring lanes copy
// 128 bytes of a row, where those that multiply it could load but half of that at a time, and what is on its way occupies
// no registers.
#pragma once

#include "copies.cuh"
#include "tiles.cuh"

namespace sgemv {

constexpr int kLineBytes = 128;
constexpr int kLineParts = kLineBytes / 16;

// Some columns of some rows, in parts of 16 bytes. Eight lanes read at once, four parts of a row and four of the next. In
// odd rows a part's number is XORed with `skew`, so that those lie in the banks that the even row leaves: half a line
// apart where the four are neighbours, one part where they are every second.
template <int rows, int parts, int skew>
struct Columns {
  static constexpr int kRows = rows, kParts = parts;
  uint4 all[rows][parts];

  __device__ __forceinline__ uint4& at(int row, int part) { return all[row][part ^ row % 2 * skew]; }
};

// What a warp has on its way at once: a line of each of its rows, and those columns of 8 tokens.
template <class Item, int tiles>
struct Stage {
  static constexpr int kColumns = kLineBytes / Item::kBytes;
  Columns<tiles * kTileRows, kLineParts, kLineParts / 2> a;
  Columns<kTokens, kColumns / 8, Item::kItems == 8 ? kLineParts / 2 : 1> x;  // what 16 int8 meet are two parts
};

// What a lane copies to a Columns, step by step: a part of every `kApart`th row.
template <class To, bool again>
class Copier {
  static constexpr int kApart = 32 / To::kParts;
  static_assert(32 % To::kParts == 0 && To::kRows % kApart == 0);

 public:
  // From `from` on, of `rows` rows, whose last step has but `last` bytes.
  __device__ __forceinline__ Copier(const void* from, std::int64_t stride, std::int64_t rows, std::int64_t last)
      : row_(static_cast<int>(threadIdx.x) % 32 / To::kParts),
        part_(static_cast<int>(threadIdx.x) % To::kParts),
        rows_(static_cast<int>(rows < To::kRows ? rows : To::kRows)),
        last_(static_cast<int>(last < part_ * 16 ? 0 : last < part_ * 16 + 16 ? last - part_ * 16 : 16)),
        apart_(kApart * stride),
        from_(static_cast<const char*>(from) + row_ * stride + part_ * 16) {}

  // Rows that are not there stay as they are: their sums are not used.
  __device__ __forceinline__ void start(To& to, bool last, int step) {
    if (last && last_ % 16 != 0) return copy_bytes(to);
    const bool there = !last || last_ > 0;
    const char* from = from_;
#pragma unroll
    for (int i = 0; i < To::kRows; i += kApart) {
      if (row_ + i < rows_) start_copy<again>(&to.at(row_ + i, part_), from, there);
      from += apart_;
    }
    from_ += step;
  }

 private:
  // Where a row ends within the part.
  __device__ __forceinline__ void copy_bytes(To& to) const {
    const char* from = from_;
#pragma unroll 1
    for (int row = row_; row < rows_; row += kApart, from += apart_) {
      char* const part = reinterpret_cast<char*>(&to.at(row, part_));
#pragma unroll 1
      for (int i = 0; i < 16; ++i) part[i] = i < last_ ? __ldg(from + i) : 0;
    }
  }

  int row_, part_, rows_, last_;
  std::int64_t apart_;
  const char* from_;
};

// What lane 4g + t of a warp multiplies of a stage: rows g and g + 8 of each tile, and token g.
template <class Item, int tiles>
class LinesShare {
  static constexpr int kGroups = Item::kItems / 8;                // of 8 elements of x to 16 bytes of A
  static constexpr int kHalvesAtOnce = Item::kItems == 8 ? 2 : 1;  // both of an int8's line want too many registers

 public:
  __device__ __forceinline__ LinesShare(const TokenArgs& args, std::int64_t first)
      : group_(static_cast<int>(threadIdx.x) % 32 / 4), has_token_(group_ < args.n) {
#pragma unroll
    for (int i = 0; i < 2 * tiles; ++i) {
      const std::int64_t own = first + i * 8 + group_;
      excess_[i] = Item::excess_of_halves(args, own < args.m ? own : args.m - 1);
    }
  }

  __device__ __forceinline__ void multiply_add(float (&sums)[tiles][2][4], Stage<Item, tiles>& stage) const {
#pragma unroll(kHalvesAtOnce)
    for (int half = 0; half < 2; ++half) {
      const int part = half * 4 + static_cast<int>(threadIdx.x) % 4;
      Word pairs[Item::kItems / 2] = {};
      if (has_token_) put_x<Item>(pairs, [&](int i) { return stage.x.at(group_, part * kGroups + i); });
#pragma unroll
      for (int t = 0; t < tiles; ++t) {
        const int row = t * kTileRows + group_;
        multiply_add_rows<Item, 2>(sums[t], stage.a.at(row, part), stage.a.at(row + 8, part), excess_[2 * t],
                                   excess_[2 * t + 1], pairs);
      }
    }
  }

 private:
  int group_;
  bool has_token_;
  Word excess_[2 * tiles];
};

// Of a multiprocessor: as many as the shared memory of an H100, H200 or B200 has room for, with the 1 KiB that the system
// keeps for each; but no more than 16, which is all that some GPUs take, nor than 1,024 threads.
template <class Item, int tiles, int warps, int stages>
constexpr int blocks_of_lines() {
  const int room = 228 * 1024 / (warps * stages * static_cast<int>(sizeof(Stage<Item, tiles>)) + 1024);
  const int most = 32 / warps < 16 ? 32 / warps : 16;
  return room < most ? room : most;
}

// block 32 * warps, grid: 16 * tiles rows a block. A warp has `stages` on their way, in a ring.
template <class Item, int tiles, int warps, int stages>
__global__ void __launch_bounds__(32 * warps, blocks_of_lines<Item, tiles, warps, stages>())
    gemv_lines_kernel(const TokenArgs args) {
  using Own = Stage<Item, tiles>;
  constexpr int step = warps * Own::kColumns;
  extern __shared__ uint4 memory[];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  Own* const ring = reinterpret_cast<Own*>(memory) + warp * stages;
  const std::int64_t first = std::int64_t{blockIdx.x} * kTileRows * tiles, column = warp * Own::kColumns;
  int left = static_cast<int>((args.k - column + step - 1) / step);  // of the warp's steps
  const std::int64_t rest = args.k - column - std::int64_t{left - 1} * step;
  Copier<decltype(Own::a), false> a(static_cast<const char*>(args.a) + (first * args.a_stride + column) * Item::kBytes,
                                    args.a_stride * Item::kBytes, args.m - first, rest * Item::kBytes);
  Copier<decltype(Own::x), true> x(static_cast<const HalfBits*>(args.x) + column, args.x_stride * 2, args.n, rest * 2);
  const auto copy = [&](Own& stage, bool last) {
    a.start(stage.a, last, step * Item::kBytes);
    x.start(stage.x, last, step * 2);
  };
#pragma unroll 1
  for (int i = 0; i < stages; ++i) {
    if (i < left) copy(ring[i], i + 1 == left);
    close_group();
  }
  const LinesShare<Item, tiles> share(args, first);
  float sums[tiles][2][4] = {};
  Own* stage = ring;
#pragma unroll 1
  for (; left > 0; --left) {
    wait_for_copies<stages - 1>();
    __syncwarp();
    share.multiply_add(sums, *stage);
    __syncwarp();  // all have read what is overwritten now
    if (left > stages) copy(*stage, left == stages + 1);
    close_group();
    stage = stage + 1 == ring + stages ? ring : stage + 1;
  }
  // A warp's parts lie where its ring was.
  static_assert(stages * sizeof(Own) >= tiles * kTileOutputs * sizeof(float));
  write_tiles<Item, tiles, warps, stages * sizeof(Own) / sizeof(float)>(args, first, sums,
                                                                         reinterpret_cast<float*>(memory));
}

template <class Item, int tiles, int warps, int stages>
void start_lines(const TokenArgs& args) {
  if (!by_vectors<Item>(args)) return start_by_element<Item>(args);
  const auto kernel = gemv_lines_kernel<Item, tiles, warps, stages>;
  constexpr int bytes = warps * stages * sizeof(Stage<Item, tiles>);
  if (bytes > 48 * 1024) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const auto blocks = grid_of(ceil_div(args.m, tiles * kTileRows));
  kernel<<<blocks, 32 * warps, bytes, stream_of(args)>>>(args);
}

}  // namespace sgemv
