"""Whether a comparison says that a kernel's code is another one: by its machine code, and by the right sources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.compare import compare
from harness.model import Run
from tests.planted_runs import around, case, measured, run
from tests.sample_run import cuda_build


def notes(base: Run, new: Run) -> tuple[str, ...]:
    (change,) = compare(base, new).cases
    return change.notes


@pytest.mark.parametrize(
    ("source", "code", "header", "said"),
    [
        ("x", "y", "h", ("kernel changed",)),
        ("x", "1", "h", ("source changed, device code did not",)),
        ("0", "y", "h", ("device code changed, source did not",)),
        ("0", "y", "x", ("kernel changed",)),
        ("0", "1", "x", ()),
        ("x", None, "h", ("kernel changed",)),
        ("0", None, "h", ()),
    ],
)
def test_another_source_under_the_same_name(source: str, code: str | None, header: str, said: tuple[str, ...]) -> None:
    """The machine code decides where it is known; another kernel's file is not looked at."""

    def build(src: str, dev: str | None, head: str, other: str) -> Any:
        sources = {"mine.cu": src, "common.cuh": head, "other.cu": other}
        codes = {} if dev is None else {"mine.cu:sm_90": dev, "other.cu:sm_90": other}
        return (replace(cuda_build(), sources_sha256=sources, device_code_sha256=codes),)

    plain = measured(case(), around(1000.0))
    base = run(plain, builds=build("0", None if code is None else "1", "h", "a"))
    assert notes(base, run(plain, builds=build(source, code, header, "b"))) == said


@pytest.mark.parametrize(("source", "said"), [("0", ()), ("x", ("kernel changed",))])
def test_a_users_kernel_is_told_by_its_file(source: str, said: tuple[str, ...]) -> None:
    """Whose build is another than the project's, and the one that holds it alone."""

    def builds(text: str) -> Any:
        own = replace(cuda_build(), target="own/x", sources_sha256={"x.py": text}, device_code_sha256={})
        other = replace(own, target="own/y", sources_sha256={"y.py": "0"}, sources_by_kernel={"other": ("y.py",)})
        return (cuda_build(), other, replace(own, sources_by_kernel={case().kernel: ("x.py",)}))

    plain = measured(case(), around(1000.0))
    assert notes(run(plain, builds=builds("0")), run(plain, builds=builds(source))) == said


BLOCKS, TILES, CHOOSER = "blocks.cu", "tiles.cu", "picks.cu"
RUNS = {"blocks_1": (BLOCKS,), "blocks_2": (BLOCKS,), "tiles": (TILES,), "picks": (BLOCKS, CHOOSER)}


def built(code: dict[str, str], sources: dict[str, tuple[str, ...]] = RUNS, source: str = "0") -> Any:
    """A build whose device code is `code` by `source:arch`, and whose sources are all `source`."""
    files = {BLOCKS: source, TILES: source, CHOOSER: source}
    return (replace(cuda_build(), sources_sha256=files, device_code_sha256=code, sources_by_kernel=sources),)


@pytest.mark.parametrize(
    ("changed", "kernels"),
    [
        (BLOCKS, {"blocks_1", "blocks_2", "picks"}),  # a file of two kernels; one of those that are picked among
        (TILES, {"tiles"}),
        (CHOOSER, {"picks"}),
    ],
)
def test_a_kernel_whose_file_bears_another_name(changed: str, kernels: set[str]) -> None:
    """By the sources that the build's record names; no other kernel is said to have changed, nor torch's."""
    same = {f"{name}:sm_90": "0" for name in (BLOCKS, TILES, CHOOSER)}
    names = (*RUNS, "torch.matmul")
    base, new = (
        run(*(measured(case(name), around(1000.0)) for name in names), builds=built(code, source=source))
        for code, source in ((same, "0"), ({**same, f"{changed}:sm_90": "1"}, "1"))
    )
    found = {each.case.kernel: each.notes for each in compare(base, new).cases}
    assert {name for name, notes in found.items() if notes == ("kernel changed",)} == kernels
    assert found["torch.matmul"] == ()
    others = found.keys() - kernels - {"torch.matmul"}
    assert {found[name] for name in others} == {("source changed, device code did not",)}


def test_only_architectures_of_both_builds_are_held_against_each_other() -> None:
    """Code for another GPU says nothing; a source that one of them lacks is a change."""
    plain = measured(case("picks"), around(1000.0))

    def of(code: dict[str, str]) -> Run:
        return run(plain, builds=built(code))

    code = {"blocks.cu:sm_90": "0", "picks.cu:sm_90": "0"}
    assert notes(of(code), of({**code, "blocks.cu:sm_80": "1"})) == ()
    assert notes(of(code), of({"blocks.cu:sm_90": "0"})) == ("device code changed, source did not",)


def test_a_record_that_does_not_tell_sources() -> None:
    """Beside one that does, its files are taken by the same names; alone, the file bears the kernel's name."""
    same, other = ({"blocks.cu:sm_90": digest} for digest in "01")
    plain = measured(case("blocks_1"), around(1000.0))
    older = run(plain, builds=built(same, {}))
    assert notes(older, run(plain, builds=built(other, source="1"))) == ("kernel changed",)
    assert notes(older, run(plain, builds=built(same))) == ()
    assert notes(older, run(plain, builds=built(other, {}, "1"))) == ()
