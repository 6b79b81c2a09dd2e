"""One of NVIDIA's tools over a process: where it is looked for, what it is given, and that nothing outlives it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from harness import tool
from harness.errors import CommandError, Exit
from harness.pool import ROOT


def executable(folder: Path, name: str = "a-tool", text: str = "") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return str(folder / name)


def run(path: str, *, timeout_s: float = 30.0, **environment: str) -> tool.Ended:
    return tool.run([path, "one", "two"], of="mine", option="--tool", timeout_s=timeout_s, environment=environment)


def find(asked: str | None, *places: Path) -> str:
    return tool.find("a-tool", asked, option="--tool", install="install it", places=places)


def test_where_a_tool_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for alone; else on PATH, then in the toolkit, then in the other places."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    more = tmp_path / "more"
    with pytest.raises(CommandError) as caught:
        find(None, more)
    looked = f"no a-tool (looked at PATH, {tmp_path}/cuda/bin, {more})"
    assert str(caught.value) == f"{looked}; install it, or name it with --tool"
    assert caught.value.code is Exit.INFRASTRUCTURE
    for folder in (more, tmp_path / "cuda" / "bin", tmp_path / "path"):
        assert executable(folder) == find(None, more)
    assert find(str(more / "a-tool")) == str(more / "a-tool")
    with pytest.raises(CommandError, match=r"^--tool: found 'a-t', which is no executable; install it, or name it w"):
        find("a-t", more)


def test_what_it_is_given_and_says(tmp_path: Path) -> None:
    """Arguments, the project's root, variables beside its own, an empty stdin; its words and its code."""
    path = executable(tmp_path, text='cat; echo "$1 $2 $PWD $MINE $PATH"; echo oh >&2; exit 3')
    ended = run(path, MINE="yes")
    assert ended.stdout == f"one two {ROOT} yes {os.environ['PATH']}\n"
    assert (ended.stderr, ended.code, ended.how) == ("oh\n", 3, "exit code 3")
    assert run(executable(tmp_path, text="kill -SEGV $$")).how == "killed by SIGSEGV"
    assert run(executable(tmp_path, text=r"printf '\377'")).stdout == "\ufffd"


def test_what_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    """A child that is left alone writes a file, a while later."""
    child = f"(touch {tmp_path}/early; sleep 1; touch {tmp_path}/late) & wait"
    path = executable(tmp_path, text=child)
    with pytest.raises(CommandError, match=r"^mine: hung, killed after 0\.3 s under a-tool$") as caught:
        run(path, timeout_s=0.3)
    assert caught.value.code is Exit.KERNEL
    assert (tmp_path / "early").exists()
    time.sleep(1)
    assert not (tmp_path / "late").exists()


def test_what_cannot_be_run_is_one_line(tmp_path: Path) -> None:
    """A file that is no program, whatever its mode says."""
    (tmp_path / "a-tool").write_bytes(b"\x7fELF")
    (tmp_path / "a-tool").chmod(0o755)
    with pytest.raises(CommandError, match=r"a-tool cannot be run: .*Exec format error.*; see --tool$") as caught:
        run(str(tmp_path / "a-tool"))
    assert caught.value.code is Exit.INFRASTRUCTURE


@pytest.mark.parametrize(("words", "last"), [("", None), (" \n", None), ("one\ntwo\n\n", "two")])
def test_the_last_line(words: str, last: str | None) -> None:
    """Without what is empty."""
    assert tool.last_line(words) == last
