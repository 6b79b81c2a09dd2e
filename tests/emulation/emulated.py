"""Kernels of csrc on the CPU: builds them with g++ under AddressSanitizer and UBSan, and runs them in a process."""

from __future__ import annotations

import itertools
import os
import re
import struct
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from harness.model import Launch, Operands
from kernels.declarations import CSRC, Declaration
from kernels.toolchain import BuildError, find_host_compiler
from tests.emulation.placement import Placement, TokenPlacement
from tests.emulation.translate import translate
from tests.needs import need

HERE = Path(__file__).parent
RUNTIME = ("driver.cpp", "memory.cpp")
SCHEDULER = "lanes.cpp"
"""Without sanitizers, since nearly all time goes by there: it has no memory of a kernel's."""
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
FAST = ("-std=c++17", "-O2", "-g1", "-w")
COMPILE = (*SANITIZE, "-std=c++17", "-O1", "-g1", "-w")
"""Without warnings: `kernels.build` gives those."""
FEW = 3
"""Multiprocessors of the device: so few that small problems make a grid-stride loop go round."""
LIMIT_S = 20
"""For one launch."""

_LEFT_OUT = re.compile(r"^// Not on the CPU: (.+)$", re.MULTILINE)
_FAULT = re.compile(
    r"ERROR: AddressSanitizer: ([\w-]+)"
    r"|^((?:READ|WRITE) of size \d+ at ).*\n +#0 .*[ /](\S+)$"
    r"|(\S+: runtime error: .*)"
    r"|^error: (.*)"
    r"|^(in thread .*)",
    re.MULTILINE,
)
_REQUEST = "<64s14q"
_GAP = 0xFF
"""Every byte of what no operand owns, a NaN of every float: driver.cpp and memory.cpp fill memory with the same."""


class FaultError(AssertionError):
    """A kernel did what it must not: one line, with the sanitizer's whole report as a note."""


def left_out(source: Path) -> str | None:
    """Why a source cannot run on the CPU, by its line `// Not on the CPU: reason`; None: it can."""
    match = _LEFT_OUT.search(source.read_text(encoding="utf-8"))
    return match[1] if match else None


def source_of(declaration: Declaration) -> Path:
    """Where a kernel is declared."""
    return Path(declaration.where.rpartition(":")[0])


def needs_no_gpu(declaration: Declaration) -> Declaration:
    """The kernel; skips what its source says cannot run here."""
    reason = left_out(source_of(declaration))
    if reason is not None:
        pytest.skip(f"{declaration.name}: not on the CPU: {reason}")
    return declaration


@contextmanager
def emulator_of(kernels: Iterable[Declaration], folders: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Every one of these kernels of csrc that can run on a CPU, in one program."""
    need_sanitizers(folders.mktemp("probe"))
    sources = [path for path in sorted({source_of(each) for each in kernels}) if left_out(path) is None]
    emulator = Emulator(build(CSRC, sources, folders.mktemp("emulated")))
    yield emulator
    emulator.close()


def build(csrc: Path, sources: Sequence[Path], folder: Path) -> Path:
    """A program that runs every kernel of `sources`, in `folder`, with the headers of `csrc`.

    Raises:
        RuntimeError: it does not compile; with the compiler's words.
        NotUnderstoodError: a source is written in a form that `translate` does not know.
    """
    headers = [path for path in csrc.rglob("*") if path.suffix in (".h", ".cuh", ".hpp", ".inc")]
    for path in (*headers, *sources):
        copy = folder / (path.relative_to(csrc) if path in headers else path.name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(translate(path.read_text(encoding="utf-8"), path.name), encoding="utf-8")
    names = [*(str(HERE / name) for name in (*RUNTIME, SCHEDULER)), *(path.name for path in sources)]
    objects = [f"{Path(name).stem}.o" for name in names]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(lambda pair: _compile(folder, *pair), zip(names, objects, strict=True)))
    _call_compiler(folder, [*SANITIZE, *objects, "-o", "emulated"])
    return folder / "emulated"


def _compile(folder: Path, name: str, output: str) -> None:
    words = [
        "-include",
        str(HERE / "cuda_on_cpu.h"),
        "-I",
        ".",
        "-I",
        str(HERE / "toolkit"),
        "-x",
        "c++",
        "-c",
        name,
        "-o",
        output,
    ]
    _call_compiler(folder, [*(FAST if name.endswith(SCHEDULER) else COMPILE), *words])


def _call_compiler(folder: Path, words: list[str]) -> None:
    command = [find_host_compiler().path, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stderr}")


def no_sanitizers(folder: Path) -> str | None:
    """Why the C++ compiler cannot build and run under the sanitizers, or None."""
    (folder / "nothing.cpp").write_text("int main() {}\n")
    try:
        _call_compiler(folder, [*SANITIZE, "nothing.cpp", "-o", "nothing"])
    except (BuildError, RuntimeError) as error:
        return str(error)
    done = subprocess.run([folder / "nothing"], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else None


def need_sanitizers(folder: Path) -> None:
    """Skip where the compiler lacks them; a CI runner must have them."""
    reason = no_sanitizers(folder)
    need(reason and f"no sanitizers: {reason}")


class _Memory:
    """All that one operand spans in a kernel's memory: its elements, and bytes of _GAP between them."""

    def __init__(self, label: str, tensor: torch.Tensor, strides: tuple[int, ...]) -> None:
        self._label = label
        size = tensor.element_size()
        bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[size]
        self._values = tensor.view(bits).numpy().view(f"u{size}")
        self._strides = tuple(size * stride for stride in strides)
        self._gap = int.from_bytes([_GAP] * size)
        spans = ((size - 1) * stride for size, stride in zip(tensor.shape, strides, strict=True))
        self.whole = np.full(1 + sum(spans) if tensor.numel() else 0, self._gap, self._values.dtype)
        self._elements(self.whole)[...] = self._values

    def take(self, content: bytes) -> None:
        """Make the tensor what its elements have become.

        Raises:
            FaultError: what lies between them has changed.
        """
        whole = np.frombuffer(bytearray(content), self._values.dtype)
        elements = self._elements(whole)
        self._values[...] = elements
        elements[...] = self._gap
        changed = np.flatnonzero(whole != self._gap)
        if changed.size:
            raise FaultError(f"wrote between the elements of {self._label}, {changed[0]} elements behind its first")

    def _elements(self, whole: NDArray[Any]) -> NDArray[Any]:
        return np.lib.stride_tricks.as_strided(whole, self._values.shape, self._strides)


class Emulator:
    """The process that runs the kernels of one program; a new one after a fault."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._report = program.with_suffix(".stderr")
        self._process: subprocess.Popen[bytes] | None = None

    def binder(self, name: str, placement: Placement, *, orders: int = 2) -> Callable[[Operands], Launch]:
        """What a `Kernel`'s bind is; lanes, warps and blocks get their turns in another of the `orders` each launch."""

        def bind(operands: Operands) -> Launch:
            launches = itertools.count()
            return lambda: self.launch(name, operands, placement, order=next(launches) % orders)

        return bind

    def launch(
        self, name: str, operands: Operands, placement: Placement, *, order: int = 0, multiprocessors: int = FEW
    ) -> None:
        """Run `name` on copies of (m, k) `a` and (k, 1) `x` and (m, 1) `y`, float32, and write back what they became.

        Lanes, warps and blocks get their turns in one of two orders, 0 and 1.

        Raises:
            FaultError: the kernel did what it must not, as to write between elements, or took longer than `LIMIT_S`.
            RuntimeError: the launch was refused; in CUDA's words.
        """
        m, k = operands.a.shape
        a_stride, x_stride, y_stride = placement.strides(m, k)
        memories = (
            _Memory("A", operands.a, (1, a_stride) if placement.by_columns else (a_stride, 1)),
            _Memory("x", operands.x, (x_stride, 1)),
            _Memory("y", operands.y, (y_stride, 1)),
        )
        head = struct.pack(
            _REQUEST, name.encode(), m, k, 1, a_stride, x_stride, y_stride, placement.by_columns,
            placement.a, placement.x, placement.y, 0, order, multiprocessors, LIMIT_S,
        )  # fmt: skip
        self._run(name, head, memories)

    def launch_tokens(
        self,
        name: str,
        operands: Operands,
        placement: TokenPlacement,
        *,
        zero: torch.Tensor | None = None,
        order: int = 0,
        multiprocessors: int = FEW,
    ) -> None:
        """The same for a kernel for tokens: (m, k) `a`, (k, n) `x`, (m, n) `y`; for int8 (m,) `scale` and (m,) `zero`.

        Raises:
            FaultError: as `launch`.
            RuntimeError: as `launch`.
        """
        (m, k), n = operands.a.shape, operands.x.shape[1]
        a_stride, x_stride, y_stride = k + placement.a_gap, k + placement.x_gap, m + placement.y_gap
        memories = [
            _Memory("A", operands.a, (a_stride, 1)),
            _Memory("x", operands.x.t(), (x_stride, 1)),
            _Memory("y", operands.y.t(), (y_stride, 1)),
            *(_Memory("scale", each, (1,)) for each in (operands.scale,) if each is not None),
            *(_Memory("zero", each, (1,)) for each in (zero,) if each is not None),
        ]
        head = struct.pack(
            _REQUEST, name.encode(), m, k, n, a_stride, x_stride, y_stride, 0,
            placement.a, placement.x, placement.y, zero is not None, order, multiprocessors, LIMIT_S,
        )  # fmt: skip
        self._run(name, head, memories)

    def _run(self, name: str, head: bytes, memories: Sequence[_Memory]) -> None:
        self._send(b"".join((head, *(memory.whole.tobytes() for memory in memories))))
        (length,) = struct.unpack("<q", self._read(8))
        words = self._read(length).decode()
        contents = [self._read(memory.whole.nbytes) for memory in memories]
        for memory, content in zip(memories, contents, strict=True):
            memory.take(content)
        if words:
            raise RuntimeError(f"{name}: the launch failed: {words}")

    def close(self) -> None:
        """End the process.

        Raises:
            FaultError: it did not end well, though every launch had.
        """
        if self._process is not None:
            self._process.communicate()
            if self._process.returncode != 0:
                raise self._fault()
            self._process = None

    def _send(self, request: bytes) -> None:
        process = self._process or self._start()
        try:
            process.stdin.write(request)
            process.stdin.flush()
        except BrokenPipeError:
            raise self._fault() from None

    def _read(self, count: int) -> bytes:
        found = self._process.stdout.read(count)
        if len(found) < count:
            raise self._fault()
        return found

    def _start(self) -> subprocess.Popen[bytes]:
        options = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
        with self._report.open("wb") as report:
            self._process = subprocess.Popen(
                [self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=report,
                env={**os.environ, **options},
            )  # fmt: skip
        return self._process

    def _fault(self) -> FaultError:
        code = self._process.wait()
        self._process = None
        report = self._report.read_text(encoding="utf-8", errors="replace")
        words = ["".join(groups) for groups in _FAULT.findall(report)]
        error = FaultError("; ".join(words) or f"the process ended with {code}")
        error.add_note(report)
        return error
