"""harness.words: a problem for people, told apart from every other; text that can hide nothing."""

from __future__ import annotations

import pytest

from harness.model import Layout, Problem
from harness.words import coded, line_name, problem_in_words, visible


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sgemv_k32_f32 µs · «Größe» 行列", "sgemv_k32_f32 µs · «Größe» 行列"),
        ("1\u00a0014\u202fµs", "1\u00a0014\u202fµs"),
        ("a\nb\r\tc", "a⟨000A⟩b⟨000D⟩⟨0009⟩c"),
        ("\x1b[31m\x00\x7f\x9b", "⟨001B⟩[31m⟨0000⟩⟨007F⟩⟨009B⟩"),
        ("\u202ekcab\u2066\u200b\ufeff\u00ad", "⟨202E⟩kcab⟨2066⟩⟨200B⟩⟨FEFF⟩⟨00AD⟩"),
        ("\udcff\ud800\ue000\U000e0041", "⟨DCFF⟩⟨D800⟩⟨E000⟩⟨E0041⟩"),
        ("Vie\u0302\u0323t", "Vie\u0302\u0323t"),
        ("Z\u0301\u0335\u0489\u0301\u0301o", "Z\u0301\u0335…o"),
    ],
    ids=["names", "spaces of ours", "lines", "escapes", "direction", "no characters", "two marks", "many marks"],
)
def test_what_could_hide_shows_as_its_code(text: str, shown: str) -> None:
    """And what is harmless as it is, in any script."""
    assert coded(text) == visible(text) == shown
    assert coded(shown) == shown


@pytest.mark.parametrize("length", [80, 81, 2_000_000])
def test_long_text_loses_its_middle(length: int) -> None:
    """Its beginning and end stay; what is short enough stays whole."""
    text = "a" * (length - 1) + "z"
    shown = visible(text)
    assert len(shown) == 80
    assert (shown[0], shown[-1], "…" in shown) == ("a", "z", length > 80)
    assert coded(text) == text
