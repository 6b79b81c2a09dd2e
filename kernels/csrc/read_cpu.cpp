// Adds every element of A and of x up and writes m values, on one CPU thread. Aims at: what one thread can read at this
// size, the limit of sgemv_cpu_f32 (torch.matmul uses several threads and may be faster than it). Of other dtypes and of
// several tokens it looks at every element, as read_tokens.cu does.
#include <cstring>

#include "marks.h"
#include "op.h"
#include "tokens.h"

namespace sgemv {

constexpr int kPartialSums = 64;

float sum_of(const float* values, std::int64_t count) {
  float partial[kPartialSums] = {};
  std::int64_t element = 0;
  for (; element + kPartialSums <= count; element += kPartialSums)
    for (int i = 0; i < kPartialSums; ++i) partial[i] += values[element + i];
  float sum = 0.0f;
  for (; element < count; ++element) sum += values[element];
  for (int i = 0; i < kPartialSums; ++i) sum += partial[i];
  return sum;
}

template <class Marks>
bool has_mark(const void* values, std::int64_t count) {
  const auto* const items = static_cast<const typename Marks::Item*>(values);
  constexpr std::int64_t kItems = sizeof(unsigned) / sizeof *items;
  unsigned found = 0, word = 0;
  for (std::int64_t i = 0; i < count / kItems; ++i) {
    std::memcpy(&word, items + i * kItems, sizeof word);
    found = Marks::add(found, word);
  }
  for (std::int64_t i = count / kItems * kItems; i < count; ++i) found = Marks::add(found, items[i]);
  return Marks::any(found);
}

template <class A, class X>
void read_tokens(const TokenArgs& args) {
  bool found = has_mark<A>(args.a, args.m * args.k) | has_mark<X>(args.x, args.n * args.k);
  if (args.scale != nullptr) found |= has_mark<X>(args.scale, args.m);
  auto* const y = static_cast<std::uint16_t*>(args.y);
  for (std::int64_t i = 0; i < args.n * args.m; ++i) y[i] = found ? kNan16 : 0;
}

}  // namespace sgemv

SGEMV_LIMIT(read_cpu_thread, K_ANY, 1, PACKED, 4, "one CPU thread, 64 partial sums") {
  const float sum = sgemv::sum_of(args.a, args.m * args.k) + sgemv::sum_of(args.x, args.k);
  for (std::int64_t row = 0; row < args.m; ++row) args.y[row] = sum;
}
GEMV_LIMIT(read_cpu_thread_float16, FLOAT16, 1048576, 2, "one CPU thread") {
  sgemv::read_tokens<sgemv::Float16Marks, sgemv::Float16Marks>(args);
}
GEMV_LIMIT(read_cpu_thread_bfloat16, BFLOAT16, 1048576, 2, "one CPU thread") {
  sgemv::read_tokens<sgemv::BFloat16Marks, sgemv::BFloat16Marks>(args);
}
GEMV_LIMIT(read_cpu_thread_int8, INT8, 1048576, 1, "one CPU thread") {
  sgemv::read_tokens<sgemv::Int8Marks, sgemv::Float16Marks>(args);
}
