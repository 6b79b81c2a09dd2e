"""harness.environment and harness.device: every key has a value or a reason, and a GPU is usable or says why not."""

from __future__ import annotations

import ctypes
import hashlib
import json
import shutil
import subprocess
from types import SimpleNamespace

import pynvml
import pytest

from harness import device
from harness.answers import Unknown
from harness.device import GpuStatus, TorchBuild, Usability, cpu_llc_bytes, cpu_name, gpu_status, installed_torch
from harness.environment import ENVIRONMENT_KEYS, LEFT_OUT, collect, git_diff, recorded_variables
from harness.model import Environment
from harness.nvml import Nvml, NvmlDevice
from tests.fake_nvml import FakeGpu, FakeNvml

ON_CPU = Unknown(reason="measured on the CPU")


@pytest.fixture
def checkout(tmp_path):
    """A repository with one commit, whose files are `constraints.txt` and `kernel.cu`."""
    (tmp_path / "constraints.txt").write_text("torch==2.11.0\n")
    (tmp_path / "kernel.cu").write_text("// one\n")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)
    return tmp_path


def gpu_facts_of_torch() -> dict:
    """`device._gpu_facts` for what torch says of an H200; without CUDA its libraries' versions are unknown."""
    properties = SimpleNamespace(
        name="NVIDIA H200",
        uuid="8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071",
        pci_domain_id=0,
        pci_bus_id=27,
        pci_device_id=0,
        major=9,
        minor=0,
        multi_processor_count=132,
        L2_cache_size=62_914_560,
        total_memory=150_110_011_392,
    )
    facts = device._gpu_facts(properties, None)
    no_cuda = Unknown(reason="torch is built without CUDA")
    assert facts["cuda_runtime_version"] == facts["cublas_version"] == no_cuda
    return facts | {"cuda_runtime_version": "13.0", "cublas_version": None}


def test_every_key_has_a_value_or_a_reason_on_the_cpu(checkout):
    """None is always explained, and torch's own facts are all registered."""
    facts = device.torch_facts("cpu")
    environment = collect(facts, ON_CPU, root=checkout)
    assert list(environment.values) == list(ENVIRONMENT_KEYS)
    assert {key for key, value in environment.values.items() if value is None} == set(environment.unknown)
    assert set(facts["values"]) <= set(ENVIRONMENT_KEYS)
    assert environment.unknown["gpu_name"] == environment.unknown["power_limit_mw"] == "measured on the CPU"
    assert environment.get("device_name") == environment.get("cpu_name")
    assert Environment.from_dict(json.loads(json.dumps(environment.to_dict()))) == environment


def test_a_gpu_s_environment(checkout):
    """NVML's UUID, with its prefix, stands before torch's; what only torch knows comes from torch."""
    nvml = Nvml.open(FakeNvml())
    found = nvml.find(uuid="8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071", pci_bus_id=None)
    assert isinstance(found, NvmlDevice)
    assert set(found.facts().values) <= set(ENVIRONMENT_KEYS)
    worker = {"values": gpu_facts_of_torch(), "unknown": {"cublas_version": "not loaded"}}
    environment = collect(worker, found, root=checkout)
    assert environment.get("gpu_uuid") == "GPU-8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071"
    assert environment.get("l2_bytes") == 60 * 2**20
    assert environment.get("compute_capability") == "9.0"
    assert environment.get("driver_version") == "580.159.04"
    assert environment.unknown["cublas_version"] == "not loaded"
    assert environment.unknown["torch_version"] == "the worker process did not report it"


def test_torch_knows_the_gpu_where_nvml_does_not(checkout):
    """No NVML is survived: name and address are torch's, clocks and limits are None with NVML's reason."""
    worker = {"values": gpu_facts_of_torch(), "unknown": {}}
    environment = collect(worker, Unknown(reason="NVML does not load"), root=checkout)
    assert environment.get("gpu_name") == "NVIDIA H200"
    assert environment.get("gpu_pci_bus_id") == "00000000:1B:00.0"
    assert environment.unknown["driver_version"] == "NVML does not load"


@pytest.mark.parametrize(("hide", "environ"), [(True, {}), (False, {"SGEMV_HOSTNAME": "off"})])
def test_the_hostname_can_be_turned_off(checkout, hide, environ):
    environment = collect({}, ON_CPU, root=checkout, hide_hostname=hide, environ=environ)
    assert environment.get("hostname") is None
    assert environment.unknown["hostname"] == "turned off"


def test_only_named_variables_are_recorded_and_no_secret():
    environ = {
        "CUDA_VISIBLE_DEVICES": "GPU-8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071,1",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "OMP_NUM_THREADS": "4",
        "NVIDIA_API_KEY": "short",
        "NVIDIA_SETTING": "nvapi-abc",
        "PYTORCH_INDEX": "https://user:word@example.org/",
        "CUDA_BLOB": "0123456789abcdef0123456789abcdef",
        "AWS_SECRET": "never looked at",
        "MY_CUDA_PATH": "not one of the prefixes",
    }
    assert json.loads(recorded_variables(environ)) == {
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "CUDA_BLOB": LEFT_OUT,
        "CUDA_VISIBLE_DEVICES": "GPU-8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071,1",
        "NVIDIA_API_KEY": LEFT_OUT,
        "NVIDIA_SETTING": LEFT_OUT,
        "OMP_NUM_THREADS": "4",
        "PYTORCH_INDEX": LEFT_OUT,
    }


def test_a_clean_and_a_dirty_checkout(checkout):
    """The commit is git's; an untracked file makes the checkout dirty and is named in the diff, without its text."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, check=True, capture_output=True, text=True)
    clean = collect({}, ON_CPU, root=checkout)
    assert (clean.get("git_commit"), clean.get("git_dirty")) == (head.stdout.strip(), False)
    assert clean.get("constraints_sha256") == hashlib.sha256(b"torch==2.11.0\n").hexdigest()
    assert git_diff(checkout) == ""
    (checkout / "kernel.cu").write_text("// two\n")
    (checkout / "größe.cu").write_text("private\n")
    patch = git_diff(checkout)
    assert isinstance(patch, str)
    assert patch.startswith("# untracked, not in this patch: größe.cu\ndiff --git a/kernel.cu b/kernel.cu\n")
    assert patch.endswith("-// one\n+// two\n")
    assert collect({}, ON_CPU, root=checkout).get("git_dirty") is True


def test_not_a_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    environment = collect({}, ON_CPU, root=tmp_path)
    assert (environment.get("git_commit"), environment.get("git_dirty")) == (None, None)
    assert environment.unknown["git_commit"].startswith("git rev-parse: fatal: not a git repository")
    assert environment.unknown["constraints_sha256"] == "constraints.txt: No such file or directory"
    assert isinstance(git_diff(tmp_path), Unknown)


def test_no_git(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert collect({}, ON_CPU, root=checkout).unknown["git_dirty"] == "git is not installed"


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


def test_a_lost_gpu_still_has_an_environment(checkout):
    """NVML's facts are None with its reason, and torch's stand."""
    gpu = FakeGpu()
    nvml = Nvml.open(FakeNvml([gpu]))
    found = nvml.find(uuid=gpu.uuid, pci_bus_id=None)
    gpu.lost = True
    worker = {"values": gpu_facts_of_torch(), "unknown": {}}
    environment = collect(worker, found, root=checkout)
    assert environment.get("gpu_name") == "NVIDIA H200"
    assert environment.unknown["ecc"] == "nvmlDeviceGetEccMode: GPU is lost"
