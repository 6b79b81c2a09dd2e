"""suites.options: which timers a bench measures, alone, with --selfcheck and with --peers, installed or not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.answers import Unknown
from harness.device import GpuStatus, Usability
from harness.errors import CommandError, Exit
from harness.model import Cache, Measurement, TrialResult, Verdict, Word
from harness.selfcheck import CHECKS, selfcheck
from kernels import registry
from suites import device, options
from suites.options import Selection, is_installed, select
from tests.timers_by_purpose import OF_CHECKS, OF_PEERS

COLD, HOT = Cache.COLD, Cache.HOT


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
