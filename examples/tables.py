"""The tables of README.md and docs/, written from the runs kept here: `python examples/tables.py`.

A table stands between `<!-- NAME -->` and `<!-- end -->`; a test holds every one of them against the runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from harness.commands.power import rows  # noqa: E402 - the project is found only now
from harness.comparison.notes import sample_clock_mhz  # noqa: E402
from harness.comparison.power import power  # noqa: E402
from harness.model import Cache, Measurement, Problem, Role, Run  # noqa: E402
from harness.problems import parse_shapes  # noqa: E402
from harness.regret import regrets  # noqa: E402
from harness.stats import Interval, summarize  # noqa: E402
from harness.store import load  # noqa: E402
from harness.throttling import CLOCK_OFF, reference_clock_mhz  # noqa: E402
from harness.timing import Purpose, timers  # noqa: E402
from kernels.rules import RULES  # noqa: E402
from reports import format as fmt  # noqa: E402
from reports.figures import BASELINE, Way, figures  # noqa: E402
from reports.figures import Row as Figured  # noqa: E402
from reports.roofline.best import choices, in_words  # noqa: E402
from reports.roofline.points import against, weight_label, weights  # noqa: E402
from reports.roofline.verdicts import judged as judged_claims  # noqa: E402
from reports.selfcheck import asked  # noqa: E402
from reports.side_by_side import seconds_a_case  # noqa: E402

DOCUMENTS = (
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("comparing", "kernels", "measuring", "roofline")),
)
EXAMPLES = ROOT / "examples"
EXAMPLE = EXAMPLES / "h200"
REGIMES = EXAMPLES / "regimes"
ROOFLINE = EXAMPLES / "roofline"
HEADLINE_COLD = Way(timer="graph", cache=Cache.COLD)
KERNELS = (BASELINE, "sgemv_k128_f32x4")
SHORT, FEW_ROWS, SQUARE, LONG = (Problem(m=m, k=k) for m, k in ((1024, 128), (8, 4096), (4096, 4096), (32000, 4096)))

UNFIT = re.compile("unsupported: |not measured: ")
"""How the reason of a variant begins that cannot compute a problem, or is too slow on it to be timed."""
SHOWN = parse_shapes([
    "1x65536", "8x4096", "1024x128", "300000x7", "1000x1000", "4096x4096", "4096x4096:col", "32000x4096", "65536x40000",
])  # fmt: skip
"""Of the regimes, in README's table; docs/kernels.md has all."""

Row = tuple[str, ...]


def speed() -> Iterator[Row]:
    """Some of the regimes."""
    return _speed(SHOWN)


def regimes() -> Iterator[Row]:
    """All of them."""
    return _speed(None)


def _speed(shown: Sequence[Problem] | None) -> Iterator[Row]:
    """By problem: torch's two, sgemv and the kernel that it chose, by the headline."""
    yield "problem", f"`{BASELINE}`", "`torch.mv`", "`sgemv`", "speed", "bandwidth", "of `read`", "it chose"
    f = figures(load(REGIMES))
    reference = reference_clock_mhz(f.run.measurements)
    for problem in f.problems if shown is None else shown:
        base, mv, own = (f.find(name, problem, HEADLINE_COLD) for name in (BASELINE, "torch.mv", "sgemv"))
        yield (
            fmt.problem(problem),
            *(_time(each, reference) for each in (base, mv, own)),
            fmt.times_range(own.speedup),
            fmt.gb_per_s(own.gb_per_s),
            fmt.NONE if own.of_limit is None else fmt.share(own.of_limit.estimate),
            f"`{own.measurement.trials[0].variant}`",
        )


def _time(row: Figured, reference_mhz: float) -> str:
    """With the SM clock that it ran at, where that lies as far below the run's best as marks a sample."""
    took = fmt.microseconds_pm(row.summary.median_ns)
    clock = sample_clock_mhz(row.measurement)
    return took if clock >= (1 - CLOCK_OFF) * reference_mhz else f"{took} at {clock:.0f} MHz"


def slower() -> Iterator[Row]:
    """Every case in which the whole interval of a kernel that picks among others lies below torch.matmul's speed."""
    yield "kernel", "problem", "by", f"`{BASELINE}`", "its time", "speed"
    for example in (REGIMES, ROOFLINE):
        f = figures(load(example))
        reference = reference_clock_mhz(f.run.measurements)
        for row in f.rows:
            if row.kernel not in RULES or row.speedup is None or (row.speedup.high or 1) >= 1:
                continue
            base = f.find(BASELINE, row.problem, row.way)
            yield (
                f"`{row.kernel}`",
                fmt.problem(row.problem),
                f"`{row.way.timer}`, {row.way.cache}",
                *(_time(each, reference) for each in (base, row)),
                fmt.times_range(row.speedup),
            )


def regret() -> Iterator[Row]:
    """What the rule of sgemv loses."""
    return _regret("tune")


def token_regret() -> Iterator[Row]:
    """What that of hgemv, bgemv and gemv_w8 loses."""
    return _regret("tune-tokens")


def _regret(example: str) -> Iterator[Row]:
    """By problem of which every variant was measured: what was chosen, the fastest of all, what the choice cost."""
    yield "problem", "chosen", "its time", "fastest of all", "its time", "regret (95 %)", "measured"
    for each in regrets(load(EXAMPLES / example)).cases:
        fastest, ratio = each.fastest, each.ratio
        if ratio is None:
            continue  # what the rule picked is none of those measured
        shares = [round(end - 1, 3) + 0.0 for end in (ratio.estimate, ratio.low, ratio.high)]  # + 0.0: no minus zero
        if not all(variant.fault is None or UNFIT.match(variant.fault) for variant in each.variants):
            continue  # the run was cut short in it
        yield (
            fmt.problem(each.case.problem),
            f"`{each.chose[0]}`",
            fmt.microseconds_pm(each.centre_ns),
            f"`{fastest.kernel}`",
            fmt.microseconds_pm(fastest.centre_ns),
            "{} % ({} to {})".format(*(f"{100 * each:+.1f}" for each in shares)),
            f"{each.measured}",
        )


def one_token() -> Iterator[Row]:
    """T = 1 by weight: float16, bfloat16 and int8 weights, each against what it is held to."""
    yield (
        "weight", "`torch.matmul`, float16", "`hgemv`", "speed", "of `read`", "`bgemv`", "speed",
        "`gemv_w8`", "against `hgemv`", "of `read`",
    )  # fmt: skip
    f = figures(load(ROOFLINE))
    reference = reference_clock_mhz(f.run.measurements)
    by_columns = {p for p in f.problems if p.layout.order == "col"}
    for problem in (p for p in f.problems if p.dtype == "float16" and p.n == 1 and p not in by_columns):
        named = (BASELINE, "float16"), ("hgemv", "float16"), ("bgemv", "bfloat16"), ("gemv_w8", "int8")
        found = [f.find(kernel, replace(problem, dtype=dtype), HEADLINE_COLD) for kernel, dtype in named]
        if None in found:
            continue  # decode attention
        _, half, brain, quantized = found
        times = [_time(each, reference) for each in found]
        shares = [fmt.share(each.of_limit.estimate) for each in (half, quantized)]
        ratios = [fmt.times_range(each) for each in (half.speedup, brain.speedup, against(quantized, half))]
        label = fmt.problem(replace(problem, dtype="float32"))
        yield (
            label, times[0], times[1], ratios[0], shares[0], times[2], ratios[1], times[3], ratios[2], shares[1],
        )  # fmt: skip


def several_tokens() -> Iterator[Row]:
    """By kernel and weight: speed against torch's best at each T that it takes in one pass."""
    few = (1, 2, 4, 8)
    yield "kernel", "weight", *(f"T = {n}" for n in few), "by measurement it is"
    f = figures(load(ROOFLINE))
    for dtype, kernel in (("float16", "hgemv"), ("bfloat16", "bgemv"), ("int8", "gemv_w8")):
        for weight in weights(f):
            found = choices(f, weight, dtype)
            at = {choice.tokens: choice.ratio.estimate for choice in found}
            if len(at) > 1:
                cells = [fmt.times(at[n]) if n in at else fmt.NONE for n in few]
                yield f"`{kernel}`", weight_label(weight), *cells, in_words(found, few)


def claims() -> Iterator[Row]:
    """What the run says of each published claim."""
    yield "claim", "its source", "measured here", "word"
    for claim, judged in judged_claims(figures(load(ROOFLINE))):
        cells = (claim.says, claim.source, judged.measured, f"**{judged.word}**")
        yield tuple(cell.replace("|", "\\|") for cell in cells)


def floors() -> Iterator[Row]:
    """What each timer is, and what it makes of an empty kernel."""
    yield "timer", "a sample", "clock", "an empty kernel", "seconds timing a case and trial"
    run = load(EXAMPLE)
    for name, timer in timers().items():
        if timer.purpose is not Purpose.BENCH:
            continue
        empty = next(m for m in run.measurements if m.case.role is Role.FLOOR and _way(m) == (name, Cache.COLD))
        seconds = seconds_a_case(figures(run), name)
        took = fmt.NONE if seconds is None else f"{seconds:.2f}"
        yield f"`{name}`", timer.summary, timer.clock, fmt.microseconds_pm(_median(empty)), took


def checks() -> Iterator[Row]:
    """The selfcheck, a line a kind."""
    yield "check", "what is asked", "bound", "passed", "nearest to its bound, or dearest"
    for kind in asked(load(EXAMPLE).selfcheck or ()):
        worst = kind.worst
        largest = "–"
        if worst is not None and worst.share is not None:
            of = f"`{worst.check.kernel}` on {fmt.problem(worst.check.problem)}"
            difference = fmt.signed_microseconds_figure(worst.ns)
            largest = f"{difference} µs ({fmt.signed_percent_figure(worst.share)} %), {of}"
        yield kind.name, kind.kind.question, f"{kind.kind.rule} {kind.kind.bound}", kind.passed, largest


def two_streams() -> Iterator[Row]:
    """What a process that has used a second stream pays."""
    yield from _beside("graph", "graph-two-streams", ("one stream", "two streams"), (SHORT, FEW_ROWS, SQUARE, LONG))


def dirty_lines() -> Iterator[Row]:
    """What writing to empty the cache costs the kernel that is timed next."""
    yield from _beside("event-read", "event-memset", ("emptied by reading", "by writing"), (SHORT, SQUARE, LONG))


def peers() -> Iterator[Row]:
    """A kernel by our timers and by other projects', and what a case and trial takes."""
    names = ("graph", "profiler", "event", "do_bench", "nvbench")
    yield "kernel, problem", *(f"`{name}`" for name in names)
    run = load(EXAMPLES / "h200-peers")
    found = {(m.case.kernel, m.case.problem, *_way(m)): m for m in run.measurements}
    empty = next(m.case for m in run.measurements if m.case.role is Role.FLOOR)
    for problem, kernel in ((empty.problem, empty.kernel), *((p, k) for p in (SHORT, SQUARE) for k in KERNELS)):
        title = "an empty kernel" if kernel == empty.kernel else f"`{kernel}` {fmt.problem(problem)}"
        yield title, *(fmt.microseconds_pm(_median(found[kernel, problem, name, Cache.COLD])) for name in names)
    seconds = [seconds_a_case(figures(run), name) for name in names]
    yield "seconds timing a case and trial", *(fmt.NONE if each is None else f"{each:.2f}" for each in seconds)


def rates() -> Iterator[Row]:
    """How often the words of a comparison are wrong."""
    return rows(power([load(folder) for folder in sorted((EXAMPLES / "power").iterdir())]))


TABLES: dict[str, Callable[[], Iterator[Row]]] = {
    "speed": speed,
    "regimes": regimes,
    "slower": slower,
    "regret": regret,
    "token regret": token_regret,
    "one token": one_token,
    "several tokens": several_tokens,
    "claims": claims,
    "floors": floors,
    "checks": checks,
    "two streams": two_streams,
    "dirty lines": dirty_lines,
    "peers": peers,
    "rates": rates,
}


def _beside(one: str, other: str, heads: tuple[str, str], problems: tuple[Problem, ...]) -> Iterator[Row]:
    yield ("kernel, problem", *heads, "difference")
    run: Run = load(EXAMPLE)
    found = {(m.case.kernel, m.case.problem, *_way(m)): m for m in run.measurements}
    for problem in problems:
        for kernel in KERNELS:
            pair = [_median(found[kernel, problem, timer, Cache.COLD]) for timer in (one, other)]
            difference = pair[1].estimate - pair[0].estimate
            share = fmt.signed_percent_figure(difference / pair[0].estimate)
            yield (
                f"`{kernel}` {fmt.problem(problem)}",
                *(fmt.microseconds(each.estimate) for each in pair),
                f"{fmt.signed_microseconds_figure(difference)} µs ({share} %)",
            )


def _way(m: Measurement) -> tuple[str, Cache]:
    return m.case.timer, m.case.cache


def _median(m: Measurement) -> Interval:
    summary = summarize(m)
    if summary is None:
        raise ValueError(f"{m.case.id}: has no figures: {m.verdict.reason}")
    return summary.median_ns


def markdown(rows: Iterator[Row]) -> str:
    """A table of Markdown."""
    head, *body = rows
    lines = [head, ("---",) * len(head), *body]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def with_tables(text: str) -> str:
    """`text` with every table in it written anew."""

    def fill(block: re.Match[str]) -> str:
        return f"<!-- {block[1]} -->\n{markdown(TABLES[block[1]]())}<!-- end -->"

    return re.sub(rf"<!-- ({'|'.join(TABLES)}) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


def main() -> None:
    """Rewrite the documents."""
    for path in DOCUMENTS:
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
