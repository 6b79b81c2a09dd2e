"""What one problem needs on the device, shared by the cases on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.device import last_level_cache_bytes
from harness.gate import Gate, reference, tolerance
from harness.model import Cache, Problem, Verdict
from harness.precision import set_precision
from harness.problems import HOT_APART_BYTES, OperandSets, sets_for

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
        """`count` operand sets, or as many as fit; apart from each other where each is a placement timed by itself."""
        key = (count, HOT_APART_BYTES if cache is Cache.HOT and count > 1 else 0)
        if key not in self._sets:
            self._sets[key] = self._as_many_as_fit(count, cache, key[1])
        return self._sets[key]

    def _as_many_as_fit(self, count: int, cache: Cache, apart_bytes: int) -> OperandSets:
        """`count` operand sets; where memory is short fewer, down to what the cache state needs.

        Raises:
            OutOfMemoryError: torch's, those do not fit either.
        """
        import torch

        fewest = sets_for(self.problem, cache, cache_bytes=last_level_cache_bytes(self._device), memory_bytes=0)
        while True:
            try:
                return OperandSets(self.problem, self._device, count, apart_bytes=apart_bytes)
            except torch.OutOfMemoryError:
                if count <= fewest:
                    raise
                count = max(fewest, count // 2)

    def refresh(self, sets: OperandSets) -> tuple[Tensor, Tensor]:
        """Write other values into `sets`; result and bound (count, m, n) that they must now give."""
        if sets not in self._references:
            scale = None if sets.scale is None else sets.scale.values
            sums, norms = reference(sets.a.values, sets.x.values, scale)
            self._references[sets] = sums, tolerance(sums, norms, self.problem.k, self.problem.dtype)
        factor = sets.refresh()
        sums, bound = self._references[sets]
        return sums * factor, bound * factor
