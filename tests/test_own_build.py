"""kernels.own.build and launcher: `.cu` files of users, really compiled; and what their functions are called with."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import torch

from harness.model import Operands
from kernels import cli
from kernels.build import Built
from kernels.own import build, launcher
from kernels.own.declare import Launcher
from kernels.own.load import FileError, Listed, Listing
from kernels.toolchain import nvcc_path
from tests.needs import need

ROWS = """\
#include "parts/rows.cuh"
namespace mine {
template <typename T>
cudaError_t rows(const T* a, const T* x, T* y, std::int64_t m, std::int64_t k, cudaStream_t stream) {
  one_row_a_thread<<<unsigned((m + 127) / 128), 128, 0, stream>>>(a, x, y, m, k);
  return cudaPeekAtLastError();
}
}  // namespace mine
static void sizes(float* y, const float* a, const float* x, std::int64_t row_stride, std::int64_t n,
                  cudaStream_t stream) {}
static void sizes() {}
"""
HEADER = """\
template <typename T>
__global__ void one_row_a_thread(const T* a, const T* x, T* y, std::int64_t m, std::int64_t k) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= m) return;
  float sum = 0.0f;
  for (std::int64_t column = 0; column < k; ++column) sum += float(a[row * k + column]) * float(x[column]);
  y[row] = T(sum);
}
"""


PLAIN = """\
__global__ void plain_kernel(const float* a, const float* x, float* y) { y[threadIdx.x] = a[threadIdx.x] * x[0]; }
void plain(const float* a, const float* x, float* y, std::int64_t m, std::int64_t k, cudaStream_t stream) {
  plain_kernel<<<1, unsigned(m), 0, stream>>>(a, x, y);
}
"""
ASSERTION = "mine.py:7: error: static assertion"


def listed(source: Path, name: str, function: str, parameters: str, *dtypes: str, line: int = 1) -> Listed:
    called = Launcher(source=str(source), function=function, parameters=tuple(parameters.split()), flags=())
    return Listed(name=name, line=line, summary="", dtypes=dtypes or ("float32",), devices=("cuda",), launcher=called)


class Folder:
    """A user's, with spaces and umlauts in its path."""

    def __init__(self, root: Path) -> None:
        self.path = root / "über uns" / "mine.py"
        self.cache = root / "cache"
        (self.path.parent / "parts").mkdir(parents=True)
        self.write("mine.py", "# declares\n")
        self.write("rows.cu", ROWS)
        self.write("parts/rows.cuh", HEADER)

    def write(self, name: str, text: str) -> Path:
        """A file of it."""
        path = self.path.parent / name
        path.write_text(text, encoding="utf-8")
        return path

    def build(self, *kernels: Listed, device_type: str = "cuda") -> Built:
        """What is made of mine.py, as if it declared these."""
        sources = {str(self.path): build.compiling.sha256(self.path)}
        found = Listing(kernels=kernels, sources=sources, packages=("triton 3.6.0",))
        return build.build(self.path, found, "own/mine", device_type, self.cache)

    def rows(self) -> tuple[Listed, ...]:
        """Of rows.cu: a template for two dtypes in memory, and one in another order."""
        source = self.path.parent / "rows.cu"
        two = listed(source, "mine", "mine::rows", "a x y m k stream", "float16", "tf32", "float32")
        return two, listed(source, "his.own", "sizes", "y a x row_stride n stream")


@pytest.fixture(scope="module", autouse=True)
def nvcc() -> None:
    """It compiles without a GPU."""
    need("no nvcc" if nvcc_path() is None else None)


@pytest.fixture(autouse=True)
def one_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough here."""
    monkeypatch.setattr(build, "gpu_architectures", lambda: ("sm_90",))


def test_a_file_is_built_once_per_content(tmp_path: Path) -> None:
    """Every function that is declared is there; what it needs is known; all of it is kept, and nothing names a home."""
    folder = Folder(tmp_path)
    built = folder.build(*folder.rows())
    (library,) = built.directory.glob("*.so")
    symbols = subprocess.run(["nm", "-D", str(library)], capture_output=True, text=True, check=True)
    assert {f"own_{name}" for name in ("mine_float16", "mine_float32", "his_dot_own_float32", "error")} == {
        line.split()[-1] for line in symbols.stdout.splitlines() if " T own_" in line
    }
    record = built.record
    assert sorted(record.sources_sha256) == ["mine.py", "parts/rows.cuh", "rows.cu"]
    assert record.sources_by_kernel == dict.fromkeys(("mine", "his.own"), tuple(record.sources_sha256))
    assert {row.function for row in record.resources} == {"one_row_a_thread<float>", "one_row_a_thread<__half>"}
    assert record.compiler_version.endswith(", triton 3.6.0")
    assert "release" in record.compiler_version
    kept = {path.relative_to(built.directory).as_posix() for path in built.directory.rglob("*") if path.is_file()}
    assert {"sources/mine.py", "sources/rows.cu", "sources/parts/rows.cuh", "ptx/rows_0.ptx"} <= kept
    for text in ((built.directory / name).read_text() for name in ("compiler.log", "build-record.json")):
        assert str(tmp_path) not in text
    assert folder.build(*folder.rows()).directory == built.directory
    folder.write("parts/rows.cuh", f"{HEADER}// another\n")
    assert folder.build(*folder.rows()).directory != built.directory


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("void f(const float* a) {\n  int z = nope;\n}\n", 'f.cu:2: error: identifier "nope" is undefined'),
        ('#include "none.h"\n', "f.cu:1:10: fatal error: none.h: No such file or directory"),
        ("void f(float* a, const float* x, float* y, long m, long k, cudaStream_t s) {}\n", ASSERTION),
        ("void f(const float* a, const float* x, float* y, long m, int k, cudaStream_t s) {}\n", ASSERTION),
        ("int f(const float*, const float*, float*, long, long, cudaStream_t) { return 1; }\n", ASSERTION),
        ("__global__ void f(const float*, const float*, float*, long, long) {}\n", ASSERTION),
        ("void g() {}\n", 'mine.py:7: error: identifier "f" is undefined'),
    ],
)
def test_what_does_not_compile_is_one_line_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    """In the user's file; where the function is not what it is declared as, in the line that declares it."""
    folder = Folder(tmp_path)
    source = folder.write("f.cu", text)
    with pytest.raises(FileError) as caught:
        folder.build(listed(source, "mine", "f", "a x y m k stream", line=7))
    line = str(caught.value)
    assert line.startswith(f"{folder.path.parent}/{said}")
    assert "\n" not in line
    if "assertion" in line:
        types = "const float* a, const float* x, float* y, std::int64_t m, std::int64_t k, cudaStream_t stream"
        assert f'"f is there, but not as declared: wanted void or cudaError_t f({types})"' in line
    log = Path(line.partition("the compiler's words are in ")[2])
    assert "error" in log.read_text()


def test_a_wrong_flag_is_said_of_the_file_that_gives_it(tmp_path: Path) -> None:
    """The compiler names no place."""
    folder = Folder(tmp_path)
    mine = listed(folder.write("f.cu", PLAIN), "mine", "plain", "a x y m k stream")
    with pytest.raises(FileError) as caught:
        folder.build(msgspec.structs.replace(mine, launcher=replace(mine.launcher, flags=("-std=c++99",))))
    assert str(caught.value).startswith(
        f"{folder.path}: nvcc fatal   : Value 'c++99' is not defined for option 'std'; "
    )


def test_what_is_the_same_type_is_taken(tmp_path: Path) -> None:
    """Words that no function's type depends on, an overload among others; an architecture of one's own."""
    folder = Folder(tmp_path)
    text = """void f();
    extern "C" cudaError_t g(const float* __restrict__ a, const float* const x, float* y, const std::int64_t m,
                             int64_t k, CUstream_st* stream) noexcept { return cudaSuccess; }
    void f(const float* a, const float* x, float* y, std::int64_t m, std::int64_t k, cudaStream_t stream) {}
    """
    source, parameters = folder.write("f.cu", text), "a x y m k stream"
    kernels = (listed(source, "mine", "f", parameters), listed(source, "his", "g", parameters))
    found = Listing(kernels=kernels, sources={str(folder.path): build.compiling.sha256(folder.path)}, packages=())
    built = build.build(folder.path, found, "own/mine", "cuda", folder.cache, architectures=("sm_80",))
    assert built.record.architectures == ("sm_80",)


def test_the_command_line_compiles_without_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files from where the user stands: what each declares, its libraries, what they need; errors as in a bench."""
    monkeypatch.setenv("SGEMV_STANDING", str(tmp_path))
    monkeypatch.setenv("SGEMV_CACHE", str(tmp_path / "cache"))
    (tmp_path / "my_gemv.cu").write_text(PLAIN)
    (tmp_path / "mine.py").write_text('from kernels.own import cuda\ncuda("his.own", "my_gemv.cu", function="plain")\n')
    (tmp_path / "other.py").write_text('from kernels.own import kernel\nkernel("other")(print)\n')
    (tmp_path / "bad.py").write_text('from kernels.own import cuda\ncuda("plane", "my_gemv.cu")\n')
    arguments = ["--kernels", "mine.py", "--kernels", "other.py"]
    assert cli.main([*arguments, "--arch", "sm_80", "sm_90"]) == 0
    first, library, *table, last, nothing = capsys.readouterr().out.splitlines()
    assert first == f"{tmp_path}/mine.py: his.own"
    assert Path(library).is_file()
    assert [arch in "".join(table) for arch in ("sm_80", "sm_90", "sm_100")] == [True, True, False]
    assert (last, nothing) == (f"{tmp_path}/other.py: other", "nothing to compile: it has no .cu file")
    assert cli.main(["--kernels", "bad.py"]) == 2
    assert capsys.readouterr().err.startswith(
        f'{tmp_path}/bad.py:2: error: identifier "plane" is undefined; so my_gemv.'
    )
    assert cli.main([*arguments, "--check"]) == 2
    assert capsys.readouterr().err.startswith("--kernels: found --check too, ")


def test_on_a_cpu_nothing_is_compiled(tmp_path: Path) -> None:
    """What would be is kept all the same."""
    folder = Folder(tmp_path)
    built = folder.build(*folder.rows(), device_type="cpu")
    assert sorted(built.record.sources_sha256) == ["mine.py", "rows.cu"]
    assert (built.record.commands, built.record.compiler_version) == ((), "triton 3.6.0")
    assert not (built.directory / "compiler.log").exists()


HOST = """
#include <cstdint>
extern "C" const char* own_error(int code) { return code == 700 ? "an illegal memory access" : "?"; }
extern "C" int own_mine_float32(const float* a, std::int64_t row_stride, const float* x, float* y, std::int64_t m,
                                std::int64_t n, std::int64_t k, void* stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) != 4660) return 700;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      y[j * m + i] = 0;
      for (std::int64_t l = 0; l < k; ++l) y[j * m + i] += a[i * row_stride + l] * x[j * k + l];
    }
  return 0;
}
"""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A library with a launcher of C that computes on the CPU: it is called as a GPU's."""
    (tmp_path / "host.cpp").write_text(HOST)
    compiler = shutil.which("g++") or "c++"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", "host.so", "host.cpp"], cwd=tmp_path, check=True)
    return tmp_path / "host.so"


def test_a_launcher_is_called_with_what_it_is_declared_with(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pointers, sizes and torch's stream at the time of the call; an error has CUDA's words."""
    streams = iter([4660, 4660, 1])
    current: Callable[..., object] = lambda _: SimpleNamespace(cuda_stream=next(streams))  # noqa: E731
    monkeypatch.setattr(torch.cuda, "current_stream", current)
    memory = torch.arange(12, dtype=torch.float32).view(2, 6)
    operands = Operands(a=memory[:, :3], x=torch.tensor([[1.0, 0, 2], [0, 1, 0]]).t(), y=torch.zeros(2, 2).t())
    declared = listed(Path("x.cu"), "mine", "mine", "a row_stride x y m n k stream").launcher
    assert declared is not None
    launch = launcher.bind("mine", declared, host, operands)
    launch()
    assert operands.y.tolist() == [[4.0, 1.0], [22.0, 7.0]]
    operands.x.mul_(2)
    launch()
    assert operands.y.tolist() == [[8.0, 2.0], [44.0, 14.0]]
    with pytest.raises(RuntimeError, match=r"^mine: an illegal memory access \(cudaError_t 700\)$"):
        launch()
