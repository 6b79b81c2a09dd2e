"""A case over all its runs in a picture as small as a word, without any script."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.comparison.sides import FAILED
from harness.history.devices import WORDS, Device
from harness.history.digests import Floats
from harness.history.standing import Standing

WIDTH, HEIGHT = 150, 30
"""In px, as shown; the picture's own units too."""

EDGE = 4.0
"""Room for marks at every side, in px."""

LEAST_SPAN = 0.03
"""What the height stands for at least, as a difference of logarithms: less is no news, and looks flat."""

OUTLIERS_PERCENT = 1.0
"""This share of the values at either end does not set the scale, so that a lone outlier leaves the rest readable."""


@dataclass(frozen=True, kw_only=True)
class Sparkline:
    """Paths and places in a picture of `WIDTH` × `HEIGHT`."""

    line: str
    """SVG path: from run to run or, where runs are closer than pixels, from each pixel's median to the next."""
    band: str
    """SVG path: the span of each such pixel's runs; "" where runs have a pixel each."""
    failures: str
    """SVG path: a tick at the lower edge for each run that failed; "" for none."""
    newest: tuple[float, float] | None
    """Where the newest figure is; None: it failed or has none."""
    hollow: bool
    """Whether a limit held the clocks back during some samples of the newest run."""
    best: tuple[float, float] | None
    """Where the best run before it is."""
    began: float | None
    """Where what the newest shows began, as x."""


def sparkline(device: Device, standing: Standing) -> Sparkline:
    """The picture of one case; time goes from left to right, a run a step, and slower is up."""
    values = np.log(device.centres_ns[:, standing.place])
    runs = np.flatnonzero(~np.isnan(values))
    x = EDGE + np.arange(len(values)) * (WIDTH - 2 * EDGE) / max(len(values) - 1, 1)
    kept = [run for run in (standing.newest, standing.best) if run is not None and run in runs]
    y = _heights(values, runs, kept)
    failed = np.isin(device.words[:, standing.place], [code for code, word in enumerate(WORDS) if word in FAILED])

    def at(run: int | None) -> tuple[float, float] | None:
        return (round(float(x[run]), 1), round(float(y[run]), 1)) if run is not None and run in kept else None

    line, band = _paths(x[runs], y[runs])
    return Sparkline(
        line=line,
        band=band,
        failures="".join(f"M{place:.1f} {HEIGHT - 5}v5" for place in np.unique(x[failed].round(1))),
        newest=at(standing.newest),
        hollow=bool(device.held_back[standing.newest, standing.place] > 0),
        best=at(standing.best),
        began=None if standing.began is None else round(float(x[standing.began]), 1),
    )


def _heights(values: Floats, runs: np.ndarray, kept: list[int]) -> Floats:
    """From the upper edge down, in px; what lies outside the scale is at its edge."""
    if not len(runs):
        return np.full(len(values), np.nan)
    ends = np.percentile(values[runs], [OUTLIERS_PERCENT, 100 - OUTLIERS_PERCENT])
    low, high = min([ends[0], *values[kept]]), max([ends[1], *values[kept]])
    room = max(0.0, LEAST_SPAN - (high - low)) / 2
    low, high = low - room, high + room
    share = np.clip((values - low) / (high - low), 0, 1)
    return np.asarray(HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE))


def _paths(x: Floats, y: Floats) -> tuple[str, str]:
    columns = x.astype(int)
    starts = np.flatnonzero(np.diff(columns, prepend=-1))
    if len(starts) == len(x):
        return _line(x, y), ""
    parts = np.split(y, starts[1:])
    pieces = zip(columns[starts], parts, strict=True)
    spans = [(column, part.min(), max(part.max(), part.min() + 1)) for column, part in pieces]
    band = "".join(f"M{column} {top:.0f}V{bottom:.0f}" for column, top, bottom in spans)
    return _line(columns[starts], np.array([np.median(part) for part in parts])), band


def _line(x: Floats, y: Floats) -> str:
    return "M" + "L".join(f"{a:.4g} {b:.3g}" for a, b in zip(x, y, strict=True)) if len(x) else ""
