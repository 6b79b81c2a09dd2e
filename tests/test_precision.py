"""harness.precision: what torch may round, by dtype, and that a workbench says so for its problem."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from harness.device import torch_facts
from harness.dtypes import DTYPES
from harness.model import Problem
from harness.precision import set_precision
from harness.workbench import Workbench

EVERY_DTYPE = pytest.mark.parametrize("dtype", DTYPES)


@pytest.fixture(autouse=True)
def torch_as_it_comes() -> Iterator[None]:
    """With reductions in half precision allowed, and back to float32's state afterwards."""
    matmul = torch.backends.cuda.matmul
    matmul.allow_fp16_reduced_precision_reduction = matmul.allow_bf16_reduced_precision_reduction = True
    yield
    set_precision("float32")


def flags() -> dict[str, object]:
    matmul = torch.backends.cuda.matmul
    names = ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
    return {name: getattr(matmul, name) for name in (*names, "allow_fp16_accumulation")}


def wanted(dtype: str) -> dict[str, object]:
    return {
        "allow_tf32": dtype == "tf32",
        "allow_fp16_reduced_precision_reduction": False,
        "allow_bf16_reduced_precision_reduction": False,
        "allow_fp16_accumulation": False,
    }


@EVERY_DTYPE
def test_the_flags_of_a_dtype(dtype: str) -> None:
    """TF32 where the problem says so and nowhere else; never a sum in half precision."""
    set_precision(dtype)
    assert flags() == wanted(dtype)


@EVERY_DTYPE
def test_a_workbench_sets_them_for_its_problem(dtype: str) -> None:
    """And back for the next one, whatever the last one was."""
    for each in (dtype, "float32"):
        Workbench(Problem(m=2, k=3, dtype=each), "cpu")
        assert flags() == wanted(each)


def test_the_facts_say_what_is_set() -> None:
    """What a run keeps of its environment is what float32 problems are measured under."""
    set_precision("tf32")
    assert torch_facts("cpu")["values"]["allow_tf32"] is True
    set_precision("float32")
    values = torch_facts("cpu")["values"]
    assert values["allow_tf32"] is values["allow_fp16_reduced_precision_reduction"] is False
    assert values["allow_bf16_reduced_precision_reduction"] is False
