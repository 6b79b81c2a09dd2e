// Which kernel computes some tokens: the rule of `hgemv`, `bgemv` and `gemv_w8`, plain C++ as rule.h, by the names of
// their variants without the dtype.
#pragma once

#include "rule.h"
#include "tokens.h"

namespace sgemv {

struct TokenChoice {
  const char* stem;    // of the name: hgemv_`stem`
  const char* reason;  // in one line
};

// Several tokens: rows a block by how many there are, warps by how long they are.
inline TokenChoice choose_for_tiles(const TokenArgs& args, std::int64_t vectors, const Machine& machine) {
  if (vectors <= 32) return {"tiles_16x1", "short rows: a warp has 16"};
  if (vectors <= 128) return {"tiles_16x4", "4 warps share 16 rows"};
  if (args.m <= 8 * machine.multiprocessors) return {"tiles_8x16", "few rows: 16 warps share 8"};
  if (args.m >= 128 * machine.multiprocessors) return {"tiles_32x8", "many rows: 8 warps share 32 and their x"};
  return {"tiles_16x8", "8 warps share 16 rows"};
}

// Looks at shape and dtype, never at values. `vectors` of 16 bytes are in a row.
inline TokenChoice choose_tokens(const TokenArgs& args, DType dtype, const Machine& machine) {
  const std::int64_t vectors = args.k / (dtype == INT8 ? 16 : 8);
  if (args.n > 1) return choose_for_tiles(args, vectors, machine);
  if (vectors <= 32) return {"groups_8", "one token, short rows: 8 lanes a row"};
  if (vectors <= 128) return {"groups_32", "one token: a warp a row"};
  if (vectors >= 2048 && fit_at_once(512 * args.m, machine))
    return {"blocks_512", "one token, few long rows: 512 threads"};
  if (vectors > 1024) return {"blocks_256", "one token, long rows: 256 threads"};
  return {"blocks_128", "one token: 128 threads"};
}

}  // namespace sgemv
