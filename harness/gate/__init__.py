"""The gate: nothing is timed whose output is not right.

Three kinds of operands (`Probe`s), each of which catches what the others let through:

* integers: every product and partial sum is exact in float32 in any order, so the result must be equal, rounded once
  where y is narrower. One dropped or doubled element shows at any k, and so does an accumulator of fewer bits.
* one-hot: y must be a column of A, or picked elements of x, bit for bit. Operands rounded to less than they have show.
* random: within `tolerance` of a sum in float64, row by row.

Every token has values of its own in all of them. Of int8, y = scale·Σ a·x: the sum in float32, times the scale in
float32, rounded once to float16; each row has a scale of its own at random, and none is 1.

A lies as the problem says in every one of them, with NaN in the gaps (of int8, −128): a kernel that takes it to lie
otherwise is wrong. Each bound launch runs several times, over a y of NaN and at last over a finite one; afterwards the
guards around y and the inputs, and the inputs themselves, are as they were.
"""

from harness.gate.bounds import error_bound, reference, tolerance
from harness.gate.check import Gate, compare, recheck
from harness.gate.probes import EXACT_LIMIT, Probe

__all__ = [
    "EXACT_LIMIT",
    "Gate",
    "Probe",
    "compare",
    "error_bound",
    "recheck",
    "reference",
    "tolerance",
]
