// The words of CUDA's header of this name that the kernels use, for one CPU thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

struct __nv_bfloat16 {
  unsigned short bits;
};

inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }
inline float __bfloat162float(__nv_bfloat16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof bits);
  return wide;
}

// To the nearest, ties to even: what is cut off is carried up unless it is less than half, or half of an even number.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  if (std::isnan(value)) return {0x7fff};
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return {static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
