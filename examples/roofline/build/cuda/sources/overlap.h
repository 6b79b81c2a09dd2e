// Whether a kernel would write over what it reads: plain arithmetic on addresses, for views of one allocation.
#pragma once

#include <cstdint>
#include <numeric>

#include "tokens.h"

namespace sgemv {

// The bytes of an operand: `count` runs of `run` neighbours each, `period` bytes from one run to the next. A single run
// has no period, and 0 fits every other one in gcd.
struct Runs {
  std::intptr_t address;
  std::int64_t run;
  std::int64_t period;
  std::int64_t count;

  // Of elements of `item` bytes each.
  Runs(const void* first, std::int64_t item, std::int64_t run, std::int64_t stride, std::int64_t count)
      : address(reinterpret_cast<std::intptr_t>(first)),
        run(run * item),
        period(count > 1 ? stride * item : 0),
        count(count) {}
  std::int64_t span() const { return run == 0 || count == 0 ? 0 : (count - 1) * period + run; }
};

inline Runs runs_of_vector(const float* first, std::int64_t stride, std::int64_t count) {
  return stride == 1 ? Runs(first, sizeof *first, count, 0, 1) : Runs(first, sizeof *first, 1, stride, count);
}

// Whether no byte is in both: the ranges are apart, or the runs of one lie between those of the other, by remainders in
// the period that both have. Never true where a byte is in both; not always true where none is.
inline bool are_apart(const Runs& one, const Runs& other) {
  const std::int64_t offset = other.address - one.address;
  if (one.span() == 0 || other.span() == 0 || offset >= one.span() || offset + other.span() <= 0) return true;
  const std::int64_t period = std::gcd(one.period, other.period);
  if (period == 0) return false;
  const std::int64_t remainder = (offset % period + period) % period;
  return remainder >= one.run && remainder + other.run <= period;
}

// Which of the inputs y may overlap, "a" or "x", or null.
inline const char* overlapped(const Args& args) {
  const Runs a = args.by_columns ? Runs(args.a, sizeof *args.a, args.m, args.a_stride, args.k)
                                 : Runs(args.a, sizeof *args.a, args.k, args.a_stride, args.m);
  const Runs y = runs_of_vector(args.y, args.y_stride, args.m);
  if (!are_apart(a, y)) return "a";
  return are_apart(runs_of_vector(args.x, args.x_stride, args.k), y) ? nullptr : "x";
}

// The same of several tokens: "a", "scale", "zero", "x" or null.
inline const char* overlapped(const TokenArgs& args, DType dtype) {
  const std::int64_t half = 2, item = dtype == INT8 ? 1 : half;
  const Runs y(args.y, half, args.m, args.y_stride, args.n);
  if (!are_apart(Runs(args.a, item, args.k, args.a_stride, args.m), y)) return "a";
  if (args.scale != nullptr && !are_apart(Runs(args.scale, half, args.m, 0, 1), y)) return "scale";
  if (args.zero != nullptr && !are_apart(Runs(args.zero, 1, args.m, 0, 1), y)) return "zero";
  return are_apart(Runs(args.x, half, args.k, args.x_stride, args.n), y) ? nullptr : "x";
}

}  // namespace sgemv
