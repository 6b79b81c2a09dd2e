"""The timers that are no bench's own: those of the selfcheck, and other projects'."""

from __future__ import annotations

from harness.timing import Purpose, timers

OF_CHECKS = {name: timer for name, timer in timers().items() if timer.purpose is Purpose.CHECK}
OF_PEERS = [name for name, timer in timers().items() if timer.purpose is Purpose.PEER]
