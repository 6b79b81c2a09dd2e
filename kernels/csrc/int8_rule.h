// Which kernel computes some tokens with int8 weights: the rule of `gemv_w8`, as rule.h's, by the names of its variants
// without the dtype.
#pragma once

#include "rule.h"
#include "tokens.h"

namespace sgemv {

// Several tokens: as many warps share 16 rows as still let all blocks run at once, of which gemv_w8_tiles.cu leaves a
// multiprocessor registers for 2, 3 or 7. A round of 8 warps with 6 loads is 96 vectors.
inline TokenChoice choose_for_int8_tokens(const TokenArgs& args, std::int64_t vectors, const Machine& machine) {
  const std::int64_t tiles = (args.m + 15) / 16;
  const auto at_once = [&](std::int64_t blocks) { return tiles <= blocks * machine.multiprocessors; };
  if (vectors <= 32) return {"tiles_16x1x2", "short rows: a warp has 16"};
  if (vectors >= 128 && at_once(1)) return {"tiles_16x16x2", "rows that do not fill the GPU: 16 warps share 16"};
  if (vectors >= 96 && at_once(2)) return {"tiles_16x8x3", "8 warps share 16 rows, and have 6 loads each"};
  if (at_once(3)) return {"tiles_16x8x2", "8 warps share 16 rows"};
  if (at_once(7)) return {"tiles_16x4x2", "many rows: 4 warps share 16"};
  return {"lines_32x4x2", "very many rows: 4 warps share 32, by whole cache lines"};
}

// One token: two rows share their x.
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

// Looks at shape and machine, never at values. `vectors` of 16 bytes are in a row.
inline TokenChoice choose_for_int8(const TokenArgs& args, const Machine& machine) {
  const std::int64_t vectors = args.k / 16;
  if (args.n > 1) return choose_for_int8_tokens(args, vectors, machine);
  if (vectors <= 16 || (vectors <= 64 && !fit_at_once(32 * args.m, machine)))
    return {"groups_8", "one token, short rows: 8 lanes each, or two"};
  if (vectors <= 128) return {"groups_32", "one token: a warp each row, or two"};
  return choose_for_two_rows(args, vectors, machine);
}

}  // namespace sgemv
