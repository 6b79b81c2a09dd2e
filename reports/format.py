"""Numbers, times and names for people: with unit, with sensible digits, and with «unknown» for what is not known."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from harness.model import Problem
from harness.stats import Interval
from harness.words import (
    LONGEST_LINE,
    LONGEST_NAME,
    MOST_DECIMALS,
    THIN,
    percent_decimals,
    problem_in_words,
    significant,
    visible,
)

NBSP = "\N{NO-BREAK SPACE}"
"""Between a number and its unit."""

NONE = "–"
"""Stands where a figure has no meaning, such as the interval of one trial."""

LONGEST_CODE = 4000


def microseconds_figure(ns: float) -> str:
    """A time in µs without its unit, for a column that names it."""
    return significant(ns / 1e3)


def microseconds(ns: float) -> str:
    """A time in µs: `1.723 µs`."""
    return f"{microseconds_figure(ns)}{NBSP}µs"


def percent_figure(fraction: float) -> str:
    """A fraction in % without its sign: no decimal from 10 % on, one from 0.1 %, below that until a digit is not 0."""
    value = fraction * 100
    return f"{value:.{percent_decimals(value)}f}"


def percent(fraction: float) -> str:
    """A fraction in %: `0.4 %`."""
    return f"{percent_figure(fraction)}{NBSP}%"


def plus_minus(interval: Interval) -> str:
    """Half-width of the 95 % interval in %: `±0.4 %`; `no interval` where one trial cannot give it."""
    half = interval.half_width
    return "no interval" if half is None else f"±{percent(half)}"


def microseconds_pm(interval: Interval) -> str:
    """A time with its interval: `1.723 µs ±0.4 %`."""
    return f"{microseconds(interval.estimate)} {plus_minus(interval)}"


def signed_percent(fraction: float) -> str:
    """A deviation in %, with sign: `+0.42 %`."""
    return f"{fraction * 100:+.2f}{NBSP}%".replace("-", "−")


def signed_percent_figure(fraction: float) -> str:
    """A difference in % without its unit, at most two decimals: `+0.4`, `−12`."""
    value = fraction * 100
    return f"{_sign(value)}{abs(value):.{min(2, percent_decimals(value))}f}"


def difference(ratio: Interval) -> str:
    """What a ratio differs from 1 by, in %, with the digits that its interval bears: `+3.1 %`; 0 has no sign."""
    value = (ratio.estimate - 1) * 100
    return f"{_signed(value, _decimals_of(ratio))}{NBSP}%"


def difference_range(ratio: Interval) -> str:
    """The 95 % interval of what a ratio differs from 1 by: `+2.8 to +3.4 %`; an end that is not 0 shows its sign."""
    if ratio.low is None or ratio.high is None:
        return "no interval"
    decimals = _decimals_of(ratio)
    ends = [(end - 1) * 100 for end in (ratio.low, ratio.high)]
    low, high = (
        _signed(end, decimals if round(end, decimals) else max(decimals, percent_decimals(end))) for end in ends
    )
    return f"{low} to {high}{NBSP}%"


def _decimals_of(ratio: Interval) -> int:
    """Of a difference in %: its last digit's unit is at most half of the interval's half, so that the ends differ."""
    if ratio.low is None or ratio.high is None:
        return percent_decimals((ratio.estimate - 1) * 100)
    half = (ratio.high - ratio.low) / 2 * 100
    least = 0 if all(abs(each - 1) >= 0.0995 for each in (ratio.estimate, ratio.low, ratio.high)) else 1
    needed = math.ceil(-math.log10(half)) if half > 0 else 0
    return min(max(least, needed), MOST_DECIMALS)


def _signed(value: float, decimals: int) -> str:
    """With its sign, unless it is 0 in these decimals."""
    figure = f"{abs(value):.{decimals}f}"
    return f"{_sign(value)}{figure}" if float(figure) else figure


def signed_microseconds_figure(ns: float) -> str:
    """A difference in µs without its unit: `+0.012`, `−1.340`."""
    return f"{_sign(ns)}{microseconds_figure(abs(ns))}"


def _sign(value: float) -> str:
    return "−" if value < 0 else "+"


def times_figure(ratio: float, decimals: int = 2) -> str:
    """A ratio: two decimals below 10."""
    return f"{ratio:.{decimals}f}" if ratio < 9.995 else significant(ratio, decimals + 1)


def times(ratio: float) -> str:
    """A ratio: `1.42×`."""
    return f"{times_figure(ratio)}×"


def times_range(interval: Interval) -> str:
    """A ratio with its interval: `1.42× (95 %: 1.40–1.44)`."""
    if interval.low is None or interval.high is None:
        return f"{times(interval.estimate)} (one trial: no interval)"
    decimals = 2 if interval.high - interval.low > 0.015 else 3
    middle, low, high = (times_figure(r, decimals) for r in (interval.estimate, interval.low, interval.high))
    return f"{middle}× (95{NBSP}%: {low}–{high})"


def share_range(interval: Interval) -> str:
    """A share in % with its interval: `94 % (95 %: 93–95)`."""
    if interval.low is None or interval.high is None:
        return f"{share(interval.estimate)} (one trial: no interval)"
    low, high = interval.low * 100, interval.high * 100
    return f"{share(interval.estimate)} (95{NBSP}%: {low:.1f}–{high:.1f})"


def share(fraction: float) -> str:
    """A share in %, one decimal: `94.2 %`."""
    return f"{fraction * 100:.1f}{NBSP}%"


def gb_per_s_figure(value: float) -> str:
    """A bandwidth in GB/s (10⁹ bytes a second) without its unit."""
    return significant(value, 3)


def gb_per_s(value: float) -> str:
    """A bandwidth: `3 910 GB/s`."""
    return f"{gb_per_s_figure(value)}{NBSP}GB/s"


def tflop_per_s_figure(flop_per_s: float) -> str:
    """FLOP a second in TFLOP/s (10¹² a second) without its unit."""
    return significant(flop_per_s / 1e12, 3)


def tflop_per_s(flop_per_s: float) -> str:
    """FLOP a second: `650 TFLOP/s`."""
    return f"{tflop_per_s_figure(flop_per_s)}{NBSP}TFLOP/s"


def millijoules_figure(value: float) -> str:
    """An energy in mJ without its unit."""
    return significant(value, 3)


def data_bytes(value: float) -> str:
    """An amount of memory in the largest binary unit that leaves at least 1: `60 MiB`."""
    unit = "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g}{NBSP}{unit}"


def span(seconds: float) -> str:
    """A length of time: `42 s`, `3 min 10 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}{NBSP}s"
    if whole < 3600:
        return f"{whole // 60}{NBSP}min {whole % 60}{NBSP}s"
    return f"{whole // 3600}{NBSP}h {whole % 3600 // 60:02}{NBSP}min"


def moment(iso: str) -> str:
    """An ISO 8601 time in UTC as `14 May 2026, 09:12 UTC`; unreadable text as it is."""
    try:
        when = datetime.fromisoformat(iso)
    except ValueError:
        return line(iso)
    return f"{when.day} {when:%b %Y, %H:%M} UTC"


def period(start: str, end: str) -> str:
    """Two ISO 8601 times in UTC, saying no day or minute twice: `from 14 May 2026, 09:12 to 09:15 UTC`."""
    first, last = moment(start), moment(end)
    if first == last:
        return f"at {first}"
    day, _, time = last.partition(", ")
    return f"from {first.removesuffix(' UTC')} to {time}" if first.startswith(f"{day}, ") else f"from {first} to {last}"


def count(number: int, one: str, more: str | None = None) -> str:
    """`1 case`, `3 cases`."""
    return f"{number:,}".replace(",", THIN) + f" {one if number == 1 else more or one + 's'}"


def out_of(part: int, whole: int, one: str) -> str:
    """`2 of 3 cases`; `the one case` where there is no other."""
    return f"the one {one}" if part == whole == 1 else f"{part:,}".replace(",", THIN) + f" of {count(whole, one)}"


def listing(parts: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{separator(parts).join(parts[:-1])} and {parts[-1]}" if parts else ""


def separator(parts: Iterable[str]) -> str:
    """What keeps `parts` apart in a line: a semicolon where one has a comma of its own."""
    return "; " if any(", " in part for part in parts) else ", "


def name(text: str) -> str:
    """A name fit to be shown: what has no glyph is written as its code, and a long one loses its middle."""
    return visible(text, LONGEST_NAME)


def line(text: str) -> str:
    """A line of text fit to be shown, as `name` but longer."""
    return visible(text, LONGEST_LINE)


def code(text: str) -> str:
    """A demangled name, which is long, fit to be shown."""
    return visible(text, LONGEST_CODE)


def extents(of: tuple[int, ...]) -> str:
    """A grid or a block without the dimensions that are 1 from there on: `512`, `64×8`."""
    used = max((i for i, extent in enumerate(of, start=1) if extent != 1), default=1)
    return "×".join(str(extent) for extent in of[:used])


def problem(which: Problem) -> str:
    """A problem's short name with all that differs from a plain float32 GEMV: `1024×128`, `64×64, float16`."""
    return problem_in_words(which)
