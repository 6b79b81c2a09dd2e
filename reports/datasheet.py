"""What makers publish of a few GPUs. Never a ceiling: these figures only stand beside measured ones, so labelled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Datasheet:
    """Published peaks of one GPU: dense products, no structured sparsity, float32 accumulation."""

    source: str
    bytes_per_s: float
    flop_per_s: dict[str, float]
    """By dtype."""


def _hopper(source: str, bytes_per_s: float) -> Datasheet:
    """H100 SXM and H200 SXM differ in memory alone; the datasheets' tensor figures are with sparsity, here halved."""
    peaks = {"float32": 67e12, "tf32": 494.5e12, "float16": 989.5e12, "bfloat16": 989.5e12}
    return Datasheet(source=source, bytes_per_s=bytes_per_s, flop_per_s=peaks)


def _a100(bytes_per_s: float) -> Datasheet:
    peaks = {"float32": 19.5e12, "tf32": 156e12, "float16": 312e12, "bfloat16": 312e12}
    return Datasheet(source="NVIDIA A100 datasheet", bytes_per_s=bytes_per_s, flop_per_s=peaks)


DATASHEETS = {
    "NVIDIA H200": _hopper("NVIDIA H200 datasheet (SXM)", 4.8e12),
    "NVIDIA H100 80GB HBM3": _hopper("NVIDIA H100 datasheet (SXM)", 3.35e12),
    "NVIDIA A100-SXM4-80GB": _a100(2.039e12),
    "NVIDIA A100-SXM4-40GB": _a100(1.555e12),
    "NVIDIA GeForce RTX 4090": Datasheet(
        source="NVIDIA Ada GPU architecture whitepaper, appendix A",
        bytes_per_s=1.008e12,
        flop_per_s={"float32": 82.6e12, "tf32": 82.6e12, "float16": 165.2e12, "bfloat16": 165.2e12},
    ),
    "NVIDIA GeForce RTX 3080": Datasheet(
        source="NVIDIA Ampere GA102 GPU architecture whitepaper (10 GB)",
        bytes_per_s=0.760e12,
        flop_per_s={"float32": 29.8e12, "tf32": 29.8e12, "float16": 59.5e12, "bfloat16": 59.5e12},
    ),
}
"""By the name that NVML gives."""


def datasheet(gpu_name: object) -> Datasheet | None:
    """Of the GPU that NVML calls so; None for any other, and where the name is not known."""
    return DATASHEETS.get(gpu_name) if isinstance(gpu_name, str) else None
