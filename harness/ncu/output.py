"""What Nsight Compute says of device kernels: the metrics that are asked for, and the CSV that holds them."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import CommandError, Exit

METRICS = {
    "registers": "launch__registers_per_thread",
    "duration_ns": "gpu__time_duration.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "dram_throughput_pct": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "occupancy_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l2_hit_pct": "lts__t_sector_hit_rate.pct",
}
"""Name that ncu has for each field of `ProfiledKernel`."""

_SCALES = {
    "_ns": {"ns": 1, "nsecond": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9},
    "_bytes": {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12},
}
"""Factor from ncu's unit to that of a field whose name ends so; base units are asked for, and this holds ncu to it."""


@dataclass(frozen=True, kw_only=True)
class ProfiledKernel:
    """One kernel on the device that a launch started; None is what ncu gave no value for."""

    name: str
    """Demangled, with template arguments and parameters."""
    grid: tuple[int, ...]
    """Blocks by dimension."""
    block: tuple[int, ...]
    """Threads by dimension."""
    registers: float | None
    """A thread."""
    duration_ns: float | None
    """From cold caches, by ncu; not the harness's figure."""
    dram_read_bytes: float | None
    """From device memory."""
    dram_write_bytes: float | None
    """To device memory; what stays in L2 at the kernel's end is not in it."""
    dram_throughput_pct: float | None
    """Of what the memory could do in that time."""
    occupancy_pct: float | None
    """Resident warps while a multiprocessor was active, of the most it can hold."""
    load_sectors: float | None
    """Of 32 bytes, that global loads asked L1 for."""
    load_requests: float | None
    """Global load instructions, one a warp."""
    l2_hit_pct: float | None
    """Of the sectors that L2 was asked for."""

    @property
    def dram_bytes(self) -> float | None:
        """Read and written."""
        if self.dram_read_bytes is None or self.dram_write_bytes is None:
            return None
        return self.dram_read_bytes + self.dram_write_bytes

    @property
    def sectors_per_request(self) -> float | None:
        """4 where a warp's 32 loads of 4 bytes are neighbours, 16 for 16 bytes each; None without global loads."""
        if self.load_sectors is None or not self.load_requests:
            return None
        return self.load_sectors / self.load_requests

    @property
    def missing(self) -> tuple[str, ...]:
        """Metrics that ncu gave no value for, by its names."""
        return tuple(metric for field, metric in METRICS.items() if getattr(self, field) is None)


def parse(log: str) -> tuple[ProfiledKernel, ...]:
    """The device kernels of ncu's CSV, which stands between its other words.

    Raises:
        CommandError: a row or a unit is not as wanted (INFRASTRUCTURE).
    """
    rows = list(csv.reader(line for line in log.splitlines() if line.startswith('"')))
    start = next((i for i, row in enumerate(rows) if "Kernel Name" in row), None)
    if start is None:
        return ()
    header, *rest = rows[start:]
    for row in rest:
        if len(row) != len(header):
            raise CommandError(
                f"ncu's CSV has a row of {len(row)} columns under {len(header)} names: is the disk full?",
                Exit.INFRASTRUCTURE,
            )
    named = [dict(zip(header, row, strict=True)) for row in rest]
    return tuple(_device_kernel(row, units=named[0]) for row in named[1:])


def _device_kernel(row: Mapping[str, str], units: Mapping[str, str]) -> ProfiledKernel:
    fields: dict[str, Any] = {name: _value(name, row, units) for name in METRICS}
    return ProfiledKernel(
        name=row["Kernel Name"],
        grid=_extents(row.get("Grid Size", "")),
        block=_extents(row.get("Block Size", "")),
        **fields,
    )


def _value(field: str, row: Mapping[str, str], units: Mapping[str, str]) -> float | None:
    """In the field's unit; None where ncu leaves the metric out, or has `n/a` or the like in its place."""
    metric = METRICS[field]
    try:
        value = float(row.get(metric, "").replace(",", ""))
    except ValueError:
        return None
    scales = next((known for ending, known in _SCALES.items() if field.endswith(ending)), None)
    if not math.isfinite(value) or scales is None:
        return value if math.isfinite(value) else None
    if units[metric] not in scales:
        wanted = ", ".join(scales)
        raise CommandError(f"ncu: found {metric} in {units[metric]!r}, wanted one of: {wanted}", Exit.INFRASTRUCTURE)
    return value * scales[units[metric]]


def _extents(text: str) -> tuple[int, ...]:
    """`(512, 1, 1)` → (512, 1, 1)."""
    return tuple(int(part) for part in text.strip("()").split(",") if part.strip())
