"""A stand-in for Nsight Compute: writes the log, the words and the exit code that a test tells it to.

What it writes looks like the output of CUDA 13.0's ncu on an H200, cut down to a few of the device's attributes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.ncu import target
from harness.ncu.output import METRICS
from tests import fake_tool

CUBLAS = "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, 0, 0>(T13, T6, T6)"
REDUCE = "void cublasLt::splitKreduce_kernel<32, 16>(cublasSplitKParams<float>, const float *, float *)"
UNITS = {
    "duration_ns": "ns", "dram_read_bytes": "byte", "dram_write_bytes": "byte", "dram_throughput_pct": "%",
    "occupancy_pct": "%", "load_sectors": "sector", "load_requests": "request", "l2_hit_pct": "%",
    "registers": "register/thread",
}  # fmt: skip
VALUES = {
    "duration_ns": "22,304", "dram_read_bytes": "67,141,632", "dram_write_bytes": "4,096",
    "dram_throughput_pct": "71.25", "occupancy_pct": "48.5", "load_sectors": "2,162,688", "load_requests": "135,168",
    "l2_hit_pct": "3.125", "registers": "40",
}  # fmt: skip
WELL = f"{target.STARTED}\n{target.WARM}\n{target.DONE}\n"
PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the "
    "target device 0. For instructions on enabling permissions and to get more information see "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM\n"
)
NONE_PROFILED = "==WARNING== No kernels were target.\n"


def log(
    *names: str,
    leave_out: Sequence[str] = (),
    units: dict[str, str] | None = None,
    grid: str = "(512, 1, 1)",
    **values: str,
) -> str:
    """What ncu writes into its log file, as seen on an H200: its own lines, names, units, a row a kernel."""
    fields = [field for field in METRICS if field not in leave_out]
    start = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
             "Grid Size", "Device", "CC", "device__attribute_clock_rate"]  # fmt: skip
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([*start, *(METRICS[field] for field in fields)])
    writer.writerow([""] * 11 + ["Khz"] + [(UNITS | (units or {}))[field] for field in fields])
    for number, name in enumerate(names):
        begin = [number, 1046, "python3.12", "127.0.0.1", name, 1, 7, "(128, 1, 1)", grid, 0, "9.0", "1,980,000"]
        writer.writerow([*begin, *((VALUES | values)[field] for field in fields)])
    before = f'==PROF== Connected to process 1046 (/usr/bin/python3.12)\n==PROF== Profiling "{names[:1]}": 0%....100%\n'
    return f"{before}==PROF== Disconnected from process 1046\n{text.getvalue()}"


def fake(folder: Path, *story: dict[str, Any]) -> str:
    """An ncu that plays the story."""
    return fake_tool.fake(folder, "ncu", *story)
