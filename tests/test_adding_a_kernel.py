"""docs/adding-a-kernel.md: each of its files is one that works as it stands, and so is README's."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from harness.device import GpuStatus, Usability
from harness.model import Operands, Problem, Word
from harness.ncu import __main__ as profile
from harness.problems import read_shapes
from harness.sanitize import __main__ as sanitize
from harness.store import Store, load
from kernels import cli
from kernels.own import build
from kernels.own.load import listing
from kernels.own.registry import Own, of_files
from kernels.toolchain import find_host_compiler, find_nvcc, nvcc_path
from tests.built import shared_cache
from tests.needs import need

ROOT = Path(__file__).parents[1]
DOCS = (ROOT / "docs" / "adding-a-kernel.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"```(?:python|cpp)\n(?:#|//) ((\w+)\.\w+)[^\n]*\n(.*?)```", flags=re.DOTALL)
FILES = {name: text for name, _, text in FENCE.findall(DOCS)} | {
    f"readme_{name}": text for name, _, text in FENCE.findall(README) if name.endswith(".py")
}
"""By the name that its first line gives it."""

PACKAGES = ("triton", "cupy", "numba")
KERNELS = {
    "my_kernels.py": "addmv", "my_triton.py": "triton_rows", "my_cuda.py": "my_gemv", "my_cupy.py": "cupy_rows",
    "my_numba.py": "numba_rows",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Every file of the page, side by side as a user has them."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def needs(name: str) -> None:
    """Skip where a package that the file imports is not installed."""
    for package in PACKAGES:
        named = re.search(rf"^(?:import|from) {package}\b", FILES[name], flags=re.MULTILINE)
        if named and importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


def test_there_is_one_of_each_kind() -> None:
    """A callable, Triton, CUDA C++ with its source, CuPy, Numba."""
    assert KERNELS.keys() | {"my_gemv.cu"} == {name for name in FILES if not name.startswith("readme_")}


def operands(device: str) -> Operands:
    """Of 300×96 on `device`."""
    generator = torch.Generator(device).manual_seed(0)
    a, x = (torch.randn(*size, device=device, generator=generator) for size in ((300, 96), (96, 1)))
    return Operands(a=a, x=x, y=torch.full((300, 1), torch.nan, device=device))


def computes(own: Own, device: str) -> None:
    """Every own kernel gives A·x, at each launch and for what the operands are then."""
    for kernel in (each for each in own.kernels().values() if each.file is not None):
        given = operands(device)
        launch = kernel.bind(given)
        for _ in range(2):
            launch()
            torch.testing.assert_close(given.y, given.a @ given.x, rtol=1e-4, atol=1e-4)
            given.x.neg_()


def test_a_callable_computes(folder: Path) -> None:
    """On the CPU."""
    own = of_files([folder / "my_kernels.py"])
    kernel = own.kernels()["addmv"]
    assert (kernel.dtypes, kernel.summary) == (("float32", "float16"), "torch.addmv without what it adds to.")
    computes(own, "cpu")


def test_a_cuda_file_declares(folder: Path) -> None:
    """By its own line, and for a packed A alone; that it compiles is tested where there is nvcc."""
    kernel = of_files([folder / "my_cuda.py"]).kernels()["my_gemv"]
    assert (kernel.devices, kernel.summary) == (("cuda",), "one thread a row")
    assert kernel.unsupported(Problem(m=4, k=4, n=2)) == "n=2 columns of x, wanted 1"


@pytest.mark.parametrize("name", [name for name in FILES if "triton" in FILES[name]])
def test_triton_computes_in_its_interpreter(folder: Path, name: str) -> None:
    """Without a GPU, in a process of its own, which Triton must be told before it is imported."""
    needs(name)
    program = (
        "import sys; from pathlib import Path; from kernels.own.registry import of_files; "
        "from tests.test_adding_a_kernel import computes; computes(of_files([Path(sys.argv[1])]), 'cpu')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder / name)],
        cwd=ROOT, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".py")])
def test_each_is_measured_on_a_gpu(folder: Path, name: str) -> None:
    """As a user would: checked, timed, code 0."""
    needs(name)
    (kernel,) = listing(folder / name).kernels
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "suites", "-q", "-p", "no:cacheprovider", f"--kernels={folder / name}",
            "--kernel", kernel.name, "--quick", "--shape", "1000x1000", "--store", str(folder / "store"),
        ],
        cwd=ROOT, env=os.environ | {"SGEMV_CACHE": str(shared_cache())}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    run = load(Store(folder / "store").resolve("latest"))
    verdicts = [each.verdict for each in run.measurements if each.case.kernel == kernel.name]
    assert [verdict.word for verdict in verdicts] == [Word.PASSED], verdicts


def test_its_shapes_are_read(tmp_path: Path) -> None:
    """The TOML and the CSV, as they stand."""
    toml, csv = re.search(r"shapes = \[.*?\]", DOCS)[0], re.search(r"```csv\n(.*?)```", DOCS, re.DOTALL)[1]
    (tmp_path / "s.toml").write_text(toml)
    (tmp_path / "s.csv").write_text(csv)
    assert [each.label for each in read_shapes(tmp_path / "s.toml")] == ["4096x4096", "1024x128"]
    second = read_shapes(tmp_path / "s.csv")[1]
    assert (second.n, second.dtype, second.layout.row_stride, second.layout.first_element) == (8, "float16", 11016, 1)


def test_its_commands_are_accepted(folder: Path) -> None:
    """Of the benches the one with the most files; collecting runs every check of the options."""
    lines = re.search(r"```sh\n(.*?)```", DOCS, re.DOTALL)[1].splitlines()
    commands = [shlex.split(line.partition(" #")[0]) for line in lines]
    assert {words[2] for words in commands} == {"bench", "build", "sanitize", "profile"}
    assert all((words[:2], words[3]) == (["nox", "-s"], "--") for words in commands)
    shutil.copy(folder / "my_kernels.py", folder / "a.py")
    (folder / "b.py").write_text(FILES["my_kernels.py"].replace('"addmv"', '"other"'))
    (folder / "my_shapes.toml").write_text('shapes = ["8x8"]')
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "suites", "--collect-only", "-q", "--device", "cpu", *commands[2][4:]],
        cwd=ROOT, env=os.environ | {"SGEMV_STANDING": str(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[other-8x8-" in done.stdout


@pytest.mark.parametrize("name", ["build", "sanitize", "profile"])
def test_its_other_commands_are_accepted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """It compiles without a GPU; what needs one says so, and nothing before that."""
    need("no nvcc" if nvcc_path() is None else None)
    monkeypatch.setenv("SGEMV_STANDING", str(folder))
    monkeypatch.setenv("SGEMV_CACHE", str(shared_cache()))
    monkeypatch.setattr("harness.tool.gpu_status", lambda *_: GpuStatus(word=Usability.NONE, reason="none here"))
    monkeypatch.setattr(build, "gpu_architectures", lambda: ("sm_90",))
    (line,) = re.findall(rf"nox -s {name} -- (.*?) +#", DOCS)
    run = {"build": cli.main, "sanitize": sanitize.main, "profile": profile.main}[name]
    registry = [] if name == "build" else ["--registry", "kernels.registry"]
    assert run([*registry, *shlex.split(line)]) == (0 if name == "build" else 6)
    shown = capsys.readouterr()
    if name == "build":
        assert shown.out.startswith(f"{folder}/my_cuda.py: my_gemv\n")
        assert "my_gemv_kernel" in shown.out
    else:
        assert shown.err == f"{name} needs an NVIDIA GPU: none here\n"


def test_its_cuda_file_compiles_by_itself(folder: Path) -> None:
    """As any editor or build system would; nothing is owed to what the builder puts before it."""
    need("no nvcc" if nvcc_path() is None else None)
    command = [find_nvcc().path, "-ccbin", find_host_compiler().path, "-c", "-arch=sm_90", "-o", "x.o", "my_gemv.cu"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_file_runs_by_itself(folder: Path) -> None:
    """With the project's root on Python's path, as the page says."""
    assert "`PYTHONPATH=path/to/the/project python my_kernels.py`" in DOCS
    done = subprocess.run(
        [sys.executable, "my_kernels.py"], cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
