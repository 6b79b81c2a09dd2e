"""harness.device.gpus and suites.device: which GPUs there are, by number and by UUID, and which was asked for."""

# ruff: noqa: D102, N802 - the driver's own names and meanings
from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from harness.answers import Unknown
from harness.device import GpuStatus, Usability, gpus
from harness.device.driver import DriverError
from harness.device.gpus import VISIBLE, Gpu, every_gpu
from harness.device.nvml import Nvml, NvmlDevice
from harness.errors import CommandError, Exit
from harness.worker import WorkerSpec
from suites import device
from suites.device import device_of
from tests.fake_nvml import FakeGpu, FakeNvml

BARE = "8f1c7a52-0b3d-4e6f-9a1b-2c3d4e5f6071"
ZERO = "00000000-0000-0000-0000-000000000000"
FIRST, SECOND = Gpu(name="NVIDIA H200", uuid=f"GPU-{BARE}"), Gpu(name="NVIDIA A100", uuid=f"GPU-{ZERO}")


class FakeCuda:
    """Two GPUs as libcuda shows them."""

    def cuInit(self, flags: int) -> int:
        return flags

    def cuDeviceGetCount(self, count: object) -> int:
        count._obj.value = 2  # type: ignore[attr-defined]
        return 0

    def cuDeviceGet(self, found: object, index: int) -> int:
        found._obj.value = 40 + index  # type: ignore[attr-defined]
        return 0

    def cuDeviceGetName(self, name: ctypes.Array[ctypes.c_char], size: int, found: ctypes.c_int) -> int:
        name.value = {40: b"NVIDIA A100", 41: b"NVIDIA H200"}[found.value]
        return int(size != 256)

    def cuDeviceGetUuid_v2(self, uuid: object, found: ctypes.c_int) -> int:
        uuid._obj[:] = bytes.fromhex(BARE.replace("-", "")) if found.value == 41 else bytes(16)  # type: ignore[attr-defined]
        return 0


def test_the_driver_names_gpus_as_torch_counts_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By their places among those that CUDA shows, never NVML's; a driver that refuses is code 6 and one line."""
    monkeypatch.setattr("harness.device.driver._library", FakeCuda)
    assert gpus.main() == 0
    assert capsys.readouterr().out == f'[["NVIDIA A100", "{ZERO}"], ["NVIDIA H200", "{BARE}"]]\n'
    monkeypatch.setattr(FakeCuda, "cuInit", lambda *_: 100)
    with pytest.raises(DriverError, match="cuInit: CUDA driver error 100"):
        gpus._ask_driver()
    assert gpus.main() == 6
    assert capsys.readouterr().err == "cuInit: CUDA driver error 100\n"


SAYS = f'print(\'[["NVIDIA A100", "{ZERO}"], ["NVIDIA H200", "{BARE}"]]\')'


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (SAYS, BARE),
        ("print('[]')", Unknown(reason="CUDA shows 0 GPUs")),
        ("raise OSError('no driver')", Unknown(reason="OSError: no driver")),
        ("raise SystemExit(6)", Unknown(reason="exit code 6")),
    ],
)
def test_gpus_are_named_by_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch, program: str, found: object) -> None:
    """Its last words are the reason where it fails."""
    run, asked = subprocess.run, []

    def instead(command: list[str], **kwargs: object) -> object:
        asked.extend(command[1:])
        return run([sys.executable, "-c", program], **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr("harness.device.gpus.subprocess.run", instead)
    assert gpus.uuid_of("cuda:1") == found
    assert asked == ["-m", "harness.device.gpus"]


BOARD = FakeGpu(mig_mode=1, uuid="GPU-aaaaaaaa-0000-0000-0000-000000000000")
EMPTY = FakeGpu(mig_mode=1, uuid="GPU-eeeeeeee-0000-0000-0000-000000000000")
WHOLE = FakeGpu(uuid="GPU-bbbbbbbb-0000-0000-0000-000000000000")
PARTS = [
    FakeGpu(uuid=f"MIG-{digit * 8}-0000-0000-0000-000000000000", name="NVIDIA H200 MIG 1g.18gb", parent=BOARD)
    for digit in "12"
]
SPLIT = [BOARD, *PARTS, EMPTY, WHOLE]


def listed(fake: FakeNvml, **environ: str) -> list[str] | str:
    nvml = Nvml.open(fake)
    found = every_gpu(nvml, environ)
    return found.reason if isinstance(found, Unknown) else [gpu.uuid for gpu in found]


def test_without_instances_cuda_says_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows what CUDA_VISIBLE_DEVICES lets through, whichever way that is written; NVML lists more."""
    monkeypatch.setattr(gpus, "numbered_gpus", lambda: (SECOND, FIRST))
    assert listed(FakeNvml([WHOLE, FakeGpu(), FakeGpu()]), **{VISIBLE: "2,0"}) == [SECOND.uuid, FIRST.uuid]
    monkeypatch.setattr(gpus, "numbered_gpus", lambda: ())
    assert listed(FakeNvml([WHOLE])) == "CUDA shows none"
    monkeypatch.setattr(gpus, "numbered_gpus", lambda: Unknown(reason="no driver"))
    assert every_gpu(Unknown(reason="no NVML")) == Unknown(reason="no driver")


def test_instances_stand_for_their_board() -> None:
    """CUDA would show the first of them alone. A board in MIG mode without instances cannot be used at all."""
    ones, twos = (part.uuid for part in PARTS)
    assert listed(FakeNvml(SPLIT)) == [ones, twos, WHOLE.uuid]
    assert listed(FakeNvml(SPLIT, text_as_bytes=True), **{VISIBLE: f"{WHOLE.uuid},MIG-22"}) == [WHOLE.uuid, twos]


@pytest.mark.parametrize(
    ("visible", "reason"),
    [
        ("0", "CUDA_VISIBLE_DEVICES is '0', and a GPU here is split (MIG): name each by its UUID, as nvidia-smi -L "),
        (BOARD.uuid, f"CUDA_VISIBLE_DEVICES is '{BOARD.uuid}', which names none"),
    ],
)
def test_what_cuda_is_told_to_show_of_instances(visible: str, reason: str) -> None:
    """By number it would be a guess which one is meant."""
    assert str(listed(FakeNvml(SPLIT), **{VISIBLE: visible})).startswith(reason)


def test_a_gpu_that_fell_off_its_bus_hides_no_other() -> None:
    """It answers nothing, not even whether it is split."""
    lost = FakeGpu(lost=True)
    assert listed(FakeNvml([lost, BOARD, *PARTS])) == [part.uuid for part in PARTS]


def test_an_instance_through_nvml() -> None:
    """What it has not of its own is None with a reason, or its board's; its board is no instance."""
    fake = FakeNvml(SPLIT)
    PARTS[0].errors["nvmlDeviceGetUtilizationRates"] = 3  # NVML_ERROR_NOT_SUPPORTED
    nvml = Nvml.open(fake)
    assert isinstance(nvml, Nvml)
    part, board = (nvml.find(uuid=uuid, pci_bus_id=None) for uuid in (PARTS[0].uuid, BOARD.uuid))
    assert isinstance(part, NvmlDevice)
    assert isinstance(board, NvmlDevice)
    assert (part.is_instance, part.is_split, board.is_instance, board.is_split) == (True, False, False, True)
    assert part.utilization_percent() == Unknown(reason="nvmlDeviceGetUtilizationRates: Not Supported")
    assert part.state().sm_clock_mhz == BOARD.sm_clock_mhz


@pytest.fixture
def _two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two GPUs."""
    monkeypatch.setattr(device, "gpu_status", lambda *_: GpuStatus(word=Usability.USABLE))
    monkeypatch.setattr(device, "Nvml", Nvml)
    for module in (device, gpus):
        monkeypatch.setattr(module, "numbered_gpus", lambda: (SECOND, FIRST))


@pytest.mark.usefixtures("_two")
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, ("cuda:0", None)),
        ("cuda", ("cuda:0", None)),
        ("cuda:1", ("cuda:1", None)),
        (FIRST.uuid, ("cuda:0", FIRST.uuid)),
        ("cpu", ("cpu", None)),
    ],
)
def test_what_was_asked_for(wanted: str | None, found: tuple[str, str | None]) -> None:
    """By its UUID a GPU is the first that workers see, and the only one."""
    assert device_of(wanted) == found


@pytest.mark.usefixtures("_two")
@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ("cuda:2", "--device: found 'cuda:2', wanted one of: cuda:0 (NVIDIA A100), cuda:1 (NVIDIA H200)"),
        ("GPU-no", f"--device: found 'GPU-no', wanted one of: {SECOND.text}, {FIRST.text}"),
        (f"{FIRST.uuid}:1", f"--device: found '{FIRST.uuid}:1', wanted one of: {SECOND.text}, {FIRST.text}"),
        (f"{FIRST.uuid},0", f"--device: found '{FIRST.uuid},0', wanted one of: {SECOND.text}, {FIRST.text}"),
        ("MIG", "--device: found 'MIG', wanted cuda, cuda:N, a UUID (GPU-… or MIG-…), all or cpu"),
        ("cuda:-1", "--device: found 'cuda:-1', wanted cuda, cuda:N, a UUID (GPU-… or MIG-…), all or cpu"),
    ],
)
def test_what_is_not_there(wanted: str, line: str) -> None:
    """One line with what is, code 2."""
    with pytest.raises(CommandError) as caught:
        device_of(wanted)
    assert (str(caught.value), caught.value.code) == (line, Exit.USAGE)


def test_no_gpu_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code 6 with the reason, of one and of all."""
    monkeypatch.setattr(device, "gpu_status", lambda *_: GpuStatus(word=Usability.USABLE))
    for module in (device, gpus):
        monkeypatch.setattr(module, "numbered_gpus", lambda: Unknown(reason="cuInit: CUDA driver error 999"))
    for ask in (device.gpus, lambda: device_of("cuda:1")):
        with pytest.raises(CommandError, match=r"^--device: no GPU can be named: cuInit: CUDA .* 999$") as caught:
            ask()
        assert caught.value.code is Exit.INFRASTRUCTURE
    monkeypatch.setattr(device, "gpu_status", lambda *_: GpuStatus(word=Usability.NONE, reason="none is here"))
    with pytest.raises(CommandError, match="none is here"):
        device.gpus()


def test_a_worker_is_shown_its_gpu_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Before CUDA starts in it; what the user lets through stands where no UUID was asked for."""
    monkeypatch.setenv(VISIBLE, "1,0")
    folder = tmp_path_factory.getbasetemp()
    by_number = WorkerSpec(registry="x", device="cuda:1", log_folder=folder, trials=1)
    by_uuid = WorkerSpec(registry="x", device="cuda:0", uuid=FIRST.uuid, log_folder=folder, trials=1)
    assert by_number.environment()[VISIBLE] == "1,0"
    assert by_uuid.environment()[VISIBLE] == FIRST.uuid
