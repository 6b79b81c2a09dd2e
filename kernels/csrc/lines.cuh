// Up to 8 tokens in one pass over A, as in tiles.cuh, but A and x come through shared memory: eight neighbouring lanes copy
// a whole cache line of a row, where those that multiply it could load but half of one at a time, and what a lane waits
// for is no register's.
#pragma once

#include <cstring>

#include "tiles.cuh"

namespace sgemv {

constexpr int kLineBytes = 128;
constexpr int kLineParts = kLineBytes / 16;
constexpr int kSharedBytes = 228 * 1024;  // of a multiprocessor of an H100, H200 or B200, of which a block wants 1 KiB more

// `bytes` of up to 16 of global memory on their way to shared memory, where 0 fills the rest. They are there once
// `wait_for_copies` has returned in every lane and all lanes have met. `again`: others will want the same, so L1 has it.
template <bool again>
__device__ __forceinline__ void start_copy(uint4* to, const void* from, int bytes) {
#if defined(__CUDA_ARCH__)
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (again)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
#else
  *to = make_uint4(0, 0, 0, 0);
  std::memcpy(to, from, bytes);
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

// Some columns of some rows, in parts of 16 bytes. Eight lanes read at once, four parts of a row and four of the next:
// those of odd rows lie `skew` parts further on, round about, in the banks that the others leave.
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
  Columns<kTokens, kColumns / 8, Item::kItems == 8 ? kLineParts / 2 : 1> x;  // an int8's are two parts, side by side
};

// What a lane copies to a Columns, step by step: a part of every so-manieth row.
template <class To, bool again>
class Copier {
  static constexpr int kApart = 32 / To::kParts;

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
    const int bytes = last ? last_ : 16;
    const char* from = from_;
#pragma unroll
    for (int i = 0; i < To::kRows; i += kApart) {
      if (row_ + i < rows_) start_copy<again>(&to.at(row_ + i, part_), from, bytes);
      from += apart_;
    }
    from_ += step;
  }

 private:
  int row_, part_, rows_, last_;
  std::int64_t apart_;
  const char* from_;
};

// As many as shared memory has room for, and 1,024 threads.
template <class Item, int tiles, int warps, int stages>
constexpr int blocks_of_lines() {
  const int room = kSharedBytes / (warps * stages * static_cast<int>(sizeof(Stage<Item, tiles>)) + 1024);
  return room < 32 / warps ? room : 32 / warps;
}

// block 32 * warps, grid: 16 * tiles rows a block. A warp has `stages` on their way, in a ring.
template <class Item, int tiles, int warps, int stages>
__global__ void __launch_bounds__(32 * warps, blocks_of_lines<Item, tiles, warps, stages>())
    gemv_lines_kernel(const TokenArgs args) {
  using Own = Stage<Item, tiles>;
  constexpr int step = warps * Own::kColumns, groups = Item::kItems / 8;
  extern __shared__ uint4 memory[];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
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
#pragma unroll
  for (int i = 0; i < stages; ++i) {
    if (i < left) copy(ring[i], i + 1 == left);
    close_group();
  }
  Word excess[tiles][2];
#pragma unroll
  for (int i = 0; i < 2 * tiles; ++i) {
    const std::int64_t own = first + i * 8 + lane / 4;
    excess[i / 2][i % 2] = Item::excess_of_halves(args, own < args.m ? own : args.m - 1);
  }
  float sums[tiles][2][4] = {};
  int slot = 0;
#pragma unroll 1
  for (; left > 0; --left) {
    wait_for_copies<stages - 1>();
    __syncwarp();
#pragma unroll(Item::kBytes)  // two halves of an int8's line at once would want more registers than there are
    for (int half = 0; half < 2; ++half) {
      const int part = half * 4 + lane % 4;
      Word pairs[Item::kItems / 2] = {};
      if (lane / 4 < args.n) {
#pragma unroll
        for (int i = 0; i < groups; ++i) {
          const uint4 v = ring[slot].x.at(lane / 4, part * groups + i);
          pairs[4 * i] = v.x, pairs[4 * i + 1] = v.y, pairs[4 * i + 2] = v.z, pairs[4 * i + 3] = v.w;
        }
      }
#pragma unroll
      for (int t = 0; t < tiles; ++t) {
        const int row = t * kTileRows + lane / 4;
        multiply_add_rows<Item, 2>(sums[t], ring[slot].a.at(row, part), ring[slot].a.at(row + 8, part), excess[t][0],
                                   excess[t][1], pairs);
      }
    }
    __syncwarp();  // all have read what is overwritten now
    if (left > stages) copy(ring[slot], left == stages + 1);
    close_group();
    slot = slot + 1 == stages ? 0 : slot + 1;
  }
  // A warp's parts lie where its ring was.
  float* const parts = reinterpret_cast<float*>(memory);
#pragma unroll
  for (int t = 0; t < tiles; ++t) {
    if (t > 0) __syncthreads();
    write_tile<Item, warps, stages * sizeof(Own) / sizeof(float)>(args, first + t * kTileRows, sums[t], parts);
  }
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
