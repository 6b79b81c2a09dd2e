"""harness.problems: shapes as they are typed, the memory that they take, and how many operand sets they need."""

from __future__ import annotations

import pytest

from harness.errors import CommandError, Exit
from harness.model import Cache, Layout, Problem
from harness.problems import (
    GUARD_BYTES,
    HOT_PLACEMENTS,
    OperandSets,
    allocation_bytes,
    laid_out,
    parse_shape,
    parse_shapes,
    sets_for,
    shape_text,
    why_never_cold,
    why_never_hot,
)

MIB, GIB = 2**20, 2**30
H200_CACHE, H200_MEMORY = 60 * MIB, 150_000_000_000


@pytest.mark.parametrize(
    ("text", "m", "k"),
    [
        ("1024x128", 1024, 128),
        ("1X1", 1, 1),
        ("4096×11008", 4096, 11008),
        (" 8x4096\n", 8, 4096),
        ("9999999999999x1", 9_999_999_999_999, 1),
    ],
)
def test_shapes(text: str, m: int, k: int) -> None:
    """Rows first, then columns; an x of any kind."""
    assert parse_shape(text) == Problem(m=m, k=k)


@pytest.mark.parametrize(
    "text",
    [
        *("", "1024", "1024x", "x128", "0x4", "4x0", "-4x4", "4x-4", "1.5x2", "4x4x0", "4x4x", "4x4x4x4", "1e3x4"),
        *("4 x 4", "012x3", "axb"),
    ],
)
def test_what_is_no_shape(text: str) -> None:
    """What was found, what was wanted, and an example, in one line."""
    with pytest.raises(ValueError, match="wanted MxK") as caught:
        parse_shape(text)
    said = f"found {text!r}, wanted MxK or MxKxN with whole numbers from 1 on, such as 1024x128"
    assert str(caught.value) == f"--shape: {said}"
    with pytest.raises(CommandError) as caught_all:
        parse_shapes([text], "SHAPE")
    assert (caught_all.value.code, str(caught_all.value)) == (Exit.USAGE, f"SHAPE: {said}")


VIEWS = {
    "64x48": Layout(),
    "64x48:col": Layout(order="col"),
    "64x48:row_stride=50": Layout(row_stride=50),
    "64x48:first=1": Layout(first_element=1),
    "64x48:col:row_stride=65:first=3": Layout(order="col", row_stride=65, first_element=3),
}


@pytest.mark.parametrize(("text", "layout"), VIEWS.items())
def test_shapes_with_a_layout(text: str, layout: Layout) -> None:
    """Behind the sizes; what is written back is what was read, so that it can be passed on."""
    problem = parse_shape(text)
    assert problem == Problem(m=64, k=48, layout=layout)
    assert shape_text(problem) == text


COL_FROM_1 = Layout(order="col", first_element=1)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("64x48x3", Problem(m=64, k=48, n=3)),
        ("64X48×3:tf32", Problem(m=64, k=48, n=3, dtype="tf32")),
        ("64x48:float16", Problem(m=64, k=48, dtype="float16")),
        ("64x48x512:bfloat16", Problem(m=64, k=48, n=512, dtype="bfloat16")),
        ("64x48x8:int8:col:first=1", Problem(m=64, k=48, n=8, dtype="int8", layout=COL_FROM_1)),
    ],
)
def test_shapes_with_tokens_and_a_dtype(text: str, problem: Problem) -> None:
    """N behind M and K, the dtype as a word; what is written back is read as the same."""
    assert parse_shape(text) == problem
    assert parse_shape(shape_text(problem)) == problem
    assert shape_text(problem) == text.replace("X", "x").replace("×", "x")


def test_the_default_has_one_name() -> None:
    """One column and float32 may be said, in any order, and are left out where they are not."""
    assert parse_shape("64x48x1:col:float32") == parse_shape("64x48:col")
    assert shape_text(parse_shape("64x48x1:float32")) == "64x48"
    assert parse_shape("64x48x2:first=1:float16") == parse_shape("64x48x2:float16:first=1")


def test_one_layout_has_one_name() -> None:
    """Words in any order; a stride that leaves no gap is packed, of columns where they are what lies together."""
    assert parse_shape("64x48:first=3:row_stride=65:col") == parse_shape("64x48:col:row_stride=65:first=3")
    assert parse_shape("64x48:row_stride=48:first=0") == parse_shape("64x48")
    assert parse_shape("64x48:col:row_stride=64") == parse_shape("64x48:col")
    assert parse_shapes(["64x48", "64x48:col", "64x48:row_stride=48"]) == [
        Problem(m=64, k=48),
        Problem(m=64, k=48, layout=Layout(order="col")),
    ]


@pytest.mark.parametrize(
    "words",
    [
        *("", "row", "column", "COL", "col:col", "first=1:first=2", "first=", "first=-1", "first=01", "first=1.5"),
        *("float64", "fp16", "Float16", "float16:tf32", "float16:float16"),
        *("row_stride", "row_stride=0", "row-stride=64", "stride=64", "col ", "first=99999999999999"),
    ],
)
def test_what_is_no_layout_of_a_shape(words: str) -> None:
    """One line: all that may stand there, and an example."""
    with pytest.raises(ValueError, match="wanted behind MxK") as caught:
        parse_shape(f"64x48:{words}:first=1" if words.endswith(" ") else f"64x48:{words}")
    assert str(caught.value).endswith(
        "wanted behind MxK or MxKxN only a dtype (float32, tf32, float16, bfloat16, int8), :col, :row_stride=N and "
        ":first=N, each at most once, N a whole number, such as 4096x4096:float16:col:first=1"
    )


@pytest.mark.parametrize(
    ("text", "found", "line", "wanted"),
    [("64x48:row_stride=47", 47, "row", 48), ("64x48:col:row_stride=63:first=2", 63, "column", 64)],
)
def test_a_stride_that_is_too_short(text: str, found: int, line: str, wanted: int) -> None:
    """Says whether of rows or columns, and how long they are; wrong usage."""
    with pytest.raises(CommandError) as caught:
        parse_shapes(["8x8", text])
    assert caught.value.code is Exit.USAGE
    assert (
        str(caught.value) == f"{text}: found {found} elements from one {line} of A to the next, wanted {wanted} or more"
    )


def test_a_layout_for_all() -> None:
    """What a problem says itself stays; what it says otherwise is refused, never overruled."""
    col = parse_shape("64x48:col")
    assert laid_out(col) == laid_out(col, order="col") == col
    assert laid_out(col, row_stride=70, first_element=1) == parse_shape("64x48:col:row_stride=70:first=1")
    assert laid_out(parse_shape("64x48"), order="col", row_stride=64) == col
    assert laid_out(parse_shape("64x48"), order="row") == parse_shape("64x48")
    with pytest.raises(ValueError, match="64x48:col: says its own order, and row was asked for all; leave one of"):
        laid_out(col, order="row")
    with pytest.raises(ValueError, match="64x48:first=1: says its own first element, and 0 was asked for all"):
        laid_out(parse_shape("64x48:first=1"), first_element=0)


@pytest.mark.parametrize(
    ("m", "k", "wanted"),
    [
        # 4 × 60 MiB = 251,658,240 bytes, over (m·k + k + m)·4 rounded up, and 16 where 2.5 % of 150 GB hold them.
        (1, 1, 20_971_520),  # 12 bytes a set
        (1024, 128, 476),  # 528,896 bytes
        (4096, 4096, 16),  # 67,141,632 bytes: the cache needs 4, placements 16
        (11008, 4096, 16),  # 180,415,488 bytes: 3.75 GB hold 20
        (32000, 4096, 7),  # 524,432,384 bytes: 3.75 GB hold 7
        (65536, 16384, 1),  # 4.3 GB: one A alone is more than 4 caches, and more than the share of memory
    ],
)
def test_cold_sets_by_hand(m: int, k: int, wanted: int) -> None:
    """Four caches of bytes at least, sixteen placements where memory allows."""
    found = sets_for(Problem(m=m, k=k), Cache.COLD, cache_bytes=H200_CACHE, memory_bytes=H200_MEMORY)
    assert found == wanted


@pytest.mark.parametrize(("m", "k"), [(1, 1), (1024, 128), (4096, 4096)])
def test_one_set_is_hot(m: int, k: int) -> None:
    """Every launch reads what the one before it read."""
    problem = Problem(m=m, k=k)
    assert sets_for(problem, Cache.HOT, cache_bytes=H200_CACHE, memory_bytes=H200_MEMORY) == HOT_PLACEMENTS
    assert sets_for(problem, Cache.HOT, cache_bytes=H200_CACHE, memory_bytes=0) == 1


def test_what_does_not_fit_is_never_hot() -> None:
    """4096×4096 is 67 MB; a cache of 60 MiB is 63 MB. Half of a cache can be hot."""
    problem = Problem(m=4096, k=4096)
    assert why_never_hot(problem, H200_CACHE) == "never hot: its operands do not stay in a cache of 63 MB; see cold"
    assert why_never_hot(problem, 2 * 67_141_632) is None
    assert why_never_hot(problem, 2 * 67_141_631) is not None


@pytest.mark.parametrize(("m", "k", "dtype"), [(3, 5, "float32"), (64, 64, "float32"), (1000, 37, "float16")])
def test_allocation_is_no_more_than_foretold(m: int, k: int, dtype: str) -> None:
    """The figure in an out-of-memory message: an upper bound that is close for large problems."""
    made = OperandSets(Problem(m=m, k=k, dtype=dtype), "cpu", 3)
    real = sum(part.values.untyped_storage().nbytes() for part in (made.a, made.x, made.y))
    foretold = allocation_bytes(made.problem, 3)
    assert real <= foretold <= real + 3 * 3 * 2 * GUARD_BYTES


@pytest.mark.parametrize("shape", ["3x5:col", "3x5:row_stride=64", "300x5:row_stride=7:first=1", "3x500:col:first=100"])
def test_allocation_with_gaps_is_no_more_than_foretold(shape: str) -> None:
    """They take memory all the same."""
    made = OperandSets(parse_shape(shape), "cpu", 3)
    real = sum(part.values.untyped_storage().nbytes() for part in (made.a, made.x, made.y))
    foretold = allocation_bytes(made.problem, 3)
    assert real <= foretold <= real + 3 * 3 * 2 * GUARD_BYTES


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ("1024x128:row_stride=4096", 476),  # as packed: what is not read drives nothing out
        ("4096x4096:row_stride=8192:first=1", 16),  # 134,250,496 bytes: 3.75 GB hold 27
        ("32000x4096:row_stride=8192", 3),  # 1,048,720,384 bytes: 3.75 GB hold 3, where packed they hold 7
        ("32000x4096:col", 7),
    ],
)
def test_gaps_take_memory_and_cool_nothing(shape: str, wanted: int) -> None:
    """By hand, as above."""
    found = sets_for(parse_shape(shape), Cache.COLD, cache_bytes=H200_CACHE, memory_bytes=H200_MEMORY)
    assert found == wanted


@pytest.mark.parametrize(
    ("shape", "taken"),
    [
        ("4096x4096:col:first=1", 67_141_632),  # m·k + k + m elements, as packed
        ("10000x1:row_stride=64", 1_320_004),  # a cache line of 128 bytes for each of 10000 elements; x, y
        ("10000x1:row_stride=3", 160_004),  # closer than a line: the whole stretch
        ("1000x64:row_stride=1000", 388_256),  # 256 bytes from anywhere in a line touch 3 of them; x, y: 4256
        ("64x1000:col:row_stride=1000", 388_256),  # the same for columns
    ],
)
def test_what_is_hot_fits_with_its_cache_lines(shape: str, taken: int) -> None:
    """Elements far apart fill a cache that they would fit into side by side."""
    assert why_never_hot(parse_shape(shape), 2 * taken) is None
    assert why_never_hot(parse_shape(shape), 2 * (taken - 1)) is not None


def test_a_problem_too_small_to_be_cold_says_so() -> None:
    """One of 8×8 is 320 bytes: 4·60 MiB take 786,432 of them. 64×64 takes 14,895, which a graph can hold."""
    small = why_never_cold(Problem(m=8, k=8), 60 * 2**20)
    assert small == "never cold: it would take 786432 operand sets, more than 16384, to fill the cache; see hot"
    assert why_never_cold(Problem(m=64, k=64), 60 * 2**20) is None
