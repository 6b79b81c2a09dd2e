"""Views as operands: which strides an op takes by its declared layout, what its launcher gets, and what is refused."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kernels import ops
from kernels.build import build
from kernels.declarations import CSRC, parse
from tests.built import shared_cache

PLANTED = Path(__file__).parent / "planted_csrc" / "layouts.cpp"
DEVICES = ("cpu", "meta")
"""Real tensors, which op.cpp checks, and such without memory, which ops.py does."""
NAN = float("nan")
OVERLAP = "wanted memory of its own; allocate it with torch.empty"


@pytest.fixture(scope="module", autouse=True)
def _library(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The planted kernels with the project's op.cpp, beside the project's own library."""
    csrc = tmp_path_factory.mktemp("csrc")
    shutil.copytree(CSRC, csrc, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*_cpu*.cpp", "*.cu"))
    shutil.copy(PLANTED, csrc)
    library = build("cpu", cache_dir=shared_cache(), csrc=csrc).library
    ops.load(Path(shutil.copy(library, csrc / "planted.so")), csrc)


def op(name: str):
    return getattr(torch.ops.sgemv, f"planted_{name}")


def refusal(name: str, *tensors: Tensor) -> str | None:
    """The words after the kernel's name; None: it ran."""
    try:
        op(name)(*tensors)
    except RuntimeError as error:
        return str(error).removeprefix(f"planted_{name}: ")
    return None


def view(shape: tuple[int, ...], strides: tuple[int, ...], device: str = "cpu", first: int = 0) -> Tensor:
    """Whole numbers in memory of its own."""
    span = first + 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True) if size)
    memory = torch.arange(1.0, span + 1.0) if device == "cpu" else torch.empty(span, device=device)
    return memory.as_strided(shape, strides, first)


def operands(shape: tuple[int, int], strides: tuple[int, int], device: str = "cpu") -> tuple[Tensor, Tensor, Tensor]:
    m, k = shape
    return view(shape, strides, device), view((k, 1), (1, 1), device), torch.full((m, 1), NAN, device=device)


ROWS = [(4, 3), (3, 1)], [(4, 3), (7, 1)], [(4, 3), (2, 1)], [(4, 3), (0, 1)], [(4, 1), (5, 1)], [(4, 1), (5, 9)]
COLUMNS = [(4, 3), (1, 4)], [(4, 3), (1, 7)], [(4, 3), (1, 2)], [(4, 3), (1, 0)], [(1, 3), (1, 5)], [(1, 3), (9, 5)]
BOTH = [(1, 3), (3, 1)], [(4, 1), (1, 4)], [(1, 1), (7, 7)], [(4, 0), (7, 7)], [(0, 3), (7, 7)]
NEITHER = [(4, 3), (6, 2)], [(2, 2), (0, 0)], [(4, 3), (2, 6)]


@pytest.mark.parametrize(
    ("name", "layouts"),
    [
        ("rows", (*ROWS, *BOTH)), ("columns", (*COLUMNS, *BOTH)), ("any", (*ROWS, *COLUMNS, *BOTH)),
        ("finder", (*ROWS, *BOTH)),
    ],
)  # fmt: skip
def test_each_layout_takes_its_views(name: str, layouts: list[list[tuple[int, int]]]) -> None:
    """By the sum of products of whole numbers; also without memory, where nothing is computed."""
    for shape, strides in layouts:
        a, x, out = operands(shape, strides)
        assert refusal(name, a, x, out) is None, (shape, strides)
        assert out.tolist() == (a.double() @ x.double()).tolist(), (shape, strides)
        assert refusal(name, *operands(shape, strides, "meta")) is None, (shape, strides)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("name", "layouts", "wanted"),
    [
        ("rows", (*COLUMNS, *NEITHER), "(any, 1), row-major; copy it with .contiguous()"),
        ("columns", (*ROWS, *NEITHER), "(1, any), column-major; copy it with .t().contiguous().t()"),
        ("any", NEITHER, "(any, 1) or (1, any), row- or column-major; copy it with .contiguous()"),
    ],
)
def test_each_layout_refuses_the_others(
    device: str, name: str, layouts: list[list[tuple[int, int]]], wanted: str
) -> None:
    """In one line: what was found, what was wanted, what to do."""
    for shape, strides in layouts:
        assert refusal(name, *operands(shape, strides, device)) == f"a has strides {strides}, wanted {wanted}"


@pytest.mark.parametrize("advice", [(".contiguous()", "rows"), (".t().contiguous().t()", "columns")])
def test_the_advice_helps(advice: tuple[str, str]) -> None:
    """What the message says to do makes a view that is taken."""
    words, name = advice
    a, x, out = operands((4, 3), (6, 2))
    copied = a.contiguous() if words == ".contiguous()" else a.t().contiguous().t()
    assert words in (refusal(name, a, x, out) or "")
    assert refusal(name, copied, x, out) is None


@pytest.mark.parametrize("name", ["rows", "columns", "any"])
def test_x_and_out_may_have_any_stride(name: str) -> None:
    """Strided, expanded; what lies between the elements of out stays."""
    a = view((4, 3), (1, 4) if name == "columns" else (3, 1))
    for x in (view((3, 1), (5, 1)), view((3, 1), (0, 1)), view((3, 1), (2, 9))):
        memory = torch.full((12,), 7.0)
        out = memory.as_strided((4, 1), (3, 1), 1)
        op(name)(a, x, out)
        assert out.tolist() == (a.double() @ x.double()).tolist()
        assert [value for i, value in enumerate(memory.tolist()) if i % 3 != 1] == [7.0] * 8


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["rows", "columns", "any"])
def test_several_outputs_in_one_place_are_refused(device: str, name: str) -> None:
    """One output may have any stride, 0 too; so may none."""
    strides = (1, 4) if name == "columns" else (3, 1)
    a, x = view((4, 3), strides, device), view((3, 1), (1, 1), device)
    wanted = "out has stride 0, wanted a place for each of its 4 values; allocate it with torch.empty"
    assert refusal(name, a, x, view((4, 1), (0, 1), device)) == wanted
    assert refusal(name, a[:1], x, view((1, 1), (0, 1), device)) is None
    assert refusal(name, a[:0], x, view((0, 1), (0, 1), device)) is None


@pytest.mark.parametrize("device", DEVICES)
def test_packed_is_packed(device: str) -> None:
    """As before there were other layouts."""
    a, x, out = operands((4, 3), (5, 1), device)
    packed = "row-major and packed; copy it with .contiguous()"
    assert refusal("packed", a, x, out) == f"a has strides (5, 1), wanted (3, 1), {packed}"
    a, x, _ = operands((4, 3), (3, 1), device)
    assert refusal("packed", a, view((3, 1), (0, 1), device), out) == f"x has strides (0, 1), wanted (1, 1), {packed}"
    assert refusal("packed", a, x, view((4, 1), (2, 1), device)) == f"out has strides (2, 1), wanted (1, 1), {packed}"


@pytest.mark.parametrize("device", DEVICES)
def test_the_rest_of_the_contract_is_checked_of_views_too(device: str) -> None:
    """K first, then where A and x start: 8 bytes past a multiple of 16."""
    assert refusal("few", *operands((4, 5), (6, 1), device)) == "K=5 is more than 3; use another kernel"
    a, x = view((4, 3), (8, 1), device, first=2), view((3, 1), (2, 1), device, first=2)
    out = view((4, 1), (2, 1), device)
    start = "starts 8 bytes past a multiple of 16 bytes, wanted none; copy it with .clone()"
    aligned = torch.empty(64, device=device)
    assert refusal("few", a, x, out) == f"a {start}"
    assert refusal("few", aligned.as_strided((4, 3), (8, 1)), x, out) == f"x {start}"


@pytest.mark.parametrize(
    ("shape", "a_strides", "x_stride", "y_stride", "digits"),
    [
        ((4, 3), (5, 1), 2, 3, 523),
        ((4, 3), (1, 6), 0, 1, 1601),
        ((4, 3), (3, 1), 1, 1, 311),
        ((1, 3), (9, 1), 1, 9, 311),  # one row, one output
        ((1, 3), (1, 1), 1, 1, 311),
        ((1, 3), (1, 5), 1, 1, 1511),  # one row that is no row
        ((4, 1), (5, 9), 9, 1, 511),  # one column, one input
        ((4, 1), (1, 9), 9, 1, 111),
        ((1, 1), (9, 9), 9, 9, 111),
        ((4, 0), (8, 9), 9, 1, 11),
    ],
)
def test_what_a_launcher_gets(
    shape: tuple[int, int], a_strides: tuple[int, int], x_stride: int, y_stride: int, digits: int
) -> None:
    """By columns, stride of A, x and y, a digit each; a stride without meaning is that of packed operands."""
    m, k = shape
    out = torch.full((30,), NAN).as_strided((m, 1), (y_stride, 1))
    op("strides")(view(shape, a_strides), view((k, 1), (x_stride, 1)), out)
    assert out[0].item() == digits


def test_scratch_is_memory_of_its_own() -> None:
    """Each piece, until the launcher has returned."""
    a, x, out = operands((5, 1), (1, 1))
    op("scratch")(a, x, out)
    assert out.view(-1).tolist() == [100.0, 101.0, 102.0, 103.0, 104.0]


def test_what_a_rule_picks_must_take_the_operands() -> None:
    """A wrong line of a rule is an error in words, never a kernel that runs outside its contract."""
    a, x, out = operands((5, 1), (1, 1))
    op("picker")(a, x, out)
    assert out.isfinite().all()
    for shape, strides, words in (
        ((5, 2), (1, 5), "picks planted_few, which does not take this layout; mend rule.h"),
        ((5, 3), (3, 1), "picks planted_nobody, which is no kernel of this library; mend rule.h"),
    ):
        a, x, out = operands(shape, strides)
        with pytest.raises(RuntimeError, match=words):
            op("picker")(a, x, out)


def memory(device: str) -> Tensor:
    return torch.ones(6, 8, device=device)


APART = {
    "column 3 of [A | y]": ((6, 3), (8, 1), 0, (8, 1), 3),
    "the last column": ((6, 3), (8, 1), 0, (8, 1), 7),
    "before A in each row": ((6, 3), (8, 1), 1, (8, 1), 0),
    "column 5, every other row": ((3, 3), (8, 1), 0, (16, 1), 5),
    "in the one row's remainder": ((1, 3), (8, 1), 0, (1, 1), 3),
    "behind A": ((3, 8), (8, 1), 0, (1, 1), 24),
    "in front of A": ((3, 8), (8, 1), 3, (1, 1), 0),
    "row 3 of a column-major A": ((3, 6), (1, 8), 0, (1, 1), 3),
    "one output between the columns": ((1, 6), (1, 8), 0, (9, 1), 20),
}
OVERLAPPING = {
    "column 2": ((6, 3), (8, 1), 0, (8, 1), 2),
    "column 0": ((6, 3), (8, 1), 0, (8, 1), 0),
    "its last element": ((3, 8), (8, 1), 0, (1, 1), 23),
    "its first element": ((3, 8), (8, 1), 2, (1, 1), 0),
    "between rows, but with another period": ((3, 3), (8, 1), 0, (3, 1), 3),
    "inside a packed A": ((6, 8), (8, 1), 0, (8, 1), 7),
    "a column of a column-major A": ((3, 6), (1, 8), 0, (1, 1), 8),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("where", [*APART, *OVERLAPPING])
def test_out_may_not_overlap_a(device: str, where: str) -> None:
    """Between its rows it may lie, such as in the last column of the augmented matrix [A | y]."""
    shape, a_strides, a_first, y_strides, y_first = (APART | OVERLAPPING)[where]
    whole = memory(device)
    a = whole.as_strided(shape, a_strides, a_first)
    out = whole.as_strided((shape[0], 1), y_strides, y_first)
    if device == "cpu":
        places = torch.arange(48).as_strided
        shared = {*places(a.shape, a.stride(), a_first).flatten().tolist()} & {
            *places(out.shape, out.stride(), y_first).flatten().tolist()
        }
        assert not shared or where in OVERLAPPING
    found = refusal("any", a, torch.ones(shape[1], 1, device=device), out)
    assert found == (None if where in APART else f"out overlaps a, {OVERLAP}")


@pytest.mark.parametrize("device", DEVICES)
def test_out_may_not_overlap_x(device: str) -> None:
    """X and y may be columns of one matrix, and x may be expanded."""
    whole, a = memory(device), torch.ones(6, 6, device=device)
    flat, overlap = whole.view(48, 1), f"out overlaps x, {OVERLAP}"
    for name in ("any", "packed"):
        assert refusal(name, a, flat[:6], flat[6:12]) is None
        assert refusal(name, a, flat[:6], flat[5:11]) == overlap
    assert refusal("any", a, whole[:, :1], whole[:, 1:2]) is None
    assert refusal("any", a, whole[:, :1], whole[:, :1]) == overlap
    assert refusal("any", a, whole[0, :1].expand(6, 1), whole[:, 1:2]) is None
    assert refusal("any", a, whole[2, 1:2].expand(6, 1), whole[:, 1:2]) == overlap
    assert refusal("any", a[:, :1], whole[:1, :1], whole[:, :1]) == overlap
    assert refusal("packed", a, whole[0, :6].view(6, 1), a.view(36, 1)[30:]) == f"out overlaps a, {OVERLAP}"


SMALL = itertools.product((1, 2, 3), (1, 2, 3), range(6), (1, 2, 3, 5), range(12))


def test_no_overlap_passes_unseen() -> None:
    """Every small A in every way beside every small y, against the sets of their elements; by both checks."""
    for m, k, stride, y_stride, y_first in SMALL:
        places = {5 + i * stride + j for i in range(m) for j in range(k)}
        meets = not places.isdisjoint(y_first + i * y_stride for i in range(m))
        taken = set()
        for device in DEVICES:
            whole = torch.ones(24, device=device)
            a, out = whole.as_strided((m, k), (stride, 1), 5), whole.as_strided((m, 1), (y_stride, 1), y_first)
            taken.add(refusal("rows", a, torch.ones(k, 1, device=device), out) is None)
        assert len(taken) == 1, (m, k, stride, y_stride, y_first)
        assert not (meets and taken == {True}), (m, k, stride, y_stride, y_first)


@pytest.mark.parametrize("name", ["rows", "columns", "any"])
def test_opcheck_of_views(name: str) -> None:
    """Schema, fake tensors and dynamic shapes, by torch's own check."""
    a = view((5, 3), (1, 7) if name == "columns" else (7, 1))
    out = torch.zeros(10)[::2].view(5, 1)
    results = torch.library.opcheck(op(name).default, (a, view((3, 1), (2, 1)), out))
    assert set(results.values()) == {"SUCCESS"}


def test_every_planted_kernel_is_declared() -> None:
    """The names above are those of the file."""
    assert {d.name.removeprefix("planted_") for d in parse(PLANTED)} == {
        "packed", "rows", "columns", "any", "few", "strides", "scratch", "finder", "picker",
    }  # fmt: skip
