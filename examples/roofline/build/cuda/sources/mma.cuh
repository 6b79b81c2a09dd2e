// The one tensor-core instruction that the kernels for tokens use, for every dtype: 16 rows of W by 8 tokens of X, at 16
// columns.
//
// Lane 4g + t has rows g and g + 8 of W and token g of X, of each the same four columns: two neighbours, `low`, and two
// more, `high`. Which columns these are does not matter to a sum over them as long as both operands agree: so every lane
// loads neighbours, and nothing moves between lanes.
#pragma once

#include <type_traits>

#include "items.cuh"

namespace sgemv {

// What a lane has of W.
struct TwoRows {
  Word low, low_8;    // of row g, of row g + 8
  Word high, high_8;
};

// sums[0], sums[1] of lane 4g + t: row g with tokens 2t and 2t + 1; sums[2], sums[3]: row g + 8. All lanes must call it.
template <class Item>
__device__ __forceinline__ void multiply_add_tile(float (&sums)[4], const TwoRows& w, Word x_low, Word x_high) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<Item, BFloat16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(w.low), "r"(w.low_8), "r"(w.high), "r"(w.high_8), "r"(x_low), "r"(x_high));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(w.low), "r"(w.low_8), "r"(w.high), "r"(w.high_8), "r"(x_low), "r"(x_high));
#else
  // What the instruction does, by words of CUDA that a CPU can emulate.
  const unsigned group = threadIdx.x % 32 / 4, own = threadIdx.x % 4;
  const auto both = [](Word low, Word high) { return static_cast<unsigned long long>(high) << 32 | low; };
  for (unsigned t = 0; t < 4; ++t) {
    const unsigned long long rows[] = {__shfl_sync(kAllLanes, both(w.low, w.high), 4 * group + t),
                                       __shfl_sync(kAllLanes, both(w.low_8, w.high_8), 4 * group + t)};
    for (unsigned c = 0; c < 2; ++c) {
      const auto x = __shfl_sync(kAllLanes, both(x_low, x_high), 4 * (2 * own + c) + t);
      for (unsigned i = 0; i < 4; ++i) {  // row g and row g + 8, each at its low columns and its high ones
        const float2 a = Item::floats(static_cast<Word>(rows[i / 2] >> 32 * (i % 2)));
        const float2 b = Item::floats(static_cast<Word>(x >> 32 * (i % 2)));
        float& sum = sums[i / 2 * 2 + c];
        sum = fmaf(a.y, b.y, fmaf(a.x, b.x, sum));
      }
    }
  }
#endif
}

// The same for 16 bytes of both rows. Several sums, by turns: an instruction does not wait for the one before.
template <class Item, int turns>
__device__ __forceinline__ void multiply_add_rows(float (&sums)[turns][4], uint4 a, uint4 a_8, Word excess, Word excess_8,
                                                   const Word (&x)[Item::kItems / 2]) {
  Word w[Item::kItems / 2], w_8[Item::kItems / 2];
  Item::halves(w, a, excess);
  Item::halves(w_8, a_8, excess_8);
#pragma unroll
  for (int p = 0; p < Item::kItems / 2; p += 2)
    multiply_add_tile<Item>(sums[p / 2 % turns], {w[p], w_8[p], w[p + 1], w_8[p + 1]}, x[p], x[p + 1]);
}

}  // namespace sgemv
