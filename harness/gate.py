"""The gate: nothing is timed whose output is not right.

Three checks, each of which catches what the others let through (`Probe`s below):

* integers: every product and partial sum is exact in float32 in any order, so the result must be equal. One dropped
  or doubled element shows at any k; one row sums beyond 2²³, so a narrower accumulator shows too.
* one-hot: y must be a column of A, or picked elements of x, bit for bit. Operands rounded to TF32 or half show.
* random: |y − ref| ≤ 8·u·√k·‖A_i∘x‖₂ a row with u = 2⁻²⁴ and ref in float64. The √k is that of N. Higham and T. Mary,
  A new approach to probabilistic rounding error analysis (SISC 41(5), 2019); the constant was found by trying: one
  addition after the other, the worst order, went beyond 4 in about one row of 10⁷ at k = 128.

A lies as the problem says in every one of them, with NaN in the gaps: a kernel that takes it to lie otherwise is wrong.
Each bound launch runs several times, over a y of NaN and at last over a finite one; afterwards the guards around y, A
and x, and A and x themselves, are as they were.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.model import Kernel, Launch, Layout, Operands, Problem, Role, Verdict, Word
from harness.problems import PACKED, Guarded, OperandSets, touched

if TYPE_CHECKING:
    from torch import Tensor

EXACT_LIMIT = 1 << 24
"""Up to here float32 holds every integer."""

UNIT_ROUNDOFF = 2.0**-24
"""Of float32."""

ERROR_FACTOR = 8.0
"""Times √k·u·‖A_i∘x‖₂; no right kernel of any order of summation may be refused, however many rows are checked."""

LAUNCHES = 3
"""Of one bound launch on every probe, the last over a finite y: a kernel may depend neither on how often it was
launched nor on what y held."""

STALE = 1e30
"""What y holds before that last launch; no right result is as large."""

READ_TRIES = 16
"""Random elements of A, and of x, for each of which a limit kernel must show that it read it."""

CHUNK_ELEMENTS = 1 << 24
"""Elements of A taken to float64 at once."""

PASSED = Verdict(word=Word.PASSED)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Operands with the result that they must give; bound None: equality."""

    _sums: tuple[int, int] = field(init=False, default=(0, 0))

    name: str
    a: Guarded
    x: Guarded
    expected: Tensor
    """(m, n)"""
    bound: Tensor | None = None
    """(m, n), largest allowed |y − expected|, float64."""

    def __post_init__(self) -> None:
        """Take the sums that `touched` compares with."""
        object.__setattr__(self, "_sums", (self.a.checksum(), self.x.checksum()))

    def touched(self) -> str | None:
        """What a launch changed of A, x and their guards, or None."""
        return touched(self.a, self.x, self._sums)


def reference(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """A·x and ‖A_i∘x‖₂ by row, both float64 (count, m, 1), for a (count, m, k) and x (count, k, 1)."""
    import torch

    count, m, k = a.shape
    sums = torch.empty((count, m, 1), dtype=torch.float64, device=a.device)
    squares = torch.empty_like(sums)
    sets = max(1, CHUNK_ELEMENTS // (m * k))
    rows = max(1, CHUNK_ELEMENTS // k)
    for first in range(0, count, sets):
        here = slice(first, first + sets)
        wide_x = x[here].double()
        for top in range(0, m, rows):
            wide = a[here, top : top + rows].double()
            sums[here, top : top + rows] = wide @ wide_x
            squares[here, top : top + rows] = wide.square_() @ wide_x.square()
    return sums, squares.sqrt_()


def error_bound(norms: Tensor, k: int) -> Tensor:
    """Largest allowed |y − ref| for rows with ‖A_i∘x‖₂ = norms."""
    return ERROR_FACTOR * UNIT_ROUNDOFF * math.sqrt(k) * norms


class Gate:
    """The probes of one problem on one device, shared by every kernel that computes it."""

    def __init__(self, problem: Problem, device: str) -> None:
        self.problem = problem
        self._device = device
        self._y = self._guarded(problem.m, problem.n)
        self._probes: list[Probe] | None = None

    def check(self, kernel: Kernel, stray_launch: Callable[[Launch], str | None]) -> Verdict:
        """The verdict on `kernel`. `stray_launch` says how a launch escapes the current stream, or None."""
        if kernel.role is Role.GEMV and self.problem.k > EXACT_LIMIT:
            reason = f"k={self.problem.k}: the gate's exact check ends at k={EXACT_LIMIT}"
            return Verdict(word=Word.NOT_MEASURED, reason=reason)
        stray = stray_launch(kernel.bind(self._operands(self.probes()[-1])))
        if stray is not None:
            return Verdict(word=Word.WRONG, reason=stray)
        by_role = {Role.GEMV: self._check_gemv, Role.LIMIT: self._check_limit, Role.FLOOR: self._check_floor}
        return by_role[kernel.role](kernel)

    def probes(self) -> list[Probe]:
        """Made at first use; the last one is the random one."""
        if self._probes is None:
            self._probes = list(self._make_probes())
        return self._probes

    def _check_gemv(self, kernel: Kernel) -> Verdict:
        worst = 0.0
        for probe in self.probes():
            launch = kernel.bind(self._operands(probe))
            for number in range(1, LAUNCHES + 1):
                fault, error = self._launch(launch, probe, last=number == LAUNCHES)
                if fault is not None:
                    which = f"{probe.name}, launch {number}" if number > 1 else probe.name
                    return Verdict(word=Word.WRONG, reason=f"{which}: {fault}", max_error=error)
                worst = error if error is not None else worst
        return Verdict(word=Word.PASSED, max_error=worst)

    def _launch(self, launch: Launch, probe: Probe, *, last: bool) -> tuple[str | None, float | None]:
        """Launch once over NaN, the last time over a finite y; the fault and the error, as `compare` gives them."""
        self._y.poison()
        if last:
            self._y.values.fill_(STALE)
        launch()
        fault, error = compare(self._y.values[0], probe.expected, probe.bound)
        if not self._y.intact():
            fault = "wrote outside y"
        if last or fault is not None:
            fault = probe.touched() or fault  # operands that changed explain what came of them
        return fault, error

    def _check_limit(self, kernel: Kernel) -> Verdict:
        """Every y is written, and every tried element of A and x is read: a NaN there makes some y NaN."""
        probe = self.probes()[-1]
        fault = self._run(kernel, probe)
        if fault is None and bool(self._y.values.isnan().any()):
            fault = "left y unwritten"
        for name, tensor in (("A", probe.a.values[0]), ("x", probe.x.values[0])):
            for index in self._tried(tensor.numel()):
                row, column = divmod(index, tensor.shape[1])
                if fault is None and not self._reads(kernel, probe, tensor[row, column]):
                    fault = f"does not read element {index} of {name}"
        return PASSED if fault is None else Verdict(word=Word.WRONG, reason=fault)

    def _tried(self, elements: int) -> list[int]:
        """The ends, and random elements, which no pattern of skipping can avoid."""
        import torch

        generator = torch.Generator().manual_seed(self.problem.seed)
        drawn = torch.randint(elements, (READ_TRIES,), generator=generator).tolist()
        return sorted({0, elements - 1, *drawn})

    def _reads(self, kernel: Kernel, probe: Probe, element: Tensor) -> bool:
        kept = element.clone()
        element.fill_(float("nan"))
        self._y.values.zero_()
        kernel.bind(self._operands(probe))()
        element.copy_(kept)
        return bool(self._y.values.isnan().any())

    def _check_floor(self, kernel: Kernel) -> Verdict:
        fault = self._run(kernel, self.probes()[-1])
        if fault is None and not bool(self._y.values.isnan().all()):
            fault = "wrote y"
        return PASSED if fault is None else Verdict(word=Word.WRONG, reason=fault)

    def _run(self, kernel: Kernel, probe: Probe) -> str | None:
        """One launch on the probe; what it touched that it must not have."""
        self._y.poison()
        kernel.bind(self._operands(probe))()
        return probe.touched() if self._y.intact() else "wrote outside y"

    def _operands(self, probe: Probe) -> Operands:
        return Operands(a=probe.a.values[0], x=probe.x.values[0], y=self._y.values[0])

    def _like_a(self) -> Guarded:
        return self._guarded(self.problem.m, self.problem.k, self.problem.layout)

    def _guarded(self, rows: int, columns: int, layout: Layout = PACKED) -> Guarded:
        dtype = self.problem.dtype
        return Guarded(count=1, rows=rows, columns=columns, dtype=dtype, device=self._device, layout=layout)

    def _make_probes(self) -> Iterator[Probe]:
        import torch

        m, k = self.problem.m, self.problem.k
        random = OperandSets(self.problem, self._device, 1)
        a, x = random.a.values[0], random.x.values[0]
        generator = torch.Generator(device=self._device).manual_seed(self.problem.seed)
        yield self._integers(random)
        for column in sorted({0, k // 2, k - 1}):
            one = self._guarded(k, 1)
            one.values.zero_()
            one.values[0, column] = 1.0
            yield Probe(name=f"one-hot x at {column}", a=random.a, x=one, expected=a[:, column : column + 1].clone())
        picks = torch.randint(k, (m,), device=self._device, generator=generator)
        picks[0], picks[-1] = 0, k - 1
        rows = self._like_a()
        rows.values.zero_()
        rows.values[0].scatter_(1, picks.unsqueeze(1), 1.0)
        yield Probe(name="one-hot rows of A", a=rows, x=random.x, expected=x[picks])
        sums, norms = reference(random.a.values, random.x.values)
        yield Probe(name="random", a=random.a, x=random.x, expected=sums[0], bound=error_bound(norms[0], k))

    def _integers(self, random: OperandSets) -> Probe:
        """Non-zero integers with Σ|a·x| ≤ 2²⁴ in every row, and row 0 of one sign and above 2²³."""
        k = self.problem.k
        largest = max(1, math.isqrt(EXACT_LIMIT // k))
        a, x = self._like_a(), self._guarded(k, 1)
        for guarded, normal in ((a, random.a), (x, random.x)):
            size = guarded.values.copy_(normal.values).abs_()
            size.mul_(largest / 2).floor_().add_(1).clamp_(max=largest).copysign_(normal.values)
        column = x.values[0, :, 0]
        a.values[0, 0] = column.sign() * (EXACT_LIMIT // int(column.abs().sum()))
        sums, _ = reference(a.values, x.values)
        return Probe(name="integers", a=a, x=x, expected=sums[0].to(a.values.dtype))


def compare(y: Tensor, expected: Tensor, bound: Tensor | None) -> tuple[str | None, float | None]:
    """The first fault of y (m, n) against `expected`, and the largest error over its bound where there is one."""
    import torch

    if bound is None:
        bad = y.view(torch.int32) != expected.view(torch.int32) if bool((expected != 0).all()) else y != expected
        error = None
    else:
        ratio = (y.double() - expected).abs() / bound
        bad = ~(ratio <= 1.0) & ~((y.double() == expected) & (bound == 0))
        error = float(ratio.max()) if bool(ratio.isfinite().all()) else None  # JSON has no infinity
    wrong = int(bad.sum())
    if wrong == 0:
        return None, error
    row = int(bad.view(-1).nonzero()[0])
    found, wanted = float(y.reshape(-1)[row]), float(expected.reshape(-1)[row])
    return f"{wrong} of {y.numel()} wrong, first y[{row}]: found {found:.9g}, wanted {wanted:.9g}", error


def recheck(kernel: Kernel, sets: OperandSets, rerun: Launch, wanted: tuple[Tensor, Tensor]) -> Verdict:
    """After timing: other operands are in place and every y is NaN; run all that was timed once more, check every set.

    Catches a kernel that remembers a result, a graph that does not read its operands, a set that no launch touched.

    Args:
        kernel: what was timed.
        sets: its operands, just refreshed.
        rerun: runs every launch that was timed at least once and waits for the device.
        wanted: result and bound, both float64 (count, m, n), of the operands as they are now.
    """
    rerun()
    verdict = _judge(kernel, sets, None, wanted)
    if verdict.word is Word.PASSED:
        sets.y.values.fill_(STALE)
        rerun()
        verdict = _judge(kernel, sets, STALE, wanted)
    damage = sets.damage()
    if damage is not None:  # explains what came of it
        return Verdict(word=Word.WRONG, reason=f"after timing: {damage}")
    return verdict


def _judge(kernel: Kernel, sets: OperandSets, stale: float | None, wanted: tuple[Tensor, Tensor]) -> Verdict:
    """The verdict on every set's y after one rerun that found `stale` in it, or NaN."""
    y = sets.y.values
    if kernel.role is Role.FLOOR:
        return PASSED
    if kernel.role is Role.LIMIT:
        unwritten = int((y.isnan() if stale is None else y == stale).sum())
        return PASSED if not unwritten else Verdict(word=Word.WRONG, reason=f"after timing: {unwritten} y unwritten")
    fault, error = compare(y, *wanted)
    if fault is not None:
        return Verdict(word=Word.WRONG, reason=f"after timing, with other operands: {fault}", max_error=error)
    return Verdict(word=Word.PASSED, max_error=error)
