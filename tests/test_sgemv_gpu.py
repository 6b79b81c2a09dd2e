"""`sgemv` and the kernels that it picks among on a GPU: random problems, streams, graphs, devices, large operands.

What is drawn and how it is judged is tested on a CPU, in test_random_problems.py.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from harness.gate import compare, error_bound, reference
from harness.model import Operands, Role
from kernels.declarations import declarations
from kernels.registry import kernels
from kernels.rules import CHOOSER
from tests.built import loaded
from tests.random_problems import NAN, Drawn, Placed, draw, faults, fitted, launcher, whole

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")]

PROBLEMS, PROBLEMS_FOR_OTHERS = 2000, 200
"""At random, of `sgemv` and of each other kernel."""
CUDA = [d for d in declarations().values() if d.device_type == "cuda" and d.dtype == "float32"]
NAMES = [d.name for d in CUDA if d.role is Role.GEMV]
BUSY_CYCLES = 50_000_000
"""Of a kernel that only waits: about 25 ms, longer than what is queued behind it takes."""


@pytest.fixture(autouse=True)
def _kernels() -> Iterator[None]:
    """Loaded; what a test allocated is given back."""
    loaded("cuda")
    yield
    gc.collect()
    torch.cuda.empty_cache()


def problem(m: int, k: int, *, by_columns: bool = False, gap: int = 0, number: int = 0) -> Drawn:
    """One that is not drawn: x and y packed, all aligned."""
    return Drawn(
        number=number, m=m, k=k, by_columns=by_columns, gap=gap, a_first=0, x_stride=1, x_first=0, y_stride=1, y_first=0
    )


def wrong(placed: Placed, y: Tensor | None = None) -> str | None:
    """What is wrong with y, which was computed from normal values."""
    sums, norms = reference(placed.a.unsqueeze(0), placed.x.unsqueeze(0))
    return compare(placed.y if y is None else y, sums[0], error_bound(norms[0], placed.a.shape[1]))[0]


MIXED = (
    problem(1, 65536, number=1), problem(8, 65536, number=2), problem(32, 16384, number=3),
    problem(4096, 4096, number=4), problem(1000, 1001, gap=3, number=5), problem(100_000, 7, number=6),
    problem(64, 20_000, by_columns=True, number=7), problem(4096, 512, by_columns=True, gap=1, number=8),
)  # fmt: skip
"""For which the rule has reason to pick different kernels, some with scratch memory."""


@pytest.mark.parametrize("name", NAMES)
def test_random_problems(name: str) -> None:
    """Every edge that the contract takes, each launch twice: values, NaN, infinities, subnormals."""
    count = PROBLEMS if name == CHOOSER else PROBLEMS_FOR_OTHERS
    problems = (fitted(draw(number), declarations()[name]) for number in range(count))
    found = faults(launcher(name), problems, "cuda", name)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", NAMES)
def test_a_million_rows(name: str) -> None:
    """3,000,000 rows, far more than a grid's second dimension has, of 7 columns or what the contract takes."""
    placed = Placed(fitted(problem(3_000_000, 7), declarations()[name]), "cuda")
    placed.normal()
    launcher(name)(placed.a, placed.x, placed.y)
    assert wrong(placed) is None


@pytest.mark.parametrize("name", NAMES)
def test_several_streams_at_once(name: str) -> None:
    """Four, each with all the problems in another order, again and again; scratch is never shared."""
    launch, rounds = launcher(name), 10
    streams = [torch.cuda.Stream() for _ in range(4)]
    mixed = [fitted(each, declarations()[name]) for each in MIXED]
    placed = [[Placed(each, "cuda") for each in mixed[s:] + mixed[:s]] for s in range(len(streams))]
    results: list[tuple[Placed, Tensor]] = []
    for each in (each for of_stream in placed for each in of_stream):
        each.normal()
        results += [(each, torch.full_like(each.y, NAN)) for _ in range(rounds)]
    torch.cuda.synchronize()
    for turn in range(rounds):
        for step in range(len(MIXED)):
            for s, stream in enumerate(streams):
                with torch.cuda.stream(stream):
                    each, y = results[(s * len(MIXED) + step) * rounds + turn]
                    launch(each.a, each.x, y)
    torch.cuda.synchronize()
    found = [f"{tuple(each.a.shape)}: {what}" for each, y in results if (what := wrong(each, y)) is not None]
    assert not found, "\n".join(found[:5])


@pytest.mark.parametrize("name", NAMES)
def test_the_current_stream_is_used(name: str) -> None:
    """The operands are written on it after a long wait: a launch on another stream would be too early."""
    placed = Placed(fitted(problem(200, 1000), declarations()[name]), "cuda")
    whole(placed.a).zero_()
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(BUSY_CYCLES)
        placed.normal()
        launcher(name)(placed.a, placed.x, placed.y)
        torch.cuda.current_stream().synchronize()
    assert wrong(placed) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_captured_graph_sees_new_values(name: str) -> None:
    """Replayed over other operands in the same places; nothing is remembered from the capture."""
    launch = launcher(name)
    placed = [Placed(fitted(each, declarations()[name]), "cuda") for each in MIXED]
    for each in placed:
        each.normal()
        launch(each.a, each.x, each.y)  # sets up whatever is set up once
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for each in placed:
            launch(each.a, each.x, each.y)
    for _ in range(3):
        for each in placed:
            each.normal()
            each.y.fill_(NAN)
        graph.replay()
        torch.cuda.synchronize()
        assert [wrong(each) for each in placed] == [None] * len(placed)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("name", NAMES)
def test_another_device_than_the_current_one(name: str) -> None:
    """The operands' device is used, and the current one is left as it was."""
    assert torch.cuda.current_device() == 0
    placed = [Placed(fitted(each, declarations()[name]), "cuda:1") for each in MIXED]
    for each in placed:
        each.normal()
        launcher(name)(each.a, each.x, each.y)
        assert wrong(each) is None
    assert torch.cuda.current_device() == 0


@pytest.fixture(scope="module")
def large() -> Iterator[Tensor]:
    """65536×40000 elements, more than 2³¹, of normal values."""
    elements = 65536 * 40000
    if torch.cuda.mem_get_info()[0] < 4 * elements + 4e9:
        pytest.skip("needs 15 GB of device memory")
    yield torch.randn(elements, generator=torch.Generator("cuda").manual_seed(0), device="cuda")
    torch.cuda.empty_cache()


@pytest.fixture(scope="module")
def large_answers(large: Tensor) -> dict[bool, tuple[Tensor, Tensor, Tensor]]:
    """X, A·x and its bound, by whether A is column-major."""
    answers = {}
    for by_columns in (False, True):
        a = large_a(large, by_columns=by_columns)
        x = torch.randn(a.shape[1], 1, generator=torch.Generator("cuda").manual_seed(1), device="cuda")
        sums, norms = reference(a.unsqueeze(0), x.unsqueeze(0))
        answers[by_columns] = (x, sums[0], error_bound(norms[0], a.shape[1]))
    return answers


def large_a(large: Tensor, *, by_columns: bool) -> Tensor:
    return large.view(40000, 65536).t() if by_columns else large.view(65536, 40000)


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_more_than_two_to_the_31_elements(
    name: str, by_columns: bool, large: Tensor, large_answers: dict[bool, tuple[Tensor, Tensor, Tensor]]
) -> None:
    """No index is of 32 bits."""
    a = large_a(large, by_columns=by_columns)
    layout = fitted(problem(*a.shape, by_columns=by_columns), declarations()[name])
    if (layout.k, layout.by_columns) != (a.shape[1], by_columns):
        pytest.skip(f"outside the contract of {name}")
    x, sums, bound = large_answers[by_columns]
    y = torch.full((a.shape[0], 1), NAN, device="cuda")
    launcher(name)(a, x, y)
    assert compare(y, sums, bound)[0] is None


def test_more_than_two_to_the_32_rows() -> None:
    """Rows of a column-major A are counted in 64 bits too; its two columns are one, to save memory."""
    m = 2**32 + 33
    if torch.cuda.mem_get_info()[0] < 12 * m:
        pytest.skip(f"needs {12 * m / 2**30:.0f} GiB of free memory")
    column = torch.ones(m, device="cuda")
    column[-1] = 5.0
    y = torch.full((m, 1), NAN, device="cuda")
    launcher("sgemv")(column.as_strided((m, 2), (1, 0)), torch.tensor([[1.0], [2.0]], device="cuda"), y)
    assert y[-1].item() == 15.0
    assert all(bool((part == 3.0).all()) for part in y[:-1].split(2**30))


@pytest.mark.skipif(CHOOSER not in NAMES, reason=f"no kernel is called {CHOOSER}")
def test_the_rule_picks_several_kernels() -> None:
    """For the mixed problems; all of them are tried above by name too."""
    choose = kernels()[CHOOSER].choose
    assert choose is not None
    placed = [Placed(each, "cuda") for each in MIXED]
    picked = {choose(Operands(a=each.a, x=each.x, y=each.y)).kernel for each in placed}
    assert picked <= set(NAMES)
    assert len(picked) >= 3
