"""The random problems themselves, on a CPU: every edge is drawn, a right launch passes, each planted fault is found."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from harness.problems import whole
from kernels.declarations import declarations
from tests.built import loaded
from tests.random_problems import Placed, draw, fault, faults, fitted, launcher, main

FEW = 20_000
"""Elements of A at most: the checks do not depend on the size."""
DRAWN = [draw(number) for number in range(2000)]


def right(a: Tensor, x: Tensor, y: Tensor) -> None:
    y.copy_(torch.mv(a, x.reshape(-1)).view(-1, 1))


def test_every_edge_is_drawn() -> None:
    """Small and odd sizes, sizes around widths, few long rows; every kind of stride and start."""
    assert {d.m for d in DRAWN} >= set(range(10))
    assert {d.k for d in DRAWN} >= set(range(131))
    assert max(d.m for d in DRAWN) > 100_000
    assert sum(d.m < 10 and d.k > 100_000 for d in DRAWN) > 20
    for width, offset in itertools.product((32, 128, 256, 1024), (-1, 0, 1)):
        assert any(d.m == width + offset for d in DRAWN)
        assert any(d.k == width + offset for d in DRAWN)
    assert {d.a_first for d in DRAWN} == {d.x_first for d in DRAWN} == set(range(8))
    assert {d.x_stride for d in DRAWN} == {0, 1, 2, 3, 5}
    assert {d.y_stride for d in DRAWN} == {1, 2, 3}
    for by_columns, gap in itertools.product((True, False), (0, 1, 2, 3, 4)):
        assert sum(d.by_columns is by_columns and d.gap == gap and d.m > 1 and d.k > 1 for d in DRAWN) > 10


def test_a_problem_is_drawn_by_its_number() -> None:
    """The same every time, and of bounded size."""
    assert [draw(number) for number in range(100)] == DRAWN[:100]
    assert len(set(DRAWN)) == 2000
    assert max((d.m + d.gap) * (d.k + d.gap) for d in DRAWN) <= 4_000_000
    assert max((d.m + d.gap) * (d.k + d.gap) for d in (draw(n, FEW) for n in range(300))) <= FEW


def test_a_problem_is_as_the_harness_knows_it() -> None:
    """Strides and starts agree with what is placed."""
    for drawn in (draw(number, FEW) for number in range(50)):
        placed, layout = Placed(drawn, "cpu"), drawn.problem.layout
        length = drawn.m if drawn.by_columns else drawn.k
        assert placed.a.shape == (drawn.problem.m, drawn.problem.k)
        assert placed.a.stride(0 if layout.order == "row" else 1) == (layout.row_stride or length)
        assert placed.a.storage_offset() % 64 == layout.first_element


@pytest.mark.parametrize(
    "name", [name for name, d in declarations().items() if d.device_type == "cuda" and d.dtype == "float32"]
)
def test_every_contract_can_be_fitted(name: str) -> None:
    """What is fitted is in the contract, and of many shapes."""
    from kernels.registry import _contract

    declaration = declarations()[name]
    problems = [fitted(draw(number), declaration) for number in range(300)]
    assert {_contract(declaration)(d.problem) for d in problems} == {None}
    assert {d.x_first * 4 % declaration.alignment_bytes for d in problems} == {0}
    assert len({(d.m, d.k) for d in problems}) > 100


def test_a_right_launch_passes() -> None:
    """Torch's own, on 300 problems, and the kernel for the CPU on what it takes."""
    assert faults(right, (draw(number, FEW) for number in range(300)), "cpu", "torch.mv") == []
    loaded("cpu")
    declaration = declarations()["sgemv_cpu_f32"]
    problems = (fitted(draw(number, FEW), declaration) for number in range(200))
    assert faults(launcher("sgemv_cpu_f32"), problems, "cpu", "sgemv_cpu_f32") == []


def takes_a_as_packed(a: Tensor, x: Tensor, y: Tensor) -> None:
    right(a.as_strided(a.shape, (a.shape[1], 1), a.storage_offset()), x, y)


def takes_x_as_packed(a: Tensor, x: Tensor, y: Tensor) -> None:
    right(a, x.as_strided(x.shape, (1, 1), x.storage_offset()), y)


def drops_the_last_column(a: Tensor, x: Tensor, y: Tensor) -> None:
    right(a[:, :-1], x[:-1], y)


def adds_what_is_behind_x(a: Tensor, x: Tensor, y: Tensor) -> None:
    right(a, x, y)
    y += whole(x)[-1]


def leaves_the_last_row(a: Tensor, x: Tensor, y: Tensor) -> None:
    right(a[:-1], x, y[:-1])


def writes_behind_y(a: Tensor, x: Tensor, y: Tensor) -> None:
    right(a, x, y)
    whole(y)[-64] = 0.0


def adds_to_y(a: Tensor, x: Tensor, y: Tensor) -> None:
    y.copy_(y.nan_to_num(0.0) + torch.mv(a, x.reshape(-1)).view(-1, 1))


def changes_a(a: Tensor, x: Tensor, y: Tensor) -> None:
    right(a, x, y)
    a.mul_(1.0000001)


def in_half(a: Tensor, x: Tensor, y: Tensor) -> None:
    y.copy_((a.half().double() @ x.half().double()).float())


def flushes_subnormals(a: Tensor, x: Tensor, y: Tensor) -> None:
    right(torch.where(a.abs() < 2.0**-126, 0.0, a), x, y)


def ignores_nan(a: Tensor, x: Tensor, y: Tensor) -> None:
    right(torch.where(a.isnan(), 0.0, a), x, y)


def in_another_order_each_time(a: Tensor, x: Tensor, y: Tensor) -> None:
    order = torch.randperm(a.shape[1])
    right(a[:, order], x[order], y)


def raises(a: Tensor, x: Tensor, y: Tensor) -> None:
    raise RuntimeError(f"no launch of {len(a)}x{len(x)} into {len(y)}")


WRONG = {
    takes_a_as_packed: "wrong, first y",
    takes_x_as_packed: "wrong, first y",
    drops_the_last_column: "wrong, first y",
    adds_what_is_behind_x: "found nan",
    leaves_the_last_row: "1 of ",
    writes_behind_y: "wrote between or around the elements of y",
    adds_to_y: "gave other bits the second time",
    changes_a: "changed A or x",
    in_half: "normal: ",
    flushes_subnormals: "special: ",
    ignores_nan: "special: ",
    in_another_order_each_time: "gave other bits the second time",
    raises: "no launch of ",
}


@pytest.mark.parametrize("launch", WRONG, ids=lambda launch: launch.__name__)
def test_each_planted_fault_is_found(launch: object) -> None:
    """Soon, and in a line that says how to have it again."""
    found = faults(launch, (draw(number, FEW) for number in range(60)), "cpu", "sgemv")
    assert len(found) == 5
    assert any(WRONG[launch] in line for line in found), found
    assert all("; again: python -m tests.random_problems sgemv " in line for line in found)
    number = int(found[0].split()[-2])
    assert fault(right, draw(number, FEW), "cpu") is None


def test_a_failure_can_be_had_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """By the command that its line ends with; 5 while it is wrong, 0 once it is mended."""
    loaded("cpu")
    monkeypatch.setattr("kernels.registry.load", lambda _: None)
    drawn = fitted(draw(7), declarations()["sgemv_cpu_f32"])
    assert main(["sgemv_cpu_f32", "7", "cpu"]) == 0
    assert capsys.readouterr().out == f"{drawn}: right\n"
    monkeypatch.setattr("tests.random_problems.launcher", lambda _: drops_the_last_column)
    assert main(["sgemv_cpu_f32", "7", "cpu"]) == 5
    line = capsys.readouterr().out
    assert line.startswith(f"{drawn}: normal: ")
    assert line.endswith("; again: python -m tests.random_problems sgemv_cpu_f32 7 cpu\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "tests.random_problems: the following arguments are required: KERNEL, NUMBER; --help says what there is"),
        (["sgemv", "7", "cpu"], "KERNEL: found 'sgemv', wanted a kernel for cpu: sgemv_cpu_f32"),
        (
            ["sgemv_cpu_f32", "x", "cpu"],
            "tests.random_problems: argument NUMBER: invalid int value: 'x'; --help says w",
        ),
    ],
)
def test_a_wrong_command_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong usage."""
    assert main(arguments) == 2
    found = capsys.readouterr().err
    assert found.startswith(said)
    assert found.count("\n") == 1
