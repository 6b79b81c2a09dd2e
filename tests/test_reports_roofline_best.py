"""reports.roofline.best: up to how many tokens a GEMV kernel is the best choice, in words."""

from __future__ import annotations

import pytest

from harness.model import Problem
from reports.roofline.best import best_table, choices, in_words
from tests.planted_roofline import cells, half, of, timed
from tests.sample_roofline import REFERENCE


@pytest.mark.parametrize(
    ("own_ns", "words"),
    [
        ((8.0, 9.0, 12.0), "best up to T = 2, no longer at T = 8"),
        ((8.0, 9.0, 9.5), "best up to T = 8, the most measured"),
        ((11.0, 12.0, 13.0), "not the best at T = 1, 2 and 8"),
        ((8.0, 12.0, 9.0), "best up to T = 1, no longer at T = 2, best again at T = 8"),
        ((10.0, 9.0, 8.0), "ambiguous at T = 1, best at T = 2 and 8"),
        ((8.0, 10.0, 12.0), "best up to T = 1, ambiguous at T = 2, no longer at T = 8"),
    ],
)
def test_where_a_gemv_kernel_stops(own_ns: tuple[float, ...], words: str) -> None:
    """Torch takes 10 µs at every T; 1 % between trials, so that 10 against 10 cannot be told."""
    found = []
    for n, ns in zip((1, 2, 8), own_ns, strict=True):
        found.append(timed("hgemv", half(n), ns * 1e3, ns * 1.001e3, ns * 0.999e3))
        found.append(timed("torch.matmul", half(n), 1e4, 1e4, 1e4))
    found.append(timed("torch.matmul", half(16), 1e4, 1e4, 1e4))
    f = of(*found)
    made = choices(f, REFERENCE, "float16")
    assert [choice.tokens for choice in made] == [1, 2, 8]
    assert in_words(made).replace("\u00a0", " ") == words
    if words.startswith("best up to T = 8"):
        gaps = in_words((made[0], made[2]), (1, 2, 8)).replace("\u00a0", " ")
        assert gaps == "best at T = 1 and 8, all that was measured"
    assert cells(best_table(f))[0][-1].replace("\u00a0", " ") == words


def test_int8_is_chosen_against_float16() -> None:
    """Torch has no int8 product: 6 against 12 µs is 2.00; without a rival there is no choice."""
    own = timed("gemv_w8", Problem(m=4096, k=4096, dtype="int8"), 6e3, 6e3)
    several = timed("torch.matmul", half(2), 1e4, 1e4)
    assert cells(best_table(of(own, timed("torch.matmul", half(1), 12e3, 12e3), several)))[0][1:4] == [
        "int8", "4096×4096", "2.00",
    ]  # fmt: skip
    assert best_table(of(own, several)) is None
