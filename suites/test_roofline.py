"""GEMM against GEMV: Y = X·Wᵀ of LLM layers for a few tokens and for many, by dtype, with the device's ceilings.

A problem is m outputs by k inputs by T tokens. Weights: a square, LLaMA-7B's layers, those of an 8B model; decode
attention of one head; two shapes more that the half-precision kernels are held to; and what published claims are about.
The full product of 9 weights, 10 numbers of tokens and 4 dtypes by 2 kernels and 2 timers would be 1440 cases, a
quarter of an hour. What is left out:

* float16 has every T on every weight. bfloat16 has every T on the square and on 11008×4096, else T = 1, 8, 64, 512 (on
  the 8B weights without 64). float32 has that too, but on the 7B weights without 64, and on the 8B weights T = 1, 512
  alone. tf32 has every T on the square, else T = 1, 512.
* `F.linear` launches what `torch.matmul` does: it is held against it in float16 on the square and on 11008×4096 at
  every T, and elsewhere, and in the other dtypes on the square, at T = 1, 8, 64, 512.
* `sync` has float16 alone: `torch.matmul` at every T on the square and on 11008×4096, else at T = 1, 512; `F.linear` on
  the square; `hgemv` at T = 1.
* `bgemv` has T = 2, 4 on the square and on 11008×4096 alone; `gemv_w8` has T = 2, 4, 8 on the 7B weights alone, and
  `read`, whose bytes hardly change with T, beyond T = 1 on the square and on 11008×4096 alone. `torch.mv` has float32
  and float16.
* Operands are cold, as a layer's weights are; hot are the reference's own case (`sync-50`) and what claims are about.

What that takes on an H200, by arithmetic. A case and trial: 0.02 s of samples and 0.11 s beside; the operands and the
gate of another problem: 0.2 s a trial. So 253 problems and 548 cases in 3 trials: 366 s. Energy, at 2.5 s a case and
trial, has 9 problems and 10 cases in 2 trials: 54 s. Workers, ceilings of gigabytes and page: 40 s. In all less than 8
minutes; the run in `examples/roofline` took 389 s, and 410 s with the kernels' build.
`--dtype`, `--kernel`, `--timer` and `-k` cut it down; `--shape MxKxT:DTYPE` measures other problems in the same ways.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from harness import ceilings
from harness.cases import Grid
from harness.model import Cache, Case, Layout, Problem
from suites.suite import Suite

TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
FEW = (1, 8, 64, 512)
ENDS = (1, 512)
ONE_PASS = (1, 2, 4, 8)
"""Tokens that our kernels take in one pass over the weights."""

Weight = tuple[int, int]
"""Outputs and inputs."""

SQUARE: Weight = (4096, 4096)
SWEPT: tuple[Weight, ...] = (SQUARE, (11008, 4096))
LLAMA_7B: tuple[Weight, ...] = ((12288, 4096), (4096, 11008), (32000, 4096))
"""Beside those: its output projection is the square, its gate and up projections are 11008×4096."""
LLAMA_8B: tuple[Weight, ...] = ((6144, 4096), (14336, 4096), (4096, 14336), (128256, 4096))
"""Beside the square: keys and values of 8 heads, a wider hidden layer, a larger vocabulary."""
OTHERS = LLAMA_7B + LLAMA_8B
LAYERS = SWEPT + OTHERS
SMALL_AND_LARGE: tuple[Weight, ...] = ((1024, 1024), (57344, 7168))

HEAD = 128
CONTEXTS = (1024, 4096, 16384, 65536)

GRAPH, SYNC = ("graph",), ("sync",)
COLD = (Cache.COLD,)


def batch(weights: Iterable[Weight], tokens: Iterable[int], dtype: str) -> tuple[Problem, ...]:
    """Y = X·Wᵀ for every weight and number of tokens."""
    sizes = itertools.product(tuple(weights), tuple(tokens))
    return tuple(Problem(m=m, k=k, n=n, dtype=dtype) for (m, k), n in sizes)


def attention(dtype: str) -> tuple[Problem, ...]:
    """One head's q·Kᵀ and s·V at every context: K is context by head, V too, of which s·V takes the transpose."""
    scores = (Problem(m=context, k=HEAD, dtype=dtype) for context in CONTEXTS)
    by_columns = Layout(order="col")
    sums = (Problem(m=HEAD, k=context, dtype=dtype, layout=by_columns) for context in CONTEXTS)
    return (*scores, *sums)


def cold(kernels: Iterable[str], *problems: tuple[Problem, ...], timers: tuple[str, ...] = GRAPH) -> Grid:
    """Some kernels on some problems, from cold operands."""
    return Grid(problems=sum(problems, ()), kernels=tuple(kernels), timers=timers, caches=COLD)


MATMUL = (
    cold(["torch.matmul"], batch(LAYERS, TOKENS, "float16")),
    cold(
        ["torch.matmul"],
        batch(SWEPT, TOKENS, "bfloat16"),
        batch(LLAMA_7B, FEW, "bfloat16"),
        batch(LLAMA_8B, (1, 8, 512), "bfloat16"),
    ),
    cold(
        ["torch.matmul"],
        batch(SWEPT, TOKENS, "float32"),
        batch(LLAMA_7B, (1, 8, 512), "float32"),
        batch(LLAMA_8B, ENDS, "float32"),
    ),
    cold(["torch.matmul"], batch([SQUARE], TOKENS, "tf32"), batch(LAYERS, ENDS, "tf32")),
    cold(["torch.matmul"], batch(SWEPT, TOKENS, "float16"), batch(OTHERS, ENDS, "float16"), timers=SYNC),
)
LINEAR = (
    cold(["F.linear"], batch(SWEPT, TOKENS, "float16"), batch(OTHERS, FEW, "float16")),
    cold(["F.linear"], *(batch([SQUARE], FEW, dtype) for dtype in ("bfloat16", "float32", "tf32"))),
    cold(["F.linear"], batch([SQUARE], TOKENS, "float16"), timers=SYNC),
)
"""The same product, as a layer of torch asks for it."""

OURS = (
    cold(["hgemv"], batch(LAYERS, ONE_PASS, "float16")),
    cold(["hgemv"], batch(LAYERS, [1], "float16"), timers=SYNC),
    cold(["bgemv"], batch(SWEPT, ONE_PASS, "bfloat16"), batch(OTHERS, (1, 8), "bfloat16")),
    cold(["gemv_w8"], batch(SWEPT + LLAMA_7B, ONE_PASS, "int8"), batch(LLAMA_8B, [1], "int8")),
    cold(["sgemv"], batch(LAYERS, [1], "float32")),
    *(cold(["read"], batch(SWEPT, ONE_PASS, dtype)) for dtype in ("float16", "bfloat16", "int8")),
    *(cold(["read"], batch(LAYERS, [1], dtype)) for dtype in ("float32", "float16", "bfloat16", "int8")),
    *(cold(["torch.mv"], batch(LAYERS, [1], dtype)) for dtype in ("float32", "float16")),
    *(
        cold(["torch.matmul", kernel, "read"], batch(SMALL_AND_LARGE, [1], dtype))
        for kernel, dtype in (("hgemv", "float16"), ("bgemv", "bfloat16"), ("gemv_w8", "int8"))
    ),
)
ATTENTION = (
    cold(["torch.matmul"], attention("float16"), attention("float32")),
    cold(["sgemv"], attention("float32")),
    cold(["hgemv", "read"], tuple(each for each in attention("float16") if each.layout.order == "row")),
)

MEASURED_AT: Weight = (11008, 4096)
"""Where energy is."""


def only(kernel: str, *problems: Problem, timer: str, cache: Cache = Cache.COLD) -> Grid:
    """A kernel on just these problems."""
    return Grid(problems=problems, kernels=(kernel,), timers=(timer,), caches=(cache,), own_problems=True)


ENERGY = (
    only("torch.matmul", *batch([MEASURED_AT], (1, 4, 16, 64, 256, 512), "float16"), timer="energy"),
    only("torch.matmul", *batch([MEASURED_AT], ENDS, "float32"), timer="energy"),
    only("hgemv", *batch([MEASURED_AT], [1], "float16"), timer="energy"),
    only("gemv_w8", *batch([MEASURED_AT], [1], "int8"), timer="energy"),
)
REFERENCE = (only("torch.matmul", *batch([SQUARE], (1, 16, 512), "float16"), timer="sync-50", cache=Cache.HOT),)
"""As the source measured it."""

SHORT = Problem(m=1024, k=128)
CACHED = Problem(m=7168, k=1024)
REFERENCES = ("sgemv_k32_f32", "sgemv_k128_f32x4")
PUBLISHED = (
    *(
        only(kernel, SHORT, timer=timer, cache=cache)
        for kernel in ("torch.matmul", *REFERENCES)
        for timer, cache in (("async", Cache.HOT), ("graph", Cache.HOT), ("graph", Cache.COLD))
    ),
    *(only(kernel, Problem(m=8, k=4096), timer="graph") for kernel in REFERENCES),
    only("sgemv_k16_f32", Problem(m=1048576, k=16), timer="graph"),
    *(only(kernel, CACHED, timer="graph", cache=Cache.HOT) for kernel in ("torch.matmul", "sgemv")),
)
"""What published claims on float32 are about, and one weight that stays in a cache of 60 MB."""

CEILINGS = (
    only("read", ceilings.READ, timer="graph"),
    only(ceilings.COPY_KERNEL, ceilings.COPY, timer="graph"),
    only("torch.matmul", *ceilings.PEAKS.values(), timer="graph"),
)

CPU_GRIDS = (
    Grid(
        problems=batch([(1024, 1024), SQUARE], (1, 4, 16), "float32"),
        kernels=("torch.matmul", "F.linear"),
        timers=("async", "sync"),
        caches=COLD,
    ),
    Grid(
        problems=batch([(1024, 1024), SQUARE], [1], "float32"),
        kernels=("sgemv_cpu_f32", "read"),
        timers=("async", "sync"),
        caches=COLD,
    ),
)
CPU_NOTE = (
    "on a CPU the suite roofline is float32 on 1024x1024 and 4096x4096 with 1, 4 and 16 tokens: the other dtypes, "
    "layers and numbers of tokens, the kernels for CUDA, energy and the ceilings are left out"
)

SUITE = Suite(
    grids=(*CEILINGS, *MATMUL, *LINEAR, *OURS, *ATTENTION, *PUBLISHED, *ENERGY, *REFERENCE),
    cpu_grids=CPU_GRIDS,
    cpu_note=CPU_NOTE,
    trials=3,
    max_time_s=0.02,
)


def test_roofline(measure: Callable[[Case], None], case: Case) -> None:
    """The kernel's output is right and its device time is in the run."""
    measure(case)
