"""Claims on energy: the board's as a whole can be measured, its parts cannot."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.stats import Interval, log_t_interval
from harness.words import significant
from reports import format as fmt
from reports.claims import Claim, Judged, Word, absent, verdict, within
from reports.figures import Figures, Row
from reports.roofline.energy import Taken, taken
from reports.roofline.llama import DECODE, LAYERS, PREFILL, Layer
from reports.roofline.points import SAME_PRODUCT, weight_label

DTYPE = "float16"

Pair = tuple[Layer, Taken, Taken]
"""A layer with what a decode and a prefill launch take."""


def _pairs(f: Figures) -> list[Pair]:
    found = taken(f)
    pairs = ((layer, _least(found, layer, DECODE), _least(found, layer, PREFILL)) for layer in LAYERS)
    return [(layer, one, many) for layer, one, many in pairs if one is not None and many is not None]


def _least(found: Sequence[Taken], layer: Layer, n: int) -> Taken | None:
    own = [
        t
        for t in found
        if t.row.kernel != SAME_PRODUCT
        and (t.row.problem.m, t.row.problem.k, t.row.problem.n, t.row.problem.dtype) == (*layer.weight, n, DTYPE)
    ]
    return min(own, key=lambda t: t.mj_per_launch.estimate, default=None)


def _ratio(pairs: Sequence[Pair]) -> Interval | None:
    """Energy a token of decode over prefill's, summed over the layers, trial by trial."""
    sides = [[(layer.count, _by_trial(pair[side].row)) for layer, *pair in pairs] for side in (0, 1)]
    shared = set.intersection(*(set(each) for side in sides for _, each in side))
    sums = [[sum(count * each[trial] for count, each in side) for trial in sorted(shared)] for side in sides]
    logs = [math.log(one / DECODE / (many / PREFILL)) for one, many in zip(*sums, strict=True)]
    return log_t_interval(logs) if logs else None


def _by_trial(row: Row) -> dict[int, float]:
    return {t.trial: t.energy.mj_per_launch for t in row.measurement.trials if t.energy is not None}


def _fifty_to_a_hundred(f: Figures) -> Judged:
    pairs = _pairs(f)
    ratio = _ratio(pairs) if pairs else None
    if ratio is None:
        return absent("energy of LLaMA-7B layers in float16 at T = 1 and T = 512", "roofline")
    one = sum(layer.count * a.mj_per_token for layer, a, _ in pairs)
    many = sum(layer.count * b.mj_per_token for layer, _, b in pairs)
    rows = [t.row for _, *both in pairs for t in both]
    said = (
        f"{fmt.times_range(ratio)}: {significant(one, 3)}{fmt.NBSP}mJ a token at T = 1 by {_kernels(rows[::2])}, "
        f"{significant(many, 3)}{fmt.NBSP}mJ at T = 512 by {_kernels(rows[1::2])}, {_which(pairs)} "
        f"({rows[0].way.label}, {fmt.count(min(len(row.measurement.trials) for row in rows), 'trial')})"
    )
    return verdict(within(ratio, low=50, high=100), said, rows)


def _kernels(rows: Sequence[Row]) -> str:
    return fmt.listing([fmt.name(kernel) for kernel in dict.fromkeys(row.kernel for row in rows)])


def _which(pairs: Sequence[Pair]) -> str:
    """The products that a sum is over."""
    if len(pairs) == len(LAYERS):
        return "summed over the products with every weight of LLaMA-7B"
    told = [f"the {layer.count} of {layer.name} ({weight_label(layer.weight)})" for layer, *_ in pairs]
    return f"for LLaMA-7B's products with some weights alone, not for a whole token: {fmt.listing(told)}"


def _split(f: Figures) -> Judged:
    pairs = _pairs(f)
    why = "NVML meters the whole board: what its tensor cores take of that cannot be told apart"
    if not pairs:
        return Judged(word=Word.CANNOT, measured=why)
    _, one, many = pairs[0]
    spread = fmt.percent(max(one.spread, many.spread))
    said = (
        f"{why}. Board: {significant(one.watts, 3)}{fmt.NBSP}W at T = 1, {significant(many.watts, 3)}{fmt.NBSP}W at "
        f"T = 512 on {pairs[0][0].name} ({one.row.way.label}, trials within {spread})"
    )
    return Judged(word=Word.CANNOT, measured=said, rows=(one.row, many.row))


CLAIMS = (
    Claim(
        name="energy a token",
        place=17,
        says="Energy per token is 50 to 100 times higher in decode",
        source="50 to 100 times",
        criterion=(
            "mJ a token at T = 1 over that at T = 512, by the kernel that takes least, summed over the LLaMA-7B layers "
            "whose energy was measured: 50 to 100"
        ),
        measure=_fifty_to_a_hundred,
    ),
    Claim(
        name="tensor cores",
        place=18,
        says="«300 W against 3 W in the tensor cores»",
        source="300 W, 3 W",
        criterion="none: no meter reads the tensor cores alone",
        measure=_split,
    ),
)
