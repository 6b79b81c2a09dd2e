"""`harness.nightly.machine`: what a night finds wrong with its machine, all of it at once, a line each."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from harness.children import Ended
from harness.device import TorchBuild, gpu_status
from harness.device.turn import lock_of
from harness.nightly.machine import ASK_TORCH, Check, Machine, checks
from harness.store import Store
from tests.fake_nvml import FakeGpu, FakeNvml
from tests.played_nights import Host

BARE = FakeGpu().uuid.removeprefix("GPU-")


def found(host: Host, device: str = "cuda", *, wait_s: float = 60, said: list[str] | None = None) -> list[Check]:
    told = [] if said is None else said
    return list(checks(host.machine(), Store(host.root / "store"), device, wait_s, told.append))


def faults(made: list[Check]) -> dict[str, str]:
    return {each.what: each.said for each in made if each.fault}


def test_a_machine_that_is_fit(tmp_path: Path) -> None:
    """What was found is said, and nothing is left behind."""
    made = found(Host(root=tmp_path))
    assert faults(made) == {}
    assert [each.what for each in made] == ["disk", "disk", "driver", "GPU", "idle", "compiler"]
    assert made[2].said == "580.159.04"
    assert not (tmp_path / "store").exists()


def test_everything_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    """No disk, no compiler, a driver without a version, torch that cannot use the GPU."""
    host = Host(root=tmp_path, free_bytes=10 * 2**20, nvml=FakeNvml(missing_in_driver={"nvmlSystemGetDriverVersion"}))
    machine = replace(host.machine(), ask=lambda command: Ended(code=6, stderr=f"error: no {command[-1]}\n"))
    made = list(checks(machine, Store(tmp_path / "store"), "cuda", 60, print))
    said = faults(made)
    assert list(said) == ["disk", "driver", "torch", "compiler"]
    assert said["compiler"] == "no cuda"
    assert said["driver"].startswith("its version cannot be read: ")
    assert said["torch"] == "cuda cannot be used: no cuda; see nvidia-smi"
    disks = [each.said for each in made if each.what == "disk"]
    assert disks[0] == (
        f"0.0 GiB free for the store in {tmp_path / 'store'}, "
        "wanted 1 GiB: make room, or name another place with --store"
    )
    assert disks[1].endswith(", wanted 1 GiB: make room, or name another place with TMPDIR")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_that_cannot_be_written_to(tmp_path: Path) -> None:
    """The store's own line."""
    tmp_path.chmod(0o500)
    assert faults(found(Host(root=tmp_path)))["store"].startswith(f"store {tmp_path / 'store'}: Permission denied; ")


def test_a_store_that_is_a_file(tmp_path: Path) -> None:
    """The same for root, too."""
    (tmp_path / "store").write_text("")
    assert faults(found(Host(root=tmp_path)))["store"].startswith(f"store {tmp_path / 'store'}: Not a directory; ")


@pytest.mark.parametrize(
    ("nvml", "build", "line"),
    [
        (
            FakeNvml(gpus=[]),
            "13.0",
            "no NVIDIA GPU found (NVML lists none); wanted one that torch can use, and --device",
        ),
        (FakeNvml(init_error=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND), "13.0", "no NVIDIA GPU found (the NVML library "),
        (FakeNvml(), None, "this machine has an NVIDIA GPU, but torch 2.11.0 is built without CUDA"),
        (
            FakeNvml(cuda_driver_version=12080),
            "13.0",
            "the NVIDIA driver 580.159.04 supports CUDA 12.8, but torch 2.11.0 needs CUDA 13.0: update",
        ),
        (FakeNvml(init_error=pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH), "13.0", "the NVIDIA driver's libraries and "),
    ],
    ids=["no GPU", "no driver", "torch without CUDA", "old driver", "half an update"],
)
def test_a_gpu_that_is_missing_or_of_no_use(nvml: FakeNvml, build: str | None, line: str, tmp_path: Path) -> None:
    """One line, and no look at what hangs on it."""
    host = Host(root=tmp_path, nvml=nvml)
    torch = TorchBuild(version="2.11.0", cuda=build)
    machine = replace(
        host.machine(), status=lambda found: gpu_status(found, torch, environ={}, device_nodes=tmp_path / "none")
    )
    said = faults(list(checks(machine, Store(tmp_path / "store"), "cuda", 60, print)))
    assert list(said) == ["GPU"]
    assert said["GPU"].startswith(line)
    assert "\n" not in said["GPU"]


def test_nvml_that_does_not_start_beside_a_gpu(tmp_path: Path) -> None:
    """A bench would run, but without a clock no night is worth much: its own line."""
    host = Host(root=tmp_path, nvml=FakeNvml(init_error=pynvml.NVML_ERROR_UNKNOWN))
    (tmp_path / "dev" / "nvidia0").mkdir(parents=True)
    torch = TorchBuild(version="2.11.0", cuda="13.0")
    machine = replace(
        host.machine(), status=lambda found: gpu_status(found, torch, environ={}, device_nodes=tmp_path / "dev")
    )
    said = faults(list(checks(machine, Store(tmp_path / "store"), "cuda", 60, print)))
    assert re.match(r"NVML does not start: .*; without it no clock can be read", said["NVML"])


def test_others_are_waited_for(tmp_path: Path) -> None:
    """Until they are gone, told once; the lock is free for the bench then."""
    gpu = FakeGpu(processes={812: "python3"})
    host, said = Host(root=tmp_path, nvml=FakeNvml([gpu])), list[str]()
    host.on_sleep = lambda: gpu.processes.clear() if sum(host.slept_s) >= 20 else None
    assert faults(found(host, said=said)) == {}
    assert said == ["other processes use the GPU: python3 (pid 812): waiting for it, 60 s at most"]
    assert sum(host.slept_s) == 20
    lock = lock_of(BARE, tmp_path)
    lock.acquire(timeout=0)
    lock.release()


@pytest.mark.parametrize(
    ("gpu", "line"),
    [
        (FakeGpu(processes={812: "python3"}), "other processes use the GPU: python3 (pid 812)"),
        (FakeGpu(utilization_percent=97), "the GPU is busy (97 % by NVML)"),
    ],
)
def test_the_wait_has_an_end(gpu: FakeGpu, line: str, tmp_path: Path) -> None:
    """Within what was asked for, and three looks of a second each."""
    host = Host(root=tmp_path, nvml=FakeNvml([gpu]))
    said = faults(found(host))
    assert said == {"idle": f"{line}, wanted an idle GPU: end what runs there, or wait longer with --idle-wait"}
    assert 60 <= sum(host.slept_s) <= 64


def test_another_bench_is_waited_for(tmp_path: Path) -> None:
    """It holds the GPU's lock: the same wait, the lock's own line."""
    lock = lock_of(BARE, tmp_path)
    with lock:
        said = list[str]()
        made = faults(found(Host(root=tmp_path), wait_s=0.3, said=said))
    assert said == [f"another bench measures on GPU {BARE}: waiting for it, 0 min at most"]
    assert made["idle"].startswith(f"another bench has held GPU {BARE} for 0 min ")


def test_what_the_driver_does_not_tell_forbids_nothing(tmp_path: Path) -> None:
    """In a container it may name no processes."""
    errors = dict.fromkeys(
        ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetUtilizationRates"), pynvml.NVML_ERROR_NOT_SUPPORTED
    )
    assert faults(found(Host(root=tmp_path, nvml=FakeNvml([FakeGpu(errors=errors)])))) == {}


def test_every_gpu_is_looked_at(tmp_path: Path) -> None:
    """With --device all; the wait is for all together."""
    gpus = [FakeGpu(uuid=f"GPU-{k}", bus_id=f"0000000{k}:1B:00.0") for k in range(3)]
    gpus[1].processes[7] = "other"
    host = Host(root=tmp_path, nvml=FakeNvml(gpus))
    made = found(host, "all")
    assert [each.what for each in made if each.what in ("GPU", "idle")] == ["GPU", "idle"] * 3
    assert [each.fault for each in made if each.what == "idle"] == [False, True, False]


def test_the_cpu_is_asked_for_by_name(tmp_path: Path) -> None:
    """Then no GPU is looked at, and that is said."""
    made = found(Host(root=tmp_path, nvml=FakeNvml(init_error=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)), "cpu")
    assert faults(made) == {}
    assert [each.said for each in made if each.what == "GPU"] == ["not looked at: --device cpu asks for CPU numbers"]


def test_torch_is_really_asked() -> None:
    """In a program of its own: what it says of the device, or its complaint in a line where it cannot use one."""
    ask = Machine().ask
    seen = ask([sys.executable, "-c", ASK_TORCH, "cpu"])
    assert json.loads(seen.stdout)["values"]["device_name"]
    refused = ask([sys.executable, "-c", ASK_TORCH, "GPU-00000000-1111-2222-3333-444444444444"])
    assert refused.code == 1
    assert refused.complaint


def test_compilers_are_really_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with its version; one that is not there is the build's own line."""
    ask = Machine().ask
    command = [sys.executable, "-m", "kernels.build", "--compilers", "--target", "cpu"]
    compiler, headers = ask(command).stdout.splitlines()
    assert re.match(r"/\S+: \S", compiler)
    assert re.fullmatch(r"headers of torch \d+\.\d+\.\d+\S*", headers)
    monkeypatch.setenv("CXX", "no-such-compiler")
    refused = ask(command)
    assert refused.code == 6
    assert refused.complaint.startswith("CXX is 'no-such-compiler', which is no executable; install g++")
