"""The options of a bench, and what they select. A wrong value is one line that lists the right ones."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cases import ALWAYS, picked_among
from harness.dtypes import DTYPES
from harness.errors import KERNELS_HINT, CommandError, Exit, unknown
from harness.model import Cache, Kernel, Options, Problem
from harness.problems import FILE, SHAPE, laid_out, parse_shapes, read_shapes, shape_text
from harness.standing import named_file
from harness.store.open_store import open_store
from harness.store.refs import check_ref_name
from harness.timing import Purpose, Timer, timers
from suites.device import device_of, why_no_gpu
from suites.selection import BASELINE, Named, NoGpu, Selection, without_device
from suites.suite import DEFAULT, MAX_TIME_S, TRIALS, Suite, chosen
from suites.suite import names as suite_names

STRIDE = "elements from one row of every A to the next, where its layout is col from one column to the next"
FURTHEST = 10**12
"""Elements that a stride or a first element may be."""

HIGHEST_MHZ = 10_000
"""Far above any clock."""

PEER_PROBLEMS = (Problem(m=1024, k=128), Problem(m=4096, k=4096))
"""A short one and a long one: a peer takes seconds for each case."""

QUICK_TRIALS, QUICK_MAX_TIME_S = 3, 0.03


def add(group: Any) -> None:
    """Declare the options. All are text here: `select` checks them, so that every error reads the same."""
    named = {
        "--kernel": "measure only this kernel, beside torch.matmul, read and empty (repeatable)",
        "--suite": f"measure this suite, of {', '.join(suite_names())} (repeatable; default {DEFAULT})",
        "--kernels": "measure this Python file's kernels, too; with --kernel torch.matmul no others (repeatable)",
        "--shape": f"measure this problem, as {SHAPE}, instead of the suite's (repeatable)",
        "--shapes": f"measure the problems of this file, too: {FILE} (repeatable)",
        "--dtype": "measure only the suite's problems of this dtype, or those of --shape in it (repeatable)",
        "--timer": "measure only with this timer (repeatable)",
        "--cache": "measure only with operands cold or hot (repeatable)",
    }
    for name, text in named.items():
        group.addoption(name, action="append", default=[], help=text)
    group.addoption("--regimes", action="store_true", help="measure the suite's problems of every regime instead")
    group.addoption("--variants", action="store_true", help="measure also the kernels that another picks among")
    group.addoption("--layout", help="row or col: whether every A lies in memory by rows or by columns (default row)")
    group.addoption("--row-stride", help=f"{STRIDE}, with NaN between (default: packed)")
    group.addoption("--first-element", help="elements from a 256-byte boundary to the first one of every A (default 0)")
    group.addoption("--trials", help=f"worker processes, the unit of repetition (default {TRIALS}, or the suite's)")
    group.addoption("--max-time", help=f"seconds a case and trial (default {MAX_TIME_S}, or the suite's)")
    group.addoption(
        "--quick",
        action="store_true",
        help="a coarse look: fewer trials, less time, the headline timer alone, cold only",
    )
    group.addoption("--selfcheck", action="store_true", help="hold the timers against each other too (needs a GPU)")
    group.addoption("--peers", action="store_true", help="measure by other projects' timers too, cold (needs a GPU)")
    which = "cuda, cuda:N, a UUID (GPU-… or MIG-…), all (one run a GPU) or cpu"
    group.addoption("--device", help=f"{which} (default: cuda where there is a GPU, else cpu)")
    lock = "lock the GPU's SM clock at so many MHz while it is measured; needs root (default: it is left alone)"
    group.addoption("--lock-clocks", metavar="MHZ", help=lock)
    group.addoption("--store", help="folder or URL of runs (default: SGEMV_STORE, else artifacts/)")
    group.addoption("--ref", help="let this name mean the run, e.g. baseline")
    group.addoption("--path-file", help="write the run's folder into this file")


def names() -> list[str]:
    """Of the options."""
    found: list[str] = []
    add(SimpleNamespace(addoption=lambda name, **_: found.append(name)))
    return found


def select(config: pytest.Config, kernels: Mapping[str, Kernel]) -> Selection:
    """The selection that the command line names.

    Raises:
        CommandError: a wrong value (USAGE), or a GPU that cannot be used (INFRASTRUCTURE).
    """
    option = config.option
    if option.ref is not None:
        check_ref_name(option.ref)
    suites = chosen(option.suite, option.file_or_dir)
    measured, lay_out = _kernels(option.kernel, kernels, variants=option.variants), _lay_out(option)
    listed = [problem for name in option.shapes for problem in read_shapes(named_file("--shapes", name))]
    typed = [*parse_shapes(option.shape), *listed] or (PEER_PROBLEMS if option.peers else ())
    problems = tuple(dict.fromkeys(map(lay_out, _in_dtypes(typed, option.dtype))))
    device, uuid = device_of(option.device)
    no_gpu = None if device.startswith("cuda") else _no_gpu(option)
    _refuse_additions(option, no_gpu, suites)
    return Selection(
        suites=suites,
        registry=tuple(kernels.values()),
        kernels=measured,
        problems=problems or None,
        lay_out=lay_out,
        timers=_timers(option, device),
        caches=_caches(option),
        named=Named(
            kernels=tuple(option.kernel),
            timers=_timers(option, device) if option.timer or option.quick else (),
            caches=_caches(option) if option.cache or option.quick else (),
            dtypes=tuple(option.dtype),
        ),
        regimes=bool(option.regimes),
        options=_options(option, suites, device, uuid),
        no_gpu=no_gpu,
        store=open_store(option.store),
        ref=option.ref,
        path_file=Path(option.path_file) if option.path_file else None,
        notes=(
            *(f"{each.name} is not measured: pip install {each.package}" for each in _missing_peers(option)),
            *without_device(kernels.values(), device),
            *(each.cpu_note for each in suites.values() if device == "cpu" and each.cpu_note and not problems),
        ),
    )


def _options(option: Any, suites: Mapping[str, Suite], device: str, uuid: str | None) -> Options:
    """How it is measured: as typed, else as the suite that asks for the most wants it."""
    quick = bool(option.quick)
    trials = max(suite.trials for suite in suites.values())
    max_time_s = max(suite.max_time_s for suite in suites.values())
    if quick:
        trials, max_time_s = min(trials, QUICK_TRIALS), min(max_time_s, QUICK_MAX_TIME_S)
    return Options(
        trials=int(_number("--trials", option.trials, trials, 1, 1000)),
        max_time_s=_number("--max-time", option.max_time, max_time_s, 1e-3, 3600),
        quick=quick,
        device=device,
        uuid=uuid,
        lock_clocks_mhz=_lock_clocks(option.lock_clocks),
        command=typed_command(),
        selfcheck=bool(option.selfcheck),
        suites=tuple(suites),
    )


def _lock_clocks(typed: str | None) -> int | None:
    """The GPU's own list is asked when the bench begins."""
    return None if typed is None else int(_number("--lock-clocks", typed, 1, 1, HIGHEST_MHZ))


def _choose(option: str, wanted: Sequence[str], known: Sequence[str], hint: str = "") -> list[str]:
    """The wanted of the known, all if none is named, in the order of the known."""
    for name in wanted:
        if name not in known:
            raise unknown(option, name, known, hint)
    return [name for name in known if not wanted or name in wanted]


def _kernels(wanted: Sequence[str], kernels: Mapping[str, Kernel], *, variants: bool) -> tuple[Kernel, ...]:
    """Those of users' files are measured because these were named; of them, too, those alone that are named."""
    by_name_only = {kernel.name for kernel in kernels.values() if kernel.by_name_only}
    asked = set(_choose("--kernel", wanted, list(kernels), KERNELS_HINT)) - by_name_only | set(wanted)
    own = {kernel.name for kernel in kernels.values() if kernel.file is not None}
    asked |= own if not own & set(wanted) else set()
    asked |= {*picked_among(kernels.values())} if variants else set()
    return tuple(k for k in kernels.values() if k.name in asked or k.name == BASELINE or k.role in ALWAYS)


def _in_dtypes(typed: Iterable[Problem], dtypes: Sequence[str]) -> Iterator[Problem]:
    """The typed problems in every dtype of --dtype; without one, as they are."""
    _choose("--dtype", dtypes, DTYPES)
    for problem in typed:
        if dtypes and problem.dtype not in (Problem.dtype, *dtypes):
            what = f"{shape_text(problem)}: says its own dtype, and {', '.join(dtypes)} was asked for all"
            raise CommandError(f"{what}; leave one of them out", Exit.USAGE)
        yield from (replace(problem, dtype=dtype) for dtype in dtypes or [problem.dtype])


def _lay_out(option: Any) -> Callable[[Problem], Problem]:
    """What gives a problem the layout that the options name; a wrong value is refused here."""
    if option.layout is not None:
        _choose("--layout", [option.layout], ["row", "col"])
    stride, first = option.row_stride, option.first_element
    row_stride = None if stride is None else int(_number("--row-stride", stride, 1, 1, FURTHEST))
    first_element = None if first is None else int(_number("--first-element", first, 0, 0, FURTHEST))

    def lay_out(problem: Problem) -> Problem:
        try:
            return laid_out(problem, order=option.layout, row_stride=row_stride, first_element=first_element)
        except ValueError as error:
            raise CommandError(str(error), Exit.USAGE) from error

    return lay_out


def _timers(option: Any, device: str) -> tuple[str, ...]:
    """Of those that work on the device; wanting one that exists but does not is a wrong value too."""
    ours = {name: timer for name, timer in timers().items() if timer.purpose in (Purpose.BENCH, Purpose.SUITE)}
    _choose("--timer", option.timer, list(ours))
    device_type = device.partition(":")[0]
    usable = [timer.name for timer in ours.values() if device_type in timer.devices]
    for name in option.timer:
        if name not in usable:
            raise CommandError(
                f"--timer: {name} does not work on {device}, wanted one of: {', '.join(usable)}", Exit.USAGE
            )
    added = {Purpose.CHECK: option.selfcheck, Purpose.PEER: option.peers}
    missing = _missing_peers(option)
    others = [timer.name for timer in timers().values() if added.get(timer.purpose) and timer not in missing]
    benched = [name for name in usable if ours[name].purpose is Purpose.BENCH]
    wanted = _choose("--timer", option.timer, usable if option.timer else benched)
    headline_alone = option.quick and not option.timer and not others
    return (*(wanted[:1] if headline_alone else wanted), *others)


def _missing_peers(option: Any) -> list[Timer]:
    """Other projects' timers that are wanted and not installed here.

    Raises:
        CommandError: none is (INFRASTRUCTURE).
    """
    peers = [timer for timer in timers().values() if timer.purpose is Purpose.PEER and option.peers]
    missing = [timer for timer in peers if not is_installed(timer.module or timer.name)]
    if missing and missing == peers:
        packages = " ".join(timer.package or timer.name for timer in peers)
        raise CommandError(f"--peers: none is installed: pip install {packages}", Exit.INFRASTRUCTURE)
    return missing


def is_installed(module: str) -> bool:
    """Whether a module can be found, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def _caches(option: Any) -> tuple[Cache, ...]:
    """As named; else both, or cold alone for a quick look and beside peers, who have no hot."""
    named = _choose("--cache", option.cache, [str(cache) for cache in Cache])
    cold_alone = not option.cache and ((option.quick and not option.selfcheck) or option.peers)
    return (Cache.COLD,) if cold_alone else tuple(Cache(cache) for cache in named)


def _no_gpu(option: Any) -> NoGpu:
    """Asked for the CPU, what needs a GPU is wrong usage; else the machine lacks it."""
    if option.device:
        return NoGpu(why=lambda: f"--device {option.device}", code=Exit.USAGE)
    return NoGpu(why=lambda: str(why_no_gpu()), code=Exit.INFRASTRUCTURE)


def _refuse_additions(option: Any, no_gpu: NoGpu | None, suites: Iterable[str]) -> None:
    others = [name for name in suites if name != DEFAULT]
    for name in ("regimes", "variants", "selfcheck", "peers"):
        if getattr(option, name) and others:
            raise CommandError(f"--{name}: is for suite {DEFAULT} alone; leave it or {others[0]} out", Exit.USAGE)
    if option.selfcheck and (option.timer or option.cache):
        raise CommandError(
            "--selfcheck: holds all timers against each other; leave --timer and --cache out", Exit.USAGE
        )
    if option.peers and Cache.HOT in option.cache:
        raise CommandError("--peers: other projects' timers know no hot operands; leave --cache hot out", Exit.USAGE)
    if option.regimes and (option.shape or option.shapes or option.peers):
        raise CommandError("--regimes: has problems of its own; leave --shape, --shapes and --peers out", Exit.USAGE)
    # variants: with --device cpu they stand there as what needs a GPU, like every kernel for one
    for name in ("selfcheck", "peers", "lock_clocks", *(() if option.device else ("variants",))):
        if getattr(option, name) and no_gpu is not None:
            raise no_gpu.refuses(f"--{name.replace('_', '-')}")


def _number(option: str, text: str | None, default: float, least: float, most: float) -> float:
    if text is None:
        return default
    whole = isinstance(default, int)
    try:
        value: float = int(text) if whole else float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        kind = "a whole number" if whole else "a number"
        raise CommandError(f"{option}: found {text!r}, wanted {kind} from {least:g} to {most:g}", Exit.USAGE)
    return value


def typed_command() -> tuple[str, ...]:
    """The command as it was typed: a session of nox says its own."""
    said = os.environ.get("SGEMV_COMMAND")
    return tuple(shlex.split(said)) if said else ("python", "-m", "pytest", *sys.argv[1:])
