"""The toolchain: what is found where, and what an unfit tool is told."""

from __future__ import annotations

import importlib.metadata
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernels import toolchain
from kernels.toolchain import BuildError


def script(path: Path, words: str) -> str:
    """An executable that prints `words`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{words}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No variable set, nothing on PATH, no wheels."""
    for name in ("CUDACXX", "CUDA_HOME", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "site-packages"))
    return tmp_path


def test_nvcc_is_looked_for_in_order(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDACXX, CUDA_HOME, PATH, the wheels of CUDA 13, then those of CUDA 12."""
    assert toolchain.nvcc_path() is None
    for place in ("cuda_nvcc/bin/nvcc", "cu13/bin/nvcc"):
        nvcc = script(bare / "site-packages" / "nvidia" / place, "")
        assert toolchain.nvcc_path() == nvcc
    nvcc = script(bare / "path" / "nvcc", "")
    assert toolchain.nvcc_path() == nvcc
    nvcc = script(bare / "home" / "bin" / "nvcc", "")
    monkeypatch.setenv("CUDA_HOME", str(bare / "home"))
    assert toolchain.nvcc_path() == nvcc
    nvcc = script(bare / "mine", "")
    monkeypatch.setenv("CUDACXX", nvcc)
    assert toolchain.nvcc_path() == nvcc


def test_a_variable_that_leads_nowhere_is_an_error(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not passed over in silence."""
    monkeypatch.setenv("CUDA_HOME", str(bare / "nowhere"))
    with pytest.raises(BuildError, match=r"CUDA_HOME is '.*nowhere', which has no bin/nvcc; correct or unset it"):
        toolchain.nvcc_path()
    monkeypatch.setenv("CUDACXX", "no-such-nvcc")
    with pytest.raises(BuildError, match="CUDACXX is 'no-such-nvcc', which is no executable; correct or unset it"):
        toolchain.nvcc_path()


@pytest.mark.usefixtures("bare")
def test_no_nvcc_says_what_to_install() -> None:
    """One line with pip's requirement."""
    with pytest.raises(BuildError, match=r'no nvcc .*; pip install "cuda-toolkit\[nvcc,cccl\]==[\d.*]+", or install'):
        toolchain.find_nvcc()


@pytest.mark.usefixtures("bare")
def test_no_host_compiler_says_what_to_install() -> None:
    """One line for the common systems."""
    with pytest.raises(BuildError, match=r"no g\+\+ or c\+\+ on PATH; install g\+\+ \(apt-get install g\+\+"):
        toolchain.find_host_compiler()


def test_versions_are_read_from_the_tools_own_words(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nvcc's release as numbers, the C++ compiler's first line."""
    monkeypatch.setenv("CUDACXX", script(bare / "nvcc", "Cuda compilation tools, release 12.8, V12.8.93"))
    nvcc = toolchain.find_nvcc()
    assert (nvcc.release, nvcc.version) == ((12, 8), "Cuda compilation tools, release 12.8, V12.8.93")
    monkeypatch.setenv("CXX", script(bare / "g++", "g++ (Somewhere) 12.2.0"))
    assert toolchain.find_host_compiler().version == "g++ (Somewhere) 12.2.0"


def test_an_nvcc_that_does_not_speak_is_an_error(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words are in the message."""
    monkeypatch.setenv("CUDACXX", script(bare / "nvcc", "license expired"))
    with pytest.raises(BuildError, match="--version said 'license expired', wanted a CUDA release; set CUDACXX"):
        toolchain.find_nvcc()


def torch_with(cuda: str | None) -> toolchain.Torch:
    return toolchain.Torch(version="2.11.0", cuda=cuda, include_dir="", library_dir="")


@pytest.mark.parametrize(("cuda", "fits"), [(None, True), ("12.6", True), ("12.8", True), ("13.0", False)])
def test_nvcc_must_be_of_torchs_major_version(cuda: str | None, *, fits: bool) -> None:
    """A CPU-only torch takes any."""
    nvcc = toolchain.Compiler(path="/opt/nvcc", version="", release=(12, 8))
    if fits:
        toolchain.check_nvcc_fits(nvcc, torch_with(cuda))
        return
    with pytest.raises(
        BuildError, match=r"/opt/nvcc is of CUDA 12\.8 but torch 2\.11\.0 of CUDA 13\.0, wanted the same"
    ):
        toolchain.check_nvcc_fits(nvcc, torch_with(cuda))


def test_the_installed_torch_is_described_without_importing_it() -> None:
    """Version, CUDA and folders agree with what torch says of itself."""
    import torch

    found = toolchain.find_torch()
    assert (found.version, found.cuda) == (torch.__version__, torch.version.cuda)
    assert (Path(found.include_dir) / "torch" / "csrc" / "stable" / "library.h").is_file()
    assert list(Path(found.library_dir).glob("libtorch_cpu.*"))


def fake_torch(folder: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "version.py").write_text(
        f"__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n",
    )
    spec = SimpleNamespace(origin=str(folder / "torch" / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: spec)


def test_torch_with_cuda_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch writes its version.py."""
    fake_torch(tmp_path, "2.11.0+cu130", monkeypatch)
    found = toolchain.find_torch()
    assert (found.version, found.cuda, found.release) == ("2.11.0+cu130", "13.0", (2, 11))


def test_a_torch_before_the_stable_abi_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """2.11 is the least."""
    fake_torch(tmp_path, "2.9.1", monkeypatch)
    with pytest.raises(BuildError, match=r"torch 2\.9\.1 is too old, wanted 2\.11 or newer"):
        toolchain.find_torch()


@pytest.mark.parametrize(
    ("cuda", "pin", "requirement"),
    [
        (None, None, "cuda-toolkit[nvcc,cccl]==13.0.3.0"),
        ("13.0", None, "cuda-toolkit[nvcc,cccl]==13.0.3.0"),
        ("12.8", None, "cuda-toolkit[nvcc,cccl]==12.8.*"),
        ("12.8", "cuda-toolkit[cublas,cudart]==12.8.*; platform_system == 'Linux'", "cuda-toolkit[nvcc,cccl]==12.8.*"),
        ("13.0", "cuda-toolkit[cublas]==13.0.*", "cuda-toolkit[nvcc,cccl]==13.0.3.0"),
        ("13.0", "cuda-toolkit[cublas]==13.0.2; platform_system == 'Linux'", "cuda-toolkit[nvcc,cccl]==13.0.2"),
    ],
)
def test_the_requirement_follows_torch(
    cuda: str | None,
    pin: str | None,
    requirement: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Torch's own pin first, then the CUDA that it was built with."""
    monkeypatch.setattr(toolchain, "find_torch", lambda: torch_with(cuda))
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["sympy>=1.13", pin] if pin else ["sympy>=1.13"])
    assert toolchain.nvcc_requirement() == requirement


class NvmlError(Exception):
    """Stands for pynvml's."""


def fake_nvml(capabilities: list[tuple[int, int]] | None) -> SimpleNamespace:
    def init() -> None:
        if capabilities is None:
            raise NvmlError

    return SimpleNamespace(
        NVMLError=NvmlError,
        nvmlInit=init,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: len(capabilities or []),
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetCudaComputeCapability=lambda handle: (capabilities or [])[handle],
    )


@pytest.mark.parametrize(
    ("capabilities", "wanted"),
    [
        ([(9, 0)], ("sm_90",)),
        ([(12, 0), (8, 9), (8, 9)], ("sm_89", "sm_120")),
        ([(7, 5), (9, 0)], ("sm_90",)),
        ([], ("sm_80", "sm_90", "sm_100")),
        (None, ("sm_80", "sm_90", "sm_100")),
    ],
)
def test_architectures_are_those_of_the_gpus_present(
    capabilities: list[tuple[int, int]] | None,
    wanted: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each once, in order; without a GPU or a driver the common ones."""
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(capabilities))
    assert toolchain.gpu_architectures() == wanted


def test_gpus_that_are_all_too_old_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, before the compiler says it in many."""
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml([(7, 0), (7, 5)]))
    words = "^no GPU here can run the kernels: compute capability 7.5, wanted 8.0 or newer$"
    with pytest.raises(toolchain.BuildError, match=words):
        toolchain.gpu_architectures()


def test_wheels_library_folder_is_found(bare: Path) -> None:
    """Nvcc looks in lib64, the wheels have lib."""
    nvcc = script(bare / "site-packages" / "nvidia" / "cu13" / "bin" / "nvcc", "release 13.0, V13.0.88")
    folder = bare / "site-packages" / "nvidia" / "cu13" / "lib"
    folder.mkdir()
    (folder / "libcudart_static.a").touch()
    assert toolchain._library_dirs(Path(nvcc)) == (str(folder),)
