"""Views as operands of the kernels for tokens: which are taken, what a launcher gets, and what is refused."""

from __future__ import annotations

import pytest
import torch

from tests.token_operands import BRAIN, DEVICES, HALF, INT8, OVERLAP, lines, op, operands, product, refusal

SHAPES = [(1, 1, 1), (3, 5, 1), (3, 5, 2), (1, 7, 8), (4, 1, 3), (2, 0, 2), (0, 3, 2)]


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize(("m", "k", "tokens"), SHAPES)
def test_every_dtype_takes_its_operands(m: int, k: int, tokens: int, gap: int) -> None:
    """Any strides from packed on, 1 to 8 tokens, with and without a zero point; what is between tokens stays."""
    for name, dtype in (("planted_half", HALF), ("planted_brain", BRAIN)):
        a, x, out = operands(m, k, tokens, dtype, gap=gap)
        assert refusal(name, a, x, out) is None
        assert out.tolist() == product(a, x)
        assert refusal(name, *operands(m, k, tokens, dtype, device="meta", gap=gap)) is None
    a, scale, zero, x, out = operands(m, k, tokens, INT8, gap=gap)
    for shift in (zero, None):
        assert refusal("planted_w8", a, scale, shift, x, out) is None
        weights = scale.double()[:, None] * (a.double() - (zero.double() if shift is not None else 0 * scale)[:, None])
        assert out.tolist() == product(weights, x)
    assert refusal("planted_w8", *operands(m, k, tokens, INT8, device="meta", gap=gap)) is None


@pytest.mark.parametrize("device", DEVICES)
def test_refuses_strides(device: str) -> None:
    """Rows of A and tokens of x and out are neighbours, and none lies in another."""
    a, x, out = operands(4, 6, 2, device=device)
    rows = "wanted (6 or more, 1), row-major; copy it with .contiguous()"
    assert refusal("planted_half", a.t().contiguous().t(), x, out) == f"a has strides (1, 4), {rows}"
    assert refusal("planted_half", lines(4, 6, 5, HALF, device=device), x, out) == f"a has strides (5, 1), {rows}"
    tokens = "column-major; copy it with .t().contiguous().t()"
    assert refusal("planted_half", a, x.contiguous(), out) == f"x has strides (2, 1), wanted (1, 6 or more), {tokens}"
    expanded = x[:, :1].expand(6, 2)
    assert refusal("planted_half", a, expanded, out) == f"x has strides (1, 0), wanted (1, 6 or more), {tokens}"
    flat = out.contiguous()
    assert refusal("planted_half", a, x, flat) == f"out has strides (2, 1), wanted (1, 4 or more), {tokens}"
    below = lines(2, 4, 3, HALF, device=device).t()
    assert refusal("planted_half", a, x, below) == f"out has strides (1, 3), wanted (1, 4 or more), {tokens}"
    for copied in (a.t().contiguous().t().contiguous(), lines(4, 6, 5, HALF, device=device).contiguous()):
        assert refusal("planted_half", copied, expanded.t().contiguous().t(), out) is None


@pytest.mark.parametrize("device", DEVICES)
def test_a_stride_without_meaning_is_any(device: str) -> None:
    """Of one row, one token, one column."""
    column = torch.ones(4, 9, dtype=HALF, device=device)[:, :1]
    x, out = operands(4, 1, 1, device=device)[1:]
    assert refusal("planted_half", column.as_strided((4, 1), (9, 5)), x.as_strided((1, 1), (7, 3)), out) is None
    assert (
        refusal(
            "planted_half",
            lines(1, 6, 6, HALF, device=device).as_strided((1, 6), (0, 1)),
            lines(1, 6, 6, HALF, device=device).t().as_strided((6, 1), (1, 0)),
            out[:1],
        )
        is None
    )
    spread = torch.ones(4, 3, 2, dtype=HALF, device=device)[:, 0]
    x = torch.ones(2, 1, dtype=HALF, device=device)
    assert refusal("planted_half", spread, x, torch.ones(4, 1, dtype=HALF, device=device)) is None
    stretched = torch.ones(4, 3, dtype=HALF, device=device)[:, ::2]
    words = "a has strides (3, 2), wanted (2 or more, 1), row-major; copy it with .contiguous()"
    assert refusal("planted_half", stretched, x, torch.ones(4, 1, dtype=HALF, device=device)) == words


@pytest.mark.parametrize("device", DEVICES)
def test_limits_are_for_packed_operands(device: str) -> None:
    """With the advice that makes them so."""
    a, x, out = operands(4, 6, 2, device=device)
    wide_a, wide_x, wide_out = operands(4, 6, 2, device=device, gap=1)
    rows = "a has strides (7, 1), wanted (6, 1), row-major and packed; copy it with .contiguous()"
    tokens = "column-major and packed; copy it with .t().contiguous().t()"
    assert refusal("planted_half_packed", wide_a, x, out) == rows
    assert refusal("planted_half_packed", a, wide_x, out) == f"x has strides (1, 7), wanted (1, 6), {tokens}"
    assert refusal("planted_half_packed", a, x, wide_out) == f"out has strides (1, 5), wanted (1, 4), {tokens}"
    assert refusal("planted_half_packed", wide_a.contiguous(), wide_x.t().contiguous().t(), out) is None


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["planted_w8", "planted_w8_packed"])
def test_scales_and_zero_points_are_neighbours(device: str, name: str) -> None:
    """Two scales in one place, or apart, are refused; of one row any stride is taken."""
    a, scale, zero, x, out = operands(4, 6, 2, INT8, device=device)
    apart = torch.ones(8, dtype=HALF, device=device)[::2]
    found = "has stride {}, wanted 1; copy it with .contiguous()".format
    assert refusal(name, a, apart, zero, x, out) == f"scale {found(2)}"
    assert refusal(name, a, scale, zero[:1].expand(4), x, out) == f"zero {found(0)}"
    assert refusal(name, a[:1], apart[:1].expand(1), zero[:1], x, operands(1, 6, 2, device=device)[2]) is None


@pytest.mark.parametrize("device", DEVICES)
def test_out_may_not_overlap_an_input(device: str) -> None:
    """Between the rows of A and between tokens it may lie; bytes count, so int8 A and float16 out are compared too."""
    whole = torch.ones(16, 16, dtype=HALF, device=device)
    a, x = whole[:4, :6], torch.ones(2, 6, dtype=HALF, device=device).t()
    place = whole.as_strided
    assert refusal("planted_half", a, x, place((4, 2), (1, 16), 6)) is None
    assert refusal("planted_half", a, x, place((4, 2), (1, 16), 5)) == f"out overlaps a, {OVERLAP}"
    other = torch.ones(4, 6, dtype=HALF, device=device)
    tokens = whole[:2, :6].t()
    assert refusal("planted_half", other, tokens, place((4, 2), (1, 16), 12)) is None
    assert refusal("planted_half", other, tokens, place((4, 2), (1, 16), 13)) == f"out overlaps x, {OVERLAP}"
    bytes_of = whole.view(INT8).view(-1)
    a, scale, zero = bytes_of[:24].view(4, 6), whole[8, :4], whole[9].view(INT8)[:4]
    for first, label in ((11, "a"), (8 * 16 + 3, "scale"), (9 * 16 + 1, "zero")):
        out = place((4, 1), (1, 4), first)
        assert refusal("planted_w8", a, scale, zero, x[:, :1], out) == f"out overlaps {label}, {OVERLAP}"
        assert refusal("planted_w8", a, scale, zero, x[:, :1], place((4, 1), (1, 4), first + 1)) is None


@pytest.mark.parametrize(
    ("m", "k", "tokens", "periods", "digits"),
    [(3, 2, 1, (5, 9, 9), 1523), (3, 2, 1, (4, 2, 3), 1423), (1, 2, 1, (9, 2, 9), 1221), (2, 0, 1, (9, 9, 9), 1002)],
)
def test_what_a_launcher_gets(m: int, k: int, tokens: int, periods: tuple[int, int, int], digits: int) -> None:
    """The tokens and the strides of A, x and y, a digit each; one without meaning is that of packed operands."""
    of_a, of_x, of_y = periods
    out = lines(tokens, m, of_y, HALF).t()
    op("planted_half_told")(lines(m, k, of_a, HALF), lines(tokens, k, of_x, HALF).t(), out)
    assert out[0, 0].item() == digits


def test_scratch_is_of_floats() -> None:
    """Each piece memory of its own, whatever the operands' dtype is."""
    a, x, out = operands(5, 1, 1)
    op("planted_half_scratch")(a, x, out)
    assert out.view(-1).tolist() == [0.25] * 5


def test_what_a_rule_picks_must_take_the_operands() -> None:
    """A wrong line of the rule is an error in words; so is a variant of another dtype."""
    for m, tokens, gap, words in (
        (1, 3, 1, None),
        (2, 3, 0, "half_few, which does not take so many tokens"),
        (3, 1, 0, "brain, which does not take this dtype"),
        (4, 1, 0, "nobody, which is no kernel of this library"),
        (5, 2, 1, "half_packed, which does not take this layout"),
    ):
        found = refusal("planted", *operands(m, 6, tokens, gap=gap))
        assert found == (None if words is None else f"the rule picks planted_{words}; mend that rule")
    a = lines(2, 6, 6, HALF, first=1)
    found = refusal("planted", a, *operands(2, 6, 1)[1:])
    assert found == "the rule picks planted_half_few, which does not take this alignment; mend that rule"
