"""harness.environment: every key has a value or a reason."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from types import SimpleNamespace

import pytest

from harness import device
from harness.answers import Unknown
from harness.device.nvml import Nvml, NvmlDevice
from harness.environment import ENVIRONMENT_KEYS, LEFT_OUT, collect, git_diff, recorded_variables
from harness.model import Environment
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


def test_what_nvml_read_of_a_clock_that_was_locked(checkout):
    """Or that it was not."""
    assert collect({}, ON_CPU, root=checkout, locked_sm_clock_mhz=1410).get("locked_sm_clock_mhz") == 1410
    assert collect({}, ON_CPU, root=checkout).unknown["locked_sm_clock_mhz"] == "it was not locked"


def test_torch_knows_the_gpu_where_nvml_does_not(checkout):
    """No NVML is survived: name and address are torch's, clocks and limits are None with NVML's reason."""
    worker = {"values": gpu_facts_of_torch(), "unknown": {}}
    environment = collect(worker, Unknown(reason="NVML does not load"), root=checkout)
    assert environment.get("gpu_name") == "NVIDIA H200"
    assert environment.get("gpu_pci_bus_id") == "00000000:1B:00.0"
    assert environment.unknown["driver_version"] == "NVML does not load"


def test_the_hostname_can_be_turned_off(checkout):
    environment = collect({}, ON_CPU, root=checkout, environ={"SGEMV_HOSTNAME": "off"})
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


def digest_of_changes(checkout):
    return collect({}, ON_CPU, root=checkout).get("git_diff_sha256")


def test_changes_of_a_checkout_have_a_hash(checkout):
    """That of the patch as `sha256sum build/source.diff` gives it; None of a clean checkout, with the reason."""
    clean = collect({}, ON_CPU, root=checkout)
    assert clean.get("git_diff_sha256") is None
    assert clean.unknown["git_diff_sha256"] == "no file differs from the commit"
    (checkout / "kernel.cu").write_text("// two\n")
    two = digest_of_changes(checkout)
    assert two == hashlib.sha256(git_diff(checkout).encode()).hexdigest()
    (checkout / "kernel.cu").write_text("// three\n")
    assert digest_of_changes(checkout) != two
    (checkout / "kernel.cu").write_text("// two\n")
    assert digest_of_changes(checkout) == two


def test_untracked_files_count_by_their_content(checkout):
    """They may be code that ran; a pipe is not waited for, and a file that cannot be read is no error."""
    found = []
    for content in ("a = 1\n", "a = 2\n", None):
        (checkout / "größe.py").unlink(missing_ok=True)
        (checkout / "other.py").write_text("")
        if content:
            (checkout / "größe.py").write_text(content)
        found.append(digest_of_changes(checkout))
    os.mkfifo(checkout / "pipe")
    (checkout / "link").symlink_to("pipe")
    found.append(digest_of_changes(checkout))
    assert len(set(found)) == 4


def test_not_a_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    environment = collect({}, ON_CPU, root=tmp_path)
    assert (environment.get("git_commit"), environment.get("git_dirty")) == (None, None)
    assert environment.unknown["git_commit"].startswith("git rev-parse: fatal: not a git repository")
    assert environment.unknown["constraints_sha256"] == "constraints.txt: No such file or directory"
    assert isinstance(git_diff(tmp_path), Unknown)


def test_no_git(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "")
    unknown = collect({}, ON_CPU, root=checkout).unknown
    assert unknown["git_dirty"] == unknown["git_diff_sha256"] == "git is not installed"


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
