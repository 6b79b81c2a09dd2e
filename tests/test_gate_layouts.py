"""harness.gate on views: what takes A to lie otherwise than it does, or reads or writes what is between, is wrong."""

from __future__ import annotations

import pytest
import torch

from harness.gate import Gate
from harness.model import Cache, Case, Operands, Problem, Role, Verdict, Word
from harness.problems import parse_shape
from harness.trial import Worker
from tests import planted_kernels

SHAPES = [
    *("37x37:col", "37x129:col", "129x37:row_stride=40", "37x129:col:row_stride=40", "37x129:first=1"),
    *("37x37:col:row_stride=64:first=3", "5x129:row_stride=4096:first=67"),
]
EDGES = [
    *("1x1:col", "1x7:col", "7x1:col", "1x64:row_stride=100", "64x1:row_stride=3", "64x1:col:row_stride=100"),
    *("1x1:col:row_stride=5:first=1", "2x4097:col", "1x4099:col", "4099x3:col:first=1", "4099x3:row_stride=4"),
]
KERNELS = planted_kernels.kernels()


def check(body: planted_kernels.Body, shape: str, role: Role = Role.GEMV) -> Verdict:
    kernel = planted_kernels._kernel(body, role)
    return Gate(parse_shape(shape), "cpu").check(kernel, lambda _: None)


@pytest.mark.parametrize("shape", [*SHAPES, *EDGES])
def test_no_false_alarm(shape: str) -> None:
    """What reads the view as torch describes it passes, as do the limit and the floor."""
    for body in (planted_kernels.right, planted_kernels.right_in_double):
        verdict = check(body, shape)
        assert (verdict.word, verdict.reason) == (Word.PASSED, None)
        assert 0.0 <= verdict.max_error < 1.0
    assert check(planted_kernels.reads, shape, Role.LIMIT).word is Word.PASSED
    assert check(planted_kernels.floor, shape, Role.FLOOR).word is Word.PASSED


def as_if(o: Operands, *, strides: tuple[int, int], first: int = 0) -> torch.Tensor:
    """A for a kernel that believes in these strides and begins `first` elements from A's first."""
    return o.a.as_strided(tuple(o.a.shape), strides, o.a.storage_offset() + first)


def takes_a_as_packed(o: Operands) -> None:
    torch.matmul(as_if(o, strides=(o.a.shape[1], 1)), o.x, out=o.y)


def takes_columns_for_rows(o: Operands) -> None:
    """Right about the stride: on a square A it multiplies with A's transpose, and reads no gap."""
    torch.matmul(as_if(o, strides=(max(o.a.stride()), 1)), o.x, out=o.y)


def takes_columns_as_packed(o: Operands) -> None:
    torch.matmul(as_if(o, strides=(1, o.a.shape[0])), o.x, out=o.y)


def begins_at_the_boundary(o: Operands) -> None:
    """As a load whose address is rounded down."""
    torch.matmul(as_if(o, strides=o.a.stride(), first=-(o.a.storage_offset() % 4)), o.x, out=o.y)


def multiplies_the_gap_by_zero(o: Operands) -> None:
    """As a vector load past a row's end, whose surplus is masked in x and not in A."""
    right = o.a @ o.x
    behind = o.a.stride(0) * 2 + o.a.shape[1] if o.a.stride(1) == 1 else o.a.stride(1) * 2 + o.a.shape[0]
    o.y.copy_(right)
    o.y[2] += 0.0 * o.a.as_strided((1,), (1,), o.a.storage_offset() + behind)


def writes_into_a_gap(o: Operands) -> None:
    torch.matmul(o.a, o.x, out=o.y)
    line = min(o.a.shape) if o.a.shape[0] == o.a.shape[1] else o.a.shape[int(o.a.stride(1) == 1)]
    o.a.as_strided((1,), (1,), o.a.storage_offset() + line).fill_(0.0)


def drops_the_last_line(o: Operands) -> None:
    a = o.a.clone()
    (a[-1] if o.a.stride(1) == 1 else a[:, -1]).zero_()
    torch.matmul(a, o.x, out=o.y)


ROWS, COLUMNS = "37x37:row_stride=40", "37x37:col:row_stride=40"
WRONG = [
    (takes_a_as_packed, "37x37:col", "integers: "),
    (takes_a_as_packed, "37x129:col", "integers: "),
    (takes_a_as_packed, ROWS, "found nan"),
    (takes_a_as_packed, COLUMNS, "integers: 37 of 37"),
    (takes_columns_for_rows, "37x37:col", "integers: "),
    (takes_columns_for_rows, COLUMNS, "integers: "),
    (takes_columns_as_packed, COLUMNS, "found nan"),
    (takes_columns_as_packed, ROWS, "found nan"),
    (begins_at_the_boundary, "37x129:first=1", "found nan"),
    (begins_at_the_boundary, "37x129:col:first=3", "found nan"),
    (multiplies_the_gap_by_zero, ROWS, "integers: 1 of 37 wrong, first y[2]: found nan"),
    (multiplies_the_gap_by_zero, COLUMNS, "integers: 1 of 37 wrong, first y[2]: found nan"),
    (writes_into_a_gap, ROWS, "integers, launch 3: wrote outside A"),
    (writes_into_a_gap, COLUMNS, "integers, launch 3: wrote outside A"),
    (drops_the_last_line, ROWS, "integers: 1 of 37 wrong, first y[36]"),
    (drops_the_last_line, COLUMNS, "integers: "),
]
"""Kernel, the layout that it fails on, and what is said of it."""


@pytest.mark.parametrize(("body", "shape", "reason"), WRONG, ids=lambda value: getattr(value, "__name__", str(value)))
def test_what_ignores_the_layout_is_wrong(body: planted_kernels.Body, shape: str, reason: str) -> None:
    """Whether it meets a gap or other elements of A."""
    verdict = check(body, shape)
    assert verdict.word is Word.WRONG
    assert reason in (verdict.reason or "")


@pytest.mark.parametrize("body", [takes_a_as_packed, begins_at_the_boundary])
def test_on_a_packed_a_they_are_right(body: planted_kernels.Body) -> None:
    """It is the layout that shows them."""
    assert check(body, "37x37").word is Word.PASSED


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "name",
    [
        *("drops_the_last_element", "drops_one_element_of_one_row", "doubles_one_element", "swaps_two_rows"),
        *("leaves_one_y_unwritten", "adds_to_y", "writes_into_x", "writes_into_a", "computes_only_over_nan"),
        *("rounds_operands_to_tf32", "rounds_x_to_half", "rounds_a_to_half", "accumulates_in_half_where_it_fits"),
        "overflows_on_random_operands",
    ],
)
def test_what_is_wrong_packed_is_wrong_on_a_view(name: str, shape: str) -> None:
    """For the same reason: every probe lies as the problem says."""
    reasons = {body.__name__: reason for body, reason in planted_kernels.WRONG}
    verdict = Gate(parse_shape(shape), "cpu").check(KERNELS[name], lambda _: None)
    assert verdict.word is Word.WRONG
    assert reasons[name] in (verdict.reason or "")


@pytest.mark.parametrize("shape", SHAPES)
def test_every_probe_lies_as_the_problem_says(shape: str) -> None:
    """The strides and the place of A, and NaN in all gaps of every one."""
    problem = parse_shape(shape)
    probes = Gate(problem, "cpu").probes()
    assert {probe.name.partition(" at ")[0] for probe in probes} == {
        *("integers", "one-hot x", "one-hot rows of A", "random"),
    }
    plain = torch.empty(37, 37)
    for probe in probes:
        a = probe.a.values[0]
        wanted = probes[-1].a.values[0]
        assert (a.shape, a.stride()) == ((problem.m, problem.k), wanted.stride())
        assert a.storage_offset() == 64 + problem.layout.first_element
        assert not a.isnan().any()
        whole = a.untyped_storage().nbytes() // plain.element_size()
        everything = a.as_strided((whole,), (1,), 0)
        assert int(everything.isnan().sum()) == whole - a.numel()
        assert probe.touched() is None


@pytest.mark.parametrize("shape", SHAPES)
def test_a_limit_must_read_all_of_a_view(shape: str) -> None:
    """Every element that is tried is one of A, none of a gap."""

    def reads_half(o: Operands) -> None:
        o.y.copy_(o.a[:, : o.a.shape[1] // 2].sum() + o.x.sum())

    def reads_the_gaps(o: Operands) -> None:
        size = o.a.numel() + 64
        o.y.copy_(o.a.as_strided((size,), (1,)).sum() + o.x.sum())

    k = parse_shape(shape).k
    said = check(reads_half, shape, Role.LIMIT).reason or ""
    assert said.startswith("does not read element ")
    assert int(said.split()[4]) % k >= k // 2
    assert check(reads_the_gaps, shape, Role.LIMIT).reason == "left y unwritten"


def test_a_limit_that_reads_a_as_packed_is_found() -> None:
    """The gaps of a view with long strides hide the first of its elements that it does not reach."""

    def reads_too_little(o: Operands) -> None:
        flat = o.a.as_strided((o.a.numel(),), (1,))
        o.y.copy_(flat.nan_to_num().sum() + o.x.sum() + 0.0 * o.a[0].sum())

    assert "does not read element " in (check(reads_too_little, "37x129:row_stride=4096", Role.LIMIT).reason or "")


@pytest.mark.parametrize("shape", ["37x129:col", "37x129:row_stride=140:first=1"])
def test_a_view_is_timed_and_checked_afterwards(shape: str) -> None:
    """The whole way of a case, and what only shows after timing."""
    worker = Worker(KERNELS, "cpu", lambda _: None, 1.0)

    def measured(name: str, problem: Problem):
        case = Case(kernel=name, role=KERNELS[name].role, problem=problem, timer="async", cache=Cache.HOT)
        return worker.measure(case, 0, 0.002)

    right = measured("right", parse_shape(shape))
    assert (right.verdict.word, bool(right.samples_ns)) == (Word.PASSED, True)
    cached = measured("caches_its_result", parse_shape(shape))
    assert cached.verdict.word is Word.WRONG
    assert (cached.verdict.reason or "").startswith("after timing, with other operands: ")
    assert measured("reads", parse_shape(shape)).verdict.word is Word.PASSED
