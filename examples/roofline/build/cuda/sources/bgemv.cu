// Y = X·Wᵀ for 1 to 8 tokens, bfloat16.
// Aims at: one pass over A at the speed of `read`. Hands a problem to one of the kernels beside it, by halves_rule.h.
#include "common.cuh"
#include "halves_rule.h"

GEMV_KERNEL(bgemv, BFLOAT16, 8, 2, "bfloat16: one of the variants, by rule") {
  const auto choice = sgemv::choose_for_halves(args, {sgemv::multiprocessors(), false});
  sgemv::pick(bgemv_spec, choice.stem, args).start(args);
}
