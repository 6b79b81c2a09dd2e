"""harness.words: a problem for people, told apart from every other."""

from __future__ import annotations

import pytest

from harness.model import Layout, Problem
from harness.words import line_name, problem_in_words


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (Problem(m=1024, k=128), "1024×128"),
        (Problem(m=8, k=16, n=2, dtype="float16"), "8×16×2, float16"),
        (Problem(m=8, k=16, layout=Layout(order="col")), "8×16, col-major"),
        (Problem(m=8, k=16, layout=Layout(row_stride=20)), "8×16, row stride 20"),
        (Problem(m=8, k=16, layout=Layout(order="col", row_stride=20)), "8×16, col-major, column stride 20"),
        (Problem(m=8, k=16, layout=Layout(row_stride=20, first_element=1)), "8×16, row stride 20, first element 1"),
        (Problem(m=8, k=16, seed=7), "8×16, seed 7"),
        (Problem(m=8, k=16, layout=Layout(order="<b>\n\u202e")), "8×16, <b>⟨000A⟩⟨202E⟩-major"),
    ],
)
def test_a_problem_in_words(problem: Problem, words: str) -> None:
    """All that differs from a plain float32 GEMV; a stride is of columns where those lie together."""
    assert problem_in_words(problem) == words


def test_lines_of_a_matrix() -> None:
    """What a stride is from one of to the next."""
    assert [line_name(Layout(order=order)) for order in ("row", "col")] == ["row", "column"]
