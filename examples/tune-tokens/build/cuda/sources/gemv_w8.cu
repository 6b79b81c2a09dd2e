// Y = X·Wᵀ for 1 to 8 tokens, int8 weights, float16 activations, a scale a row.
// Aims at: one pass over A at the speed of `read`. Hands a problem to one of the kernels beside it, by int8_rule.h.
#include "common.cuh"
#include "int8_rule.h"

GEMV_KERNEL(gemv_w8, INT8, 8, 1, "int8 weights, float16 activations, a scale a row: one of the variants, by rule") {
  const auto choice = sgemv::choose_for_int8(args, {sgemv::multiprocessors(), false});
  sgemv::pick(gemv_w8_spec, choice.stem, args).start(args);
}
