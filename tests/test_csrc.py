"""csrc: how kernels are declared, and what the compiler makes of them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from harness.model import Role
from kernels import ptxas
from kernels.build import build
from kernels.declarations import CSRC, DeclarationError, declarations, parse, sources_by_kernel
from kernels.rules import named_by_rule
from tests.built import library


def test_the_kernels_are_declared_with_their_contracts() -> None:
    """Name, rule for K, layout and alignment: the three references, the CPU's, and `sgemv`, which takes everything."""
    gemv = [d for d in declarations().values() if d.role is Role.GEMV and not d.variant and d.dtype == "float32"]
    found = {d.name: (d.k_rule, d.k_value, d.layout, d.alignment_bytes) for d in gemv}
    assert (
        found.items()
        >= {
            "sgemv": ("K_AT_MOST", 8_000_000_000, "ROWS_OR_COLUMNS", 4),
            "sgemv_k32_f32": ("K_MULTIPLE_OF", 32, "PACKED", 4),
            "sgemv_k128_f32x4": ("K_MULTIPLE_OF", 128, "PACKED", 16),
            "sgemv_k16_f32": ("K_EQUAL_TO", 16, "PACKED", 4),
            "sgemv_cpu_f32": ("K_ANY", 1, "PACKED", 4),
        }.items()
    )


def test_the_kernels_for_tokens_are_declared_with_their_contracts() -> None:
    """Dtype of A, most tokens, layout and alignment: any start, and row-major with any stride, from 1 token to 8."""
    gemv = [d for d in declarations().values() if d.role is Role.GEMV and not d.variant and d.dtype != "float32"]
    assert {d.name: (d.dtype, d.most_n, d.layout, d.alignment_bytes, d.k_rule) for d in gemv} == {
        "hgemv": ("float16", 8, "ROWS", 2, "K_ANY"),
        "bgemv": ("bfloat16", 8, "ROWS", 2, "K_ANY"),
        "gemv_w8": ("int8", 8, "ROWS", 1, "K_ANY"),
    }


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
def test_read_has_several_named_variants(dtype: str) -> None:
    """The limit is the fastest of several ways to read on CUDA; which, the sizes decide."""
    limits = [d for d in declarations().values() if d.role is Role.LIMIT and d.dtype == dtype]
    names = [d.name for d in limits if d.device_type == "cuda"]
    assert len(names) > 1
    stem = "read" if dtype == "float32" else f"read_{dtype}"
    assert all(re.fullmatch(rf"{stem}_(?:(?:warp|\d+)_a_row|stream_\d+)(?:_by_256)?", name) for name in names)
    assert all(d.layout == "PACKED" for d in limits)
    assert len(limits) == len(names) + 1  # and one on the CPU


def test_the_sources_of_a_kernel_are_its_own() -> None:
    """Of one that has its file alone, of variants that share one, and of `sgemv`: all that its rule can pick."""
    found = sources_by_kernel(CSRC, "cuda")
    assert found["sgemv_k32_f32"] == ("sgemv_k32_f32.cu",)
    assert found["sgemv_blocks_256x1"] == found["sgemv_blocks_512x1"] == ("sgemv_blocks.cu",)
    picked = {name for name in declarations() if name in named_by_rule(CSRC)}
    assert set(found["sgemv"]) == {"sgemv.cu", *(found[name][0] for name in picked)}
    assert "sgemv_k16_f32.cu" in found["sgemv"]
    assert {"hgemv.cu"} < set(found["hgemv"]) < {source for name in found for source in found[name]}
    assert sources_by_kernel(CSRC, "cpu")["sgemv_cpu_f32"] == ("sgemv_cpu_f32.cpp",)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("template <int rows>\nvoid start_tiles(const Args& args) {\n}\n", 2),
        ("template <int n>\n__global__ void __launch_bounds__(n, f(n)) start_tiles(const Args args) {}\n", 2),
        ("__device__ inline float start_tiles(\n    float a) {\n  return a;\n}\n", 1),
    ],
)
def test_a_copied_function_is_refused(tmp_path: Path, code: str, line: int) -> None:
    """The linker would run the first one's code for both: a wrong copy of a kernel would pass every check."""
    for name in ("first", "other"):
        text = f'{code}SGEMV_KERNEL({name}, K_ANY, 1, PACKED, 4, "summary") {{\n'
        (tmp_path / f"{name}.cu").write_text(text)
    words = rf"other\.cu:{line}: function 'start_tiles' is already defined in .*first\.cu:{line}; rename it"
    with pytest.raises(DeclarationError, match=words):
        declarations(tmp_path)
    (tmp_path / "other.cu").write_text((tmp_path / "other.cu").read_text().replace("start_tiles", "start_others"))
    (tmp_path / "first.cpp").write_text(f'{code}SGEMV_KERNEL(third, K_ANY, 1, PACKED, 4, "summary") {{\n')
    assert set(declarations(tmp_path)) == {"first", "other", "third"}


def test_a_source_without_a_declaration_is_refused(tmp_path: Path) -> None:
    """The message names the file."""
    source = tmp_path / "mine.cu"
    source.write_text("__global__ void mine() {}\n")
    with pytest.raises(DeclarationError, match=r"mine\.cu:1: declares no kernel, wanted a line: SGEMV_KERNEL\("):
        parse(source)


@pytest.mark.parametrize(
    "line",
    [
        'SGEMV_KERNEL(mine, K_MULTIPLES, 32, PACKED, 4, "summary") {',
        'SGEMV_KERNEL(mine, K_MULTIPLE_OF, 0, PACKED, 4, "summary") {',
        'SGEMV_KERNEL(mine, K_MULTIPLE_OF, 32, PACKED, 5, "summary") {',
        "SGEMV_KERNEL(mine, K_MULTIPLE_OF, 32, PACKED, 4, summary) {",
        "SGEMV_KERNEL(mine,",
        'SGEMV_KERNEL(mine, K_ANY, 7, PACKED, 4, "summary") {',
        'SGEMV_KERNEL (mine, K_MULTIPLE_OF, 32, PACKED, 4, "summary") {',
    ],
)
def test_a_malformed_declaration_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    """File and line lead to it, and the wanted form is given."""
    source = tmp_path / "mine.cu"
    source.write_text(f"// idea\n\n{line}\n")
    with pytest.raises(DeclarationError, match=r"mine\.cu:3: found '.*', wanted on one line: SGEMV_KERNEL\(name"):
        parse(source)


@pytest.mark.parametrize(
    "line",
    [
        'GEMV_KERNEL(mine, FLOAT32, 8, 2, "summary") {',
        'GEMV_KERNEL(mine, FLOAT16, 0, 2, "summary") {',
        'GEMV_KERNEL(mine, FLOAT16, 8, 1, "summary") {',
        'GEMV_KERNEL(mine, BFLOAT16, 8, 1, "summary") {',
        'GEMV_KERNEL(mine, INT8, 8, 3, "summary") {',
        "GEMV_KERNEL(mine, INT8, 8, 1, summary) {",
        'GEMV_KERNEL(Mine, INT8, 8, 1, "summary") {',
        'GEMV_FLOOR(mine, INT8, 8, 1, "summary") {',
        ' GEMV_LIMIT(mine, INT8, 8, 1, "summary") {',
        "GEMV_VARIANT(mine,",
    ],
)
def test_a_malformed_declaration_for_tokens_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    """In one line: its place, the form for other dtypes, and what that form's words may be."""
    source = tmp_path / "mine.cu"
    source.write_text(f"// idea\n\n{line}\n")
    with pytest.raises(DeclarationError) as caught:
        parse(source)
    wanted = 'wanted on one line: GEMV_KERNEL(name, FLOAT16 | BFLOAT16 | INT8, most columns of x, alignment in bytes, "'
    assert str(caught.value).startswith(f"{source}:3: found {line.strip()!r}, {wanted}")
    assert "alignment 2, 4, 8, 16 or 32, of INT8 also 1" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_the_macros_for_tokens_say(tmp_path: Path) -> None:
    """Role, dtype, most tokens, alignment; limits are for packed operands."""
    source = tmp_path / "mine.cu"
    source.write_text(
        'GEMV_KERNEL(one, FLOAT16, 8, 2, "s") {\n'
        'GEMV_VARIANT(two, INT8, 1, 1, "s") {\n'
        'GEMV_LIMIT(three, BFLOAT16, 99, 16, "s") {\n'
    )
    assert [
        (d.name, d.role, d.variant, d.dtype, d.most_n, d.alignment_bytes, d.layout, d.where) for d in parse(source)
    ] == [
        ("one", Role.GEMV, False, "float16", 8, 2, "ROWS", f"{source}:1"),
        ("two", Role.GEMV, True, "int8", 1, 1, "ROWS", f"{source}:2"),
        ("three", Role.LIMIT, False, "bfloat16", 99, 16, "PACKED", f"{source}:3"),
    ]


def test_the_message_says_every_rule(tmp_path: Path) -> None:
    """A misplaced blank looks right: the form alone does not say what is wrong."""
    source = tmp_path / "mine.cu"
    source.write_text('  SGEMV_KERNEL(mine,  K_ANY, 1, PACKED, 4, "summary") {\n')
    rules = (
        "at the start of a line, one space after each comma, lower-case name, value from 1, alignment 4, 8, 16 or 32"
    )
    with pytest.raises(DeclarationError, match=rules):
        parse(source)


def test_a_name_declared_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    """One name, one kernel."""
    for name in ("first.cu", "second.cu"):
        (tmp_path / name).write_text('SGEMV_KERNEL(same, K_ANY, 1, PACKED, 4, "summary") {\n')
    with pytest.raises(ValueError, match=r"second\.cu:1: kernel 'same' is already declared in .*first\.cu:1; rename"):
        declarations(tmp_path)


LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN5sgemv18read_stream_kernelILi8EEEvPKfS2_Pfll' for 'sm_90'
ptxas info    : Function properties for _ZN5sgemv18read_stream_kernelILi8EEEvPKfS2_Pfll
    24 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 34 registers, used 1 barriers, 1024 bytes smem, 392 bytes cmem[0]
ptxas info    : Compile time = 17.235 ms
ptxas info    : Compiling entry function '_Z5plainPf' for 'sm_100'
ptxas info    : Function properties for _Z6helperf
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Function properties for _Z5plainPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers
"""


def test_the_words_of_ptxas_become_records() -> None:
    """Registers, spills, stack and shared memory of each entry; a helper's figures are not taken for the entry's."""
    first, second = ptxas.parse(LOG)
    assert (first.function, first.arch) == ("_ZN5sgemv18read_stream_kernelILi8EEEvPKfS2_Pfll", "sm_90")
    assert (first.registers, first.spill_store_bytes, first.spill_load_bytes) == (34, 16, 20)
    assert (first.stack_bytes, first.static_shared_bytes) == (24, 1024)
    assert (second.function, second.arch, second.registers, second.stack_bytes) == ("_Z5plainPf", "sm_100", 4, 0)


@pytest.mark.parametrize("with_tool", [True, False])
def test_names_are_readable_with_and_without_a_demangler(*, with_tool: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways give the same names, without parameters."""
    if not with_tool:
        monkeypatch.setattr(shutil, "which", lambda _: None)
    wanted = {
        "_ZN5sgemv18read_stream_kernelILi8EEEvPKfS2_Pfll": "sgemv::read_stream_kernel<8>",
        "_ZN5sgemv16read_rows_kernelILi32ELi4ELi4EEEvPKfS2_Pfll": "sgemv::read_rows_kernel<32, 4, 4>",
        "_Z5plainPf": "plain",
    }
    assert ptxas.demangle(wanted) == wanted


def test_no_kernel_spills() -> None:
    """Every declared kernel is in the table of resources, for every architecture, without spills."""
    record = library("cuda").record
    functions = {row.function for row in record.resources}
    assert {"sgemv::sgemv_k32_f32_kernel", "sgemv::sgemv_k128_f32x4_kernel", "sgemv::empty_kernel"} <= functions
    assert {row.arch for row in record.resources} == set(record.architectures)
    assert all(row.spill_store_bytes == row.spill_load_bytes == 0 for row in record.resources)


def test_the_stream_of_8_loads_keeps_8_loads_in_flight() -> None:
    """The PTX has them, and ptxas gave the registers that 8 float4 need (it splits the loads up when it has 32)."""
    built = library("cuda")
    ptx = (built.directory / "ptx" / "read.ptx").read_text()
    body = ptx[ptx.index(".entry _ZN5sgemv18read_stream_kernelILi8ENS_7ByLinesEEE") :]
    body = body[: body.index("\n}\n")]
    # 8 in the main loop, 1 in its rest, 1 for the first and 1 for the further vectors of x
    assert body.count("ld.global.nc.L1::no_allocate.v4.f32") == 11
    rows = [row for row in built.record.resources if row.function == "sgemv::read_stream_kernel<8, sgemv::ByLines>"]
    assert len(rows) == len(built.record.architectures)
    assert all(row.registers > 8 * 4 + 8 for row in rows)


@pytest.mark.parametrize("items", ["Float16Marks", "BFloat16Marks", "Int8Marks"])
def test_the_stream_of_8_loads_keeps_them_for_other_items_too(items: str) -> None:
    """As of float32; x and, of int8, the scales have loads of their own."""
    built = library("cuda")
    function = f"read_tokens_stream_kernel<sgemv::Marked<sgemv::{items}>"
    rows = [r for r in built.record.resources if function in r.function and r.function.endswith(", 8>")]
    assert len(rows) == len(built.record.architectures)
    assert all(row.registers > 8 * 4 + 8 for row in rows)


def test_machine_code_does_not_depend_on_the_folder(tmp_path: Path) -> None:
    """Two checkouts and two caches give the same hashes of device code; of some sources, for time's sake."""
    checkout, some = tmp_path / "another" / "checkout" / "csrc", ("read.cu", "sgemv_k1.cu", "gemv_w8_lines.cu")
    shutil.copytree(CSRC, checkout)
    for source in checkout.glob("*.cu"):
        if source.name not in some:
            source.unlink()
    first = library("cuda")
    again = build("cuda", cache_dir=tmp_path / "cache", csrc=checkout)
    assert again.directory != first.directory
    found = again.record.device_code_sha256
    assert set(found) == {f"{name}:{arch}" for name in some for arch in first.record.architectures}
    assert found == {name: first.record.device_code_sha256[name] for name in found}
