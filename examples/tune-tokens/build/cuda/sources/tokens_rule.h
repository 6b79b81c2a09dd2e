// Which kernel computes some tokens, by dtype: a rule for each stands in a file of its own, as plain C++ as rule.h.
#pragma once

#include "halves_rule.h"
#include "int8_rule.h"

namespace sgemv {

inline TokenChoice choose_tokens(const TokenArgs& args, DType dtype, const Machine& machine) {
  return dtype == INT8 ? choose_for_int8(args, machine) : choose_for_halves(args, machine);
}

}  // namespace sgemv
