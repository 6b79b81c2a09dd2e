// The words of CUDA's header of this name that the kernels use, for one CPU thread. Conversions to float16 round to the
// nearest, ties to even, by way of the double that every float is.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

struct __half {
  unsigned short bits;
};
struct alignas(4) __half2 {
  __half x, y;
};

inline unsigned short __half_as_ushort(__half value) { return value.bits; }
inline __half __ushort_as_half(unsigned short bits) { return {bits}; }

inline float __half2float(__half value) {
  const int exponent = value.bits >> 10 & 31, mantissa = value.bits & 1023;
  float size = std::ldexp(static_cast<float>(mantissa), -24);
  if (exponent == 31) size = mantissa == 0 ? INFINITY : NAN;
  if (exponent > 0 && exponent < 31) size = std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return (value.bits & 0x8000) != 0 ? -size : size;
}

inline __half __float2half_rn(float value) {
  const unsigned sign = std::signbit(value) ? 0x8000u : 0;
  if (std::isnan(value)) return {0x7fff};
  const double size = std::fabs(static_cast<double>(value));
  if (size >= 65520.0) return {static_cast<unsigned short>(sign | 0x7c00u)};
  const int exponent = size < std::ldexp(1.0, -14) ? -14 : std::ilogb(size);
  // In units of the last place, from 1024 on unless it is subnormal; 2048 carries into the exponent by itself.
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return {static_cast<unsigned short>(sign | (static_cast<unsigned>(exponent + 14) << 10) + units)};
}

inline __half2 __float2half2_rn(float value) { return {__float2half_rn(value), __float2half_rn(value)}; }
inline float2 __half22float2(__half2 pair) { return {__half2float(pair.x), __half2float(pair.y)}; }
// Exact in float32, hence rounded once.
inline __half __hsub(__half a, __half b) { return __float2half_rn(__half2float(a) - __half2float(b)); }
inline __half2 __hsub2(__half2 a, __half2 b) { return {__hsub(a.x, b.x), __hsub(a.y, b.y)}; }
