"""Rules that repeat what they were asked, in a library of their own; kernels that print what a launcher gets."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

import pytest
import torch

from kernels import explain
from kernels.build import build
from kernels.declarations import CSRC, GLUE
from tests.built import shared_cache

ECHO = """
#include <cstdio>
#include "op.h"
namespace sgemv {
struct Machine { std::int64_t multiprocessors; bool clusters; };
struct Choice { const char* kernel; const char* reason; };
inline Choice choose(const Args& args, const Machine& machine) {
  static char words[400];
  const auto past = [](const float* first) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(first) % 256); };
  std::snprintf(words, sizeof words, "%ldx%ld %s %ld %ld %ld, past %d %d, on %ld %d", args.m, args.k,
                args.by_columns ? "columns" : "rows", args.a_stride, args.x_stride, args.y_stride, past(args.a),
                past(args.x), machine.multiprocessors, machine.clusters);
  return {"echo", words};
}
}
"""
"""A rule whose reason is what it was asked."""

ECHO_OF_TOKENS = """
#include "rule.h"
#include "tokens.h"
namespace sgemv {
struct TokenChoice { const char* stem; const char* reason; };
inline TokenChoice choose_tokens(const TokenArgs& args, DType dtype, const Machine& machine) {
  static char words[400];
  const auto past = [](const void* first) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(first) % 256); };
  std::snprintf(words, sizeof words, "%d: %ldx%ldx%ld %ld %ld %ld, past %d %d, on %ld %d", dtype, args.m, args.k,
                args.n, args.a_stride, args.x_stride, args.y_stride, past(args.a), past(args.x),
                machine.multiprocessors, machine.clusters);
  return {"echo", words};
}
}
"""
"""The same of several tokens."""

TOLD = """
#include <cstdio>
#include "rule.h"
#include "tokens_rule.h"
GEMV_KERNEL(told_of_tokens, INT8, 8, 1, "the same of several tokens") {
  std::printf("%s\\n", sgemv::choose_tokens(args, sgemv::INT8, {132, true}).reason);
  std::fflush(stdout);
}
SGEMV_KERNEL(told, K_ANY, 1, ROWS_OR_COLUMNS, 4, "says what a launcher is given, as the rule of explain.cpp does") {
  std::printf("%s\\n", sgemv::choose(args, {132, true}).reason);
  std::fflush(stdout);
}
"""


@cache
def library() -> Path:
    """Built and loaded into torch."""
    csrc = Path(tempfile.mkdtemp(prefix="echo-", dir=shared_cache()))
    for name in (*GLUE, *(path.name for path in CSRC.glob("*.h"))):
        shutil.copy(CSRC / name, csrc)
    (csrc / "rule.h").write_text(f"#pragma once\n{ECHO}")
    (csrc / "tokens_rule.h").write_text(f"#pragma once\n{ECHO_OF_TOKENS}")
    (csrc / "told.cpp").write_text(TOLD)
    built = build("cpu", cache_dir=shared_cache(), csrc=csrc).library
    torch.ops.load_library(str(built))
    return built


def ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have kernels.explain ask these rules."""
    functions = {name: explain.rule_of(library(), name) for name in ("sgemv_choose", "sgemv_choose_tokens")}
    monkeypatch.setattr(explain, "_rule", functions.__getitem__)
