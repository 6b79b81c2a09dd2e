"""harness.timing.graph and the gate on a real GPU: what escapes the stream, what a sample is, and how many kernels."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import pytest
import torch

from harness.capture import branches, capture, kernel_nodes, stray_launch
from harness.gate import Gate
from harness.model import Cache, Case, Kernel, Launch, Operands, Problem, Role, Verdict, Word
from harness.problems import HOT_PLACEMENTS
from harness.process import use_one_stream
from harness.timing import NotMeasurable
from harness.timing.graph import REPLAY_NS, measure_graph
from harness.timing.host import measure_async
from harness.trial import Worker

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
    pytest.mark.filterwarnings("ignore:The CUDA Graph is empty"),
]

DEVICE = "cuda:0"
PROBLEM = Problem(m=1024, k=1024)
ESCAPED = "launches no kernel on the current stream"
REFUSED = "cannot be captured on the current stream: "
SLEEP_CYCLES = 200_000
"""About 0.1 ms: long beside what any clock or launch costs."""


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    """As in a worker, its one stream too, and again after a test that changed it."""
    use_one_stream(DEVICE)
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = False


def gemv(bind: Callable[[Operands], Launch]) -> Kernel:
    return Kernel(name="mine", role=Role.GEMV, summary="", bind=bind, devices=("cuda",))


def bind_right(o: Operands) -> Launch:
    return lambda: torch.matmul(o.a, o.x, out=o.y)


def check(kernel: Kernel, problem: Problem = PROBLEM) -> Verdict:
    return Gate(problem, DEVICE).check(kernel, stray_launch)


def measure(kernel: Kernel, cache: Cache):
    case = Case(kernel="mine", role=Role.GEMV, problem=PROBLEM, timer="graph", cache=cache)
    return Worker({"mine": kernel}, DEVICE, lambda _: None, 1.0).measure(case, 0, 0.02)


@pytest.mark.parametrize(("m", "k"), [(1, 1), (1, 1001), (1000, 1), (1024, 16), (8, 4096), (4096, 4096), (3, 2**20)])
def test_no_false_alarm(m: int, k: int) -> None:
    """Whichever kernels cuBLAS picks, it passes at every shape."""
    verdict = check(gemv(bind_right), Problem(m=m, k=k))
    assert verdict.word is Word.PASSED, verdict.reason
    assert verdict.max_error is not None
    assert verdict.max_error < 1.0


def test_tf32_is_caught() -> None:
    """Tensor cores that round the operands: 128 equal columns, so that cuBLAS uses them at all."""

    def bind(o: Operands) -> Launch:
        def launch() -> None:
            torch.backends.cuda.matmul.allow_tf32 = True
            try:
                o.y.copy_((o.a @ o.x.expand(-1, 128).contiguous())[:, :1])
            finally:
                torch.backends.cuda.matmul.allow_tf32 = False

        return launch

    verdict = check(gemv(bind))
    assert verdict.word is Word.WRONG
    assert (verdict.reason or "").startswith("one-hot x at 0: ")


def on(stream: torch.cuda.Stream, launch: Launch) -> Launch:
    """The launch on another stream than the current one."""

    def run() -> None:
        with torch.cuda.stream(stream):
            launch()

    return run


@pytest.mark.parametrize("where", ["another stream", "the default stream"])
def test_a_launch_that_leaves_the_stream_is_seen(where: str) -> None:
    """A graph would not hold it, and its time would be nothing."""
    stream = torch.cuda.Stream() if where == "another stream" else torch.cuda.default_stream()
    y = torch.zeros(16, device=DEVICE)
    torch.cuda.synchronize()
    reason = stray_launch(on(stream, lambda: y.add_(1.0)))
    assert reason is not None
    assert reason == ESCAPED or reason.startswith(REFUSED)
    torch.cuda.synchronize()
    assert stray_launch(lambda: y.add_(1.0)) is None, "the device must be usable afterwards"


@pytest.mark.parametrize("where", ["another stream", "the default stream"])
def test_a_kernel_that_leaves_the_stream_is_wrong(where: str) -> None:
    """Also if its result happens to be there in time."""
    stream = torch.cuda.Stream() if where == "another stream" else torch.cuda.default_stream()
    products = torch.empty(PROBLEM.m, PROBLEM.k, device=DEVICE)

    def bind(o: Operands) -> Launch:
        def compute() -> None:
            torch.mul(o.a, o.x.view(1, -1), out=products)
            torch.sum(products, 1, keepdim=True, out=o.y)

        torch.cuda.synchronize()
        return on(stream, compute)

    verdict = check(gemv(bind))
    torch.cuda.synchronize()
    assert verdict.word is Word.WRONG
    assert verdict.reason == ESCAPED or (verdict.reason or "").startswith(REFUSED)
    assert check(gemv(bind_right)).word is Word.PASSED


def forks_and_joins(o: Operands) -> Launch:
    """Right, but half of it is on a stream of its own, joined back by events."""
    stream, here = torch.cuda.Stream(), torch.cuda.current_stream()
    half = o.a.shape[0] // 2

    def launch() -> None:
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            torch.matmul(o.a[:half], o.x, out=o.y[:half])
        torch.matmul(o.a[half:], o.x, out=o.y[half:])
        here.wait_stream(stream)

    return launch


def test_a_fork_is_seen() -> None:
    """It is measured, and then its process is not used any more."""
    y = torch.zeros(16, device=DEVICE)
    assert not branches(lambda: y.add_(1.0))
    a, x = torch.ones(64, 64, device=DEVICE), torch.ones(64, 1, device=DEVICE)
    assert branches(forks_and_joins(Operands(a=a, x=x, y=torch.empty(64, 1, device=DEVICE))))


@pytest.mark.parametrize(("bind", "spoils"), [(bind_right, False), (forks_and_joins, True)])
def test_a_stream_of_its_own_spoils_the_worker(bind: Callable[[Operands], Launch], spoils: bool) -> None:
    """A few launches on a second stream slow every later kernel of a process: the next case gets a fresh one."""
    kernel = gemv(bind)
    worker = Worker({"mine": kernel}, DEVICE, lambda _: None, 1.0)
    case = Case(kernel="mine", role=Role.GEMV, problem=PROBLEM, timer="graph", cache=Cache.COLD)
    result = worker.measure(case, 0, 0.02)
    assert result.verdict.word is Word.PASSED, result.verdict.reason
    assert (worker.still_sound() is not None) is spoils


def test_a_launch_without_kernels_is_not_measurable() -> None:
    """Nothing to time is not «very fast»."""
    with pytest.raises(NotMeasurable, match="holds no kernel: it ran on another stream or does nothing"):
        measure_graph([lambda: None], Cache.COLD, DEVICE, 0.01)


def test_a_long_launch_is_launched_once_a_round() -> None:
    """One that takes a whole replay's time need not be in it twice."""
    timing = measure_graph([lambda: torch.cuda._sleep(50 * SLEEP_CYCLES)] * 3, Cache.COLD, DEVICE, 0.01)
    assert timing.launches_per_sample == 3
    assert statistics.median(sample.ns for sample in timing.samples) > REPLAY_NS


def test_kernels_are_counted() -> None:
    """Two kernels a launch: six in three rounds, and the timer says so, and names the two."""
    a = torch.zeros(1000, device=DEVICE)

    def launch() -> None:
        a.add_(1.0)
        a.mul_(0.5)

    assert kernel_nodes(capture([launch], 3)) == 6
    timing = measure_graph([launch], Cache.COLD, DEVICE, 0.01)
    assert timing.kernels_per_launch == len(timing.device_kernels) == 2
    assert all("elementwise" in kernel.name and kernel.duration_ns is None for kernel in timing.device_kernels)
    assert "device_kernels" not in timing.unknown


def test_a_launch_of_changing_size_is_not_measurable() -> None:
    """The first launch has one kernel, later ones two: the count gives it away."""
    a = torch.zeros(1000, device=DEVICE)
    calls = 0

    def launch() -> None:
        nonlocal calls
        calls += 1
        a.add_(1.0)
        if calls > 4:
            a.mul_(0.5)

    with pytest.raises(NotMeasurable, match=r"^the graph of \d+ launches holds \d+ kernels, not \d+$"):
        measure_graph([launch], Cache.COLD, DEVICE, 0.01)


def test_a_sample_is_the_time_of_a_launch() -> None:
    """A spin of about 0.1 ms: the graph and the host's clock over many calls agree within 10 %."""

    def launch() -> None:
        torch.cuda._sleep(SLEEP_CYCLES)

    graph = measure_graph([launch], Cache.COLD, DEVICE, 0.05)
    host = measure_async([launch], Cache.COLD, DEVICE, 0.2)
    graph_ns, host_ns = statistics.median(graph.samples_ns), statistics.median(host.samples_ns)
    assert graph_ns > 50_000
    assert graph_ns == pytest.approx(host_ns, rel=0.1)
    assert graph.launches_per_sample * graph_ns > 0.5 * REPLAY_NS


def test_a_worker_measures_with_graphs() -> None:
    """Cold: every one of many sets is launched alike, and right afterwards with other operands."""
    result = measure(gemv(bind_right), Cache.COLD)
    assert result.verdict.word is Word.PASSED, result.verdict.reason
    assert result.operand_sets is not None
    assert result.launches_per_sample is not None
    l2_bytes = torch.cuda.get_device_properties(DEVICE).L2_cache_size
    assert result.operand_sets * 4 * 1024 * 1024 >= 3.9 * l2_bytes
    assert result.launches_per_sample % result.operand_sets == 0
    assert result.kernels_per_launch is not None
    assert result.kernels_per_launch >= 1
    assert len(result.samples_ns) >= 10


def test_hot_times_every_placement_by_itself() -> None:
    """A sample is the mean over four operand sets, each of which stays in the cache; the record has all four."""
    result = measure(gemv(bind_right), Cache.HOT)
    assert result.operand_sets == len(result.placements_ns) == HOT_PLACEMENTS
    mean = statistics.fmean(result.placements_ns)
    assert mean == pytest.approx(statistics.median(result.samples_ns), rel=0.05)


def test_every_sample_has_its_time_and_its_clock() -> None:
    """The clock is that of the device: no more than its maximum, and not idle."""
    result = measure(gemv(bind_right), Cache.COLD)
    assert len(result.sample_times_unix_s) == len(result.sample_clocks_mhz) == len(result.samples_ns)
    assert result.settled is not None
    clocks = [mhz for mhz in result.sample_clocks_mhz if mhz is not None]
    assert len(clocks) == len(result.samples_ns)
    assert all(300 < mhz < 4000 for mhz in clocks)


def test_a_second_stream_is_what_the_worker_avoids() -> None:
    """Its one stream is not the default one, on which no graph can be captured, and captures run on it too."""
    assert torch.cuda.current_stream() != torch.cuda.default_stream()
    graph = capture([lambda: torch.cuda._sleep(SLEEP_CYCLES)], 1)
    assert kernel_nodes(graph) == 1


@pytest.mark.parametrize("cache", [Cache.COLD, Cache.HOT])
def test_a_cached_result_is_caught(cache: Cache) -> None:
    """The gate sees fresh bindings only; after timing, other operands are in place."""

    def bind(o: Operands) -> Launch:
        result = o.a @ o.x  # prepared once, outside of what is timed
        return lambda: torch.mul(result, 1.0, out=o.y)

    verdict = measure(gemv(bind), cache).verdict
    assert verdict.word is Word.WRONG
    assert (verdict.reason or "").startswith("after timing, with other operands: ")


def test_the_device_is_usable_afterwards() -> None:
    """No refused capture above has left a fault or an open capture behind."""
    torch.cuda.synchronize()
    assert float(torch.ones(4, device=DEVICE).sum()) == 4.0
