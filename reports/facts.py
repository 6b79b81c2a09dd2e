"""Where and how a run was measured, as tables: environment, builds, method."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from harness.environment import ENVIRONMENT_KEYS
from harness.model import BuildRecord, Run
from harness.stats import CENTRE, CONFIDENCE
from harness.timing import LEAST_SINGLES, MAX_SAMPLES, MIN_SAMPLES, WANTED_ERROR, timers
from reports import format as fmt
from reports.figures import Figures
from reports.tables import Cell, Table, number, table, text

GROUP_TITLES = {"gpu": "GPU", "driver": "Driver", "software": "Software", "host": "Host"}
GROUP_TITLES |= {"settings": "Settings", "source": "Source", "other": "Other"}

CACHE_STATES = {
    "cold": (
        "launches rotate over operand sets that together hold at least four times the last-level cache, so a launch "
        "finds its operands in memory; no flush that writes, which would charge its write-back to the kernel"
    ),
    "hot": (
        "a launch follows another on the same operands, which fill at most half of the last-level cache; on a GPU four "
        "operand sets are timed one by one, and a figure is the mean over them"
    ),
}

GATE = (
    "in every trial, before a kernel is timed: exact integers, one-hot operands bit by bit, and random operands within "
    "a bound of the rounding error, with guards around the operands; and once more after it was timed. A kernel that "
    "fails has no figures"
)

INTERVALS = (
    f"a figure is the {CENTRE} of the trials; ± is half its {fmt.percent(CONFIDENCE)} interval, "
    "Student's t on the logarithms of the trials' medians; ratios are taken within each trial first"
)

BYTES = "GB/s counts the fewest bytes that must move: A and x read once, y written once; 10⁹ bytes a second"


@dataclass(frozen=True, kw_only=True)
class BuildView:
    """One library's build."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """(what, value)."""
    resources: Table | None
    """None where the compiler gave none, as for the CPU."""


def device_name(run: Run) -> str:
    """The GPU, or the CPU of a run without one."""
    env = run.environment
    found = env.get("cpu_name") if run.options.device_type == "cpu" else env.get("gpu_name")
    return fmt.name(str(found or env.get("device_name") or f"an unknown device ({run.options.device})"))


def environment_tables(run: Run) -> tuple[Table, ...]:
    """One table a group; an unknown value gives its reason."""
    by_group: dict[str, list[list[Cell | str]]] = {name: [] for name in GROUP_TITLES}
    for key, value in run.environment.values.items():
        known = ENVIRONMENT_KEYS.get(key)
        group, unit = (known.group.value, known.unit) if known else ("other", None)
        what = Cell(text=known.description if known else fmt.name(key), note=fmt.name(key) if known else "")
        by_group.setdefault(group, []).append([what, *_value(run, key, value, unit)])
    heads = [text("what"), text("value")]
    return tuple(table(GROUP_TITLES.get(g, g), heads, rows) for g, rows in by_group.items() if rows)


def _value(run: Run, key: str, value: str | float | bool | None, unit: str | None) -> list[Cell | str]:
    if value is None:
        reason = run.environment.unknown.get(key, "no reason recorded")
        return [Cell(text=f"unknown: {fmt.line(reason)}", mark="quiet")]
    return [fact(key, value, unit)]


def fact(key: str, value: str | float | bool, unit: str | None) -> str:
    """A value of the environment for people: memory in binary units, power in W, switches as yes or no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return _variables(value) if key == "environment_variables" else fmt.line(value)
    if unit == "bytes":
        return fmt.data_bytes(value)
    if unit == "mW":
        return f"{value / 1e3:g}{fmt.NBSP}W"
    return f"{value}{fmt.NBSP}{unit}" if unit else str(value)


def _variables(value: str) -> str:
    try:
        found = json.loads(value)
    except ValueError:
        return fmt.line(value)
    if not isinstance(found, dict):
        return fmt.line(value)
    return fmt.line(", ".join(f"{name}={content}" for name, content in found.items())) or "none set"


def build_views(run: Run) -> tuple[BuildView, ...]:
    """One a library, with registers and spills by function and architecture."""
    return tuple(_build(build, run.options.device_type) for build in run.builds)


def _build(build: BuildRecord, device_type: str) -> BuildView:
    title = f"{fmt.name(build.library)} ({fmt.name(build.target)})"
    if not build.commands:  # a user's file: the project's libraries are compiled always
        why = "not built: no CUDA device" if device_type == "cpu" else "nothing to build: no .cu file"
        packages = [] if build.compiler_version == "none" else [("packages", fmt.line(build.compiler_version))]
        told = (("compiled", why), *packages, ("content hash", fmt.line(build.key)))
        return BuildView(title=title, facts=told, resources=None)
    compiler = f"{fmt.line(build.compiler_version)}; host compiler {fmt.line(build.host_compiler_version)}"
    facts = (
        ("compiler", compiler if build.target == "cuda" else fmt.line(build.compiler_version)),
        ("flags", fmt.line(shlex.join(build.flags)) or "none"),
        ("architectures", fmt.line(", ".join(build.architectures)) or "none: built for the CPU"),
        ("torch's headers", fmt.line(build.torch_version)),
        ("took", f"{build.seconds:.1f}{fmt.NBSP}s, when it was built"),
        ("content hash", fmt.line(build.key)),
    )
    return BuildView(title=title, facts=facts, resources=_resources(build))


def _resources(build: BuildRecord) -> Table | None:
    if not build.resources:
        return None
    rows: list[list[Cell | str]] = []
    for r in build.resources:
        spills = f"{r.spill_store_bytes} + {r.spill_load_bytes}"
        spilled = Cell(text=spills, mark="bad" if r.spill_store_bytes or r.spill_load_bytes else "")
        needs: list[Cell | str] = [str(r.registers), spilled, str(r.stack_bytes), str(r.static_shared_bytes)]
        rows.append([fmt.line(r.function), fmt.name(r.arch), *needs])
    heads = [text("device function"), text("arch"), number("registers", "a thread")]
    heads += [number("spills, stores + loads", "bytes a thread"), number("stack", "bytes a thread")]
    heads += [number("static shared memory", "bytes a block")]
    return table("What each device function needs", heads, rows)


def method(f: Figures) -> tuple[tuple[str, str], ...]:
    """(term, explanation) of how the run was measured."""
    known = timers()
    used = f.timers
    caches = dict.fromkeys(str(row.way.cache) for row in (*f.rows, *f.suite))
    gave = [(t, known[t].summary if t in known else "not a timer of this version") for t in used]
    timer_lines = [(f"timer {fmt.name(t)}", summary) for t, summary in gave]
    cache_lines = [(f"cache {c}", CACHE_STATES[c]) for c in caches]
    options = f.run.options
    trials = fmt.count(options.trials, "fresh process", "fresh processes")
    stop = (
        f"at most {MAX_SAMPLES} samples a case and trial, until the median is known to ±{fmt.percent(WANTED_ERROR)} "
        f"within the trial or {options.max_time_s:g}{fmt.NBSP}s are spent; at least {MIN_SAMPLES}, and {LEAST_SINGLES} "
        "of single launches"
    )
    alone = [fmt.name(t) for t in dict.fromkeys(w.timer for w in f.ways if w not in f.charted)]
    if alone:
        trials += f", and fewer of their own for {fmt.listing(alone)}"
    rules = (("gate", GATE), ("stop rule", stop), ("trials", f"{trials}; {INTERVALS}"), ("bandwidth", BYTES))
    return (*timer_lines, *cache_lines, *rules)


def command(run: Run) -> str:
    """The command line that repeats the run."""
    return fmt.line(shlex.join(run.options.command)) or "not recorded"
