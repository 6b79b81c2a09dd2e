// y = A x for any shape and any layout: looks at the problem and hands it to one of the kernels beside it. Aims at: the
// speed of `read` everywhere, with few kernels and one rule that can be read (rule.h).
#include "common.cuh"
#include "rule.h"

SGEMV_KERNEL(sgemv, K_AT_MOST, 8000000000, ROWS_OR_COLUMNS, 4, "any shape and layout: one of the variants, by rule") {
  const std::int64_t multiprocessors = sgemv::multiprocessors();
  const auto choice = sgemv::choose(args, {multiprocessors, sgemv::has_clusters(multiprocessors)});
  sgemv::pick(choice.kernel, args).start(args);
}
