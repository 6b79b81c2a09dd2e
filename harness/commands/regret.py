"""What the rule of a kernel that picks among others loses on each problem against the fastest of them."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from harness.command_line import PIPE_WIDTH
from harness.errors import CommandError, Exit
from harness.model import Case
from harness.regret import Regret, Regrets, regrets
from harness.stats import Interval
from harness.store import SELECTORS, Store, load_whole
from harness.words import LONGEST_LINE, percent_decimals, problem_in_words, significant, visible

HELP = "what the rule of a kernel that picks among others loses"

JSON_SCHEMA_VERSION = 1

WIDE = 150
"""Columns from which on a case is one line; below, figures stand under the names."""

HEAD = "its time over that of the fastest kernel that it picks among, less 1, paired by trial; intervals of 95 %"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and what counts as a failure."""
    parser.add_argument("run", metavar="RUN", help=SELECTORS)
    parser.add_argument("--fail-above", metavar="PERCENT", help="leave with 1 if a regret's whole interval lies above")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def run(store: Store, options: argparse.Namespace) -> int:
    """The regret of every case by the headline's timer, and the worst."""
    limit = _percentage(options.fail_above)
    found = regrets(load_whole(store.resolve(options.run)))
    code, means = _exit(found, limit)
    if options.json:
        sys.stdout.write(json.dumps(as_json(found, limit, code, means), indent=1, allow_nan=False) + "\n")
        return code
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False, markup=False, emoji=False)
    rules = ", ".join(dict.fromkeys(visible(each.case.kernel) for each in found.cases))
    console.print(f"run {visible(found.run_id, LONGEST_LINE)}\nregret of {rules}: {HEAD}\n")
    console.print(_table(found, " " if console.width >= WIDE else "\n"))
    for line in (*_notes(found), *_worst(found)):
        console.print(line)
    if limit is not None:
        console.print(f"exit code {int(code)}: {means}")
    return code


def _percentage(text: str | None) -> float | None:
    """As a fraction."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1000:
        raise CommandError(f"--fail-above: found {text!r}, wanted percents from 0 to below 1000, such as 5", Exit.USAGE)
    return value / 100


def _exit(found: Regrets, limit: float | None) -> tuple[Exit, str]:
    """The code and what it means. Without an interval nothing can be told."""
    if limit is None:
        return Exit.FINE, "no limit was asked for"
    asked = f"{100 * limit:g} %"
    if any(each.above(limit) for each in found.cases):
        return Exit.SLOWER, f"a regret lies above {asked}"
    if not any(each.ratio and each.ratio.low is not None for each in found.cases):
        return Exit.NOT_COMPARABLE, "one trial gives no interval"
    return Exit.FINE, f"no regret is known to lie above {asked}"


def _table(found: Regrets, between: str) -> Table:
    """A row a case; `between` stands between a name and its figures."""
    heads = ("problem", "chose", "fastest", "regret", "measured")
    table = Table(*(Column(head, overflow="fold") for head in heads), box=None, pad_edge=False, header_style="dim")
    for each in (each for each in found.cases if each.fault is None):
        fastest = each.fastest
        table.add_row(
            f"{problem_in_words(each.case.problem)}{between}{_way(each.case)}",
            f"{_chose(each)}{between}{_time(each.centre_ns)}",
            "–" if fastest is None else f"{visible(fastest.kernel)}{between}{_time(fastest.centre_ns)}",
            "–" if each.ratio is None else f"{_percent(each.ratio.estimate)}{between}{_range(each.ratio)}",
            f"{each.measured} of {each.eligible}",
        )
    return table


def _notes(found: Regrets) -> Iterator[str]:
    """What has no figures: the contract's refusals counted, all else named, and what that means for the regret."""
    yield ""
    if found.partial:
        yield "the run was cut short: what had not been measured until then is missing"
    for each in found.cases:
        yield from _without_figures(each)
    refused = Counter(v.kernel for each in found.cases for v in each.variants if v.refused)
    for count in sorted(set(refused.values())):
        names = ", ".join(visible(kernel) for kernel, cases in refused.items() if cases == count)
        yield f"unsupported in {count} of {len(found.cases)} cases: {names}"


def _without_figures(each: Regret) -> Iterator[str]:
    if each.fault is not None:
        yield f"{_name(each.case)}: {visible(each.fault, LONGEST_LINE)}"
    missing: dict[str, list[str]] = {}
    for variant in each.variants:
        if variant.fault is not None and not variant.refused:
            missing.setdefault(variant.fault, []).append(visible(variant.kernel))
    for fault, names in missing.items():
        yield f"{', '.join(names)} {_where(each.case)}: {visible(fault, LONGEST_LINE)}"
    if each.chose_unmeasured:
        chose = ", ".join(map(visible, each.chose_unmeasured))
        told = "cannot be told" if each.ratio is None else "is at least that"
        yield f"{_name(each.case)}: chose {chose}, which has no figures here: its regret {told}"


def _worst(found: Regrets) -> Iterator[str]:
    each = found.worst
    if each.ratio is not None and each.fastest is not None:
        figures = f"{_percent(each.ratio.estimate)} ({_range(each.ratio)})"
        pair = f"{_chose(each)} against {visible(each.fastest.kernel)}"
        yield f"worst: {_name(each.case)}: {figures}, {pair}"


def _chose(each: Regret) -> str:
    return ", ".join(map(visible, each.chose))


def _name(case: Case) -> str:
    return f"{visible(case.kernel)} {_where(case)}"


def _where(case: Case) -> str:
    return f"on {problem_in_words(case.problem)} {_way(case)}"


def _way(case: Case) -> str:
    return f"{visible(case.timer)} {case.cache}"


def _time(ns: Interval | None) -> str:
    """In µs, ± half its interval."""
    if ns is None:
        return "–"
    half = ns.half_width
    spread = "no interval" if half is None else f"±{100 * half:.{percent_decimals(100 * half)}f} %"
    return f"{significant(ns.estimate / 1e3)} µs {spread}"


def _percent(ratio: float) -> str:
    percent = round(100 * (ratio - 1), 1)
    return f"{percent:+.1f} %".replace("-", "−") if percent else "0.0 %"


def _range(ratio: Interval) -> str:
    if ratio.low is None or ratio.high is None:
        return "no interval"
    return f"{_percent(ratio.low).removesuffix(' %')} to {_percent(ratio.high)}"


def as_json(found: Regrets, limit: float | None, code: Exit, means: str) -> dict[str, Any]:
    """All of it; `regret` is a fraction, times are ns per launch."""
    return {
        "schema_version": JSON_SCHEMA_VERSION,
        "run_id": found.run_id,
        "partial": found.partial,
        "fail_above": limit,
        "exit_code": int(code),
        "exit_means": means,
        "worst": found.worst.case.id,
        "cases": [_case(each) for each in found.cases],
    }


def _case(each: Regret) -> dict[str, Any]:
    return {
        "id": each.case.id,
        "case": each.case.to_dict(),
        "fault": each.fault,
        "chose": list(each.chose),
        "reasons": list(each.reasons),
        "time_ns": _interval(each.centre_ns),
        "fastest": None if each.fastest is None else each.fastest.kernel,
        "regret": None if each.ratio is None else _interval(each.ratio, less=1.0),
        "variants": [
            {"kernel": v.kernel, "time_ns": _interval(v.centre_ns), "ratio": _interval(v.ratio), "fault": v.fault}
            for v in each.variants
        ],
    }


def _interval(of: Interval | None, less: float = 0.0) -> dict[str, float | None] | None:
    if of is None:
        return None
    ends = {"low": of.low, "estimate": of.estimate, "high": of.high}
    return {name: None if end is None else end - less for name, end in ends.items()}
