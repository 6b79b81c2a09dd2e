"""suites.every_gpu: `--device all` is a run a GPU, whatever becomes of one of them; a UUID names one GPU."""

from __future__ import annotations

import signal
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.children import Ended
from harness.device.clock_lock import note_path
from harness.device.gpus import Gpu, bare
from harness.device.turn import lock_of
from harness.errors import Exit
from harness.model import Run
from harness.reproduce import device as reproduced
from harness.reproduce.request import request_of
from harness.store import read_run
from suites import every_gpu
from tests.built import library
from tests.running_suites import ROOT, command, environment
from tests.sample_run import gpu_run

GPUS = tuple(Gpu(name="NVIDIA H200", uuid=f"GPU-{digit * 8}-0b3d-4e6f-9a1b-2c3d4e5f6071") for digit in "123")
FIRST, SECOND, THIRD = (gpu.uuid for gpu in GPUS)
SHORT = ("--kernel", "torch.matmul", "--shape", "8x8", "--timer", "async", "--cache", "hot", "--trials", "1")


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("nox -s bench -- --device all --quick", f"nox -s bench -- --device={FIRST} --quick"),
        ("nox -s bench -- --quick --device=all", f"nox -s bench -- --quick --device={FIRST}"),
        ("suites --device cpu --device all", f"suites --device cpu --device={FIRST}"),
        ("suites -k all --ref=all", f"suites -k all --ref=all --device={FIRST}"),  # asked for by PYTEST_ADDOPTS
    ],
)
def test_a_command_line_that_asks_for_one(typed: str, found: str) -> None:
    """What is recorded repeats this very run."""
    assert every_gpu.on(GPUS[0], typed.split()) == found.split()


class Host:
    """Benches that end as told, in place of processes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, *, there: int = 3) -> None:
        self.outcomes: dict[str, int | type[BaseException]] = {}
        self.asked: list[str] = []
        self.path_file = folder / "paths"
        self.wanted: dict[str, object] = {"path_file": str(self.path_file)}
        monkeypatch.setattr(every_gpu, "gpus", lambda: GPUS[:there])
        monkeypatch.setattr(every_gpu, "show", self._show)
        monkeypatch.setenv("SGEMV_COMMAND", "nox -s bench -- --device all")
        monkeypatch.setattr(every_gpu, "end_with_parent", lambda by: self.asked.append(by.name))

    def _show(self, words: Sequence[str], _folder: Path, variables: Mapping[str, str]) -> Ended:
        *options, last = words
        (gpu,) = (word.removeprefix("--device=") for word in options if word.startswith("--device="))
        assert variables["SGEMV_COMMAND"] == f"nox -s bench -- --device={gpu}"
        self.asked.append(gpu)
        outcome = self.outcomes.get(gpu, 0)
        if not isinstance(outcome, int):
            raise outcome
        if outcome in (Exit.FINE, Exit.KERNEL):
            Path(last.removeprefix("--path-file=")).write_text(f"/runs/{gpu}\n")
        return Ended(code=outcome)

    def __call__(self, **options: object) -> int:
        """The code of all."""
        asked = SimpleNamespace(args=("suites", "--device", "all", "-q"), dir=ROOT)
        config = SimpleNamespace(option=SimpleNamespace(**{**self.wanted, **options}), invocation_params=asked)
        return every_gpu.measure(config)  # type: ignore[arg-type]

    @property
    def runs(self) -> list[str]:
        """As nox reads them."""
        return self.path_file.read_text().splitlines() if self.path_file.exists() else []


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    """Of three GPUs."""
    return Host(monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("outcomes", "measured", "runs", "code"),
    [
        ({}, [FIRST, SECOND, THIRD], [FIRST, SECOND, THIRD], 0),
        ({FIRST: 6}, [FIRST, SECOND, THIRD], [SECOND, THIRD], 6),
        ({SECOND: 5, THIRD: -9}, [FIRST, SECOND, THIRD], [FIRST, SECOND], 6),  # the third by SIGKILL
        ({SECOND: 2}, [FIRST, SECOND, THIRD], [FIRST, THIRD], 2),  # as a clock that it has not
        ({FIRST: 2}, [FIRST], [], 2),
        ({SECOND: 130}, [FIRST, SECOND], [FIRST], 130),
        ({SECOND: KeyboardInterrupt}, [FIRST, SECOND], [FIRST], 130),
    ],
)
def test_a_run_a_gpu(
    host: Host, outcomes: dict[str, int | type[BaseException]], measured: list[str], runs: list[str], code: int
) -> None:
    """The highest code of all; what fails on one stops no other but for Ctrl-C, and wrong usage is wrong once."""
    host.outcomes = outcomes
    assert host() == code
    assert host.asked == ["SIGTERM", *measured]
    assert host.runs == [f"/runs/{gpu}" for gpu in runs]


def test_one_name_for_several_runs(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """The last one would have it: code 2 and one line. With one GPU it is that one's."""
    assert host(ref="baseline") == 2
    assert host(benchmark_json="x.json") == 2
    line, other = capsys.readouterr().err.splitlines()
    assert line == "--ref: names one, and --device all measures 3 GPUs here; leave one of them out"
    assert other.startswith("--benchmark-json: ")
    assert host.asked == ["SIGTERM"] * 2


def test_one_gpu_is_as_any_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A ref means its run."""
    host = Host(monkeypatch, tmp_path, there=1)
    assert host(ref="baseline") == 0
    assert host.runs == [f"/runs/{FIRST}"]


def test_where_the_runs_are(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """Without nox, which shows them, lines that can be typed."""
    host.wanted = {"path_file": None}
    assert host() == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"GPU 1 of 3: {FIRST} (NVIDIA H200)"
    assert said[-1].endswith(f" -m reports compare /runs/{FIRST} /runs/{SECOND} /runs/{THIRD}")


def of_uuid(uuid: str) -> Run:
    """One whose GPU was asked for by its UUID."""
    run = gpu_run(shapes=((64, 64),), kernels={}, trials=1)
    words = ("nox", "-s", "bench", "--", f"--device={uuid}", "--lock-clocks", "1410")
    return replace(run, options=replace(run.options, command=words, uuid=uuid, device="cuda:0", lock_clocks_mhz=1410))


@pytest.mark.parametrize(("there", "chosen"), [(GPUS, SECOND), (GPUS[:1], "cuda:0")])
def test_a_run_of_one_of_them_is_reproduced(
    monkeypatch: pytest.MonkeyPatch, there: tuple[Gpu, ...], chosen: str
) -> None:
    """On the very GPU where it is here, else on what torch calls the first; its clock is locked again."""
    run, shown = of_uuid(SECOND), []
    usable = SimpleNamespace(word=reproduced.Usability.USABLE)
    monkeypatch.setattr(reproduced, "gpu_status", lambda *_: usable)
    monkeypatch.setattr(reproduced, "every_gpu", lambda _: there)
    monkeypatch.setattr(reproduced, "_gpu_facts", lambda *asked: shown.append(asked) or run.environment)
    assert reproduced.check_device(run) == chosen
    assert shown == [("cuda:0", {"CUDA_VISIBLE_DEVICES": SECOND} if chosen == SECOND else {})]
    found = request_of(run, Path()).on(chosen)
    assert found.arguments == ("suites", "--lock-clocks=1410", f"--device={chosen}")
    assert found.left_out == ()


class FakeHost:
    """Two GPUs that no other test has, and what NVML is asked to change of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uuids = [f"GPU-{uuid.uuid4()}" for _ in range(2)]
        self.variables = environment(FAKE_HOST=str(folder), FAKE_UUIDS=",".join(self.uuids))

    def bench(self, *options: object) -> subprocess.Popen[str]:
        """One that is started with these options."""
        library("cpu")
        words = command("-p", "tests.fake_host", "-q", "--device", "all", *SHORT, *options)
        where = [*words, "--store", str(self.folder / "store"), "--path-file", str(self.folder / "paths")]
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen(where, cwd=ROOT, env=self.variables, text=True, **both)  # type: ignore[call-overload,no-any-return]

    @property
    def calls(self) -> list[str]:
        """Changes of clocks, in order."""
        return (self.folder / "calls").read_text().splitlines()

    @property
    def runs(self) -> list[Run]:
        """In the order of measuring."""
        return [read_run(Path(line)) for line in (self.folder / "paths").read_text().splitlines()]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[FakeHost]:
    """Nothing of them stays in /tmp."""
    host = FakeHost(tmp_path)
    yield host
    for each in map(bare, host.uuids):
        note_path(each).unlink(missing_ok=True)
        Path(lock_of(each).lock_file).unlink(missing_ok=True)


def test_two_gpus_end_to_end(two: FakeHost) -> None:
    """Each has its run, of its UUID, with its clock locked while it was measured and not a moment longer."""
    bench = two.bench("--lock-clocks", "1410", "--max-time", "0.005")
    out, _ = bench.communicate(timeout=300)
    assert bench.returncode == 0, out
    first, second = two.uuids
    assert two.calls == [f"{each} {done}" for each in two.uuids for done in ("locked at 1410", "unlocked")]
    assert [run.environment.get("gpu_uuid") for run in two.runs] == two.uuids
    for run, each in zip(two.runs, two.uuids, strict=True):
        assert (run.options.uuid, run.options.device, run.options.lock_clocks_mhz) == (each, "cuda:0", 1410)
        assert run.environment.get("locked_sm_clock_mhz") == 1410
        assert any("locked at 1410 MHz" in line for line in run.warnings)
        assert f"--device={each}" in run.options.command
        assert "all" not in run.options.command
    assert f"GPU 1 of 2: {first} (NVIDIA H200)" in out
    assert f"GPU 2 of 2: {second} (NVIDIA H200)" in out


def test_sigterm_ends_it_all(two: FakeHost) -> None:
    """Code 130: what the first GPU had measured is kept, its clock is let go, and the second is not begun."""
    many = [word for k in range(16, 64) for word in ("--shape", f"8x{k}")]
    bench = two.bench("--lock-clocks", "1410", *many)
    assert bench.stdout is not None
    assert any("  1/99 " in line for line in bench.stdout)
    bench.send_signal(signal.SIGTERM)
    out, _ = bench.communicate(timeout=120)
    assert bench.returncode == 130, out
    assert two.calls == [f"{two.uuids[0]} locked at 1410", f"{two.uuids[0]} unlocked"]
    (run,) = two.runs
    assert run.partial
    assert "GPU 2 of 2" not in out
