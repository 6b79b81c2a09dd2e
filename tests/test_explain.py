"""Asking the rule of `sgemv`: what it is asked, from a problem, from tensors and from the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from harness.model import Choice, Kernel, Layout, Operands, Problem
from kernels import explain as module
from kernels import ops, registry
from kernels.__main__ import main
from kernels.explain import H200, Machine, choose, explain, machine_of
from tests import echo_rules
from tests.built import loaded


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that repeat their question."""
    echo_rules.ask(monkeypatch)


PROBLEM = Problem(m=40, k=30)


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (Layout(), "rows 30 1 1, past 0 0"),
        (Layout(row_stride=33), "rows 33 1 1, past 0 0"),
        (Layout(order="col"), "columns 40 1 1, past 0 0"),
        (Layout(order="col", row_stride=44), "columns 44 1 1, past 0 0"),
        (Layout(first_element=1), "rows 30 1 1, past 4 0"),
        (Layout(first_element=65), "rows 30 1 1, past 4 0"),
    ],
)
def test_a_problem_as_the_rule_sees_it(layout: Layout, words: str) -> None:
    """Its shape, its strides, and where A starts: 65 floats are 260 bytes, 4 past a boundary of 256."""
    found = explain(replace(PROBLEM, layout=layout), Machine(multiprocessors=108, clusters=False))
    assert found == Choice(kernel="echo", reason=f"40x30 {words}, on 108 0")


VIEWS = [
    ((4, 3), (3, 1), 1, 1), ((4, 3), (7, 1), 2, 3), ((4, 3), (1, 4), 1, 1), ((4, 3), (1, 7), 0, 1),
    ((4, 1), (5, 9), 3, 1), ((4, 1), (1, 4), 1, 1), ((1, 3), (9, 5), 1, 3), ((1, 3), (1, 5), 2, 1),
    ((1, 1), (7, 7), 4, 4), ((4, 0), (7, 7), 2, 2),
]  # fmt: skip
"""Shape, strides of A, x and y: those of a size of 0 or 1 have no meaning."""


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("view", VIEWS)
def test_tensors_as_the_launcher_sees_them(
    view: tuple[tuple[int, int], tuple[int, int], int, int],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The rule is asked about the very arguments that op.cpp makes for the kernel."""
    monkeypatch.setattr(module, "machine_of", lambda _: H200)
    shape, of_a, of_x, of_y = view
    m, k = shape
    memory = torch.zeros(300)
    a, x = memory.as_strided(shape, of_a, 1), memory.as_strided((k, 1), (of_x, 1), 66)
    y = torch.zeros(100).as_strided((m, 1), (of_y, 1))
    torch.ops.sgemv.told(a, x, y)
    assert f"{choose(Operands(a=a, x=x, y=y)).reason}\n" == capfd.readouterr().out


def test_only_a_cuda_device_is_a_machine() -> None:
    """Of a CPU nothing is made up."""
    with pytest.raises(ValueError, match="cpu: wanted a CUDA device"):
        machine_of(torch.device("cpu"))


@pytest.mark.parametrize(
    ("major", "count", "clusters"),
    [(8, 108, False), (9, 132, True), (9, 32, True), (9, 16, False), (10, 148, True), (12, 188, False)],
)
def test_a_machine_is_read_from_the_device(
    major: int, count: int, clusters: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clusters of 16 blocks: compute capability 9.x and 10.x, but not on a small part of such a GPU."""
    properties = type("Properties", (), {"multi_processor_count": count, "major": major})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    assert machine_of(torch.device("cuda:0")) == Machine(multiprocessors=count, clusters=clusters)


def test_no_rows_are_no_fault_of_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers for M = 0, where nothing is launched."""
    loaded("cpu")
    monkeypatch.setattr(module, "machine_of", lambda _: H200)
    assert choose(Operands(a=torch.empty(0, 70_000), x=torch.empty(70_000, 1), y=torch.empty(0, 1))).kernel


def test_the_projects_own_rule_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same from the library for the CPU and from that for CUDA, which needs no GPU for it."""
    answers = []
    for target in ("cpu", "cuda"):
        library = loaded(target).library
        monkeypatch.setattr(module, "_rule", lambda name, library=library: module.rule_of(library, name))
        shapes = [(m, k) for m in (1, 8, 1024, 4096) for k in (16, 1000, 65536)]
        asked = [Problem(m=m, k=k, n=n, dtype=dtype) for m, k in shapes for dtype, n in DTYPES]
        answers.append([explain(problem, H200) for problem in asked])
    assert answers[0] == answers[1]
    assert all(each.kernel and each.reason for each in answers[0])


DTYPES = (("float32", 1), ("float16", 1), ("bfloat16", 2), ("int8", 8))


@pytest.mark.parametrize("there", [True, False])
def test_a_loaded_library_is_asked(*, there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none, that for the CPU is built and loaded."""
    built, known = loaded("cpu"), []
    monkeypatch.setattr(module, "build", lambda target: built if target == "cpu" else pytest.fail(target))
    monkeypatch.setattr(ops, "loaded", lambda: (built.library,) if there or known else ())
    monkeypatch.setattr(ops, "load", known.append)
    module._rule.cache_clear()
    assert explain(Problem(m=4, k=4), H200).kernel
    module._rule.cache_clear()
    assert known == ([] if there else [built.library])


@pytest.mark.parametrize(
    "machine", [H200, Machine(multiprocessors=108, clusters=False), Machine(multiprocessors=1, clusters=False)]
)
def test_the_rule_picks_kernels_that_can(machine: Machine) -> None:
    """Over shapes around each power of two, packed or not, by rows or columns: one for the GPU that takes them."""
    loaded("cpu")
    kernels = registry.kernels()
    sizes = sorted({max(1, 2**power + more) for power in range(18) for more in (-1, 0, 1)})
    layouts = (Layout(), Layout(order="col"), Layout(first_element=1))
    for m in sizes[::2]:
        for k in sizes[1::2]:
            for layout in (*layouts, Layout(row_stride=k + 4), Layout(row_stride=k + 3, first_element=2)):
                problem = Problem(m=m, k=k, layout=layout)
                choice = explain(problem, machine)
                assert choice.kernel.startswith("sgemv_"), (problem, choice)
                assert kernels[choice.kernel].devices == ("cuda",), (problem, choice)
                if min(m, k) > 1:  # else A is of both orders, and the contract speaks of one
                    assert kernels[choice.kernel].unsupported(problem) is None, (problem, choice)
                assert "\n" not in choice.reason


PLANTED = """
SGEMV_KERNEL(sgemv, K_AT_MOST, 100, ROWS, 4, "picks among others") {
SGEMV_VARIANT(sgemv_plain, K_ANY, 1, ROWS, 4, "one of them") {
SGEMV_KERNEL(sgemv_other, K_ANY, 1, PACKED, 4, "another kernel") {
GEMV_KERNEL(hgemv, FLOAT16, 8, 2, "picks among others") {
"""


@pytest.fixture
def planted(tmp_path: Path) -> dict[str, Kernel]:
    """The registry of a csrc with a kernel that chooses."""
    (tmp_path / "planted.cu").write_text(PLANTED)
    (tmp_path / "read.cpp").write_text('SGEMV_LIMIT(read_all, K_ANY, 1, PACKED, 4, "reads") {\n')
    (tmp_path / "empty.cpp").write_text('SGEMV_FLOOR(empty_none, K_ANY, 1, PACKED, 4, "nothing") {\n')
    return registry.kernels(tmp_path)


def test_who_has_a_rule_chooses(planted: dict[str, Kernel]) -> None:
    """By its name; its variants are measured by name only."""
    assert {name for name, kernel in planted.items() if kernel.choose is not None} == {"sgemv", "hgemv"}
    assert {name for name, kernel in planted.items() if kernel.candidate} == {"sgemv_plain"}


@pytest.fixture
def command(
    planted: dict[str, Kernel],
    monkeypatch: pytest.MonkeyPatch,
    asked: None,  # noqa: ARG001 - what it sets is wanted
    capsys: pytest.CaptureFixture[str],
) -> pytest.CaptureFixture[str]:
    """Without a GPU."""
    monkeypatch.setattr(registry, "kernels", lambda: planted)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return capsys


def test_the_command_says_what_it_assumes(command: pytest.CaptureFixture[str]) -> None:
    """A line a shape, each with its kernel and the reason, or with why `sgemv` does not take it."""
    assert main(["explain", "40x30", "40x30:row_stride=33", "40x200", *OTHERS]) == 0
    head, columns, *rows = command.readouterr().out.splitlines()
    assert head == "no usable GPU here, so as on an H200: 132 multiprocessors, thread-block clusters"
    assert columns.split() == ["problem", "kernel", "reason"]
    assert [" ".join(row.split()) for row in rows] == [
        "40×30 echo 40x30 rows 30 1 1, past 0 0, on 132 1",
        "40×30, row stride 33 echo 40x30 rows 33 1 1, past 0 0, on 132 1",
        "40×200 – K=200 is more than 100",
        "40×30×2, float16 hgemv_echo 0: 40x30x2 30 30 40, past 0 0, on 132 1",
        "40×30×9, float16 – n=9 columns of x, wanted 1 to 8",
        "40×30, tf32 – dtype is tf32, wanted float32, float16, bfloat16, int8",
    ]


OTHERS = ("40x30x2:float16", "40x30x9:float16", "40x30:tf32")


@pytest.mark.parametrize(
    ("options", "machine", "end"),
    [
        (("--multiprocessors", "108"), "108 multiprocessors, thread-block clusters", "on 108 1"),
        (("--no-clusters",), "132 multiprocessors, no thread-block clusters", "on 132 0"),
        (("--multiprocessors", "8", "--no-clusters"), "8 multiprocessors, no thread-block clusters", "on 8 0"),
    ],
)
def test_the_command_asks_for_another_machine(
    options: tuple[str, ...], machine: str, end: str, command: pytest.CaptureFixture[str]
) -> None:
    """And says so."""
    assert main(["explain", "40x30", *options]) == 0
    head, _, row = command.readouterr().out.splitlines()
    assert head == f"as asked, else as on an H200: {machine}"
    assert row.endswith(end)


def test_the_command_asks_for_the_gpu_that_is_here(
    command: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name and properties."""
    properties = type("Properties", (), {"multi_processor_count": 78, "major": 9})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA H20")
    assert main(["explain", "40x30"]) == 0
    head, _, row = command.readouterr().out.splitlines()
    assert head == "on this NVIDIA H20: 78 multiprocessors, thread-block clusters"
    assert row.endswith("on 78 1")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("explain", "40"), "SHAPE: found '40', wanted MxK or MxKxN with whole numbers from 1 on, such as 1024x128"),
        (
            ("explain", "4x4", "--multiprocessors", "0"),
            "--multiprocessors: found '0', wanted a whole number from 1 to 4096",
        ),
        (("explain",), "explain: the following arguments are required: SHAPE; --help says what there is"),
        ((), "kernels: the following arguments are required: COMMAND; --help says what there is"),
    ],
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], line: str, command: pytest.CaptureFixture[str]) -> None:
    """With the code of wrong usage."""
    assert main(arguments) == 2
    assert command.readouterr() == ("", f"{line}\n")
