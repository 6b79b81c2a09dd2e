// Lets Python ask rule.h, through kernels/explain.py: plain C++ and part of every library, so that the rule exists once.
#include <cstdint>

#include "rule.h"

namespace {

// An address that many bytes past a 256-byte boundary. The rule looks at where A and x start and never reads them.
const float* address(std::int64_t bytes_past) {
  constexpr std::uintptr_t kBoundary = 256;
  return reinterpret_cast<const float*>(kBoundary + static_cast<std::uintptr_t>(bytes_past));
}

}  // namespace

// Strides are in elements, as in Args. The two texts live as long as the library.
extern "C" __attribute__((visibility("default"))) sgemv::Choice sgemv_choose(
    std::int64_t m, std::int64_t k, std::int64_t a_stride, std::int64_t x_stride, std::int64_t y_stride,
    bool by_columns, std::int64_t a_bytes_past, std::int64_t x_bytes_past, std::int64_t multiprocessors,
    bool clusters) {
  sgemv::Args args{};
  args.a = address(a_bytes_past);
  args.x = address(x_bytes_past);
  args.m = m;
  args.k = k;
  args.a_stride = a_stride;
  args.x_stride = x_stride;
  args.y_stride = y_stride;
  args.by_columns = by_columns;
  return sgemv::choose(args, {multiprocessors, clusters});
}
