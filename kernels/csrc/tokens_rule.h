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

// Several tokens: as many warps share 16 rows as run at once, and have two rounds of loads.
inline TokenChoice choose_for_tiles(const TokenArgs& args, std::int64_t vectors, const Machine& machine) {
  const std::int64_t tiles = (args.m + 15) / 16;
  if (vectors <= 32) return {"tiles_16x1x2", "short rows: a warp has 16"};
  if (vectors > 256 && fit_at_once(512 * tiles, machine))
    return {"tiles_16x16x2", "rows that do not fill the GPU: 16 warps share 16"};
  if (vectors > 128 && fit_at_once(256 * tiles, machine)) return {"tiles_16x8x2", "8 warps share 16 rows"};
  return {"tiles_16x4x2", "many rows: 4 warps share 16"};
}

// One token, few rows: as many threads a row as run at once, and have four loads. `blocks`: 2 rows a block for int8.
inline TokenChoice choose_for_row(const TokenArgs& args, std::int64_t vectors, bool int8, const Machine& machine) {
  const std::int64_t blocks = int8 ? (args.m + 1) / 2 : args.m;
  if (vectors >= 4 * 512 && fit_at_once(512 * blocks, machine))
    return {"blocks_512", "one token, few long rows: 512 threads"};
  if (vectors >= 4 * 256 && fit_at_once(256 * blocks, machine))
    return {"blocks_256", "one token, few long rows: 256 threads"};
  if (!int8 || (vectors >= 2 * 128 && fit_at_once(128 * blocks, machine)))
    return {"blocks_128", "one token: 128 threads"};
  if (vectors > 256 && fit_at_once(64 * blocks, machine))
    return {"blocks_64", "one token, rows that do not fill the GPU: 64 threads two"};
  if (vectors <= 256 && args.m >= 128 * machine.multiprocessors)
    return {"groups_8", "one token, very many rows: 8 lanes two"};
  return {"groups_32", "one token, many rows: a warp two"};
}

// Looks at shape and dtype, never at values. `vectors` of 16 bytes are in a row.
inline TokenChoice choose_tokens(const TokenArgs& args, DType dtype, const Machine& machine) {
  const std::int64_t vectors = args.k / (dtype == INT8 ? 16 : 8);
  if (args.n > 1) return choose_for_tiles(args, vectors, machine);
  if (vectors <= 16) return {"groups_8", "one token, short rows: 8 lanes each"};
  if (vectors <= 128) return {"groups_32", "one token: a warp each row, or two"};
  return choose_for_row(args, vectors, dtype == INT8, machine);
}

}  // namespace sgemv
