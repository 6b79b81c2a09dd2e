"""A kernel before it is timed, on every probe, and after, on other values of what was timed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from harness.dtypes import activation_dtype
from harness.gate.probes import Probe, Probes, largest_k
from harness.model import Kernel, Launch, Operands, Problem, Role, Verdict, Word
from harness.problems import OperandSets, new_activations

if TYPE_CHECKING:
    from torch import Tensor

LAUNCHES = 3
"""Of one bound launch on every probe, the last over a finite y: a kernel may depend neither on how often it was
launched nor on what y held."""

READ_TRIES = 16
"""Random elements of each input, for each of which a limit kernel must show that it read it."""

OTHER = 0.5
"""What y may hold before a launch, too: small enough that a kernel which adds to y changes it."""

PASSED = Verdict(word=Word.PASSED)


def stale(dtype: str) -> float:
    """What y holds before the last launch, of a problem of this dtype; no right result is as large."""
    return 60000.0 if activation_dtype(dtype) == "float16" else 2.0**100


class Gate:
    """The probes of one problem on one device, shared by every kernel that computes it."""

    def __init__(self, problem: Problem, device: str) -> None:
        self.problem = problem
        self._y = new_activations(problem, device, problem.m)
        self._made = Probes(problem, device)

    def check(self, kernel: Kernel, stray_launch: Callable[[Launch], str | None]) -> Verdict:
        """The verdict on `kernel`. `stray_launch` says how a launch escapes the current stream, or None."""
        k, most = self.problem.k, largest_k(self.problem.dtype)
        if kernel.role is Role.GEMV and k > most:
            return Verdict(word=Word.NOT_MEASURED, reason=f"k={k}: the gate's exact check ends at k={most}")
        stray = stray_launch(kernel.bind(self._operands(self._made.random)))
        if stray is not None:
            return Verdict(word=Word.WRONG, reason=stray)
        by_role = {Role.GEMV: self._check_gemv, Role.LIMIT: self._check_limit, Role.FLOOR: self._check_floor}
        return by_role[kernel.role](kernel)

    def probes(self) -> list[Probe]:
        """Made at first use; the last one is the random one."""
        return self._all

    @cached_property
    def _all(self) -> list[Probe]:
        return list(self._made)

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
            self._y.values.fill_(stale(self.problem.dtype))
        launch()
        fault, error = compare(self._y.values[0], probe.expected, probe.bound)
        if fault is not None and (unwritten := self._unwritten(launch)):
            fault = f"{unwritten} of {self._y.values.numel()} y not written"
        if not self._y.intact():
            fault = "wrote outside y"
        if last or fault is not None:
            fault = probe.touched() or fault  # operands that changed explain what came of them
        return fault, error

    def _unwritten(self, launch: Launch) -> int:
        """Values of y that were left as they were, and are again: NaN alone may be what was computed."""
        y = self._y.values
        left = y.isnan() | (y == stale(self.problem.dtype))
        y.fill_(OTHER)
        launch()
        return int((left & (y == OTHER)).sum())

    def _check_limit(self, kernel: Kernel) -> Verdict:
        """Every y is written, and every tried element of the inputs is read: a sentinel there makes some y NaN."""
        probe = self._made.random
        fault = self._run(kernel, probe)
        if fault is None and bool(self._y.values.isnan().any()):
            fault = "left y unwritten"
        for name, guarded in probe.inputs().items():
            values = guarded.values[0]
            for index in self._tried(values.numel()):
                row, column = divmod(index, values.shape[1])
                if fault is None and not self._reads(kernel, probe, values[row, column], guarded.sentinel):
                    fault = f"does not read element {index} of {name}"
        return PASSED if fault is None else Verdict(word=Word.WRONG, reason=fault)

    def _tried(self, elements: int) -> list[int]:
        """The ends, and random elements, which no pattern of skipping can avoid."""
        import torch

        generator = torch.Generator().manual_seed(self.problem.seed)
        drawn = torch.randint(elements, (READ_TRIES,), generator=generator).tolist()
        return sorted({0, elements - 1, *drawn})

    def _reads(self, kernel: Kernel, probe: Probe, element: Tensor, sentinel: float) -> bool:
        kept = element.clone()
        element.fill_(sentinel)
        self._y.values.zero_()
        kernel.bind(self._operands(probe))()
        element.copy_(kept)
        return bool(self._y.values.isnan().any())

    def _check_floor(self, kernel: Kernel) -> Verdict:
        fault = self._run(kernel, self._made.random)
        if fault is None and not bool(self._y.values.isnan().all()):
            fault = "wrote y"
        return PASSED if fault is None else Verdict(word=Word.WRONG, reason=fault)

    def _run(self, kernel: Kernel, probe: Probe) -> str | None:
        """One launch on the probe; what it touched that it must not have."""
        self._y.poison()
        kernel.bind(self._operands(probe))()
        return probe.touched() if self._y.intact() else "wrote outside y"

    def _operands(self, probe: Probe) -> Operands:
        return probe.operands(self._y.values[0])


def compare(y: Tensor, expected: Tensor, bound: Tensor | None) -> tuple[str | None, float | None]:
    """The first fault of y (…, m, n) against `expected`, and the largest error over its bound where there is one.

    Without a bound every bit counts but the sign of a zero; NaN is never right.
    """
    if bound is None:
        bad, error = y != expected, None
    else:
        ratio = (y.double() - expected).abs_().div_(bound)
        bad = ~(ratio <= 1.0)
        bad &= (bound != 0) | (y != expected)
        error = float(ratio.max()) if bool(ratio.isfinite().all()) else None  # JSON has no infinity
    wrong = int(bad.sum())
    if wrong == 0:
        return None, error
    place = int(bad.reshape(-1).nonzero()[0])
    found, wanted = float(y.reshape(-1)[place]), float(expected.reshape(-1)[place])
    row, token = divmod(place, y.shape[-1])
    where = f"y[{row}]" if y.shape[-1] == 1 else f"y[{row}, {token}]"
    return f"{wrong} of {y.numel()} wrong, first {where}: found {found:.9g}, wanted {wanted:.9g}", error


def recheck(kernel: Kernel, sets: OperandSets, rerun: Launch, wanted: tuple[Tensor, Tensor]) -> Verdict:
    """After timing: other operands are in place and every y is NaN; run all that was timed once more, check every set.

    Catches a kernel that remembers a result, a graph that does not read its operands, a set that no launch touched.

    Args:
        kernel: what was timed.
        sets: its operands, just refreshed.
        rerun: runs every launch that was timed at least once and waits for the device.
        wanted: result and bound, both float64 (count, m, n), of the operands as they are now.
    """
    old = stale(sets.problem.dtype)
    rerun()
    verdict = _judge(kernel, sets, None, wanted)
    if verdict.word is Word.PASSED:
        sets.y.values.fill_(old)
        rerun()
        verdict = _judge(kernel, sets, old, wanted)
    damage = sets.damage()
    if damage is not None:  # explains what came of it
        return Verdict(word=Word.WRONG, reason=f"after timing: {damage}")
    return verdict


def _judge(kernel: Kernel, sets: OperandSets, old: float | None, wanted: tuple[Tensor, Tensor]) -> Verdict:
    """The verdict on every set's y after one rerun that found `old` in it, or NaN."""
    y = sets.y.values
    if kernel.role is Role.FLOOR:
        return PASSED
    if kernel.role is Role.LIMIT:
        unwritten = int((y.isnan() if old is None else y == old).sum())
        return PASSED if not unwritten else Verdict(word=Word.WRONG, reason=f"after timing: {unwritten} y unwritten")
    fault, error = compare(y, *wanted)
    if fault is not None:
        return Verdict(word=Word.WRONG, reason=f"after timing, with other operands: {fault}", max_error=error)
    return Verdict(word=Word.PASSED, max_error=error)
