"""The build: its cache, its record, and every way in which it can fail."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.model import BuildRecord
from kernels import artifacts, cli
from kernels import build as module
from kernels.build import BuildError, build
from kernels.declarations import GLUE
from tests.built import library

ROOT = Path(module.__file__).parents[1]
SOURCE = '#include "op.h"\nSGEMV_KERNEL(mine, K_ANY, 1, PACKED, 4, "mine") {}\n'

FAKE_GXX = """\
#!/bin/sh
[ "$1" = --version ] && { echo "g++ (fake) 12.0"; exit 0; }
echo "$@" >> "$FAKE_CALLS"
[ -e "$FAKE_CALLS.slow" ] && sleep 60
while [ $# -gt 1 ]; do [ "$1" = -o ] && echo "$FAKE_CALLS" > "$2"; shift; done
exit 0
"""
CALLS_A_BUILD = 5
"""Kernel, three of glue, link."""


class Bench:
    """A tiny csrc, a cache, and a C++ compiler that only counts its calls."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.csrc = folder / "csrc"
        self.cache = folder / "cache"
        self.calls_file = folder / "calls"
        self.csrc.mkdir()
        (self.csrc / "mine.cpp").write_text(SOURCE)
        for glue in GLUE:
            (self.csrc / glue).write_text("// glue\n")
        (self.csrc / "op.h").write_text("// header\n")
        executable(folder / "g++", FAKE_GXX)
        monkeypatch.setenv("CXX", str(folder / "g++"))
        monkeypatch.setenv("FAKE_CALLS", str(self.calls_file))

    def build(self) -> module.Built:
        """The library of the tiny csrc."""
        return build("cpu", cache_dir=self.cache, csrc=self.csrc)

    def calls(self) -> int:
        """How often the compiler was called to compile or link."""
        return len(self.calls_file.read_text().splitlines()) if self.calls_file.exists() else 0

    def start(self) -> subprocess.Popen[str]:
        """The same build in a process of its own."""
        program = (
            "import sys; from pathlib import Path; from kernels.build import build; "
            "print(build('cpu', cache_dir=Path(sys.argv[1]), csrc=Path(sys.argv[2])).library)"
        )
        command = [sys.executable, "-c", program, str(self.cache), str(self.csrc)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def leftovers(self) -> list[Path]:
        """Folders of builds that did not end."""
        return list(self.cache.glob(".building-*"))


def executable(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_a_second_build_is_a_cache_hit(bench: Bench) -> None:
    """The compiler runs once; both get the same library."""
    first, second = bench.build(), bench.build()
    assert (first.library, bench.calls()) == (second.library, CALLS_A_BUILD)
    assert first.record == second.record
    assert not bench.leftovers()


@pytest.mark.parametrize("name", ["mine.cpp", "op.cpp", "op_tokens.cpp", "explain.cpp", "op.h"])
def test_a_changed_source_is_built_again(bench: Bench, name: str) -> None:
    """A kernel, the glue or a header; the old entry stays."""
    first = bench.build()
    (bench.csrc / name).write_text((bench.csrc / name).read_text() + "// changed\n")
    second = bench.build()
    assert first.directory != second.directory
    assert bench.calls() == 2 * CALLS_A_BUILD
    assert bench.build().directory == second.directory


def test_another_compiler_is_another_build(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its version is in the key."""
    first = bench.build()
    monkeypatch.setenv("CXX", executable(tmp_path / "g++", FAKE_GXX.replace("12.0", "13.0")))
    assert bench.build().directory != first.directory


@pytest.mark.parametrize("damage", ["library", "record", "sums", "unreadable"])
def test_a_damaged_entry_is_built_again(bench: Bench, damage: str) -> None:
    """A library that changed, a record that is gone or is not one, sums that are gone."""
    built = bench.build()
    if damage == "library":
        built.library.write_text("something else")
    elif damage == "record":
        (built.directory / module.RECORD).unlink()
    elif damage == "sums":
        (built.directory / module.SUMS).unlink()
    else:
        (built.directory / module.RECORD).write_text("{")
    again = bench.build()
    assert again.directory == built.directory
    assert bench.calls() == 2 * CALLS_A_BUILD
    assert bench.build().record == again.record


def wait_for(condition: object, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def test_a_killed_build_leaves_nothing_to_wait_on(bench: Bench) -> None:
    """Killed while the compiler runs, with its lock held and its folder half-filled; the next build just works."""
    slow = Path(f"{bench.calls_file}.slow")
    slow.touch()
    process = bench.start()
    wait_for(lambda: bench.calls() >= 1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert len(bench.leftovers()) == 1
    slow.unlink()
    assert bench.build().library.is_file()
    assert not bench.leftovers()


def test_left_over_files_of_a_killed_build_are_not_used(bench: Bench) -> None:
    """A lock file and a hidden folder from yesterday."""
    entry = bench.build().directory
    entry.rename(bench.cache / f".building-{entry.name}-left")
    (bench.cache / f".{entry.name}.lock").touch()
    assert bench.build().directory == entry
    assert bench.calls() == 2 * CALLS_A_BUILD
    assert not bench.leftovers()


def test_two_builds_at_once_compile_once(bench: Bench) -> None:
    """The second waits for the first and takes its entry."""
    processes = [bench.start(), bench.start()]
    libraries = {process.communicate(timeout=60)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert len(libraries) == 1
    assert bench.calls() == CALLS_A_BUILD


def test_a_failing_compile_names_source_complaint_and_log(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a real compiler; the log outlives the build's folder."""
    monkeypatch.delenv("CXX")
    (bench.csrc / "mine.cpp").write_text(SOURCE + "int broken = nothing_of_that_name;\n")
    with pytest.raises(BuildError) as caught:
        bench.build()
    message = str(caught.value)
    assert message.startswith("mine.cpp does not build: mine.cpp:")
    assert "\n" not in message
    log = Path(message.rpartition("the compiler's words are in ")[2])
    assert "nothing_of_that_name" in log.read_text()
    assert not bench.leftovers()


def test_a_host_compiler_that_nvcc_rejects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which to install and how to choose it."""
    words = "error -- unsupported GNU version! gcc versions later than 15 are not supported!"
    version = "Cuda compilation tools, release 13.0, V13.0.88"
    nvcc = f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" && exit 0\necho "#{words}" >&2\nexit 1\n'
    monkeypatch.setenv("CUDACXX", executable(tmp_path / "nvcc", nvcc))
    with pytest.raises(BuildError, match=r"nvcc refuses the C\+\+ compiler .*unsupported GNU version.*set CXX to it"):
        build("cuda", cache_dir=tmp_path / "cache", architectures=("sm_90",))


def test_an_nvcc_of_another_cuda_than_torchs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found before anything is compiled."""
    nvcc = '#!/bin/sh\necho "Cuda compilation tools, release 12.8, V12.8.93"\n'
    monkeypatch.setenv("CUDACXX", executable(tmp_path / "nvcc", nvcc))
    torch = module.find_torch()
    with_cuda = type(torch)(version="2.11.0+cu130", cuda="13.0", include_dir="", library_dir="")
    monkeypatch.setattr(module, "find_torch", lambda: with_cuda)
    with pytest.raises(BuildError, match=r"is of CUDA 12\.8 but torch 2\.11\.0\+cu130 of CUDA 13\.0"):
        build("cuda", cache_dir=tmp_path / "cache")


def test_a_cache_that_cannot_be_written(bench: Bench, tmp_path: Path) -> None:
    """The message says how to choose another."""
    bench.cache = tmp_path / "csrc" / "op.h" / "cache"
    with pytest.raises(BuildError, match=r"the build cache .* cannot be written \(.*\); set SGEMV_CACHE to a folder"):
        bench.build()


def test_the_cache_is_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SGEMV_CACHE, else the user's cache folder; without a home folder, an error that says what to set."""
    monkeypatch.setenv("SGEMV_CACHE", str(tmp_path))
    assert module.cache_folder() == tmp_path
    monkeypatch.delenv("SGEMV_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert module.cache_folder() == tmp_path / "xdg" / "sgemv-bench"
    monkeypatch.setattr(module.platformdirs, "user_cache_path", lambda _: Path("~/.cache/sgemv-bench"))
    with pytest.raises(BuildError, match=r"no home folder for the build cache .*; set SGEMV_CACHE to a folder"):
        module.cache_folder()


def test_the_record_of_the_cuda_library() -> None:
    """What design.md asks of a build record, and it survives JSON."""
    built = library("cuda")
    record = built.record
    assert BuildRecord.from_dict(json.loads((built.directory / module.RECORD).read_text())) == record
    assert record.library == "libsgemv_cuda.so"
    assert "release" in record.compiler_version
    assert "op.h" in record.sources_sha256
    assert record.sources_by_kernel["sgemv_split"] == ("sgemv_split.cu",)
    assert {name for names in record.sources_by_kernel.values() for name in names} <= record.sources_sha256.keys()
    source = (ROOT / "kernels" / "csrc" / "read.cu").read_bytes()
    assert record.sources_sha256["read.cu"] == hashlib.sha256(source).hexdigest()
    assert not any("fast-math" in flag or "fast_math" in flag for flag in record.flags)
    assert not any(str(ROOT) in word or str(built.directory.parent) in word for c in record.commands for word in c)
    inside = str(ROOT / ".nox" / "python" / "include")
    assert artifacts._below_root(inside) == ".nox/python/include"
    assert artifacts._below_root("/usr/include") == "/usr/include"
    assert len(record.device_code_sha256) == len(list((ROOT / "kernels/csrc").glob("*.cu"))) * len(record.architectures)


def test_what_an_entry_holds() -> None:
    """Log, table, PTX a source, and sums that agree with sha256sum -c."""
    built = library("cuda")
    assert "ptxas info" in (built.directory / "compiler.log").read_text()
    assert "sgemv::sgemv_k32_f32_kernel" in (built.directory / "resources.txt").read_text()
    ptx = {path.stem for path in (built.directory / "ptx").iterdir()}
    assert ptx == {path.stem for path in (ROOT / "kernels/csrc").glob("*.cu")}
    subprocess.run(["sha256sum", "-c", "--quiet", module.SUMS], cwd=built.directory, check=True, timeout=60)


def test_the_command_line_prints_library_and_resources(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The path on the first line, then the table."""
    monkeypatch.setenv("SGEMV_CACHE", str(library("cuda").directory.parent))
    assert cli.main([]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == str(library("cuda").library)
    assert any("sgemv_k32_f32_kernel" in line for line in rest)


def test_a_build_error_is_exit_code_6_without_a_traceback(tmp_path: Path) -> None:
    """Through the real command line."""
    environment = {**os.environ, "CUDACXX": "no-such-nvcc", "SGEMV_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "kernels.build"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 6
    assert done.stderr == "CUDACXX is 'no-such-nvcc', which is no executable; correct or unset it\n"


def test_a_malformed_declaration_is_exit_code_2(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As everywhere: wrong usage, not a compiler that is missing."""
    (bench.csrc / "mine.cpp").write_text("SGEMV_KERNEL(mine) {\n")
    monkeypatch.setattr(cli, "build", lambda target, **_: build(target, cache_dir=bench.cache, csrc=bench.csrc))
    assert cli.main(["--target", "cpu"]) == 2
    assert capsys.readouterr().err.startswith(f"{bench.csrc / 'mine.cpp'}:1: found 'SGEMV_KERNEL(mine) {{'")


def test_an_entry_keeps_what_was_compiled(bench: Bench) -> None:
    """Kernels, glue and headers, also those that git does not know; nothing else that lies about."""
    (bench.csrc / "sub").mkdir()
    (bench.csrc / "sub" / "more.cuh").write_text("// below\n")
    (bench.csrc / "notes.txt").write_text("private\n")
    built = bench.build()
    kept = {p.relative_to(built.directory / "sources").as_posix(): p for p in built.directory.glob("sources/**/*.*")}
    assert set(kept) == {"mine.cpp", *GLUE, "op.h", "sub/more.cuh"}
    assert kept["mine.cpp"].read_text() == SOURCE
    assert "sources/mine.cpp" in (built.directory / module.SUMS).read_text()


@pytest.mark.parametrize("found", [True, False])
def test_needs_prints_what_pip_must_install(
    *,
    found: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing where there is an nvcc."""
    monkeypatch.setattr(cli, "nvcc_path", lambda: "/opt/nvcc" if found else None)
    monkeypatch.setattr(cli, "nvcc_requirement", lambda: "cuda-toolkit[nvcc,cccl]==13.0.3.0")
    assert cli.main(["--needs"]) == 0
    assert capsys.readouterr().out == ("" if found else "cuda-toolkit[nvcc,cccl]==13.0.3.0\n")


def test_a_wrong_architecture_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, one line with the form."""
    assert cli.main(["--arch", "90"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("kernels.build: argument --arch: found '90', wanted an architecture such as sm_90; ")
    assert said.count("\n") == 1
