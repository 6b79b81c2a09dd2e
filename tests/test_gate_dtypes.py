"""harness.gate on problems of every dtype and of several tokens: what is right passes, each planted fault is caught."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from harness.dtypes import DTYPES, SCALED
from harness.gate import Gate
from harness.model import Cache, Case, Operands, Problem, Role, Verdict, Word
from harness.trial import Worker
from tests import planted_dtypes as planted
from tests.planted_dtypes import NARROW

Body = Callable[[Operands], None]
EVERY_DTYPE = pytest.mark.parametrize("dtype", DTYPES)
SIZES = [(5, 1, 1), (1, 1, 3), (3, 3, 1), (7, 3, 4), (9, 128, 1), (33, 128, 8), (5, 4096, 3), (2, 65536, 1)]


def check(body: Body, problem: Problem, role: Role = Role.GEMV) -> Verdict:
    return Gate(problem, "cpu").check(planted.kernel(body, role), lambda _: None)


@EVERY_DTYPE
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
@pytest.mark.parametrize("body", [planted.right, planted.right_by_torch, planted.right_in_double])
def test_no_false_alarm(body: Body, dtype: str, m: int, k: int, n: int) -> None:
    """Sums in float32 or double, rounded once."""
    verdict = check(body, Problem(m=m, k=k, n=n, dtype=dtype))
    assert (verdict.word, verdict.reason) == (Word.PASSED, None)
    assert 0.0 <= verdict.max_error < 1.0


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "float32"])
@pytest.mark.parametrize(("m", "k", "n"), [(5, 1, 1), (7, 3, 2), (40, 128, 5), (30, 4096, 2)])
def test_tensor_cores_are_right(dtype: str, m: int, k: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They cut off instead of rounding: exact on the integers, and within the tolerance."""
    monkeypatch.setattr("harness.gate.check.LAUNCHES", 1)
    verdict = check(planted.right_by_tensor_cores, Problem(m=m, k=k, n=n, dtype=dtype))
    assert (verdict.word, verdict.reason) == (Word.PASSED, None)


@EVERY_DTYPE
@pytest.mark.parametrize("k", [1, 2, 131072])
def test_the_longest_rows(dtype: str, k: int) -> None:
    """And the shortest, which have next to nothing to add up."""
    assert check(planted.right, Problem(m=3, k=k, n=2, dtype=dtype)).word is Word.PASSED


PROBLEM = {"m": 37, "k": 129, "n": 5}
WRONG: list[tuple[Body, tuple[str, ...], str]] = [
    (planted.drops_the_last_element, DTYPES, "integers: "),
    (planted.doubles_one_element, DTYPES, "integers: "),
    (planted.drops_one_element_of_one_token, DTYPES, "integers: 1 of 185 wrong, first y[18, 4]"),
    (planted.swaps_two_rows, DTYPES, "integers: "),
    (planted.swaps_tokens, DTYPES, "integers: "),
    (planted.takes_one_token_for_all, DTYPES, "integers: "),
    (planted.takes_x_as_rows, DTYPES, "integers: "),
    (planted.takes_y_as_rows, DTYPES, "integers: "),
    (planted.forgets_a_token, DTYPES, "y not written"),
    (planted.accumulates_in_float16, ("float32", "tf32"), "integers: "),
    (planted.accumulates_in_float16, NARROW, "large integers: "),
    (planted.accumulates_in_float16_by_pairs, NARROW, "large integers: "),
    (planted.accumulates_in_bfloat16, NARROW, "integers: "),
    (planted.rounds_the_sum_to_float16, ("float32", "tf32"), "integers: "),
    (planted.rounds_operands_to_bfloat16, ("float32", "tf32"), "integers: "),
    (planted.rounds_operands_to_bfloat16, ("float16",), "one-hot x at 0: "),
    (planted.rounds_operands_to_bfloat16, ("int8",), "one-hot rows of A: "),
    (planted.cuts_y_off, NARROW, "large integers: "),
    (planted.writes_behind_a, DTYPES, "wrote outside A"),
    (planted.ignores_the_scale, SCALED, "integers: "),
    (planted.takes_the_scale_of_the_next_row, SCALED, "integers: "),
    (planted.rounds_weights_to_float16, SCALED, "one-hot rows of A: "),
    (planted.takes_a_as_unsigned, SCALED, "integers: "),
    (planted.writes_into_the_scale, SCALED, "changed A or x or scale"),
    (planted.reads_behind_the_scale, SCALED, "found nan"),
]


@pytest.mark.parametrize(
    ("body", "dtype", "reason"),
    [
        pytest.param(body, dtype, reason, id=f"{body.__name__}-{dtype}")
        for body, dtypes, reason in WRONG
        for dtype in dtypes
    ],
)
def test_planted_faults_are_wrong_for_the_right_reason(body: Body, dtype: str, reason: str) -> None:
    """The word, the probe that shows it, and what was found."""
    verdict = check(body, Problem(**PROBLEM, dtype=dtype))
    assert verdict.word is Word.WRONG
    assert reason in (verdict.reason or "")


@EVERY_DTYPE
@pytest.mark.parametrize("k", [2, 4096, 131072])
@pytest.mark.parametrize("body", [planted.drops_the_last_element, planted.doubles_one_element])
def test_one_element_shows_at_any_k(body: Body, k: int, dtype: str) -> None:
    """Also where rounding y hides a thousand times as much."""
    verdict = check(body, Problem(m=2, k=k, n=2, dtype=dtype))
    assert verdict.word is Word.WRONG
    assert (verdict.reason or "").startswith("integers: 4 of 4 wrong")


@EVERY_DTYPE
def test_every_single_element_is_seen(dtype: str) -> None:
    """A kernel that drops element (i, j), for each of them."""
    shared = Gate(Problem(m=3, k=33, n=2, dtype=dtype), "cpu")
    for row in range(3):
        for column in range(33):

            def dropping(o: Operands, row: int = row, column: int = column) -> None:
                sums = o.a.float() @ o.x.float()
                sums[row] -= o.a[row, column].float() * o.x[column].float()
                o.y.copy_(planted.scaled(o, sums))

            verdict = shared.check(planted.kernel(dropping), lambda _: None)
            assert verdict.word is Word.WRONG
            assert f"integers: 2 of 6 wrong, first y[{row}, 0]" in (verdict.reason or "")


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    ("k", "body"),
    [
        *((k, planted.accumulates_in_float16) for k in (3, 128, 4096)),
        *((k, planted.accumulates_in_float16_by_pairs) for k in (3, 128, 4096, 16384, 131072)),
    ],
)
def test_a_float16_accumulator_shows_at_any_k(body: Body, k: int, dtype: str) -> None:
    """As a tree, and one after the other; bfloat16's y hides much of it, so it takes some rows."""
    problem = Problem(m=64 if k <= 4096 else 16, k=k, dtype=dtype)
    assert check(body, problem).word is Word.WRONG


@EVERY_DTYPE
@pytest.mark.parametrize("n", [1, 3])
def test_a_limit_must_read_and_write_all(dtype: str, n: int) -> None:
    """A mark anywhere in A, x and the scales makes some y NaN; every y of every token is written."""
    problem = Problem(m=6, k=50, n=n, dtype=dtype)
    assert check(planted.reads, problem, Role.LIMIT).word is Word.PASSED

    def blind_to(part: str) -> str | None:
        def reads_less(o: Operands) -> None:
            kept = {"a": o.a, "x": o.x, "scale": o.scale} | {part: torch.zeros_like(getattr(o, part))}
            planted.reads(Operands(**kept, y=o.y))

        return check(reads_less, problem, Role.LIMIT).reason

    assert blind_to("a") == "does not read element 0 of A"
    assert blind_to("x") == "does not read element 0 of x"
    if dtype in SCALED:
        assert blind_to("scale") == "does not read element 0 of scale"

    def leaves_the_last(o: Operands) -> None:
        planted.reads(Operands(a=o.a, x=o.x, y=o.y.t()[-1:, :-1], scale=o.scale))

    assert check(leaves_the_last, problem, Role.LIMIT).reason == "left y unwritten"


@pytest.mark.parametrize("dtype", NARROW)
def test_a_k_beyond_the_exact_check_is_not_measured(dtype: str) -> None:
    """2²⁴ / 9: there the products of the small integers could add up to more than float32 holds."""
    verdict = check(planted.right, Problem(m=1, k=2**24 // 9 + 1, dtype=dtype))
    assert verdict.word is Word.NOT_MEASURED
    assert verdict.reason == "k=1864136: the gate's exact check ends at k=1864135"


def bind_cached(part: str):
    """A kernel that keeps a copy of one operand from when it was bound."""

    def bind(o: Operands):
        kept = {"a": o.a, "x": o.x, "scale": o.scale} | {part: getattr(o, part).clone()}
        return lambda: planted.right(Operands(**kept, y=o.y))

    return bind


@EVERY_DTYPE
@pytest.mark.parametrize("n", [1, 3])
def test_what_is_remembered_is_caught_after_timing(dtype: str, n: int) -> None:
    """Of any operand; what remembers nothing is timed."""
    right = planted.kernel(planted.right)
    parts = ("a", "x", "scale") if dtype in SCALED else ("a", "x")
    cached = {part: type(right)(**{**vars(right), "name": part, "bind": bind_cached(part)}) for part in parts}
    worker = Worker({"right": right, **cached}, "cpu", lambda _: None, 1.0)

    def measured(name: str):
        problem = Problem(m=20, k=70, n=n, dtype=dtype)
        case = Case(kernel=name, role=Role.GEMV, problem=problem, timer="async", cache=Cache.HOT)
        return worker.measure(case, 0, 0.002)

    result = measured("right")
    assert (result.verdict.word, bool(result.samples_ns)) == (Word.PASSED, True)
    for part in parts:
        verdict = measured(part).verdict
        assert (verdict.word, part) == (Word.WRONG, part)
        assert (verdict.reason or "").startswith("after timing, with other operands: ")
