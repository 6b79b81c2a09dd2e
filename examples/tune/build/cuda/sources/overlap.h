// Whether a kernel would write over what it reads: plain arithmetic on addresses, for views of one allocation.
#pragma once

#include <cstdint>
#include <numeric>

#include "op.h"

namespace sgemv {

// The elements of an operand: `count` runs of `run` neighbours each, `period` elements from one run to the next. A single
// run has no period, and 0 fits every other one in gcd.
struct Runs {
  std::intptr_t address;
  std::int64_t run;
  std::int64_t period;
  std::int64_t count;

  Runs(const float* first, std::int64_t run, std::int64_t stride, std::int64_t count)
      : address(reinterpret_cast<std::intptr_t>(first)), run(run), period(count > 1 ? stride : 0), count(count) {}
  std::int64_t span() const { return run == 0 || count == 0 ? 0 : (count - 1) * period + run; }
};

inline Runs runs_of_vector(const float* first, std::int64_t stride, std::int64_t count) {
  return stride == 1 ? Runs(first, count, 0, 1) : Runs(first, 1, stride, count);
}

// Whether no element is in both: the ranges are apart, or the runs of one lie between those of the other, by remainders
// in the period that both have. Never true where an element is in both; not always true where none is.
inline bool are_apart(const Runs& one, const Runs& other) {
  const std::int64_t offset = (other.address - one.address) / static_cast<std::int64_t>(sizeof(float));
  if (one.span() == 0 || other.span() == 0 || offset >= one.span() || offset + other.span() <= 0) return true;
  const std::int64_t period = std::gcd(one.period, other.period);
  if (period == 0) return false;
  const std::int64_t remainder = (offset % period + period) % period;
  return remainder >= one.run && remainder + other.run <= period;
}

// Which of the inputs y may overlap, "a" or "x", or null.
inline const char* overlapped(const Args& args) {
  const Runs a = args.by_columns ? Runs(args.a, args.m, args.a_stride, args.k)
                                 : Runs(args.a, args.k, args.a_stride, args.m);
  const Runs y = runs_of_vector(args.y, args.y_stride, args.m);
  if (!are_apart(a, y)) return "a";
  return are_apart(runs_of_vector(args.x, args.x_stride, args.k), y) ? nullptr : "x";
}

}  // namespace sgemv
