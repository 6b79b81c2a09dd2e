"""What is read off machine code, as printed by disassemblers and by the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels import sass
from kernels.toolchain import BuildError

LISTING = """
Fatbin elf code:
================
arch = sm_90

	code for sm_90
	.target	sm_90

		Function : _ZN5sgemv9my_kernelILi8EEEvPKfPf
	.headerflags	@"EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   LDC R1, c[0x0][0x28] ;  /* 0x00000a00ff017b82 */
                                                           /* 0x000fe20000000800 */
        /*0010*/              @!P0 LDG.E.NA.LTC256B.128.CONSTANT R8, desc[UR4][R2.64] ;
        /*0020*/                   STG.E desc[UR4][R2.64], R5 ;
        /*0030*/                   LDL.64 R4, [R1] ;
        /*0040*/             @!UP0 STL [R1], R4 ;
		Function : plain
        /*0000*/                   EXIT ;
"""


def test_a_listing_is_read_by_function() -> None:
    """By hand: one load of 16 bytes, one store, two accesses to local memory; and a function that does nothing."""
    assert list(sass.parse(LISTING, "sm_90")) == [
        sass.Code(function="sgemv::my_kernel<8>", arch="sm_90", load_bytes=16, stores=True, local_accesses=2),
        sass.Code(function="plain", arch="sm_90", load_bytes=0, stores=False, local_accesses=0),
    ]


@pytest.mark.parametrize(
    ("instruction", "load_bytes"),
    [
        ("LDG.E R2", 4),
        ("LDG.E.CONSTANT R2", 4),
        ("LDG.E.U8 R2", 1),
        ("LDG.E.S16 R2", 2),
        ("LDG.E.64.CONSTANT R2", 8),
        ("LDG.E.128 R8", 16),
        ("LDG.E.NA.LTC128B.128.CONSTANT R8", 16),
        ("LDG.E.ENL2.256.CONSTANT R4, R8", 32),
        ("LD.E.128 R8", 16),
        ("LDGSTS.E.BYPASS.128 [R7]", 16),
        ("UBLKCP.S.G [UR4], [UR8], UR6", 16),
        ("LDS.128 R8, [R0]", 0),
        ("LDC.64 R8, c[0x0][0x210]", 0),
        ("LDCU.128 UR8, c[0x0][0x380]", 0),
        ("LDGDEPBAR", 0),
        ("STG.E.128 desc[UR4][R4.64], R8", 0),
    ],
)
def test_only_loads_from_global_memory_count(instruction: str, load_bytes: int) -> None:
    """As printed for sm_80, sm_90 and sm_100; neither shared memory nor constants nor stores."""
    (code,) = sass.parse(f"\tFunction : f\n        /*0060*/                   {instruction} ;\n", "sm_90")
    assert code.load_bytes == load_bytes


def tool(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH; no nvcc, no wheels."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sass, "nvcc_path", lambda: None)
    monkeypatch.setattr(sass.sysconfig, "get_path", lambda _: str(tmp_path / "none"))
    return tmp_path


def test_without_disassemblers_it_says_what_to_install(tools: Path) -> None:
    """Both are needed; what is there is not named."""
    with pytest.raises(BuildError, match=r"^no cuobjdump and no nvdisasm \(looked .*; pip install nvidia-cuda-cuobjd"):
        sass.read(tools / "library.so", ("sm_90",))
    tool(tools, "cuobjdump", "")
    assert str(sass.no_disassembler()).startswith("no nvdisasm (looked ")


def test_code_that_is_not_there_is_one_line(tools: Path) -> None:
    """An old disassembler, or a library for another architecture."""
    tool(tools, "nvdisasm", "")
    tool(tools, "cuobjdump", "echo some words; echo 'cuobjdump fatal : no such arch' >&2; exit 1")
    with pytest.raises(BuildError, match=r"finds no code for sm_90 in .*library.so: cuobjdump fatal : no such arch; p"):
        sass.read(tools / "library.so", ("sm_90",))
    tool(tools, "cuobjdump", f'[ "$NVDISASM_PATH" = {tools} ] || exit 9; echo "arch = sm_80"')
    with pytest.raises(BuildError, match=r"finds no code for sm_90 in .*: arch = sm_80; "):
        sass.read(tools / "library.so", ("sm_90",))
