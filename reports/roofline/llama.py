"""LLaMA-7B's products with its weights, summed: one decode step against one prefill, over the same layers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.roofline import flops, least_bytes
from harness.stats import Interval, log_t_interval, trial_medians_ns
from harness.words import significant
from reports import format as fmt
from reports.figures import BASELINE, Figures, Row, Way
from reports.roofline.points import SAME_PRODUCT, Weight, fastest_product, of_weight, points
from reports.tables import Cell, Table, number, table, text


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One weight of the model, and how often a step multiplies by one of its shape."""

    name: str
    weight: Weight
    count: int


LAYERS = (
    Layer(name="QKV", weight=(12288, 4096), count=32),
    Layer(name="attention output", weight=(4096, 4096), count=32),
    Layer(name="gate and up", weight=(11008, 4096), count=64),
    Layer(name="down", weight=(4096, 11008), count=32),
    Layer(name="head", weight=(32000, 4096), count=1),
)

SCOPE = (
    "Scope, the same for both: the products with weights of LLaMA-7B, 32 × (QKV 12288×4096, attention output "
    "4096×4096, gate and up 2 × 11008×4096, down 4096×11008) and the head 32000×4096. Attention itself, norms, "
    "activations and the host are not in it; prefill computes the head for every token. A sum adds the medians of "
    f"separately timed products, trial by trial. {SAME_PRODUCT} is left out: it is {BASELINE}'s product by "
    "another call, and the lesser of two timings of one product would be a minimum of noise."
)

DECODE, PREFILL = 1, 512
"""T of one decode step and of the prefill."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """All layers once, with T tokens."""

    tokens: int
    dtype: str
    kernels: tuple[str, ...]
    """That were summed, each once."""
    trial_ns: dict[int, float]
    """Of the whole step, by trial."""
    flops: int
    bytes: int
    """Least bytes of all products."""
    case_ids: tuple[str, ...]

    @property
    def ns(self) -> Interval:
        """Of the whole step, over the trials."""
        return log_t_interval([math.log(ns) for ns in self.trial_ns.values()])

    @property
    def spread(self) -> float:
        """(max − min) / median of the trials' sums, as a fraction."""
        sums = self.trial_ns.values()
        return (max(sums) - min(sums)) / statistics.median(sums)

    @property
    def flop_per_s(self) -> float:
        """Over the whole step."""
        return self.flops * 1e9 / self.ns.estimate

    @property
    def ns_per_token(self) -> float:
        """The step's time over its tokens."""
        return self.ns.estimate / self.tokens

    @property
    def tokens_per_s(self) -> float:
        """As if nothing else took time."""
        return 1e9 / self.ns_per_token


def step(f: Figures, dtype: str, n: int, kernel: str | None = None, way: Way | None = None) -> Step | None:
    """The sum over `LAYERS`; None where one of them was not measured.

    Args:
        f: of a run.
        dtype: of the problems.
        n: tokens.
        kernel: which one on every layer; None: the fastest on each, `SAME_PRODUCT` aside.
        way: how it was timed; None: the headline's.
    """
    rows = [_row(points(f, way), layer.weight, dtype, n, kernel) for layer in LAYERS]
    known = [row for row in rows if row is not None]
    if len(known) < len(LAYERS):
        return None
    pairs = list(zip(LAYERS, known, strict=True))
    by_trial = [(layer.count, trial_medians_ns(row.measurement)) for layer, row in pairs]
    shared = set.intersection(*(set(medians) for _, medians in by_trial))
    if not shared:
        return None
    return Step(
        tokens=n,
        dtype=dtype,
        kernels=tuple(dict.fromkeys(row.kernel for row in known)),
        trial_ns={t: sum(count * medians[t] for count, medians in by_trial) for t in sorted(shared)},
        flops=sum(layer.count * flops(row.problem) for layer, row in pairs),
        bytes=sum(layer.count * least_bytes(row.problem) for layer, row in pairs),
        case_ids=tuple(row.measurement.case.id for row in known),
    )


def slower_per_token(decode: Step, prefill: Step) -> Interval | None:
    """Time a token of one step over that of the other, trial by trial; None where they share no trial."""
    shared = sorted(decode.trial_ns.keys() & prefill.trial_ns.keys())
    tokens = prefill.tokens / decode.tokens
    logs = [math.log(decode.trial_ns[t] / prefill.trial_ns[t] * tokens) for t in shared]
    return log_t_interval(logs) if logs else None


def _row(rows: Iterable[Row], weight: Weight, dtype: str, n: int, kernel: str | None) -> Row | None:
    found = [r for r in of_weight(rows, weight) if (r.problem.dtype, r.problem.n) == (dtype, n)]
    return fastest_product([r for r in found if kernel is None or r.kernel == kernel])


def steps(f: Figures) -> tuple[tuple[str, Step], ...]:
    """(which kernels, step) of every dtype, decode and prefill, the best kernels' and the baseline's."""
    return tuple(
        (f"{BASELINE} throughout" if kernel else "fastest of each layer", found)
        for dtype in f.dtypes
        for n in (DECODE, PREFILL)
        for kernel in (None, BASELINE)
        if (found := step(f, dtype, n, kernel)) is not None
    )


def llama_table(f: Figures) -> Table | None:
    """A row a step; None where not a single step is complete."""
    found = steps(f)
    if not found:
        return None
    heads = [
        text("step"), text("dtype"), text("kernels"), number("time", "ms"), number("95 % interval", "± %"),
        number("spread of trials", "%"), number("tokens/s"), number("of the bandwidth bound", "%"),
        number("TFLOP/s"), number("of the measured peak", "%"),
    ]  # fmt: skip
    note = (
        "Tokens/s as if these products were all there is. Bandwidth bound: the fewest bytes that must move over the "
        f"measured read bandwidth{_bandwidth(f)}. A measured peak is what a large product sustains, at the SM clock "
        "in the ceilings' table: a step at a higher clock can exceed it. "
        f"Timed by {f.headline.label if f.headline else 'nothing'}."
    )
    return table("LLaMA-7B, one step", heads, [_cells(f, which, s) for which, s in found], note=note, group_by=1)


def _cells(f: Figures, which: str, s: Step) -> Sequence[Cell | str]:
    bound, peak = bound_ns(f, s), f.ceilings.peak(s.dtype)
    of_peak = None if peak is None or peak.per_s is None else s.flop_per_s / peak.per_s.estimate
    half = s.ns.half_width
    name = f"{'decode' if s.tokens == DECODE else 'prefill'}, T = {s.tokens}".replace(" ", fmt.NBSP)
    return [
        name,
        fmt.name(s.dtype),
        Cell(text=which, note="" if BASELINE in which else fmt.listing([fmt.name(k) for k in s.kernels])),
        significant(s.ns.estimate / 1e6),
        fmt.NONE if half is None else fmt.percent_figure(half),
        fmt.percent_figure(s.spread),
        significant(s.tokens_per_s),
        fmt.NONE if bound is None else fmt.percent_figure(bound / s.ns.estimate),
        fmt.tflop_per_s_figure(s.flop_per_s),
        fmt.NONE if of_peak is None else fmt.percent_figure(of_peak),
    ]


def bound_ns(f: Figures, s: Step) -> float | None:
    """The least time that the measured read bandwidth leaves a step; None where it was not measured."""
    read = f.ceilings.read.per_s
    return None if read is None else s.bytes / read.estimate * 1e9


def _bandwidth(f: Figures) -> str:
    read = f.ceilings.read.per_s
    return " (not measured in this run)" if read is None else f", {fmt.gb_per_s(read.estimate / 1e9)}"
