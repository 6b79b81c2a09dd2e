"""Plays nights: the real `harness.nightly` on a machine that is told what to be, with a bench that was measured before.

Only the bench is played: what it would have measured is published by `play_bench`, a program of its own, too.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pynvml

from harness.children import Ended
from harness.device import TorchBuild, gpu_status
from harness.device.gpus import Gpu
from harness.device.nvml import Nvml
from harness.nightly.machine import Machine
from harness.nightly.night import Wish
from harness.nightly.session import nightly
from harness.store import Store
from reports.__main__ import main as reports
from tests.fake_nvml import FakeGpu, FakeNvml
from tests.ten_nights import Played, half_done, prepared

NO_DRIVER = FakeNvml(init_error=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)


@dataclass(kw_only=True)
class Host:
    """A machine with a GPU, as it is told to be, whose programs answer as they are told to."""

    root: Path
    """Where it keeps its locks."""
    nvml: FakeNvml = field(default_factory=lambda: FakeNvml([FakeGpu()]))
    build: Ended = field(default_factory=lambda: Ended(code=0, stdout="libsgemv_cuda.so\n"))
    free_bytes: int = 2**40
    pages: Ended | None = None
    """Instead of making them."""
    slept_s: list[float] = field(default_factory=list)
    on_sleep: Callable[[], object] = lambda: None
    """Called while it waits."""

    def machine(self) -> Machine:
        """As the nightly asks it."""
        build = TorchBuild(version="2.11.0+cu130", cuda="13.0")
        return Machine(
            nvml=lambda: Nvml.open(self.nvml),
            status=partial(gpu_status, build=build, environ={}, device_nodes=self.root / "no such folder"),
            ask=self._ask,
            free_bytes=lambda _folder: self.free_bytes,
            sleep=self._sleep,
            now=lambda: sum(self.slept_s),
            gpus=lambda _nvml: tuple(Gpu(name=each.name, uuid=each.uuid) for each in self.nvml.gpus),
            locks=self.root,
        )

    def _sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.on_sleep()

    def _ask(self, command: Sequence[str]) -> Ended:
        """Pages are really made, in this process, which has imported what they need."""
        if command[1:3] == ["-m", "reports"] and self.pages:
            return self.pages
        if command[1:3] == ["-m", "reports"]:
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
                code = reports(command[3:])
            return Ended(code=code, stdout=out.getvalue(), stderr=err.getvalue())
        if "--compilers" in command:
            return Ended(code=0, stdout="nvcc 13.0.88\ng++ 12.2.0\n")
        if command[1:3] == ["-m", "kernels.build"]:
            return self.build
        return self._seen_by_torch(command[-1])

    def _seen_by_torch(self, name: str) -> Ended:
        gpu = next((each for each in self.nvml.gpus if each.uuid == name), self.nvml.gpus[0])
        known = {"gpu_name": gpu.name, "gpu_uuid": gpu.uuid.removeprefix("GPU-"), "gpu_pci_bus_id": gpu.bus_id}
        return Ended(code=0, stdout=json.dumps({"values": {**known, "torch_version": "2.11.0+cu130"}, "unknown": {}}))


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a night left."""

    code: int
    out: str
    summary: str

    @property
    def lines(self) -> list[str]:
        """Without the column that aligns them."""
        return [re.sub(r"^([a-zA-Z]+(?: [a-z]+)?)  +", r"\1: ", line.rstrip()) for line in self.out.splitlines()]


class Nights:
    """A store, and the nights that are played into it; `pages`: really made."""

    def __init__(self, root: Path, store: Store | None = None, *, pages: bool = False) -> None:
        self.root = root
        self.pages = None if pages else Ended(code=0, stdout="a.html\n")
        self.store = store or Store(root / "store")

    def __call__(
        self, *nights: Played, crashes: bool = False, leaves_with: int = 0, host: Host | None = None, **wishes: Any
    ) -> Seen:
        """One night, with a run for each GPU; without any nothing can be measured, and a bench would fail the test."""
        folder = self.root / "prepared"
        made = [(half_done if crashes else prepared)(folder, each) for each in nights]
        words = ["-E", "-S", "-m", "tests.play_bench", *map(str, made), "--leave-with", str(leaves_with)]
        words += ["--into", str(self.store.root)]
        return self.play(
            host or Host(root=self.root, pages=self.pages), [sys.executable, *words] if made else ["false"], **wishes
        )

    def play(self, host: Host, bench: list[str], **wishes: Any) -> Seen:
        """A night with a bench of one's own."""
        pages = self.root / "reports"
        wish = Wish(store=self.store, idle_wait_s=60, pages=pages, summary=pages / "summary.md", **wishes)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = nightly(wish, host.machine(), bench)
        return Seen(code=int(code), out=out.getvalue(), summary=wish.summary.read_text(encoding="utf-8"))
