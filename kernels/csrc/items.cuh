// What 16 bytes of A hold, by its dtype, and how they become numbers: 8 float16 or bfloat16, or 16 int8 beside float16.
//
// An item type has kItems and kBytes; `floats` of two neighbouring elements of x; `weight` of one element of A;
// `multiply_add` of 16 bytes of A; `halves`, the same as pairs for tensor cores; and `result`, a total as an element of
// y. All conversions but the last are exact. An int8 is put into the mantissa of a number whose unit in the last place
// is 1, and the excess, to which the row's zero point belongs, is subtracted: the instruction that converts integers
// does 16 a cycle and multiprocessor, and the memory of an H200 brings 18.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

#include "common.cuh"
#include "tokens.h"

namespace sgemv {

using Word = std::uint32_t;       // two neighbouring elements of x, or 4 bytes of A
using HalfBits = unsigned short;  // an element of x or y

template <class T>
__device__ __forceinline__ T from_bits(Word bits) {
  T value;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

__device__ __forceinline__ Word bits_of(__half2 pair) {
  Word bits;
  std::memcpy(&bits, &pair, sizeof bits);
  return bits;
}

// 16 bytes that are read once. `line`: the rest of the cache line will be next.
template <bool line = false>
__device__ __forceinline__ uint4 load_items(const void* address) {
  const float4 v = load_once<line ? 128 : 0>(static_cast<const float4*>(address));
  return make_uint4(__float_as_uint(v.x), __float_as_uint(v.y), __float_as_uint(v.z), __float_as_uint(v.w));
}

// Of two bytes an element, A's like x's.
template <class Own>
struct TwoBytes {
  static constexpr int kItems = 8;
  static constexpr int kBytes = 2;

  static __device__ __forceinline__ float excess(const TokenArgs&, std::int64_t) { return 0.0f; }
  static __device__ __forceinline__ Word excess_of_halves(const TokenArgs&, std::int64_t) { return 0; }
  static __device__ __forceinline__ float weight(const void* row, std::int64_t column, float) {
    return Own::floats(__ldg(static_cast<const HalfBits*>(row) + column)).x;
  }
  static __device__ __forceinline__ void multiply_add(float& sum, uint4 a, const Word (&x)[4], float) {
    const Word words[] = {a.x, a.y, a.z, a.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 w = Own::floats(words[i]), v = Own::floats(x[i]);
      sum = fmaf(w.x, v.x, sum);
      sum = fmaf(w.y, v.y, sum);
    }
  }
  static __device__ __forceinline__ void halves(Word (&pairs)[4], uint4 a, Word) {
    pairs[0] = a.x, pairs[1] = a.y, pairs[2] = a.z, pairs[3] = a.w;
  }
  static __device__ __forceinline__ HalfBits result(const TokenArgs&, std::int64_t, float total) {
    return Own::rounded(total);
  }
};

struct Float16 : TwoBytes<Float16> {
  static __device__ __forceinline__ float2 floats(Word pair) { return __half22float2(from_bits<__half2>(pair)); }
  static __device__ __forceinline__ HalfBits rounded(float total) { return __half_as_ushort(__float2half_rn(total)); }
};

struct BFloat16 : TwoBytes<BFloat16> {
  static __device__ __forceinline__ float2 floats(Word pair) {
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
  }
  static __device__ __forceinline__ HalfBits rounded(float total) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(total));
  }
};

struct Int8 {
  static constexpr int kItems = 16;
  static constexpr int kBytes = 1;

  static __device__ __forceinline__ float2 floats(Word pair) { return Float16::floats(pair); }
  static __device__ __forceinline__ int zero(const TokenArgs& args, std::int64_t row) {
    return args.zero == nullptr ? 0 : __ldg(args.zero + row);
  }
  // 2^23 + (a + 128) as a float is the byte a + 128 below 0x4B0000.
  static __device__ __forceinline__ float excess(const TokenArgs& args, std::int64_t row) {
    return static_cast<float>(8388608 + 128 + zero(args, row));
  }
  // 1024 + (a + 128) as a float16 is the byte a + 128 below 0x64; 1152 + zero is one too, for every int8.
  static __device__ __forceinline__ Word excess_of_halves(const TokenArgs& args, std::int64_t row) {
    return bits_of(__float2half2_rn(static_cast<float>(1024 + 128 + zero(args, row))));
  }
  // The one for floats from the one for halves.
  static __device__ __forceinline__ float excess_by_halves(Word excess) { return floats(excess).x + (8388608 - 1024); }
  static __device__ __forceinline__ float weight(const void* row, std::int64_t column, float excess) {
    return static_cast<float>(8388608 + 128 + __ldg(static_cast<const signed char*>(row) + column)) - excess;
  }
  static __device__ __forceinline__ void multiply_add(float& sum, uint4 a, const Word (&x)[8], float excess) {
    const Word words[] = {a.x, a.y, a.z, a.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Word u = words[i] ^ 0x80808080u;
      const float2 low = floats(x[2 * i]), high = floats(x[2 * i + 1]);
      const float v[] = {low.x, low.y, high.x, high.y};
#pragma unroll
      for (int b = 0; b < 4; ++b)
        sum = fmaf(__uint_as_float(__byte_perm(u, 0x4B000000u, 0x7650u + b)) - excess, v[b], sum);
    }
  }
  static __device__ __forceinline__ void halves(Word (&pairs)[8], uint4 a, Word excess_of_halves) {
    const Word words[] = {a.x, a.y, a.z, a.w};
    const auto excess = from_bits<__half2>(excess_of_halves);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Word u = words[i] ^ 0x80808080u;
      pairs[2 * i] = bits_of(__hsub2(from_bits<__half2>(__byte_perm(u, 0x64646464u, 0x4140u)), excess));
      pairs[2 * i + 1] = bits_of(__hsub2(from_bits<__half2>(__byte_perm(u, 0x64646464u, 0x4342u)), excess));
    }
  }
  static __device__ __forceinline__ HalfBits result(const TokenArgs& args, std::int64_t row, float total) {
    return Float16::rounded(total * floats(__ldg(static_cast<const HalfBits*>(args.scale) + row)).x);
  }
};

// Whether every row and every token starts on 16 bytes.
template <class Item>
bool by_vectors(const TokenArgs& args) {
  const auto past = [](const void* first) { return reinterpret_cast<std::uintptr_t>(first) % 16; };
  return past(args.a) == 0 && past(args.x) == 0 && (args.m <= 1 || args.a_stride % Item::kItems == 0) &&
         (args.n <= 1 || args.x_stride % 8 == 0);
}

// The elements of x that 16 bytes of A meet: `part` of i is the i-th 16 bytes of them.
template <class Item, class Part>
__device__ __forceinline__ void put_x(Word (&pairs)[Item::kItems / 2], const Part& part) {
#pragma unroll
  for (int i = 0; i < Item::kItems / 8; ++i) {
    const uint4 v = part(i);
    pairs[4 * i] = v.x, pairs[4 * i + 1] = v.y, pairs[4 * i + 2] = v.z, pairs[4 * i + 3] = v.w;
  }
}

// The same from `x` on, which starts on 16 bytes.
template <class Item>
__device__ __forceinline__ void load_x(Word (&pairs)[Item::kItems / 2], const HalfBits* x) {
  put_x<Item>(pairs, [&](int i) { return __ldg(reinterpret_cast<const uint4*>(x) + i); });
}

// The same from anywhere, of which only `count` elements are there: the others are 0.
template <class Item>
__device__ __forceinline__ void gather_x(Word (&pairs)[Item::kItems / 2], const HalfBits* x, std::int64_t count) {
#pragma unroll
  for (int i = 0; i < Item::kItems / 2; ++i) {
    const Word low = 2 * i < count ? __ldg(x + 2 * i) : 0, high = 2 * i + 1 < count ? __ldg(x + 2 * i + 1) : 0;
    pairs[i] = low | high << 16;
  }
}

}  // namespace sgemv
