"""What a user's file of own kernels imports; docs/adding-a-kernel.md has one of each kind."""

from __future__ import annotations

from kernels.own.declare import cuda, kernel, packed

__all__ = ["cuda", "kernel", "packed"]
