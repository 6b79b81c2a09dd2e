"""`hgemv`, `bgemv`, `gemv_w8` and what they pick among on a GPU: random problems, streams, graphs, many elements.

What is drawn and how it is judged is tested on a CPU, in test_random_tokens.py.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch

from harness.gate import tolerance
from harness.model import Role
from kernels.declarations import declarations
from tests.built import loaded
from tests.random_tokens import NAN, Drawn, Placed, draw, faults, launcher

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")]

PROBLEMS = 500
"""At random, of each kernel."""
TOKENS = {
    name: d
    for name, d in declarations().items()
    if d.device_type == "cuda" and d.role is Role.GEMV and d.dtype != "float32"
}
BUSY_CYCLES = 50_000_000
"""Of a kernel that only waits: about 25 ms, longer than what is queued behind it takes."""


@pytest.fixture(autouse=True)
def _kernels() -> Iterator[None]:
    """Loaded; what a test allocated is given back."""
    loaded("cuda")
    yield
    gc.collect()
    torch.cuda.empty_cache()


def problem(name: str, m: int, k: int, n: int, *, gap: int = 0, zero: bool = False, number: int = 0) -> Drawn:
    """One that is not drawn: all starts on 16 bytes."""
    declaration = TOKENS[name]
    return Drawn(
        number=number, dtype=declaration.dtype, m=m, k=k, n=min(n, declaration.most_n), a_first=0, a_gap=gap, x_first=0,
        x_gap=gap, y_first=0, y_gap=0, has_zero=zero and declaration.dtype == "int8",
    )  # fmt: skip


def mixed(name: str) -> list[Placed]:
    """Problems for which a rule has reason to pick different kernels."""
    shapes = (
        (1, 65536, 1),
        (8, 65536, 8),
        (4096, 4096, 1),
        (4096, 4096, 4),
        (1000, 1001, 3),
        (50_000, 64, 8),
        (9, 7, 2),
    )
    return [
        Placed(problem(name, m, k, n, zero=i % 2 == 1, number=i), "cuda") for i, (m, k, n) in enumerate(shapes)
    ]  # fmt: skip


def run(name: str, placed: Placed) -> None:
    launcher(TOKENS[name])(placed.a, placed.scale, placed.zero, placed.x, placed.y)


def wrong(placed: Placed) -> str | None:
    """What is wrong with y, which was computed from normal values."""
    sums, norms = placed.expected()
    bad = ~((placed.y.double() - sums).abs() <= tolerance(sums, norms, placed.a.shape[1], placed.dtype))
    return f"{int(bad.sum())} of {bad.numel()} wrong of {tuple(placed.a.shape)}" if bool(bad.any()) else None


@pytest.mark.parametrize("name", TOKENS)
def test_random_problems(name: str) -> None:
    """Every edge that the contract takes, each launch twice: values, exact sums, NaN and infinities, zero points."""
    problems = (draw(number, TOKENS[name]) for number in range(PROBLEMS))
    found = faults(launcher(TOKENS[name]), problems, "cuda", name)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", TOKENS)
def test_the_current_stream_is_used(name: str) -> None:
    """The operands are written on it after a long wait: a launch on another stream would be too early."""
    placed = Placed(problem(name, 200, 1000, 8), "cuda")
    placed.integers()
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(BUSY_CYCLES)
        placed.normal()
        run(name, placed)
        torch.cuda.current_stream().synchronize()
    assert wrong(placed) is None


@pytest.mark.parametrize("name", TOKENS)
def test_a_captured_graph_sees_new_values(name: str) -> None:
    """Replayed over other operands in the same places; nothing is remembered, and bits are the same each time."""
    placed = mixed(name)
    for each in placed:
        each.normal()
        run(name, each)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for each in placed:
            run(name, each)
    for _ in range(3):
        found = []
        for each in placed:
            each.normal()
        for _ in range(2):
            for each in placed:
                each.y.fill_(NAN)
            graph.replay()
            torch.cuda.synchronize()
            assert [wrong(each) for each in placed] == [None] * len(placed)
            found.append([each.y.view(torch.int16).clone() for each in placed])
        assert all(torch.equal(first, second) for first, second in zip(*found, strict=True))


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_does_not_depend_on_its_neighbours(name: str) -> None:
    """The same bits where all others are NaN, and these are NaN."""
    placed = Placed(problem(name, 500, 3000, 8, zero=True), "cuda")
    placed.normal()
    run(name, placed)
    x, y = placed.x.clone(), placed.y.clone()
    for token in range(y.shape[1]):
        placed.x.fill_(NAN)
        placed.x[:, token] = x[:, token]
        run(name, placed)
        assert torch.equal(placed.y[:, token], y[:, token])
        assert int(placed.y.isnan().any(0).sum()) == y.shape[1] - 1


@pytest.mark.parametrize("name", TOKENS)
def test_more_than_two_to_the_31_elements(name: str) -> None:
    """No index is of 32 bits: the last rows are right."""
    m, k = 65536, 40000
    declaration = TOKENS[name]
    size = 1 if declaration.dtype == "int8" else 2
    if torch.cuda.mem_get_info()[0] < size * m * k + 2e9:
        pytest.skip(f"needs {(size * m * k + 2e9) / 1e9:.0f} GB of device memory")
    placed = Placed(problem(name, m, k, 8), "cuda")
    last = Placed(problem(name, 64, k, 8), "cuda")
    last.normal()
    placed.a.fill_(1)
    placed.a[-64:] = last.a
    placed.x.copy_(last.x)
    if placed.scale is not None and last.scale is not None:
        placed.scale[-64:] = last.scale
    run(name, placed)
    last.y.copy_(placed.y[-64:])
    assert wrong(last) is None
    assert bool((placed.y[:-64] == placed.y[0]).all())
