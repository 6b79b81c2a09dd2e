"""harness.timing.checks and the order of measuring: what the selfcheck's timers are, and when a bench comes to them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness.answers import Unknown
from harness.cases import FLOOR_PROBLEM, Grid, cases_for, stage_of
from harness.device import GpuStatus, Usability
from harness.errors import CommandError, Exit
from harness.model import Cache, Case, Kernel, Measurement, Problem, Role, TrialResult, Verdict, Word
from harness.selfcheck import CHECKS, selfcheck
from harness.timing import HEADLINE, Crew, Measure, Purpose, Timer, checks, event, timers
from kernels import registry
from suites import device, options
from suites.options import Selection, is_installed, select

COLD, HOT = Cache.COLD, Cache.HOT
EVERYBODY = set(Role)
CHECKED = {
    "graph-unwatched": (Crew.EVERY, EVERYBODY, 3, False),
    "graph-double": (Crew.EVERY, EVERYBODY, 3, True),
    "event-pair": (Crew.EVERY, {Role.FLOOR}, 3, True),
    "event-read": (Crew.EVERY, EVERYBODY, 3, True),
    "event-memset": (Crew.EVERY, EVERYBODY, 3, True),
    "graph-alone": (Crew.LAST_ONE, EVERYBODY, 1, True),
    "graph-two-streams": (Crew.FRESH, EVERYBODY, 3, True),
}
"""Crew, roles, trials of nine wanted, and whether the device is read meanwhile."""

OF_CHECKS = {name: timer for name, timer in timers().items() if timer.purpose is Purpose.CHECK}
OF_PEERS = [name for name, timer in timers().items() if timer.purpose is Purpose.PEER]


def test_the_timers_of_the_selfcheck() -> None:
    """Each differs in one thing from a timer of the bench; all are on a GPU and cold, as what they are held against."""
    assert {n: (t.crew, set(t.roles), t.trials(9), t.watched) for n, t in OF_CHECKS.items()} == CHECKED
    for timer in OF_CHECKS.values():
        assert (timer.devices, timer.caches, timer.clock) == (("cuda",), (COLD,), "device")
        assert timer.summary.startswith(("as graph,", "as event,", "as event-read,"))


def test_a_timer_outside_the_selfcheck_is_always_watched() -> None:
    """Only what asks what reading the device costs does without it."""
    assert [name for name, timer in timers().items() if not timer.watched] == ["graph-unwatched"]


def timer_of(most_trials: int | None) -> Timer:
    return Timer(
        name="t", summary="", clock="host", devices=("cpu",), measure=timers()["async"].measure,
        most_trials=most_trials,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("most_trials", "by_wanted"),
    [(None, {1: 1, 2: 2, 5: 5, 9: 9}), (3, {1: 1, 2: 2, 3: 3, 5: 3, 9: 3}), (1, {1: 1, 5: 1})],
)
def test_trials_of_a_timer(most_trials: int | None, by_wanted: dict[int, int]) -> None:
    """As many as wanted, but no more than are enough for it."""
    assert {wanted: timer_of(most_trials).trials(wanted) for wanted in by_wanted} == by_wanted


def test_the_figures_of_the_page_have_every_trial() -> None:
    """Their intervals need them; other projects' timers, which take seconds, have one."""
    by_purpose = {purpose: [t for t in timers().values() if t.purpose is purpose] for purpose in Purpose}
    fewer = {timer.name: timer.trials(9) for timer in by_purpose[Purpose.BENCH] if timer.trials(9) < 9}
    assert fewer == {"profiler": 3}
    assert {timer.trials(9) for timer in by_purpose[Purpose.PEER]} == {1}


def test_the_first_trial_s_worker_is_one() -> None:
    """A second trial would not be its."""
    assert {timer.trials(9) for timer in timers().values() if timer.crew is Crew.LAST_ONE} == {1}


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options are read on a machine with a GPU; nothing touches it."""
    usable = GpuStatus(word=Usability.USABLE)
    monkeypatch.setattr(device, "gpu_status", lambda *_: usable)
    monkeypatch.setattr(device, "Nvml", SimpleNamespace(open=lambda: Unknown(reason="not asked")))
    monkeypatch.setattr(device, "installed_torch", lambda: Unknown(reason="not asked"))


def selection(**chosen: object) -> Selection:
    """What `select` makes of these options, the others being as if they were left out."""
    names = ("ref", "trials", "max_time", "store", "path_file", "device", "layout", "row_stride", "first_element")
    left_out = dict.fromkeys((*names, "lock_clocks"))
    flags = dict.fromkeys(("quick", "selfcheck", "peers", "variants", "regimes"), False)
    lists = {name: [] for name in ("suite", "kernel", "shape", "shapes", "dtype", "timer", "cache", "file_or_dir")}
    option = SimpleNamespace(**{**left_out, **flags, **lists, **chosen})
    return select(SimpleNamespace(option=option), registry.kernels())  # type: ignore[arg-type]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Modules of other projects that are there, to be taken away."""
    modules = {"triton", "cuda.bench"}
    monkeypatch.setattr(options, "is_installed", modules.__contains__)
    return modules


BENCHED = ("graph", "event", "async", "sync", "profiler")


@pytest.mark.parametrize("chosen", [{}, {"quick": True}, {"timer": ["event"]}, {"quick": True, "timer": ["event"]}])
def test_a_bench_never_measures_what_only_checks(chosen: dict[str, object]) -> None:
    """Its timers are those of the bench, however they were chosen; another project's are not among them either."""
    wanted = ("event",) if "timer" in chosen else ("graph",) if "quick" in chosen else BENCHED
    found = selection(**chosen)
    assert found.timers == wanted
    assert not found.options.selfcheck
    assert {case.timer for case in found.cases()["sgemv"]} == set(wanted)


def test_a_selfcheck_measures_what_it_holds_against_each_other() -> None:
    """Every timer of the bench and every one of the selfcheck, also quickly; no peers."""
    for chosen in ({}, {"quick": True}):
        found = selection(selfcheck=True, **chosen)
        assert set(found.timers) == {*BENCHED, *OF_CHECKS}
        assert found.caches == (COLD, HOT)
        assert found.options.selfcheck


def test_every_check_finds_its_timers() -> None:
    """No check of a whole selfcheck lacks a measurement: only samples are missing from these."""
    passed = Verdict(word=Word.PASSED)
    measurements = [
        Measurement(case=case, trials=(TrialResult(trial=0, verdict=passed, samples_ns=(1000.0,)),))
        for case in selection(selfcheck=True, shape=["8x8"]).cases()["sgemv"]
    ]
    found = selfcheck(measurements)
    assert {check.name for check in found} == {kind.name for kind in CHECKS}
    assert [check for check in found if check.reason is not None] == []


@pytest.mark.usefixtures("installed")
def test_peers_are_measured_cold_on_two_problems() -> None:
    """They know no other cache and take seconds a case."""
    found = selection(peers=True)
    assert (found.timers, found.notes) == ((*BENCHED, *OF_PEERS), ())
    assert (found.caches, [problem.label for problem in found.problems or ()]) == ((COLD,), ["1024x128", "4096x4096"])
    assert not found.options.selfcheck
    assert [problem.label for problem in selection(peers=True, shape=["8x8"]).problems or ()] == ["8x8"]


def test_a_peer_that_is_not_installed_is_left_out(installed: set[str]) -> None:
    """It is no crashed kernel. A line says what would bring it; without any there is nothing to be done."""
    installed.remove("cuda.bench")
    found = selection(peers=True)
    assert found.timers == (*BENCHED, "do_bench")
    assert found.notes == ("nvbench is not measured: pip install cuda-bench",)
    installed.clear()
    with pytest.raises(CommandError, match=r"^--peers: none is installed: pip install triton cuda-bench$") as caught:
        selection(peers=True)
    assert caught.value.code is Exit.INFRASTRUCTURE


@pytest.mark.usefixtures("installed")
def test_peers_know_no_hot_operands() -> None:
    """Else none of them would be measured, and nobody told."""
    with pytest.raises(CommandError, match=r"^--peers: other projects' timers know no hot operands") as caught:
        selection(peers=True, cache=["hot"])
    assert caught.value.code is Exit.USAGE


def test_what_is_installed_is_found_without_importing_it() -> None:
    """Also where the package around a module is missing."""
    assert is_installed("rich.table")
    assert not is_installed("no_such_package")
    assert not is_installed("no_such_package.module")


@pytest.mark.usefixtures("installed")
def test_one_timer_beside_the_peers() -> None:
    """--timer chooses among those of the bench alone."""
    found = selection(peers=True, timer=["async"])
    assert found.timers == ("async", *OF_PEERS)


ROLES = {"mine": Role.GEMV, "empty": Role.FLOOR, "read": Role.LIMIT}
KERNELS = [
    Kernel(name=name, role=role, summary="", bind=lambda _: lambda: None, devices=("cuda",))
    for name, role in ROLES.items()
]
PROBLEMS = (Problem(m=64, k=64), Problem(m=8, k=8))


def cases(*names: str, caches: tuple[Cache, ...] = (COLD, HOT), device_type: str = "cuda") -> list[Case]:
    return cases_for(KERNELS, [Grid(problems=PROBLEMS, timers=names or None, caches=caches)], device_type)


def told(found: list[Case]) -> list[tuple[str, str, str, str]]:
    return [(case.problem.label, case.timer, str(case.cache), case.kernel) for case in found]


def test_cases_by_crew_problem_cache_timer_and_kernel() -> None:
    """Written out: those that share workers first, in which the empty kernel comes first, on its own problem."""
    found = cases("graph-alone", "event-pair", "graph", "async")
    every = [
        ("1x1", "graph", "cold", "empty"),
        ("1x1", "event-pair", "cold", "empty"),
        ("1x1", "async", "cold", "empty"),
        ("1x1", "graph", "hot", "empty"),
        ("1x1", "async", "hot", "empty"),
        *(
            (problem, timer, cache, kernel)
            for problem in ("64x64", "8x8")
            for cache in ("cold", "hot")
            for timer in ("graph", "async")
            for kernel in ("mine", "read")
        ),
    ]
    alone = [
        ("1x1", "graph-alone", "cold", "empty"),
        *((problem, "graph-alone", "cold", kernel) for problem in ("64x64", "8x8") for kernel in ("mine", "read")),
    ]
    assert told(found) == [*every, *alone]


def test_a_check_follows_what_it_is_held_against() -> None:
    """Clocks drift: nothing of another family lies between them."""
    found = [case.timer for case in cases() if (case.problem.label, case.kernel, case.cache) == ("8x8", "mine", COLD)]
    graphs, events = ["graph", "graph-unwatched", "graph-double"], ["event", "event-read", "event-memset"]
    assert found[:8] == [*graphs, *events, "async", "sync"]
    floor = [case.timer for case in cases() if (case.kernel, case.cache) == ("empty", COLD)]
    assert floor[:7] == [*graphs, "event", "event-pair", "event-read", "event-memset"]


def test_the_crews_follow_each_other() -> None:
    """A worker's death is no trouble, a worker that was disturbed would be: those come last, each by itself."""
    stages = [stage_of(timers()[case.timer]) for case in cases()]
    runs = [stage for i, stage in enumerate(stages) if i == 0 or stage != stages[i - 1]]
    assert len(set(runs)) == len(runs), "a crew is gone back to"
    fresh = [(Crew.FRESH, name) for name in ("profiler", "graph-two-streams", "energy", "do_bench", "nvbench")]
    assert runs == [(Crew.EVERY, ""), (Crew.LAST_ONE, ""), *fresh]


def test_a_timer_with_a_worker_of_its_own_goes_through_all_problems_in_it() -> None:
    """The floor first there too."""
    found = [case for case in cases("profiler", "graph-two-streams") if case.timer == "profiler"]
    assert told(found)[:3] == [
        ("1x1", "profiler", "cold", "empty"),
        ("1x1", "profiler", "hot", "empty"),
        ("64x64", "profiler", "cold", "mine"),
    ]
    assert found == cases("profiler")


def test_roles_are_respected() -> None:
    """A second empty kernel is asked for alone."""
    assert {case.kernel for case in cases("event-pair")} == {"empty"}
    assert {case.problem for case in cases("event-pair")} == {FLOOR_PROBLEM}
    without_floor = [kernel for kernel in KERNELS if kernel.role is not Role.FLOOR]
    assert cases_for(without_floor, [Grid(problems=PROBLEMS, timers=("event-pair",))], "cuda") == []


@pytest.mark.parametrize("name", [*OF_CHECKS, *OF_PEERS])
def test_what_knows_no_hot_operands_is_not_asked_for_them(name: str) -> None:
    """Nor is anything of it measured on a CPU."""
    assert {case.cache for case in cases(name)} == {COLD}
    assert cases(name, caches=(HOT,)) == []
    assert cases(name, device_type="cpu") == []


def test_every_case_is_measured_once() -> None:
    """Ids are unique over all timers, and the headline is there."""
    found = cases()
    assert len({case.id for case in found}) == len(found)
    assert found[0].timer == HEADLINE


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """How the measuring of the timers that are checked is called by those that check them."""
    calls: list[dict[str, object]] = []

    def note(name: str, names: tuple[str, ...]) -> None:
        def measured(launches: object, cache: object, device: str, max_time_s: float, *more: object, **by_name: object):
            given = {"launches": launches, "cache": cache, "device": device, "max_time_s": max_time_s}
            calls.append({"by": name, **given, **dict(zip(names, more, strict=True)), **by_name})
            return calls[-1]

        monkeypatch.setattr(checks, name, measured)

    note("measure_replays", ())
    note("measure_single", ())
    for flush in ("reading_flush", "writing_flush"):
        monkeypatch.setattr(checks, flush, lambda device, flush=flush: f"{flush} on {device}")
    return calls


@pytest.mark.parametrize(
    ("measure", "wanted"),
    [
        (checks.measure_double, {"by": "measure_replays", "times": 2}),
        (checks.measure_event_read, {"by": "measure_single", "flush": "reading_flush on cuda:1"}),
        (checks.measure_event_memset, {"by": "measure_single", "flush": "writing_flush on cuda:1"}),
    ],
)
def test_each_differs_in_one_thing(
    measure: Measure, wanted: dict[str, object], called: list[dict[str, object]]
) -> None:
    """All else is handed on as it is, and so is the result."""
    launches = [lambda: None]
    result = measure(launches, COLD, "cuda:1", 0.15)
    assert called == [{**wanted, "launches": launches, "cache": COLD, "device": "cuda:1", "max_time_s": 0.15}]
    assert result is called[0]


def test_a_pair_is_two_launches_on_the_same_operands(called: list[dict[str, object]]) -> None:
    """Between the same events; then the next set's two."""
    used: list[str] = []
    checks.measure_event_pair([lambda: used.append("a"), lambda: used.append("b")], COLD, "cuda:1", 0.15)
    (call,) = called
    assert (call["by"], call["flush"]) == ("measure_single", None)
    for launch in call["launches"]:  # type: ignore[attr-defined]
        launch()
    assert used == ["a", "a", "b", "b"]


def test_the_graphs_of_other_workers_are_the_headline_s() -> None:
    """Nothing but the worker, or the reading of the device, is another."""
    assert {timers()[name].measure for name in ("graph-unwatched", "graph-alone")} == {timers()[HEADLINE].measure}


@pytest.mark.parametrize(("flush", "left"), [(event.reading_flush, 1.0), (event.writing_flush, 0.0)])
def test_a_flush_fills_the_cache(flush: Any, left: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four caches are read, or are written with zeros."""
    monkeypatch.setattr(event, "last_level_cache_bytes", lambda _device: 1000)
    made: list[torch.Tensor] = []
    larger_than_cache = event._larger_than_cache

    def keep(device: str) -> torch.Tensor:
        made.append(larger_than_cache(device))
        return made[-1]

    monkeypatch.setattr(event, "_larger_than_cache", keep)
    run = flush("cpu")
    (buffer,) = made
    assert buffer.numel() * buffer.element_size() == 4000
    buffer.fill_(1.0)
    run()
    assert set(buffer.tolist()) == {left}
