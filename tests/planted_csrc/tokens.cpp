// Plain kernels of other dtypes on the CPU: what op_tokens.cpp checks and gives to a launcher, without a GPU. Whole
// numbers only, which float16 and bfloat16 hold exactly.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tokens.h"

namespace planted {

struct Half {
  static float wide(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -size : size;
  }
  static std::uint16_t narrow(float value) {
    if (value == 0.0f) return 0;
    int exponent = 0;
    const float fraction = std::frexp(std::fabs(value), &exponent);  // from 1/2 to below 1
    const auto bits = static_cast<std::uint16_t>((exponent + 14) << 10 | (static_cast<int>(fraction * 2048) & 1023));
    return value < 0.0f ? bits | 0x8000 : bits;
  }
};

struct Brain {
  static float wide(std::uint16_t bits) {
    const std::uint32_t all = std::uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &all, sizeof value);
    return value;
  }
  static std::uint16_t narrow(float value) {
    std::uint32_t all;
    std::memcpy(&all, &value, sizeof all);
    return all >> 16;
  }
};

template <class T>
T at(const void* first, std::int64_t index) {
  return static_cast<const T*>(first)[index];
}

template <class Format, class Weight>
void multiply(const sgemv::TokenArgs& args, Weight weight) {
  for (std::int64_t t = 0; t < args.n; ++t)
    for (std::int64_t i = 0; i < args.m; ++i) {
      float sum = 0.0f;
      for (std::int64_t j = 0; j < args.k; ++j)
        sum += weight(i, i * args.a_stride + j) * Format::wide(at<std::uint16_t>(args.x, t * args.x_stride + j));
      static_cast<std::uint16_t*>(args.y)[t * args.y_stride + i] = Format::narrow(sum);
    }
}

template <class Format>
void multiply(const sgemv::TokenArgs& args) {
  multiply<Format>(args, [&](std::int64_t, std::int64_t at_a) { return Format::wide(at<std::uint16_t>(args.a, at_a)); });
}

}  // namespace planted

GEMV_KERNEL(planted_half, FLOAT16, 8, 2, "float16") { planted::multiply<planted::Half>(args); }
GEMV_KERNEL(planted_brain, BFLOAT16, 8, 2, "bfloat16") { planted::multiply<planted::Brain>(args); }
GEMV_KERNEL(planted_w8, INT8, 8, 1, "int8, with a scale and perhaps a zero point") {
  planted::multiply<planted::Half>(args, [&](std::int64_t row, std::int64_t at_a) {
    const int zero = args.zero == nullptr ? 0 : args.zero[row];
    const float scale = planted::Half::wide(planted::at<std::uint16_t>(args.scale, row));
    return scale * (planted::at<signed char>(args.a, at_a) - zero);
  });
}
GEMV_KERNEL(planted_half_few, FLOAT16, 2, 16, "few tokens, aligned") { planted::multiply<planted::Half>(args); }
GEMV_KERNEL(planted_w8_aligned, INT8, 2, 16, "aligned") {}
GEMV_LIMIT(planted_half_packed, FLOAT16, 8, 2, "packed") { planted::multiply<planted::Half>(args); }
GEMV_LIMIT(planted_w8_packed, INT8, 8, 1, "packed") {}

// n and the strides as digits of Y[0], where all are below 10: at most 2,048 for float16 to hold them.
GEMV_KERNEL(planted_half_told, FLOAT16, 8, 2, "tells n and the strides of a, x and y") {
  const std::int64_t digits = ((args.n * 10 + args.a_stride) * 10 + args.x_stride) * 10 + args.y_stride;
  *static_cast<std::uint16_t*>(args.y) = planted::Half::narrow(static_cast<float>(digits));
}

// Two pieces of scratch, of floats whatever the operands are.
GEMV_KERNEL(planted_half_scratch, FLOAT16, 8, 2, "by way of scratch") {
  float* const first = args.scratch->floats(args.m);
  float* const second = args.scratch->floats(args.m);
  for (std::int64_t i = 0; i < args.m; ++i) first[i] = 0.25f;
  for (std::int64_t i = 0; i < args.m; ++i) second[i] = 1e6f;
  for (std::int64_t i = 0; i < args.m; ++i)
    static_cast<std::uint16_t*>(args.y)[i] = planted::Half::narrow(first[i] + second[i] - 1e6f);
}

// Hands on by stem: a right one, one for two tokens and aligned, one of another dtype, and nobody, by the rows of A.
GEMV_KERNEL(planted, FLOAT16, 8, 2, "hands on what another may not take") {
  const char* const stems[] = {"half", "half", "half_few", "brain", "nobody", "half_packed"};
  sgemv::pick(planted_spec, stems[args.m], args).start(args);
}
