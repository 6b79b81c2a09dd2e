"""What one problem needs on the device, shared by the cases on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.gate import Gate, reference, tolerance
from harness.model import Cache, Problem, Verdict
from harness.precision import set_precision
from harness.problems import HOT_APART_BYTES, OperandSets

if TYPE_CHECKING:
    from torch import Tensor


class Workbench:
    """What one problem needs on the device, shared by the cases on it: gate, operand sets, references."""

    def __init__(self, problem: Problem, device: str) -> None:
        set_precision(problem.dtype)
        self.problem = problem
        self._device = device
        self.verdicts: dict[str, Verdict] = {}
        self.soaked = False
        """Whether the device is as warm as work on the problem makes it."""
        self.renew()

    def renew(self) -> None:
        """Forget everything but the verdicts: a wrong kernel may have damaged what the next one would be judged by."""
        self.gate = Gate(self.problem, self._device)
        self._sets: dict[tuple[int, int], OperandSets] = {}
        self._references: dict[OperandSets, tuple[Tensor, Tensor]] = {}

    def sets(self, count: int, cache: Cache) -> OperandSets:
        """`count` operand sets; apart from each other where each is a placement to be timed by itself."""
        key = (count, HOT_APART_BYTES if cache is Cache.HOT and count > 1 else 0)
        if key not in self._sets:
            self._sets[key] = OperandSets(self.problem, self._device, count, apart_bytes=key[1])
        return self._sets[key]

    def refresh(self, sets: OperandSets) -> tuple[Tensor, Tensor]:
        """Write other values into `sets`; result and bound (count, m, n) that they must now give."""
        if sets not in self._references:
            scale = None if sets.scale is None else sets.scale.values
            sums, norms = reference(sets.a.values, sets.x.values, scale)
            self._references[sets] = sums, tolerance(sums, norms, self.problem.k, self.problem.dtype)
        factor = sets.refresh()
        sums, bound = self._references[sets]
        return sums * factor, bound * factor
