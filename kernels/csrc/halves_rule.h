// Which kernel computes some tokens of float16 or bfloat16: the rule of `hgemv` and `bgemv`, as rule.h's, by the names of
// their variants without the dtype.
#pragma once

#include "rule.h"
#include "tokens.h"

namespace sgemv {

// Several tokens: many warps share 16 rows where rows are few, fewer where more blocks shall run at once, of which a
// multiprocessor's shared memory has room for 12 of 2 warps, 6 of 4, 4 of 8 and 2 of 16. From 4 blocks of 4 on, 2 warps
// were faster, and beyond what runs at once 16.
inline TokenChoice choose_for_tokens(const TokenArgs& args, std::int64_t vectors, const Machine& machine) {
  const std::int64_t tiles = (args.m + 15) / 16;
  const auto at_once = [&](std::int64_t blocks) { return tiles <= blocks * machine.multiprocessors; };
  if (vectors <= 16) return {"lines_16x1x3", "short rows: a warp has 16"};
  if (vectors <= 32) return {"lines_16x2x3", "short rows: 2 warps share 16"};
  if (vectors >= 256 && at_once(1)) return {"lines_16x16x2", "rows that do not fill the GPU: 16 warps share 16"};
  if (at_once(2)) return {"lines_16x8x2", "8 warps share 16 rows"};
  if (vectors <= 64 || at_once(4)) return {"lines_16x4x3", "many rows: 4 warps share 16"};
  if (at_once(12)) return {"lines_16x2x3", "rows that fill the GPU once: 2 warps share 16"};
  return {"lines_16x16x2", "very many rows: 16 warps share 16"};
}

// One token, a row: as many threads as run at once, and have four loads.
inline TokenChoice choose_for_row(const TokenArgs& args, std::int64_t vectors, const Machine& machine) {
  if (vectors >= 4 * 512 && fit_at_once(512 * args.m, machine))
    return {"blocks_512", "one token, few long rows: 512 threads"};
  if (vectors >= 4 * 256 && fit_at_once(256 * args.m, machine))
    return {"blocks_256", "one token, few long rows: 256 threads"};
  return {"blocks_128", "one token: 128 threads"};
}

// Looks at shape and machine, never at values. `vectors` of 16 bytes are in a row.
inline TokenChoice choose_for_halves(const TokenArgs& args, const Machine& machine) {
  const std::int64_t vectors = args.k / 8;
  if (args.n > 1) return choose_for_tokens(args, vectors, machine);
  if (vectors <= 16 || (vectors <= 64 && !fit_at_once(32 * args.m, machine)))
    return {"groups_8", "one token, short rows: 8 lanes each, or two"};
  if (vectors <= 128) return {"groups_32", "one token: a warp each row, or two"};
  return choose_for_row(args, vectors, machine);
}

}  // namespace sgemv
