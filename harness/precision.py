"""How torch may round in a matrix product: as the problem's dtype says, and never less exactly."""

from __future__ import annotations


def set_precision(dtype: str) -> None:
    """Set torch's flags for this process to what problems of `dtype` mean.

    TF32 for `tf32` alone: float32 means float32. Half-precision products are added up in float32, whatever the dtype,
    also where a sum is split among blocks.
    """
    import torch

    matmul = torch.backends.cuda.matmul
    matmul.allow_tf32 = dtype == "tf32"
    matmul.allow_fp16_reduced_precision_reduction = False
    matmul.allow_bf16_reduced_precision_reduction = False
    matmul.allow_fp16_accumulation = False
