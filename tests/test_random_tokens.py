"""The random problems for tokens themselves, on a CPU: every edge is drawn, a right launch passes, faults are found."""

from __future__ import annotations

import pytest
from torch import Tensor

from harness.problems import whole
from kernels.declarations import declarations
from tests.random_tokens import Drawn, draw, fault, faults, main

FEW = 2_000
"""Elements of A at most: the checks do not depend on the size."""
KERNELS = ("hgemv", "bgemv", "gemv_w8")


def drawn(name: str, count: int, most_elements: int = FEW) -> list[Drawn]:
    return [draw(number, declarations()[name], most_elements) for number in range(count)]


def right(a: Tensor, scale: Tensor | None, zero: Tensor | None, x: Tensor, y: Tensor) -> None:
    wide = a.double() if zero is None else a.double() - zero.double().view(-1, 1)
    sums = (wide @ x.double()).float()
    y.copy_(sums if scale is None else sums * scale.float().view(-1, 1))


def test_every_edge_is_drawn() -> None:
    """Small and odd sizes, few long rows, all counts of tokens; starts and gaps that 16 bytes divide, and others."""
    problems = drawn("gemv_w8", 2000, 4_000_000)
    assert {d.m for d in problems} >= set(range(10))
    assert {d.k for d in problems} >= set(range(131))
    assert {d.n for d in problems} == set(range(1, 9))
    assert {d.a_first for d in problems} == set(range(16))
    assert {d.x_first for d in problems} == {d.y_first for d in problems} == set(range(8))
    assert sum(d.m < 10 and d.k > 50_000 for d in problems) > 20
    assert sum(d.has_zero for d in problems) > 500
    aligned = [d for d in problems if not (d.a_first or d.x_first or (d.k + d.a_gap) % 16 or (d.k + d.x_gap) % 8)]
    assert 700 < len(aligned) < 1300
    assert sum(d.k % 2 == 1 and d.a_gap == 0 for d in problems) > 200
    assert max(d.m * (d.k + d.a_gap) for d in problems) <= 4_000_000


def test_a_problem_is_drawn_by_its_number_and_fits_the_kernel() -> None:
    """The same every time; a kernel for one token gets one, one of float16 no zero points."""
    assert drawn("hgemv", 50) == drawn("hgemv", 50)
    assert {d.n for d in drawn("hgemv_blocks_128", 100)} == {1}
    assert {(d.dtype, d.has_zero) for d in drawn("bgemv", 100)} == {("bfloat16", False)}


@pytest.mark.parametrize("name", KERNELS)
def test_a_right_launch_passes(name: str) -> None:
    """Of every dtype."""
    assert faults(right, drawn(name, 80), "cpu", name) == []


def drops_the_last_column(a: Tensor, scale: Tensor | None, zero: Tensor | None, x: Tensor, y: Tensor) -> None:
    right(a[:, :-1], scale, zero, x[:-1], y)


def takes_x_as_packed(a: Tensor, scale: Tensor | None, zero: Tensor | None, x: Tensor, y: Tensor) -> None:
    right(a, scale, zero, x.as_strided(x.shape, (1, x.shape[0]), x.storage_offset()), y)


def leaves_the_last_token(a: Tensor, scale: Tensor | None, zero: Tensor | None, x: Tensor, y: Tensor) -> None:
    right(a, scale, zero, x[:, :-1], y[:, :-1])


def writes_behind_y(a: Tensor, scale: Tensor | None, zero: Tensor | None, x: Tensor, y: Tensor) -> None:
    right(a, scale, zero, x, y)
    whole(y)[-64] = 0.0


def changes_x(a: Tensor, scale: Tensor | None, zero: Tensor | None, x: Tensor, y: Tensor) -> None:
    right(a, scale, zero, x, y)
    x.mul_(-1.0)


def mixes_tokens(a: Tensor, scale: Tensor | None, zero: Tensor | None, x: Tensor, y: Tensor) -> None:
    right(a, scale, zero, x, y)
    y += (0.0 * y.sum(1, keepdim=True)).to(y.dtype)  # shows where one of them is no number


def sums_in_y(a: Tensor, scale: Tensor | None, zero: Tensor | None, x: Tensor, y: Tensor) -> None:
    """Rounds each half of the sum to y's dtype."""
    first = y.clone()
    right(a[:, ::2], scale, zero, x[::2], first)
    right(a[:, 1::2], scale, zero, x[1::2], y)
    y += first


def leaves_zero_points_out(a: Tensor, scale: Tensor | None, _: Tensor | None, x: Tensor, y: Tensor) -> None:
    right(a, scale, None, x, y)


WRONG = {
    drops_the_last_column: "wrong, first row",
    takes_x_as_packed: "wrong, first row",
    leaves_the_last_token: "found nan",
    writes_behind_y: "wrote between or around the elements of y",
    changes_x: "changed A or x",
    mixes_tokens: "special: ",
    sums_in_y: "normal: ",
    leaves_zero_points_out: "wrong, first row",
}


@pytest.mark.parametrize("launch", WRONG, ids=lambda launch: launch.__name__)
def test_each_planted_fault_is_found(launch: object) -> None:
    """Soon, and in a line that says how to have it again."""
    name = "gemv_w8" if launch is leaves_zero_points_out else "hgemv"
    problems = drawn(name, 100)
    found = faults(launch, problems, "cpu", name)
    assert len(found) == 5
    assert any(WRONG[launch] in line for line in found), found
    assert all(f"; again: python -m tests.random_tokens {name} " in line for line in found)
    assert fault(right, problems[int(found[0].split()[-2])], "cpu") is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "tests.random_tokens: the following arguments are required: KERNEL, NUMBER; --help says what there is"),
        (["sgemv", "7"], "KERNEL: found 'sgemv', wanted a kernel for tokens on cuda: bgemv, "),
    ],
)
def test_a_wrong_command_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage."""
    assert main(arguments) == 2
    found = capsys.readouterr().err
    assert found.startswith(said)
    assert found.count("\n") == 1
