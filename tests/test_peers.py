"""harness.timing.peers: what is handed to Triton's do_bench and to NVBench, and what is made of their answers.

Both are played by modules put in their place, and the few calls of torch.cuda by others: no GPU and neither package is
needed. What the fakes check is how the real ones are called.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from harness.model import Cache, Case, Problem, Role, Word
from harness.timing import NotMeasurable, peers, timers
from harness.trial import Worker
from tests import planted_kernels

DEVICE = "cuda:3"
FAKE_ADDRESS = 0xBEEF


class Cuda:
    """In place of torch.cuda: which device and stream are current, and how often all was waited for."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.device: object = None
        self.stream: object = None
        self.waits = 0
        patch.setattr(torch.cuda, "device", lambda device: self._within("device", device))
        patch.setattr(torch.cuda, "stream", lambda stream: self._within("stream", stream))
        patch.setattr(torch.cuda, "ExternalStream", lambda address, device: (address, device))
        patch.setattr(torch.cuda, "synchronize", self._wait)

    def _wait(self) -> None:
        self.waits += 1

    @contextlib.contextmanager
    def _within(self, name: str, value: object) -> Iterator[None]:
        before = getattr(self, name)
        setattr(self, name, value)
        try:
            yield
        finally:
            setattr(self, name, before)


@pytest.fixture(autouse=True)
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    """Of every test here."""
    return Cuda(monkeypatch)


class Launches:
    """Three launches that note their number, and what was current."""

    def __init__(self, cuda: Cuda) -> None:
        self.used: list[int] = []
        self.on: set[tuple[object, object]] = set()
        self._cuda = cuda
        self.all = [self._launch(i) for i in range(3)]

    def _launch(self, number: int) -> Callable[[], None]:
        def launch() -> None:
            self.used.append(number)
            self.on.add((self._cuda.device, self._cuda.stream))

        return launch


@pytest.fixture
def launches(cuda: Cuda) -> Launches:
    """Of one test."""
    return Launches(cuda)


def module(monkeypatch: pytest.MonkeyPatch, name: str, **content: object) -> None:
    """A module of this name that holds this, importable for a test."""
    made = ModuleType(name)
    vars(made).update(content)
    monkeypatch.setitem(sys.modules, name, made)


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A do_bench that calls five times and answers in ms; the options of its calls."""
    called: list[dict[str, Any]] = []

    def do_bench(fn: Callable[[], None], **options: Any) -> list[float]:
        called.append(options)
        for _ in range(5):
            fn()
        return [0.25, 0.125, 0.5]

    module(monkeypatch, "triton")
    module(monkeypatch, "triton.testing", do_bench=do_bench)
    return called


def test_do_bench_in_ns(triton: list[dict[str, Any]], launches: Launches) -> None:
    """All of its samples, in its order; at its defaults, but that it is to tell every sample."""
    timing = peers.measure_do_bench(launches.all, Cache.COLD, DEVICE, 0.1)
    assert timing.samples_ns == (250_000.0, 125_000.0, 500_000.0)
    assert (timing.launches_per_sample, timing.kernels_per_launch, timing.stopped) == (1, None, "count")
    fields = ("sample_times_unix_s", "sample_clocks_mhz")
    assert timing.unknown == dict.fromkeys(fields, "the timer is not ours")
    assert triton == [{"return_mode": "all"}]


@pytest.mark.usefixtures("triton")
def test_do_bench_uses_each_launch_in_turn(launches: Launches) -> None:
    """On the device that is measured, on the stream that was current."""
    peers.measure_do_bench(launches.all, Cache.COLD, DEVICE, 0.1)
    assert launches.used == [0, 1, 2, 0, 1]
    assert launches.on == {(DEVICE, None)}


@pytest.mark.usefixtures("triton")
def test_what_was_timed_can_be_run_again(launches: Launches, cuda: Cuda) -> None:
    """Every launch once, waited for: the recheck looks at every result."""
    timing = peers.measure_do_bench(launches.all, Cache.COLD, DEVICE, 0.1)
    launches.used.clear()
    timing.rerun()
    assert (launches.used, cuda.waits) == ([0, 1, 2], 1)


class NvBench:
    """cuda.bench: runs all that was registered, and writes a file that `from_json` reads.

    As the real one, it takes no other benchmark once it has run, and runs no second time.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.registered: list[NvBenchmark] = []
        self.arguments: list[list[str]] = []
        self.exec_options: list[dict[str, Any]] = []
        self.samples: list[float] | None = [2e-6, 1.5e-6, 2.5e-6]
        self.skip_reason: str | None = None
        result = SimpleNamespace(from_json=_from_json)
        module(patch, "cuda")
        module(patch, "cuda.bench", register=self._register, run_all_benchmarks=self._run_all)
        module(patch, "cuda.bench.results", BenchmarkResult=result)

    def _register(self, function: Callable[[Any], None]) -> NvBenchmark:
        assert not self.arguments, "registered after the first run"
        self.registered.append(NvBenchmark(function))
        return self.registered[-1]

    def _run_all(self, arguments: Sequence[str]) -> None:
        if self.arguments:
            raise RuntimeError("Benchmarks were already executed")
        self.arguments.append(list(arguments))
        options = dict(zip(arguments[::2], arguments[1::2], strict=True))
        self._device = int(options["-d"])
        written = {}
        for benchmark in self.registered:
            benchmark.function(self)
            state = {"is_skipped": self.skip_reason is not None, "skip_reason": self.skip_reason}
            written[benchmark.name] = [{**state, "samples": self.samples}]
        Path(options["--jsonbin"]).write_text(json.dumps(written))

    def get_stream(self) -> Any:
        """Of a state: NVBench's own."""
        return SimpleNamespace(addressof=lambda: FAKE_ADDRESS)

    def get_device(self) -> int:
        """Of a state: the number that it was started with."""
        return self._device

    def exec(self, launcher: Callable[[Any], None], **options: Any) -> None:
        """Of a state: calls what it times four times."""
        self.exec_options.append(options)
        for _ in range(4):
            launcher(SimpleNamespace(get_stream=self.get_stream))


class NvBenchmark:
    """What was registered; a name can be given once it is."""

    def __init__(self, function: Callable[[Any], None]) -> None:
        self.function = function
        self.name = function.__name__

    def set_name(self, name: str) -> NvBenchmark:
        """In place of that of the function."""
        self.name = name
        return self


def _from_json(path: Path) -> dict[str, list[SimpleNamespace]]:
    return {
        name: [SimpleNamespace(**state) for state in states] for name, states in json.loads(path.read_text()).items()
    }


@pytest.fixture
def nvbench(monkeypatch: pytest.MonkeyPatch) -> NvBench:
    """Installed, for one test."""
    return NvBench(monkeypatch)


def test_nvbench_in_ns(nvbench: NvBench, launches: Launches) -> None:
    """All of its samples, in its order; on the device that is measured and no other; not in batches, which are hot."""
    timing = peers.measure_nvbench(launches.all, Cache.COLD, DEVICE, 0.1)
    assert timing.samples_ns == pytest.approx((2000.0, 1500.0, 2500.0))
    assert (timing.launches_per_sample, timing.kernels_per_launch, timing.stopped) == (1, None, "count")
    (arguments,) = nvbench.arguments
    assert arguments[:3] == ["-d", "3", "--jsonbin"]
    assert nvbench.exec_options == [{"batched": False}]


@pytest.mark.parametrize("device", ["cuda:0", "cuda"])
def test_nvbench_of_the_first_gpu(nvbench: NvBench, launches: Launches, device: str) -> None:
    """Which is also the one of no number."""
    peers.measure_nvbench(launches.all, Cache.COLD, device, 0.1)
    assert nvbench.arguments[0][:2] == ["-d", "0"]


@pytest.mark.usefixtures("nvbench")
def test_nvbench_uses_each_launch_in_turn(launches: Launches) -> None:
    """On NVBench's own stream: on another, its events would enclose nothing."""
    peers.measure_nvbench(launches.all, Cache.COLD, DEVICE, 0.1)
    assert launches.used == [0, 1, 2, 0]
    assert launches.on == {(None, (FAKE_ADDRESS, 3))}


@pytest.mark.parametrize("once", [True, False])
def test_a_timer_of_one_case_a_process_uses_up_its_worker(once: bool) -> None:
    """NVBench runs once in a process: the next case gets a fresh one."""
    assert [timer.name for timer in timers().values() if timer.one_case_a_process] == ["nvbench"]
    worker = Worker(planted_kernels.kernels(), "cpu", lambda _: None, 1.0)
    worker._timers = {"mine": replace(timers()["sync"], name="mine", one_case_a_process=once)}
    case = Case(kernel="right", role=Role.GEMV, problem=Problem(m=8, k=8), timer="mine", cache=Cache.HOT)
    assert worker.measure(case, 0, 0.002).verdict.word is Word.PASSED
    assert worker.still_sound() == ("mine takes one case a process" if once else None)


@pytest.mark.usefixtures("nvbench")
def test_what_nvbench_timed_can_be_run_again(launches: Launches, cuda: Cuda) -> None:
    """After its stream was waited for."""
    timing = peers.measure_nvbench(launches.all, Cache.COLD, DEVICE, 0.1)
    assert cuda.waits == 1
    launches.used.clear()
    timing.rerun()
    assert (launches.used, cuda.waits) == ([0, 1, 2], 2)


def test_nvbench_leaves_no_file(
    nvbench: NvBench, launches: Launches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its JSON is read and gone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    peers.measure_nvbench(launches.all, Cache.COLD, DEVICE, 0.1)
    assert nvbench.arguments[0][-1].startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("samples", "skip_reason", "words"),
    [
        ([1e-6], "too noisy", "too noisy"),
        ([], None, "it kept no samples"),
        (None, None, "it kept no samples"),
    ],
)
def test_nvbench_that_measured_nothing(
    nvbench: NvBench, launches: Launches, samples: list[float] | None, skip_reason: str | None, words: str
) -> None:
    """Its own reason where it has one."""
    nvbench.samples, nvbench.skip_reason = samples, skip_reason
    with pytest.raises(NotMeasurable) as caught:
        peers.measure_nvbench(launches.all, Cache.COLD, DEVICE, 0.1)
    assert str(caught.value) == f"NVBench measured nothing: {words}"


@pytest.mark.parametrize(
    ("missing", "measure", "package"),
    [
        ("triton.testing", peers.measure_do_bench, "triton"),
        ("cuda.bench", peers.measure_nvbench, "cuda-bench"),
        ("cuda.bench.results", peers.measure_nvbench, "cuda-bench"),
    ],
)
def test_a_peer_that_is_not_installed(
    missing: str, measure: Any, package: str, launches: Launches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line names what to install, as pip knows it; nothing was launched."""
    NvBench(monkeypatch)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(NotMeasurable) as caught:
        measure(launches.all, Cache.COLD, DEVICE, 0.1)
    assert str(caught.value).startswith(f"{package} is not installed or does not load: ")
    assert missing in str(caught.value)
    assert launches.used == []


def test_peers_are_optional() -> None:
    """Neither is imported by looking for timers."""
    assert {"triton.testing", "cuda.bench"} & set(sys.modules) == set()
