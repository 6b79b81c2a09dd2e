// Which kernel computes some tokens: the rule of `hgemv`, `bgemv` and `gemv_w8`, plain C++ as rule.h, by the names of
// their variants without the dtype. Found on an H200, as rule.h's: what it loses is what `nox -s tune` prints.
#pragma once

#include "rule.h"
#include "tokens.h"

namespace sgemv {

struct TokenChoice {
  const char* stem;    // of the name: hgemv_`stem`
  const char* reason;  // in one line
};

// Several tokens: as many warps share 16 rows as run at once, and have a round of loads.
inline TokenChoice choose_for_tiles(const TokenArgs& args, std::int64_t vectors, bool int8, const Machine& machine) {
  const std::int64_t tiles = (args.m + 15) / 16;
  if (vectors <= 16) return {"tiles_16x1x2", "short rows: a warp has 16"};
  if (vectors >= 128 && fit_at_once(512 * tiles, machine))
    return {"tiles_16x16x2", "rows that do not fill the GPU: 16 warps share 16"};
  if (vectors >= 64 && fit_at_once(256 * tiles, machine)) return {"tiles_16x8x2", "8 warps share 16 rows"};
  if (vectors < 256 || (int8 && tiles <= 12 * machine.multiprocessors))
    return {"tiles_16x4x2", "many rows: 4 warps share 16"};
  // A multiprocessor runs 6 of these blocks at once; where they take two turns, the second is half empty.
  if (int8 || tiles <= 6 * machine.multiprocessors)
    return {"lines_4x2", "many rows: 4 warps share 16, by whole cache lines"};
  return {"lines_8x2", "very many rows: 8 warps share 16, by whole cache lines"};
}

// One token, a row: as many threads as run at once, and have four loads.
inline TokenChoice choose_for_row(const TokenArgs& args, std::int64_t vectors, const Machine& machine) {
  if (vectors >= 4 * 512 && fit_at_once(512 * args.m, machine))
    return {"blocks_512", "one token, few long rows: 512 threads"};
  if (vectors >= 4 * 256 && fit_at_once(256 * args.m, machine))
    return {"blocks_256", "one token, few long rows: 256 threads"};
  return {"blocks_128", "one token: 128 threads"};
}

// One token, int8: two rows share their x.
inline TokenChoice choose_for_two_rows(const TokenArgs& args, std::int64_t vectors, const Machine& machine) {
  const std::int64_t pairs = (args.m + 1) / 2;
  if (vectors >= 4 * 512 && fit_at_once(512 * pairs, machine))
    return {"blocks_512", "one token, few long rows: 512 threads two"};
  if (vectors >= 4 * 256 && fit_at_once(256 * pairs, machine))
    return {"blocks_256", "one token, few long rows: 256 threads two"};
  if (vectors >= 2 * 128 && fit_at_once(128 * pairs, machine))
    return {"blocks_128", "one token, rows that do not fill the GPU: 128 threads two"};
  // A thread of groups_32 has 72 registers, so that fewer than elsewhere run at once.
  if (vectors < 256 || (!fit_at_once(64 * pairs, machine) && fit_at_once(36 * pairs, machine)))
    return {"groups_32", "one token: a warp two rows"};
  if (!fit_at_once(64 * pairs, machine) && fit_at_once(8 * args.m, machine))
    return {"groups_32x4", "one token, rows that just fill the GPU: a warp four"};
  return {"blocks_64", "one token: 64 threads two rows"};
}

// Looks at shape and dtype, never at values. `vectors` of 16 bytes are in a row.
inline TokenChoice choose_tokens(const TokenArgs& args, DType dtype, const Machine& machine) {
  const std::int64_t vectors = args.k / (dtype == INT8 ? 16 : 8);
  if (args.n > 1) return choose_for_tiles(args, vectors, dtype == INT8, machine);
  if (vectors <= 16 || (vectors <= 64 && !fit_at_once(32 * args.m, machine)))
    return {"groups_8", "one token, short rows: 8 lanes each, or two"};
  if (vectors <= 128) return {"groups_32", "one token: a warp each row, or two"};
  return dtype == INT8 ? choose_for_two_rows(args, vectors, machine) : choose_for_row(args, vectors, machine);
}

}  // namespace sgemv
