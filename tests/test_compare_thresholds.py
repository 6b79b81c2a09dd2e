"""Thresholds of a comparison: on the command line, and by kernel in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.comparison.request import read_thresholds
from tests.planted_runs import Command, case, publish, run, timed

BASE = run(*(timed(case(name), 1723.0) for name in ("steady", "quick", "slow", "lost")), timed(case("slow", 128), 2e3))
SLOWER = run(
    timed(case("steady"), 1723.0),
    timed(case("quick"), 1551.0),
    timed(case("slow"), 1775.0),
    timed(case("slow", 128), 2e3),
    timed(case("fresh", timer="async"), 4e3),
)


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """On a store with three runs."""
    for name, made in {"base": BASE, "fine": BASE, "slower": SLOWER}.items():
        publish(tmp_path / "store", name, made)
    return Command(tmp_path / "store", capsys, monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "thresholds.toml"


def test_the_threshold_moves_the_word(command: Command) -> None:
    """3 % slower is none of 5 %, and 0.1 % is a threshold."""
    done = command("base", "slower", "--threshold", "0.05")
    assert done.code == 0
    assert done.lines[-2] == "1 faster, 1 new, 1 gone, 3 same of 6 cases, threshold 5 %"
    done = command("base", "slower", "--threshold", "0.001")
    assert done.lines[-2].endswith(", threshold 0.1 %")


def test_thresholds_from_a_file(command: Command, file: Path) -> None:
    """By kernel; what the command line says goes for the others alone."""
    file.write_text('default = 0.2\n[kernels]\nslow = 0.001\n"torch.mv" = 0\n')
    assert read_thresholds(file) == (0.2, {"slow": 0.001, "torch.mv": 0.0})
    done = command("base", "slower", "--thresholds", str(file), "--kernel", "slow", "--kernel", "quick")
    assert done.code == 1
    assert done.lines[-2].startswith("1 slower, ")
    assert done.lines[-2].endswith("of 3 cases, threshold 20 %, 0.1 % of slow")
    done = command("base", "slower", "--thresholds", str(file), "--threshold", "0.05")
    said = " ".join(done.lines)
    assert " 1 slower, 1 faster, " in said
    assert "of 6 cases, threshold 5 %, 0.1 % of slow exit code 1" in said


def test_a_kernel_of_the_file_that_no_run_has(command: Command, file: Path) -> None:
    """One line on stderr, whatever its name does to a terminal; the file may serve other runs too."""
    file.write_text('[kernels]\nslow = 0.02\nnope = 0.02\n"a\\u001bb" = 0.02\n')
    done = command("base", "fine", "--thresholds", str(file), "--json")
    assert done.code == 0
    assert done.err == f"--thresholds {file}: not in these runs: nope, a⟨001B⟩b\n"
    assert json.loads(done.out)["exit_code"] == 0


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"default = ", "not TOML: Invalid value (at end of document)"),
        (b"\xff", "not TOML: 'utf-8' codec can't decode byte 0xff"),
        (b"x = " + b"[" * 5000, "not TOML: "),
        (b"threshold = 0.1", "found 'threshold', wanted `default` and [kernels]"),
        (b'"a\\nb" = 1', "found 'a\\nb', wanted `default`"),
        (b"kernels = 0.1", "kernels: found 0.1, wanted a table [kernels]"),
        (b"default = 2", "default: found 2, wanted a fraction from 0 to below 1, such as 0.02 for 2 %"),
        (b"default = true", "default: found True, wanted a fraction"),
        (b"default = false", "default: found False, wanted a fraction"),
        (b"default = nan", "default: found nan, wanted a fraction"),
        (b"default = " + b"9" * 400, "default: found 9"),
        (b"[kernels]\nmine = 5", "kernels.mine: found 5, wanted a fraction from 0 to below 1, such as 0.05 for 5 %"),
        (b"[kernels]\nmine = '1%'", "kernels.mine: found '1%', wanted a fraction"),
        (b"[kernels]\nmine = -0.01", "kernels.mine: found -0.01, wanted a fraction"),
        (
            b"[kernels]\ntorch.mv = 0.02",
            (
                "kernels.torch: found a table, wanted a fraction; a name with a dot stands in "
                'quotes, as in "torch.mv" = 0.02'
            ),
        ),
        (b'[kernels]\n"a\\nb" = 5', "kernels.a⟨000A⟩b: found 5"),
    ],
)
def test_thresholds_that_are_none(command: Command, file: Path, content: bytes, line: str) -> None:
    """One line, with code 2, before any run is read."""
    file.write_bytes(content)
    done = command("nope", "nope", "--thresholds", str(file))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"--thresholds {file}: {line}")
    assert len(done.err.splitlines()) == 1
    assert len(done.err) < 600


def test_a_path_is_shown_and_does_nothing_to_the_terminal(command: Command, tmp_path: Path) -> None:
    """Control characters in a file's name, as in its content, stand there as codes; so do those of a run's folder."""
    bad = tmp_path / "a\x1b[2J\u202eb.toml"
    done = command("base", "fine", "--thresholds", str(bad))
    assert (done.code, done.err) == (2, f"--thresholds {tmp_path}/a⟨001B⟩[2J⟨202E⟩b.toml: No such file or directory\n")
    bad.write_text("[kernels]\nnope = 0.02\n")
    done = command("base", "fine", "--thresholds", str(bad))
    assert (done.code, done.err) == (0, f"--thresholds {tmp_path}/a⟨001B⟩[2J⟨202E⟩b.toml: not in these runs: nope\n")
    folder = publish(tmp_path, "r\x1bun", BASE)
    (folder / "samples.parquet").unlink()
    done = command("base", str(folder))
    assert (done.code, done.err.partition(":")[0]) == (4, f"{tmp_path}/r⟨001B⟩un/samples.parquet")


def test_a_thresholds_file_that_is_missing(command: Command, file: Path) -> None:
    """Or is a folder."""
    done = command("base", "fine", "--thresholds", str(file))
    assert (done.code, done.out, done.err) == (2, "", f"--thresholds {file}: No such file or directory\n")
    done = command("base", "fine", "--thresholds", str(file.parent))
    assert (done.code, done.out, done.err) == (2, "", f"--thresholds {file.parent}: Is a directory\n")
