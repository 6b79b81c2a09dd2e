"""harness.gate: every planted fault gets its word, and what is right passes at any shape."""

from __future__ import annotations

import re

import pytest
import torch

from harness.gate import Gate
from harness.model import Kernel, Operands, Problem, Role, Verdict, Word
from tests import planted_kernels
from tests.gated import KERNELS, PROBLEM, check

SHAPES = [
    *((1, 1), (1, 2), (2, 1), (1, 7), (1, 4096), (3, 3), (5, 127), (64, 64), (129, 1), (1000, 1), (33, 1000)),
    *((1024, 16), (7, 4097), (2, 65537), (1, 2**20), (3, 2**20), (2, 2**20 - 1), (2**16, 3)),
]


@pytest.mark.parametrize(("body", "reason"), planted_kernels.WRONG, ids=lambda value: getattr(value, "__name__", ""))
def test_planted_faults_are_wrong_for_the_right_reason(body: planted_kernels.Body, reason: str) -> None:
    """The word, the probe that shows it, and what was found."""
    verdict = check(KERNELS[body.__name__])
    assert verdict.word is Word.WRONG
    assert reason in (verdict.reason or "")
    assert "\n" not in (verdict.reason or "")


@pytest.mark.parametrize("name", ["drops_the_last_element", "doubles_one_element", "drops_one_element_of_one_row"])
@pytest.mark.parametrize("k", [2, 100, 4096, 2**20])
def test_one_element_shows_at_any_k(name: str, k: int) -> None:
    """Also where it is a millionth of the sum, far below any tolerance."""
    verdict = check(KERNELS[name], Problem(m=2, k=k))
    assert verdict.word is Word.WRONG
    assert (verdict.reason or "").startswith("integers: ")


def test_every_single_element_is_seen() -> None:
    """A kernel that drops element (i, j), for each of them."""

    def dropping(row: int, column: int) -> Kernel:
        def bind(o: Operands):
            def launch() -> None:
                a = o.a.clone()
                a[row, column] = 0.0
                torch.matmul(a, o.x, out=o.y)

            return launch

        return Kernel(name="drops", role=Role.GEMV, summary="", bind=bind)

    shared = Gate(Problem(m=4, k=33), "cpu")
    for row in range(4):
        for column in range(33):
            verdict = shared.check(dropping(row, column), lambda _: None)
            assert verdict.word is Word.WRONG
            assert f"first y[{row}]" in (verdict.reason or "")


@pytest.mark.parametrize(("m", "k"), SHAPES)
def test_no_false_alarm(m: int, k: int) -> None:
    """torch.matmul passes at every shape, well within the bound on random operands."""
    verdict = check(KERNELS["right"], Problem(m=m, k=k))
    assert verdict == Verdict(word=Word.PASSED, max_error=verdict.max_error)
    assert verdict.max_error is not None
    assert 0.0 <= verdict.max_error < 1.0


@pytest.mark.parametrize("seed", range(8))
def test_no_false_alarm_by_bad_luck(seed: int) -> None:
    """Other random operands, and a result rounded once from float64."""
    problem = Problem(m=200, k=331, seed=seed)
    assert check(KERNELS["right"], problem).word is Word.PASSED
    assert check(KERNELS["right_in_double"], problem).word is Word.PASSED


@pytest.mark.parametrize("order", ["forward", "backward", "pairs"])
def test_no_false_alarm_by_order_of_summation(order: str) -> None:
    """One float32 accumulator through all of k, either way, and a tree: all of them are right."""

    def bind(o: Operands):
        def launch() -> None:
            products = o.a * o.x.view(1, -1)
            if order == "pairs":
                o.y.copy_(products.sum(1, keepdim=True))
                return
            columns = products.unbind(1)
            total = torch.zeros(o.a.shape[0])
            for column in columns if order == "forward" else reversed(columns):
                total = total + column
            o.y.copy_(total.unsqueeze(1))

        return launch

    verdict = check(Kernel(name=order, role=Role.GEMV, summary="", bind=bind), Problem(m=50, k=3000))
    assert verdict.word is Word.PASSED


def test_a_k_beyond_the_exact_check_is_not_measured() -> None:
    """2²⁴ products of at least 1 are the most; no memory for the operands is taken to find out."""
    verdict = check(KERNELS["right"], Problem(m=1, k=2**24 + 1))
    assert verdict.word is Word.NOT_MEASURED
    assert verdict.reason == "k=16777217: the gate's exact check ends at k=16777216"


def test_limit_and_floor_have_checks_of_their_own() -> None:
    """A limit reads everything and writes every y; a floor writes nothing. Column 64 is the first of the other half."""
    assert check(KERNELS["reads"]).word is Word.PASSED
    assert check(KERNELS["floor"]).word is Word.PASSED
    element = re.fullmatch(r"does not read element (\d+) of A", check(KERNELS["reads_half"]).reason)[1]
    assert int(element) % 129 >= 64
    assert check(KERNELS["reads_no_x"]).reason == "does not read element 0 of x"
    assert check(KERNELS["floor_that_writes"]).reason == "wrote y"
    unwritten = Kernel(name="r", role=Role.LIMIT, summary="", bind=KERNELS["leaves_one_y_unwritten"].bind)
    assert check(unwritten).reason == "left y unwritten"


def test_a_stray_launch_is_wrong() -> None:
    """What looks right but was started elsewhere is refused, with the reason that was given."""
    verdict = Gate(PROBLEM, "cpu").check(KERNELS["right"], lambda _: "launches no kernel on the current stream")
    assert verdict == Verdict(word=Word.WRONG, reason="launches no kernel on the current stream")


def test_every_launch_of_one_binding_counts() -> None:
    """A kernel that works every other time would read twice as fast."""
    kernel = Kernel(name="every_other", role=Role.GEMV, summary="", bind=planted_kernels.bind_every_other)
    verdict = check(kernel)
    assert verdict.word is Word.WRONG
    assert verdict.reason.startswith("integers, launch 2: ")
