// How a limit kernel of 16- and 8-bit operands shows what it read: whoever plants a mark into an operand, a NaN, or in
// int8 the -128 that no quantizer makes, wants a NaN in y. Looked for four bytes at a time, by plain integer arithmetic:
// a sum of halves could overflow, and this is as cheap.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define SGEMV_ANYWHERE __host__ __device__
#else
#define SGEMV_ANYWHERE
#endif

namespace sgemv {

constexpr std::uint16_t kNan16 = 0x7fff;  // in float16 and in bfloat16

// A NaN is above the infinity, sign aside: adding what is missing to 0x8000 sets the top bit of its half and no other's.
template <unsigned infinity>
struct HalfMarks {
  using Item = std::uint16_t;
  static constexpr unsigned kMissing = (0x7fffu - infinity) * 0x00010001u;
  SGEMV_ANYWHERE static unsigned add(unsigned found, unsigned word) { return found | ((word & 0x7fff7fffu) + kMissing); }
  SGEMV_ANYWHERE static bool any(unsigned found) { return (found & 0x80008000u) != 0; }
};
struct Float16Marks : HalfMarks<0x7c00> {};
struct BFloat16Marks : HalfMarks<0x7f80> {};

// A byte of 0x80 is 0 after the exclusive or. Whether a word has a zero byte: (v - 0x01010101) & ~v & 0x80808080, from
// S. E. Anderson, Bit Twiddling Hacks, where ~v has the top bits of the word itself.
struct Int8Marks {
  using Item = std::uint8_t;
  SGEMV_ANYWHERE static unsigned add(unsigned found, unsigned word) {
    return found | (((word ^ 0x80808080u) - 0x01010101u) & word);
  }
  SGEMV_ANYWHERE static bool any(unsigned found) { return (found & 0x80808080u) != 0; }
};

}  // namespace sgemv
