// Which kernel computes a problem: the one rule of `sgemv`, plain C++ that compiles anywhere and launches nothing.
//
// Row-major A: a row gets as many lanes as its length can feed with several 16-byte loads each. Where rows are too few to
// fill the GPU it gets more, as long as each lane still has enough to do. Found by timing all variants on an H200 (132
// multiprocessors); what the rule loses on a GPU is what `nox -s tune` prints.
#pragma once

#include "op.h"

namespace sgemv {

struct Machine {
  std::int64_t multiprocessors;
  bool clusters;  // thread-block clusters of up to 16 blocks, as common.cuh says
};

struct Choice {
  const char* kernel;  // its name
  const char* reason;  // in one line
};

// Of a kernel for tokens.
struct TokenChoice {
  const char* stem;    // of the name: hgemv_`stem`
  const char* reason;  // in one line
};

// Whether every row starts on 16 bytes, as x does, whose elements are neighbours: then x is loaded by vectors too.
inline bool by_vectors(const Args& args) {
  const auto past = [](const float* first) { return reinterpret_cast<std::uintptr_t>(first) % 16; };
  return past(args.a) == 0 && past(args.x) == 0 && (args.m <= 1 || args.a_stride % 4 == 0) && args.x_stride == 1;
}

// Threads that a GPU of so many multiprocessors runs at a time with registers for several loads each.
inline bool fit_at_once(std::int64_t threads, const Machine& machine) {
  return threads <= 1024 * machine.multiprocessors;
}

// Vectors of an A that is read for longer than a power limit takes to act: 256 MiB.
constexpr std::int64_t kLarge = std::int64_t{1} << 24;

inline Choice choose_for_columns(const Args& args, const Machine& machine) {
  const std::int64_t tiles = (args.m + 31) / 32;
  if (args.k <= 16) return {"sgemv_columns_128x8", "few columns: tall blocks, 8 columns at a time"};
  if (args.k <= 256 || tiles > 2 * machine.multiprocessors)
    return {"sgemv_columns_32x32", "column-major: 32 rows a block, 32 columns at a time"};
  if (8 * tiles <= machine.multiprocessors && args.k >= 4096)
    return {"sgemv_columns_split", "few rows of many columns: blocks take parts of the columns"};
  return {"sgemv_columns_32x128", "blocks that do not fill the GPU twice: 128 columns at a time"};
}

// Rows that start anywhere: x is loaded four bytes at a time, so that rows share its loads.
inline Choice choose_for_any_start(const Args& args, const Machine& machine) {
  const std::int64_t vectors = args.k / 4;
  if (args.k <= 32 && is_packed(args)) return {"sgemv_tiles", "short rows, packed: read as one array"};
  if (args.k < 128) return {"sgemv_groups_8x2", "short rows: 8 lanes share two"};
  if (machine.clusters && vectors >= 2 * 4096 && 2 * args.m <= machine.multiprocessors / 8)
    return {"sgemv_cluster_16", "few long rows: 16 blocks a row"};
  if (machine.clusters && vectors >= 2 * 2048 && 2 * args.m <= machine.multiprocessors / 2)
    return {"sgemv_cluster_8", "few long rows: 8 blocks a row"};
  if (vectors >= 2 * 512 && fit_at_once(512 * args.m, machine))
    return {"sgemv_blocks_512x1", "rows that do not fill the GPU: 512 threads a row"};
  if (vectors > 128 && fit_at_once(64 * args.m, machine))
    return {"sgemv_blocks_256x4", "rows that start anywhere: 256 threads share four and their x"};
  if (args.k <= 512) return {"sgemv_groups_16x2", "rows that start anywhere: 16 lanes share two and their x"};
  if (args.k <= 1024) return {"sgemv_groups_32x2", "rows that start anywhere: a warp shares two and their x"};
  return {"sgemv_blocks_256x4", "rows that start anywhere: 256 threads share four and their x"};
}

inline Choice choose_for_vectors(const Args& args, const Machine& machine) {
  const std::int64_t m = args.m, vectors = (args.k + 3) / 4;
  const bool many = m >= 128 * machine.multiprocessors;
  if (args.k <= 12 && many && is_packed(args)) return {"sgemv_tiles", "very short rows, packed: read as one array"};
  if (args.k == 16 && !many && is_packed(args)) return {"sgemv_k16_f32", "16 columns: 16 lanes a row, no loop"};
  if (vectors <= 4 && many) return {"sgemv_groups_4x4", "very short rows: 4 lanes share four"};
  if (vectors <= 8 && many) return {"sgemv_groups_8x2", "short rows: 8 lanes share two"};
  if (vectors <= 16) return {"sgemv_groups_8x1", "short rows: 8 lanes a row"};
  if (vectors <= 32 || (vectors <= 64 && !fit_at_once(32 * m, machine)))
    return {"sgemv_groups_16x1", "short rows: 16 lanes a row"};
  if (vectors <= 128 || (vectors <= 256 && !fit_at_once(128 * m, machine)))
    return {"sgemv_groups_32x1", "a warp a row"};
  if (vectors <= 512) return {"sgemv_blocks_128x1", "128 threads a row"};
  // x comes from the L2 for every row: as many bytes as A's. Where A takes long enough for the power limit to hold clocks
  // back, sharing them costs 0.5 % at most and saves 15 to 25 W; on a board that needs more power than others it gains 5 %.
  if (vectors >= 1024 && m * vectors >= kLarge)
    return {"sgemv_blocks_256x2", "long rows, many: 256 threads share two and their x, which saves power"};
  if (vectors < 4 * 512 || !fit_at_once(512 * m, machine)) return {"sgemv_blocks_256x1", "long rows: 256 threads a row"};
  // Rows are few: a row gets blocks of a cluster while two of them a multiprocessor are not exceeded.
  if (vectors >= 12 * 4096 && 4 * m <= machine.multiprocessors / 8)
    return {"sgemv_split", "very few, very long rows: more blocks a row than a cluster has, in two stages"};
  if (machine.clusters && vectors >= 4 * 4096 && 16 * m <= 2 * machine.multiprocessors)
    return {"sgemv_cluster_16", "few long rows: 16 blocks a row"};
  if (machine.clusters && vectors >= 4 * 2048 && 8 * m <= 2 * machine.multiprocessors)
    return {"sgemv_cluster_8", "few long rows: 8 blocks a row"};
  if (machine.clusters && vectors >= 4 * 1024 && 4 * m <= 2 * machine.multiprocessors)
    return {"sgemv_cluster_4", "few long rows: 4 blocks a row"};
  if (!machine.clusters && vectors >= 4 * 4096 && 8 * m <= 2 * machine.multiprocessors)
    return {"sgemv_split", "few long rows, no clusters: parts of a row, in two stages"};
  return {"sgemv_blocks_512x1", "rows that do not fill the GPU: 512 threads a row"};
}

// Looks at shape, strides and where A and x start, never at values. The kernel takes these args, by its declaration.
inline Choice choose(const Args& args, const Machine& machine) {
  if (args.by_columns) return choose_for_columns(args, machine);
  return by_vectors(args) ? choose_for_vectors(args, machine) : choose_for_any_start(args, machine);
}

}  // namespace sgemv
