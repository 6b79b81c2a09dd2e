"""A run's cases as points under its roofline: intensity, FLOP a second, share of what is attainable, the best by T."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.ceilings import PROBLEMS
from harness.model import Layout, Problem, Role
from harness.roofline import flops, intensity_flop_per_byte
from harness.stats import Interval, speedup
from reports import format as fmt
from reports.figures import Figures, Row, Way

Weight = tuple[int, int]
"""A's rows and columns: outputs and inputs of a layer."""


def is_roofline(f: Figures) -> bool:
    """Whether a run has anything to show here: several tokens, which matrix peaks are too, or a suite's own timers."""
    return bool(f.suite) or any(p.n > 1 for p in f.problems)


def points(f: Figures, way: Way | None = None) -> tuple[Row, ...]:
    """Passed products with figures by one way of timing, the headline's by default; no ceilings, no limit kernel."""
    way = way or f.headline
    rows = f.passed(way) if way is not None else ()
    return tuple(r for r in rows if r.role is Role.GEMV and r.problem not in PROBLEMS)


def weights(f: Figures) -> tuple[Weight, ...]:
    """Of products with several tokens, in order of appearance."""
    batches = (p for p in f.problems if p.n > 1 and p not in PROBLEMS)
    return tuple(dict.fromkeys((p.m, p.k) for p in batches))


def of_weight(rows: Iterable[Row], weight: Weight) -> tuple[Row, ...]:
    """Those of one plain weight."""
    return tuple(r for r in rows if (r.problem.m, r.problem.k) == weight and r.problem.layout == Layout())


def tokens(rows: Iterable[Row]) -> tuple[int, ...]:
    """T of these rows, ascending."""
    return tuple(sorted({r.problem.n for r in rows}))


def median_ns(row: Row) -> float:
    """The row's figure.

    Raises:
        ValueError: it has none.
    """
    if row.summary is None:
        raise ValueError(f"{row.measurement.case.id}: has no figures")
    return row.summary.median_ns.estimate


def flop_per_s(row: Row) -> float:
    """2·m·k·n over the time."""
    return flops(row.problem) * 1e9 / median_ns(row)


def of_attainable(f: Figures, row: Row) -> float | None:
    """FLOP a second as a fraction of min(peak, intensity · read bandwidth); None where a ceiling was not measured."""
    attainable = f.ceilings.attainable_flop_per_s(row.problem)
    return None if attainable is None else flop_per_s(row) / attainable


def is_compute_bound(f: Figures, row: Row) -> bool:
    """Whether the row's product lies right of its dtype's measured ridge."""
    ridge = f.ceilings.ridge_flop_per_byte(row.problem.dtype)
    return ridge is not None and intensity_flop_per_byte(row.problem) >= ridge


def of_peak(f: Figures, row: Row) -> float | None:
    """FLOP a second as a fraction of the dtype's measured peak."""
    peak = f.ceilings.peak(row.problem.dtype)
    return None if peak is None or peak.per_s is None else flop_per_s(row) / peak.per_s.estimate


def fastest(rows: Sequence[Row]) -> Row | None:
    """The row with the shortest time."""
    return min(rows, key=median_ns, default=None)


SAME_PRODUCT = "F.linear"
"""`torch.matmul`'s by another call; `reports.roofline.ran` tells where it runs another device kernel."""


def fastest_product(rows: Sequence[Row]) -> Row | None:
    """The fastest without `SAME_PRODUCT`: the lesser of two timings of one product is a minimum of noise."""
    return fastest([row for row in rows if row.kernel != SAME_PRODUCT])


def side(ratio: Interval | None) -> int:
    """1: surely above 1; −1: surely below; 0: the interval holds 1, or there is none."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return 0
    return 1 if ratio.low > 1 else -1 if ratio.high < 1 else 0


def against(row: Row, other: Row) -> Interval | None:
    """How many times as fast `row` is as `other`, paired by trial."""
    return speedup(row.measurement, other.measurement)


def weight_label(weight: Weight) -> str:
    """E.g. `4096×4096`."""
    return f"{weight[0]}×{weight[1]}"


def how(f: Figures) -> str:
    """The way of timing and the trials behind these sections' figures."""
    way = f.headline.label if f.headline else "nothing"
    return f"{way}, {fmt.count(f.run.options.trials, 'trial')}"


def weight_problem(weight: Weight, n: int, dtype: str) -> Problem:
    """Y = X·Wᵀ of `n` tokens with a plain weight."""
    return Problem(m=weight[0], k=weight[1], n=n, dtype=dtype)
