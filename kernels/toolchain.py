"""Finds what a build needs: nvcc, the C++ compiler, torch's headers, the GPUs' architectures. Never imports torch."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from harness.errors import CommandError, Exit

DEFAULT_ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
"""Built for where no GPU is present."""

OLDEST = (8, 0)
"""Compute capability that the kernels need: they copy asynchronously and multiply bfloat16 by tensor cores."""

_TOOLKIT_EXTRAS = "cuda-toolkit[nvcc,cccl]"
_KNOWN_GOOD_TOOLKITS = {"13.0": "13.0.3.0"}
_WHEEL_NVCCS = ("nvidia/cu13/bin/nvcc", "nvidia/cuda_nvcc/bin/nvcc")


class BuildError(CommandError):
    """A library that cannot be built; one line: what was found, what was wanted, what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.INFRASTRUCTURE)


@dataclass(frozen=True, kw_only=True)
class Compiler:
    """A compiler and what it calls itself."""

    path: str
    """Absolute path of the executable."""
    version: str
    """Version line in its own words, e.g. `Cuda compilation tools, release 13.0, V13.0.88`."""
    release: tuple[int, int] | None = None
    """CUDA's (major, minor); None for a C++ compiler."""
    library_dirs: tuple[str, ...] = ()
    """Where its libraries lie; nvcc looks in lib64 only and PyPI's wheels have lib."""


@dataclass(frozen=True, kw_only=True)
class Torch:
    """The installed torch, as far as its files tell."""

    version: str
    """E.g. `2.11.0+cu130`."""
    cuda: str | None
    """CUDA version that it was built with, e.g. `13.0`; None for a CPU-only torch."""
    include_dir: str
    """Folder of its C++ headers."""
    library_dir: str
    """Folder of libtorch_cpu."""

    @property
    def release(self) -> tuple[int, int]:
        """(major, minor)."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)


def nvcc_path() -> str | None:
    """Nvcc by CUDACXX, CUDA_HOME, PATH, then PyPI's wheels; None if there is none.

    Raises:
        BuildError: CUDACXX or CUDA_HOME is set but has no nvcc.
    """
    if asked := os.environ.get("CUDACXX"):
        found = shutil.which(asked)
        if found is None:
            raise BuildError(f"CUDACXX is {asked!r}, which is no executable; correct or unset it")
        return found
    if home := os.environ.get("CUDA_HOME"):
        found = shutil.which("nvcc", path=str(Path(home, "bin")))
        if found is None:
            raise BuildError(f"CUDA_HOME is {home!r}, which has no bin/nvcc; correct or unset it")
        return found
    return shutil.which("nvcc") or _nvcc_from_wheels()


def find_nvcc() -> Compiler:
    """Nvcc with its version.

    Raises:
        BuildError: there is none, or it does not say its version.
    """
    path = nvcc_path()
    if path is None:
        raise BuildError(
            f'no nvcc (looked at CUDACXX, CUDA_HOME, PATH, PyPI\'s wheels); pip install "{_requirement()}", '
            "or install a CUDA toolkit and set CUDA_HOME",
        )
    words = _words([path, "--version"])
    match = re.search(r"release (\d+)\.(\d+)", words)
    if match is None:
        raise BuildError(f"{path} --version said {words.strip()[:200]!r}, wanted a CUDA release; set CUDACXX")
    line = next(line for line in words.splitlines() if "release" in line)
    release = (int(match[1]), int(match[2]))
    return Compiler(path=path, version=line.strip(), release=release, library_dirs=_library_dirs(Path(path)))


def check_nvcc_fits(nvcc: Compiler, torch: Torch) -> None:
    """Holds nvcc's CUDA against torch's.

    Raises:
        BuildError: their major versions differ. A CPU-only torch fits any nvcc.
    """
    if torch.cuda is None or nvcc.release is None or int(torch.cuda.split(".")[0]) == nvcc.release[0]:
        return
    raise BuildError(
        f"{nvcc.path} is of CUDA {nvcc.release[0]}.{nvcc.release[1]} but torch {torch.version} of CUDA {torch.cuda}, "
        f'wanted the same major version; pip install "{_requirement()}" and set CUDACXX to its nvcc, or install '
        "another torch",
    )


def find_host_compiler() -> Compiler:
    """The C++ compiler: CXX, else g++, else c++.

    Raises:
        BuildError: there is none.
    """
    asked = os.environ.get("CXX")
    names = [asked] if asked else ["g++", "c++"]
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        wanted = f"CXX is {asked!r}, which is no executable" if asked else "no g++ or c++ on PATH"
        raise BuildError(f"{wanted}; install g++ (apt-get install g++, dnf install gcc-c++) or set CXX to one")
    version = next(iter(_words([path, "--version"]).splitlines()), "unknown version")
    return Compiler(path=path, version=version.strip())


def find_torch() -> Torch:
    """The torch that this Python would import, without importing it.

    Raises:
        BuildError: torch is not installed, or is older than 2.11, whose stable ABI the kernels use.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise BuildError("torch is not installed in this Python; pip install torch (2.11 or newer)")
    folder = Path(spec.origin).parent
    words = (folder / "version.py").read_text(encoding="utf-8")
    version = re.search(r"^__version__ = '([^']+)'", words, re.MULTILINE)
    cuda = re.search(r"^cuda\b[^=\n]*= '([^']+)'", words, re.MULTILINE)
    if version is None:
        raise BuildError(f"{folder / 'version.py'} names no version; install torch again")
    torch = Torch(
        version=version[1],
        cuda=cuda[1] if cuda else None,
        include_dir=str(folder / "include"),
        library_dir=str(folder / "lib"),
    )
    if torch.release < (2, 11):
        raise BuildError(f"torch {torch.version} is too old, wanted 2.11 or newer (stable ABI); upgrade torch")
    return torch


def gpu_architectures() -> tuple[str, ...]:
    """Architectures of the GPUs present, e.g. ("sm_90",), through NVML; `DEFAULT_ARCHITECTURES` if there are none.

    One too old to run the kernels is left out.

    Raises:
        BuildError: all are too old.
    """
    try:
        import pynvml
    except ImportError:
        return DEFAULT_ARCHITECTURES
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return DEFAULT_ARCHITECTURES
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        capabilities = {tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle)) for handle in handles}
    except pynvml.NVMLError:
        capabilities = set()
    finally:
        pynvml.nvmlShutdown()
    if capabilities and max(capabilities) < OLDEST:
        found, wanted = (".".join(map(str, each)) for each in (max(capabilities), OLDEST))
        raise BuildError(f"no GPU here can run the kernels: compute capability {found}, wanted {wanted} or newer")
    usable = sorted(each for each in capabilities if each >= OLDEST)
    return tuple(f"sm_{major}{minor}" for major, minor in usable) or DEFAULT_ARCHITECTURES


def nvcc_requirement() -> str:
    """What to give pip for an nvcc that fits the installed torch."""
    return _requirement()


def _requirement() -> str:
    pinned = _pinned_toolkit()
    if pinned is not None and not pinned.endswith("*"):
        return f"{_TOOLKIT_EXTRAS}=={pinned}"  # another one would break torch's own pin
    release = pinned.removesuffix(".*") if pinned else _torch_cuda()
    return f"{_TOOLKIT_EXTRAS}=={_KNOWN_GOOD_TOOLKITS.get(release, release + '.*')}"


def _torch_cuda() -> str:
    try:
        return find_torch().cuda or "13.0"
    except BuildError:
        return "13.0"


def _pinned_toolkit() -> str | None:
    """The version that torch's own metadata pins cuda-toolkit to, such as `12.8.*` or `13.0.2`."""
    try:
        requirements = importlib.metadata.requires("torch") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for requirement in requirements:
        if match := re.match(r"cuda-toolkit(?:\[[^\]]*\])?\s*\(?==\s*([\d.]+\*?)", requirement):
            return match[1]
    return None


def _nvcc_from_wheels() -> str | None:
    for folder in dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))):
        for name in _WHEEL_NVCCS:
            if (path := Path(folder, name)).is_file():
                return str(path)
    return None


def _library_dirs(nvcc: Path) -> tuple[str, ...]:
    root = nvcc.resolve().parent.parent
    candidates = [root / "lib", root.parent / "cuda_runtime" / "lib"]
    return tuple(str(folder) for folder in candidates if (folder / "libcudart_static.a").is_file())


def _words(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]} cannot be run ({error}); install it again or choose another") from error
    return done.stdout + done.stderr
