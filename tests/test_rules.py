"""The rules of csrc: whom a kernel that picks can pick, and what is refused of a rule."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernels.declarations as declarations_module
from kernels.declarations import DeclarationError, declarations, sources_by_kernel
from kernels.rules import chooser_for, named_by_rule


def test_who_picks_for_a_dtype() -> None:
    """One kernel a dtype, and nobody for others."""
    dtypes = ("float32", "float16", "bfloat16", "int8", "tf32", "float64")
    assert [chooser_for(dtype) for dtype in dtypes] == ["sgemv", "hgemv", "bgemv", "gemv_w8", None, None]


def test_what_the_rule_does_not_name_is_not_run(tmp_path: Path) -> None:
    """Though it lies beside; words of the rule that are no kernels are none."""
    for name in ("sgemv", "picked", "other"):
        (tmp_path / f"{name}.cu").write_text(f'SGEMV_KERNEL({name}, K_ANY, 1, PACKED, 4, "summary") {{\n')
    (tmp_path / "rule.h").write_text('return {"picked", "a reason"}; // never other, or "no_kernel"\n')
    assert sources_by_kernel(tmp_path, "cuda")["sgemv"] == ("picked.cu", "sgemv.cu")


def test_a_rule_that_names_no_kernel_is_refused(tmp_path: Path) -> None:
    """A slip of the pen would else be found by whoever has that shape."""
    (tmp_path / "sgemv.cu").write_text('SGEMV_KERNEL(sgemv, K_ANY, 1, PACKED, 4, "summary") {\n')
    (tmp_path / "rule.h").write_text('// rule\nreturn {"sgemv_mina", "a reason"};\n')
    with pytest.raises(DeclarationError, match=r"rule\.h:2: picks 'sgemv_mina', which no source declares; correct"):
        declarations(tmp_path)


PARTS = ("", "_rows", "_lanes")
STEMS = """// rule
if (args.n > 1) return {"rows", "a reason"};
return {"lanes", "another"};
"""


def test_a_rule_of_stems_serves_several_dtypes(tmp_path: Path) -> None:
    """Each kernel that picks runs the variants of its own dtype."""
    for file in ("halves_rule.h", "int8_rule.h"):
        (tmp_path / file).write_text(STEMS)
    for name, dtype in (("hgemv", "FLOAT16"), ("gemv_w8", "INT8")):
        lines = [f'GEMV_{"VARIANT" if part else "KERNEL"}({name}{part}, {dtype}, 8, 2, "mine") {{\n' for part in PARTS]
        (tmp_path / f"{name}.cu").write_text(lines[0])
        (tmp_path / f"{name}_both.cu").write_text("".join(lines[1:]))
    assert set(declarations(tmp_path)) == {f"{name}{part}" for name in ("hgemv", "gemv_w8") for part in PARTS}
    assert list(named_by_rule(tmp_path, "hgemv").items()) == [("hgemv_rows", 2), ("hgemv_lanes", 3)]
    found = sources_by_kernel(tmp_path, "cuda")
    assert (found["gemv_w8"], found["hgemv_rows"]) == (("gemv_w8.cu", "gemv_w8_both.cu"), ("hgemv_both.cu",))


def test_a_stem_without_a_variant_of_a_dtype_is_refused(tmp_path: Path) -> None:
    """One dtype may not have what the rule picks for all."""
    (tmp_path / "halves_rule.h").write_text(STEMS)
    (tmp_path / "hgemv.cu").write_text(
        "".join(f'GEMV_KERNEL(hgemv{part}, FLOAT16, 8, 2, "mine") {{\n' for part in PARTS)
    )
    assert set(declarations(tmp_path)) == {f"hgemv{part}" for part in PARTS}
    lacking = "".join(f'GEMV_KERNEL(bgemv{part}, BFLOAT16, 8, 2, "mine") {{\n' for part in PARTS[:2])
    (tmp_path / "bgemv.cu").write_text(lacking)
    words = r"halves_rule\.h:3: picks 'bgemv_lanes', which no source declares; correct the name"
    declarations_module._declarations.cache_clear()
    with pytest.raises(DeclarationError, match=words):
        declarations(tmp_path)
