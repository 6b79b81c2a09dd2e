// Y = X·Wᵀ for 1 to 8 tokens, float16.
// Aims at: one pass over A at the speed of `read`. Hands a problem to one of the kernels beside it, by halves_rule.h.
#include "common.cuh"
#include "halves_rule.h"

GEMV_KERNEL(hgemv, FLOAT16, 8, 2, "float16: one of the variants, by rule") {
  const auto choice = sgemv::choose_for_halves(args, {sgemv::multiprocessors(), false});
  sgemv::pick(hgemv_spec, choice.stem, args).start(args);
}
