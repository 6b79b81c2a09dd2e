"""Kernels of csrc on the CPU: builds them with g++ under AddressSanitizer and UBSan, and runs them in a process."""

from __future__ import annotations

import itertools
import os
import re
import struct
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

from harness.model import Launch, Operands
from kernels.toolchain import BuildError, find_host_compiler
from tests.emulation.translate import translate

HERE = Path(__file__).parent
RUNTIME = ("driver.cpp", "lanes.cpp", "memory.cpp")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COMPILE = (*SANITIZE, "-std=c++17", "-O1", "-g1", "-w")
"""Without warnings: `kernels.build` gives those."""
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
_REQUEST = "<64s7q"


class FaultError(AssertionError):
    """A kernel did what it must not: one line, with the sanitizer's whole report as a note."""


def left_out(source: Path) -> str | None:
    """Why a source cannot run on the CPU, by its line `// Not on the CPU: reason`; None: it can."""
    match = _LEFT_OUT.search(source.read_text(encoding="utf-8"))
    return match[1] if match else None


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
    names = [*(str(HERE / name) for name in RUNTIME), *(path.name for path in sources)]
    objects = [f"{Path(name).stem}.o" for name in names]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(lambda pair: _compile(folder, *pair), zip(names, objects, strict=True)))
    _call_compiler(folder, [*SANITIZE, *objects, "-o", "emulated"])
    return folder / "emulated"


def _compile(folder: Path, name: str, output: str) -> None:
    words = ["-include", str(HERE / "cuda_on_cpu.h"), "-I", ".", "-x", "c++", "-c", name, "-o", output]
    _call_compiler(folder, [*COMPILE, *words])


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


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where operands start: elements past a multiple of 16 bytes (or of what the kernel declares), never of more."""

    a: int = 0
    x: int = 0
    y: int = 1


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

    def launch(self, name: str, operands: Operands, placement: Placement, *, order: int = 0) -> None:
        """Run `name` on copies of (m, k) `a` and (k, 1) `x` and (m, 1) `y`, float32, and write back what they became.

        Raises:
            FaultError: the kernel did what it must not, or took longer than `LIMIT_S`.
            RuntimeError: the launch was refused; in CUDA's words.
        """
        tensors = (operands.a, operands.x, operands.y)
        m, k = operands.a.shape
        head = struct.pack(_REQUEST, name.encode(), m, k, placement.a, placement.x, placement.y, order, LIMIT_S)
        request = b"".join((head, *(tensor.numpy().tobytes() for tensor in tensors)))
        self._send(request)
        (length,) = struct.unpack("<q", self._read(8))
        words = self._read(length).decode()
        for tensor in tensors:
            content = bytearray(self._read(4 * tensor.numel()))
            if content:
                tensor.copy_(torch.frombuffer(content, dtype=torch.float32).view(tensor.shape))
        if words:
            raise RuntimeError(f"{name}: the launch failed: {words}")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
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
