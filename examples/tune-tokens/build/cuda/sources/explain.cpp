// Lets Python ask rule.h and tokens_rule.h, through kernels/explain.py: plain C++ and part of every library, so that each
// rule exists once.
#include <cstdint>

#include "rule.h"
#include "tokens_rule.h"

#define SGEMV_ASKED extern "C" __attribute__((visibility("default")))

namespace {

// An address that many bytes past a 256-byte boundary. The rules look at where A and x start and never read them.
const void* address(std::int64_t bytes_past) {
  constexpr std::uintptr_t kBoundary = 256;
  return reinterpret_cast<const void*>(kBoundary + static_cast<std::uintptr_t>(bytes_past));
}

}  // namespace

// Strides are in elements, as in Args. The two texts live as long as the library.
SGEMV_ASKED sgemv::Choice sgemv_choose(std::int64_t m, std::int64_t k, std::int64_t a_stride, std::int64_t x_stride,
                                       std::int64_t y_stride, bool by_columns, std::int64_t a_bytes_past,
                                       std::int64_t x_bytes_past, std::int64_t multiprocessors, bool clusters) {
  sgemv::Args args{};
  args.a = static_cast<const float*>(address(a_bytes_past));
  args.x = static_cast<const float*>(address(x_bytes_past));
  args.m = m;
  args.k = k;
  args.a_stride = a_stride;
  args.x_stride = x_stride;
  args.y_stride = y_stride;
  args.by_columns = by_columns;
  return sgemv::choose(args, {multiprocessors, clusters});
}

// The same of TokenArgs; `dtype` is the number of a DType.
SGEMV_ASKED sgemv::TokenChoice sgemv_choose_tokens(int dtype, std::int64_t m, std::int64_t k, std::int64_t n,
                                                   std::int64_t a_stride, std::int64_t x_stride, std::int64_t y_stride,
                                                   std::int64_t a_bytes_past, std::int64_t x_bytes_past,
                                                   std::int64_t multiprocessors, bool clusters) {
  sgemv::TokenArgs args{};
  args.a = address(a_bytes_past);
  args.x = address(x_bytes_past);
  args.m = m;
  args.k = k;
  args.n = n;
  args.a_stride = a_stride;
  args.x_stride = x_stride;
  args.y_stride = y_stride;
  return sgemv::choose_tokens(args, static_cast<sgemv::DType>(dtype), {multiprocessors, clusters});
}
