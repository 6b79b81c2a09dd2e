"""The SM clock while something runs, from the device's own counters.

Every multiprocessor writes down its cycle counter and the device's nanosecond clock, before and after. Their
differences give its mean clock in between: over 2 ms, 132 multiprocessors of an H200 agree within 0.005 %. NVML's
reading is a moment's, comes milliseconds late, and can miss what a replay of 2 ms went through.
"""

from __future__ import annotations

import ctypes
from functools import cache

from harness.device.driver import DriverError, driver_call

ENTRY = b"read_clocks"

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry read_clocks(.param .u64 table, .param .u32 rows)
{
  .reg .pred %outside;
  .reg .u32 %sm, %rows;
  .reg .u64 %row, %offset, %cycles, %ns;
  mov.u32 %sm, %smid;
  ld.param.u32 %rows, [rows];
  setp.ge.u32 %outside, %sm, %rows;
  @%outside ret;
  ld.param.u64 %row, [table];
  mul.wide.u32 %offset, %sm, 16;
  add.u64 %row, %row, %offset;
  mov.u64 %cycles, %clock64;
  mov.u64 %ns, %globaltimer;
  st.global.u64 [%row], %cycles;
  st.global.u64 [%row+8], %ns;
  ret;
}
\0"""
"""By hand, so that no compiler is needed where the harness runs: the driver turns it into machine code."""

ROWS_PER_SM = 2
"""Multiprocessors are numbered with gaps where some are switched off."""


class NoClock:
    """In place of `SmClock` where the clock is not read."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def begin(self, sample: int) -> None:
        """Nothing."""

    def end(self, sample: int) -> None:
        """Nothing."""


NO_CLOCK = NoClock("the clock is not read")


def open_clock(samples: int) -> SmClock | NoClock:
    """Counters of the current device for `samples` samples, or why it has none."""
    try:
        return SmClock(samples)
    except DriverError as error:
        return NoClock(f"the device's counters cannot be read: {error}")


class SmClock:
    """Room for the clock of `samples` samples on the current device. `begin` and `end` are queued on the stream."""

    def __init__(self, samples: int) -> None:
        """Load the counter kernel.

        Raises:
            DriverError: the driver does not take it.
        """
        import torch

        self._sms = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
        self._function = _counter_kernel(torch.cuda.current_device())
        shape = (samples, 2, ROWS_PER_SM * self._sms, 2)
        self._table = torch.zeros(shape, dtype=torch.int64, device="cuda")

    def begin(self, sample: int) -> None:
        """Queue the reading before a sample; one taken again overwrites it."""
        self._read(sample, 0)

    def end(self, sample: int) -> None:
        """Queue the reading after it."""
        self._read(sample, 1)

    def mhz(self, samples: int) -> list[float | None]:
        """Mean clock of each of the first `samples` samples: the median over the multiprocessors. None: not read."""
        readings = self._table[:samples].cpu()
        both = (readings != 0).all(dim=3).all(dim=1)
        elapsed = (readings[:, 1] - readings[:, 0]).double()
        found: list[float | None] = []
        for sample in range(samples):
            cycles, ns = elapsed[sample, both[sample]].unbind(1)
            counted = ns > 0
            found.append(float((cycles[counted] / ns[counted]).median()) * 1e3 if bool(counted.any()) else None)
        return found

    def _read(self, sample: int, which: int) -> None:
        import torch

        address = ctypes.c_uint64(self._table[sample, which].data_ptr())
        rows = ctypes.c_uint32(ROWS_PER_SM * self._sms)
        pointers = [ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in (address, rows)]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        arguments = (ctypes.c_void_p * 2)(*pointers)
        driver_call("cuLaunchKernel", self._function, self._sms, 1, 1, 1, 1, 1, 0, stream, arguments, None)


@cache
def _counter_kernel(device_index: int) -> ctypes.c_void_p:  # noqa: ARG001 - a module belongs to one device's context
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    driver_call("cuModuleLoadData", ctypes.byref(module), PTX)
    driver_call("cuModuleGetFunction", ctypes.byref(function), module, ENTRY)
    return function
