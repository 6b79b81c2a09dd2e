"""harness.reproduce.building: the kernels built again, how they came out, and that they do not build."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.environment import git_diff
from harness.errors import CommandError
from harness.model import KernelResources
from harness.reproduce import building, source
from tests.checkouts import checkout, git, measured, published, quiet_environment, refused, untouched
from tests.sample_run import cpu_run, cuda_build

__all__ = ["checkout", "untouched"]


def test_a_build_that_came_out_alike_says_so() -> None:
    """Bit for bit; of the C++ kernels, whose objects are hashed, in other words."""
    build = cuda_build()
    assert building.said_of(build, build) == ["device code: identical, bit for bit (1 source)"]
    cpu = replace(build, target="cpu")
    assert building.said_of(cpu, cpu) == ["machine code of the C++ kernels: identical, bit for bit (1 source)"]
    bare = replace(build, device_code_sha256={})
    assert building.said_of(bare, build) == ["device code: the run keeps no hash of it"]


def test_a_build_that_came_out_otherwise_says_what_differs() -> None:
    """Which code, which tools, which kernels' needs."""
    old = replace(cuda_build(), device_code_sha256={f"{name}.cu:sm_90": name for name in "abcdef"})
    hashes = {**old.device_code_sha256, "a.cu:sm_90": "x", "c.cu:sm_90": "x"}
    needs = KernelResources(
        function="f", arch="sm_90", registers=1,
        spill_store_bytes=0, spill_load_bytes=0, stack_bytes=0, static_shared_bytes=0,
    )  # fmt: skip
    new = replace(old, device_code_sha256=hashes, resources=(*old.resources, needs))
    assert building.said_of(old, new) == [
        "device code: 2 of 6 differ: a.cu:sm_90, c.cu:sm_90, though compiler, flags and sources are the same",
        "registers, spills or shared memory differ for: f",
    ]
    newer = replace(new, compiler_version="nvcc 13.1", resources=old.resources)
    assert building.said_of(old, newer) == [
        "compiler: nvcc 13.0.88 for the run, nvcc 13.1 here",
        "device code: 2 of 6 differ: a.cu:sm_90, c.cu:sm_90; so do: compiler",
    ]


def test_nvcc_gets_the_flags_that_it_had() -> None:
    """From its own variables, and no other variable from a record."""
    flags = ("-O3", "NVCC_APPEND_FLAGS=-O1 -G", "LD_PRELOAD=x", "PATH=/x")
    assert building.flag_variables((replace(cuda_build(), flags=flags),)) == {"NVCC_APPEND_FLAGS": "-O1 -G"}


@pytest.mark.usefixtures("untouched")
def test_kernels_that_do_not_build_or_are_others(checkout: Path) -> None:
    """One line, with the compiler's complaint; and sources that are not the run's are not measured."""
    build = replace(cuda_build(), target="cpu", architectures=())
    with source.worktree(checkout, git(checkout, "rev-parse", "HEAD")) as tree:
        with pytest.raises(
            CommandError, match=r"^cannot be tried: .* in kernels/csrc is not what the run was built from$"
        ):
            building.rebuild(tree, build, quiet_environment())
        (tree / "kernels" / "csrc" / "sgemv_cpu_f32.cpp").write_text('#include "op.h"\nnonsense\n')
        with pytest.raises(CommandError, match=r"^cannot be tried: the kernels do not build \(cpu\): .*") as error:
            building.rebuild(tree, build, quiet_environment())
    assert error.value.code == 6


@pytest.mark.usefixtures("untouched")
def test_a_build_that_fails_shows_what_the_compiler_said(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its log is in a cache that goes away: the line names no file of it."""
    kernel = checkout / "kernels" / "csrc" / "sgemv_cpu_f32.cpp"
    text = kernel.read_text()
    kernel.write_text(f"nonsense\n{text}")
    patch = git_diff(checkout)
    kernel.write_text(text)
    assert isinstance(patch, str)
    run = measured(cpu_run(), git(checkout, "rev-parse", "HEAD"), git_dirty=True)
    run = replace(run, builds=(replace(cuda_build(), target="cpu", architectures=()),))
    error = refused(published(tmp_path / "runs", run, source_diff=patch), checkout, tmp_path)
    assert str(error).startswith("cannot be tried: the kernels do not build (cpu): ")
    assert source.PREFIX not in str(error)
    assert "the compiler's words are in the lines above" in str(error)
    out = capsys.readouterr().out
    assert re.search(r"\n         .*sgemv_cpu_f32\.cpp:1:1: error: .*nonsense", out)
