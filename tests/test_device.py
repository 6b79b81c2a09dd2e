"""harness.device: a GPU is usable or says why not, and what torch and the CPU are."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import pynvml
import pytest

from harness import device
from harness.answers import Unknown
from harness.device import GpuStatus, TorchBuild, Usability, cpu_llc_bytes, cpu_name, gpu_status, installed_torch
from harness.device.nvml import Nvml
from tests.fake_nvml import FakeNvml

USABLE = GpuStatus(word=Usability.USABLE)
CPU_TORCH = TorchBuild(version="2.13.0+cpu", cuda=None)
CUDA_TORCH = TorchBuild(version="2.13.0+cu130", cuda="13.0")


def status(fake: FakeNvml, build: TorchBuild, nodes, environ=None) -> GpuStatus:
    return gpu_status(Nvml.open(fake), build, environ=environ or {}, device_nodes=nodes)


def test_gpus_that_torch_can_use(tmp_path):
    """A driver of the same CUDA major runs a newer minor; a GPU is believed in without NVML if its node is there."""
    assert status(FakeNvml(), CUDA_TORCH, tmp_path) == USABLE
    assert status(FakeNvml(), TorchBuild(version="2.14", cuda="13.2"), tmp_path) == USABLE
    assert status(FakeNvml(cuda_driver_version=14010), CUDA_TORCH, tmp_path) == USABLE
    (tmp_path / "nvidia0").touch()
    no_library = FakeNvml(init_error=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    assert status(no_library, CUDA_TORCH, tmp_path) == USABLE
    assert status(no_library, CPU_TORCH, tmp_path).word is Usability.UNUSABLE


@pytest.mark.parametrize("hidden", ["", "-1", "NoDevFiles"])
def test_no_gpu(tmp_path, hidden):
    """None, so that the CPU is measured: no GPU, or none that CUDA_VISIBLE_DEVICES shows."""
    (tmp_path / "nvidiactl").touch()  # the driver's own node is no GPU
    none = status(FakeNvml([]), CPU_TORCH, tmp_path)
    assert none == GpuStatus(word=Usability.NONE, reason="no NVIDIA GPU found (NVML lists none)")
    unloaded = status(FakeNvml(init_error=pynvml.NVML_ERROR_DRIVER_NOT_LOADED), CPU_TORCH, tmp_path)
    assert unloaded.reason == "no NVIDIA GPU found (NVML does not start: Driver Not Loaded)"
    shy = status(FakeNvml(), CPU_TORCH, tmp_path, {"CUDA_VISIBLE_DEVICES": hidden})
    assert shy == GpuStatus(word=Usability.NONE, reason="CUDA_VISIBLE_DEVICES hides every GPU")


def test_a_gpu_and_a_torch_without_cuda(tmp_path):
    found = status(FakeNvml(), CPU_TORCH, tmp_path)
    assert found.word is Usability.UNUSABLE
    assert found.reason == (
        "this machine has an NVIDIA GPU, but torch 2.13.0+cpu is built without CUDA: install a CUDA build "
        "(https://pytorch.org/get-started/locally/), or choose the CPU with --device cpu"
    )


def test_a_driver_too_old_for_torch(tmp_path):
    found = status(FakeNvml(cuda_driver_version=12040), CUDA_TORCH, tmp_path)
    assert found.word is Usability.UNUSABLE
    assert found.reason == (
        "the NVIDIA driver 580.159.04 supports CUDA 12.4, but torch 2.13.0+cu130 needs CUDA 13.0: update the driver, "
        "or install a torch built for CUDA 12 (https://pytorch.org/get-started/locally/)"
    )


def test_driver_library_and_kernel_module_differ(tmp_path):
    """CUDA cannot work either, so this is not a machine without a GPU."""
    found = status(FakeNvml(init_error=pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH), CUDA_TORCH, tmp_path)
    assert found.word is Usability.UNUSABLE
    assert "reboot" in (found.reason or "")


def test_torch_is_missing_or_broken(tmp_path):
    nvml = Nvml.open(FakeNvml())
    absent = installed_torch(tmp_path / "version.py")
    assert isinstance(absent, Unknown)
    assert gpu_status(nvml, absent, environ={}, device_nodes=tmp_path).word is Usability.UNUSABLE


@pytest.mark.parametrize(("cuda", "expected"), [("'13.0'", "13.0"), ("None", None)])
def test_torch_s_version_file(tmp_path, cuda, expected):
    """As torch writes it, read without importing torch."""
    file = tmp_path / "version.py"
    file.write_text(f"from typing import Optional\n__version__ = '2.11.0+x'\ncuda: Optional[str] = {cuda}\n")
    assert installed_torch(file) == TorchBuild(version="2.11.0+x", cuda=expected)


def test_the_installed_torch_agrees_with_its_import():
    import torch

    assert installed_torch() == TorchBuild(version=str(torch.__version__), cuda=torch.version.cuda)


@pytest.mark.parametrize(("precision", "expected"), [("none", False), ("ieee", False), ("tf32", True)])
def test_tf32_is_seen_whichever_way_it_was_set(precision, expected):
    """`allow_tf32` itself raises once the newer setting was used."""
    import torch

    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = precision
    try:
        assert device.torch_facts("cpu")["values"]["allow_tf32"] is expected
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


def test_the_version_of_the_cublas_in_this_process(tmp_path):
    """Asked of the library that is loaded; one that is not is never loaded for it."""
    compiler = shutil.which("g++")
    assert compiler, "the project needs g++"
    source, library = tmp_path / "fake.cpp", tmp_path / "libcublas.so.98"
    source.write_text(
        'extern "C" int cublasGetProperty(int part, int* value) { *value = 13 - part; return part == 9; }'
    )
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,-soname,libcublas.so.98", source, "-o", library], check=True)
    assert isinstance(device.cublas_version("98"), Unknown)
    ctypes.CDLL(str(library))
    assert device.cublas_version("98") == "13.12.11"


def test_the_cpu_s_name(tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: AMD EPYC 9654\nflags\t: fpu\n")
    assert cpu_name(cpuinfo) == "AMD EPYC 9654"
    assert isinstance(cpu_name(tmp_path / "absent"), str)


def cache(cpu, level, size, sharers):
    path = cpu / "cache" / f"index{level}"
    path.mkdir(parents=True)
    for name, text in (("level", level), ("size", size), ("shared_cpu_list", sharers)):
        (path / name).write_text(f"{text}\n")


def test_last_level_caches_are_added_once_each(tmp_path):
    """Two dies of two CPUs with 32 MiB each make 64 MiB; only the die that the run may use counts."""
    for cpu in range(4):
        cache(tmp_path / f"cpu{cpu}", 1, "32K", cpu)
        cache(tmp_path / f"cpu{cpu}", 3, "32768K", "0-1" if cpu < 2 else "2-3")
    assert cpu_llc_bytes(tmp_path, range(4)) == 67_108_864
    assert cpu_llc_bytes(tmp_path, {0, 1}) == 33_554_432


def test_caches_that_are_not_listed_or_not_readable(tmp_path, monkeypatch):
    """Unknown; for choosing operands a large cache is assumed."""
    assert cpu_llc_bytes(tmp_path, {0}) == Unknown(reason=f"{tmp_path} lists no caches")
    cache(tmp_path / "cpu0", 3, "lots", "0")
    assert isinstance(cpu_llc_bytes(tmp_path, {0}), Unknown)
    monkeypatch.setattr(device, "cpu_llc_bytes", lambda: Unknown(reason="hidden"))
    assert device.last_level_cache_bytes("cpu") == 64 * 2**20
