"""harness.soundness, and what a worker and a pool do by it: what one kernel leaves behind costs no other a case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from harness import trial
from harness.model import TrialResult, Verdict, Word
from harness.pool import Pool
from harness.soundness import changed, device_fault, settings
from harness.trial import Worker
from tests.small_pool import KERNELS, case, spec


@pytest.fixture
def torch_as_it_was() -> Iterator[None]:
    """Whatever a test sets."""
    threads = torch.get_num_threads()
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("torch_as_it_was")
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("default dtype", lambda: torch.set_default_dtype(torch.float16)),
        ("default device", lambda: torch.set_default_device("meta")),
        ("number of threads", lambda: torch.set_num_threads(torch.get_num_threads() + 1)),
        ("gradients", lambda: torch.set_grad_enabled(False)),
        ("deterministic algorithms", lambda: torch.use_deterministic_algorithms(True)),
    ],
)
def test_what_changes_every_measurement_is_seen(name: str, change: Callable[[], None]) -> None:
    """By a worker, which is then of no more use; in words."""
    worker = Worker(KERNELS, "cpu", lambda _: None, 1.0)
    before = settings("cpu")
    assert worker.still_sound() is None
    assert changed(before, settings("cpu")) is None
    change()
    assert worker.still_sound() == changed(before, settings("cpu")) == f"a kernel changed torch's {name}"


def test_a_cpu_has_no_fault() -> None:
    """Nor is CUDA asked."""
    assert device_fault("cpu") is None


@pytest.mark.parametrize(("left_gib", "reason"), [(1, None), (5, "4.0 GiB cannot be had again")])
def test_memory_that_cannot_be_had_again_ends_a_worker(
    monkeypatch: pytest.MonkeyPatch, left_gib: int, reason: str | None
) -> None:
    """Of 8 GiB it may hold 2 between cases, beside the 1 with which it began; what it can give back it does."""
    held, released = [2**30], []
    monkeypatch.setattr(trial, "memory_bytes", lambda _: 2**33)
    monkeypatch.setattr(trial, "held_bytes", lambda _: held[0])
    worker = Worker(KERNELS, "cpu", lambda _: None, 0.25)

    def release(device: str) -> None:
        released.append(device)
        held[0] = left_gib * 2**30

    monkeypatch.setattr(trial, "release_memory", release)
    assert worker.still_sound() is None
    assert released == []
    held[0] = 6 * 2**30
    assert worker.still_sound() == reason
    assert released == ["cpu"]


class Leaky:
    """A worker that has no room for operands, unless it is fresh."""

    def __init__(self, made: list[Leaky], *, fits: bool) -> None:
        self.fits = fits
        made.append(self)

    def ask(self, _request: dict[str, object], _on_poll: Callable[[str], None]) -> dict[str, object]:
        """The result of a case."""
        reason = None if self.fits else "out of memory: its operands alone take 9.0 GiB"
        word = Word.PASSED if reason is None else Word.NOT_MEASURED
        result = TrialResult(trial=0, verdict=Verdict(word=word, reason=reason))
        return {"result": result.to_dict(), "lost": None}

    def stop(self) -> None:
        """Nothing runs."""


@pytest.mark.parametrize("fits", [True, False])
def test_memory_that_a_kernel_holds_costs_no_other_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, fits: bool
) -> None:
    """A fresh worker is asked, once a problem where that does not help either."""
    made: list[Leaky] = []
    pool = Pool(spec(tmp_path, trials=0))
    monkeypatch.setattr("harness.pool.WorkerProcess", lambda *_: Leaky(made, fits=fits))
    pool._workers = [Leaky([], fits=False)]  # type: ignore[list-item]
    words = [pool.measure(case("right"), 0, 0.002, lambda: None).verdict.word for _ in range(2)]
    assert words == [Word.PASSED if fits else Word.NOT_MEASURED] * 2
    assert len(made) == 1
