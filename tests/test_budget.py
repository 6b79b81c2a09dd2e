"""The static gate: the real kernels keep the budget, planted ones are found, and the budget cannot go stale."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.model import KernelResources
from kernels import budget, cli, ptxas, sass
from kernels.budget import Entry, Limits
from kernels.build import build
from kernels.declarations import CSRC
from kernels.toolchain import DEFAULT_ARCHITECTURES, find_host_compiler, find_nvcc
from tests.built import shared_cache
from tests.needs import need

PLANTED = """
__global__ void right(const float4* a, float* y) {
  const float4 v = a[threadIdx.x];
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
__global__ void narrow(const float* a, float* y) { y[threadIdx.x] = a[threadIdx.x]; }
__global__ void indexed(const float4* a, float* y, int i) {
  float v[16];
  for (int j = 0; j < 16; ++j) v[j] = a[j].x;
  for (int j = 0; j < i; ++j) v[j * i % 16] *= v[j];
  for (int j = 0; j < 16; ++j) y[j] = v[j];
}
__global__ void __launch_bounds__(1024) spilled(const float4* a, float* y) {
  float4 v[24];
#pragma unroll
  for (int j = 0; j < 24; ++j) v[j] = a[threadIdx.x + 1024 * j];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < 24; ++j) reinterpret_cast<float4*>(y)[threadIdx.x + 1024 * j] = v[j];
}
__global__ void from_sm_90(const float4* a, float* y) {
#if __CUDA_ARCH__ >= 900
  y[threadIdx.x] = a[threadIdx.x].w + a[threadIdx.x].x + a[threadIdx.x].y + a[threadIdx.x].z;
#endif
}
"""


def need_disassembler() -> None:
    reason = sass.no_disassembler()
    need(reason and f"no SASS: {reason}")


def test_the_kernels_keep_the_budget() -> None:
    """On every default architecture: no spills, no local memory, registers and widths of loads as recorded."""
    need_disassembler()
    built = build("cuda", architectures=DEFAULT_ARCHITECTURES, cache_dir=shared_cache())
    faults = budget.faults(budget.entries(built), budget.limits(CSRC))
    assert not faults, "\n".join(faults)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    """Functions of PLANTED for sm_80, as really compiled and disassembled."""
    need_disassembler()
    folder = tmp_path_factory.mktemp("planted")
    (folder / "planted.cu").write_text(PLANTED)
    command = [find_nvcc().path, "-ccbin", find_host_compiler().path, "-arch=sm_80", "-cubin", "-Xptxas", "-v"]
    done = subprocess.run(
        [*command, "planted.cu", "-o", "planted.cubin"], cwd=folder, capture_output=True, text=True, check=True
    )
    resources = ptxas.parse(done.stderr)
    names = ptxas.demangle(each.function for each in resources)
    named = [KernelResources(**{**each.to_dict(), "function": names[each.function]}) for each in resources]
    return budget.paired(named, sass.read(folder / "planted.cubin", ("sm_80",)))


def faults_of(planted: list[Entry], name: str, limits: Limits) -> list[str]:
    return budget.faults([entry for entry in planted if entry.name == name], {name: limits})


def test_a_planted_right_kernel_passes(planted: list[Entry]) -> None:
    """One of vectors, and one that is empty for this architecture."""
    for name in ("right", "from_sm_90"):
        assert faults_of(planted, name, Limits(registers=32, load_bytes=16 if name == "right" else 0)) == []
    assert faults_of(planted, "from_sm_90", Limits(registers=32, load_bytes=16)) == []


def test_planted_local_memory_is_found(planted: list[Entry]) -> None:
    """An array that is indexed by a variable, and more values than the launch bounds leave registers for."""
    (indexed,) = faults_of(planted, "indexed", Limits(registers=255, load_bytes=4))
    assert indexed.startswith("indexed for sm_80: uses 64 bytes of local memory a thread, ")
    assert " accesses, wanted none: index arrays by constants only" in indexed
    (spilled,) = faults_of(planted, "spilled", Limits(registers=255, load_bytes=16))
    assert spilled.startswith("spilled for sm_80: spills ")
    assert "bytes of registers a thread, wanted none: " in spilled


def test_planted_narrow_loads_are_found(planted: list[Entry]) -> None:
    """Where the line says that they are wide."""
    (fault,) = faults_of(planted, "narrow", Limits(registers=32, load_bytes=16))
    assert fault == (
        "narrow for sm_80: its widest load from global memory is of 4 bytes, wanted 16 (narrow in budget.toml): does "
        "the compiler know the alignment?"
    )


def entry(function: str, *, arch: str = "sm_90", registers: int = 40, load_bytes: int = 16) -> Entry:
    return Entry(
        resources=KernelResources(
            function=function, arch=arch, registers=registers, spill_store_bytes=0, spill_load_bytes=0, stack_bytes=0,
            static_shared_bytes=0,
        ),
        code=sass.Code(function=function, arch=arch, load_bytes=load_bytes, stores=True, local_accesses=0),
    )  # fmt: skip


def test_local_memory_that_one_of_the_two_tells_of() -> None:
    """The compiler alone, or the machine code alone; what spills is told once, by stores and loads together."""
    plain, limits = entry("f"), {"f": Limits(registers=40, load_bytes=16)}
    touched = replace(plain, code=replace(plain.code, local_accesses=1))
    stacked = replace(plain, resources=replace(plain.resources, stack_bytes=64))
    spilled = replace(plain, resources=replace(plain.resources, spill_store_bytes=8, spill_load_bytes=4, stack_bytes=8))
    for found, said in ((touched, "uses 0 bytes"), (stacked, "uses 64 bytes"), (spilled, "spills 12 bytes")):
        (fault,) = budget.faults([found], limits)
        assert fault.startswith(f"f for sm_90: {said} of ")


def test_too_many_registers_in_one_instantiation() -> None:
    """Every one is held to the line, and the one that breaks it is named."""
    found = [entry("sgemv::f<1>"), entry("sgemv::f<2>", registers=41), entry("sgemv::f<2>", arch="sm_80")]
    advice = "let it need fewer, or write registers = 48 for f in budget.toml"
    limits = Limits(registers=40, load_bytes=16)
    assert budget.faults(found, {"f": limits}) == [
        f"f<2> for sm_90: 41 registers a thread, wanted at most 40; {advice}"
    ]
    assert budget.faults([*found, entry("f<3>", registers=42)], {"f": limits}) == [
        f"f<3> for sm_90: 42 registers a thread (worst of 2), wanted at most 40; {advice}"
    ]


def test_a_new_kernel_is_told_its_line() -> None:
    """One line for all of it, to be pasted as it stands."""
    found = [entry("mine::f<1>", registers=33), entry("mine::f<2>", registers=41, arch="sm_80")]
    (fault,) = budget.faults(found, {})
    line = "f = { registers = 48, load_bytes = 16 }"
    assert fault == f"budget.toml: no line for f; add what it needs now: {line}"


def test_a_line_that_says_too_little_or_is_of_nothing() -> None:
    """Else a line could be written once and never hold anything."""
    assert budget.faults(
        [entry("f")], {"f": Limits(registers=40, load_bytes=4), "g": Limits(registers=9, load_bytes=4)}
    ) == [
        "budget.toml: f has load_bytes = 4, but loads 16 at once: write that",
        "budget.toml: g is no function; remove its line",
    ]


def test_the_longest_line_that_matches_holds(tmp_path: Path) -> None:
    """A pattern of instantiations goes before their template; what is printed is read again, and keeps the code."""
    found = [
        entry("(anonymous namespace)::f<1, true>"),
        entry("f<1, false>", load_bytes=4),
        entry("f<2, false>", load_bytes=4),
        entry("g", load_bytes=0, registers=8),
    ]
    narrow, wide = Limits(registers=40, load_bytes=4), Limits(registers=40, load_bytes=16)
    empty = Limits(registers=8, load_bytes=0)
    assert budget.faults(found, {"f<*, false>": narrow, "f": wide, "g": empty}) == []
    assert len(budget.faults(found, {"f": wide, "g": empty})) == 1
    (tmp_path / budget.FILE).write_text("# a budget\n" + "\n".join(budget.table(found)))
    written = budget.limits(tmp_path)
    assert written == {"f": wide, "f<1, false>": narrow, "f<2, false>": narrow, "g": empty}
    assert budget.faults(found, written) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("f = 3", r"Expected `object`, got `int`.*; wanted lines such as my_kernel = \{ registers = 40, "),
        ("f = { registers = 40 }", "missing required field `load_bytes`"),
        ("f = { registers = 40, load_bytes = 4, spills = 1 }", "unknown field `spills`"),
        ("f = {", "budget.toml: "),
    ],
)
def test_a_malformed_budget_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    """With the file and a right line; no file is a budget of nothing."""
    assert budget.limits(tmp_path) == {}
    (tmp_path / budget.FILE).write_text(text)
    with pytest.raises(CommandError, match=words) as caught:
        budget.limits(tmp_path)
    assert caught.value.code is Exit.USAGE
    assert "\n" not in str(caught.value)


def test_functions_that_only_one_of_the_two_names() -> None:
    """Something is not as the gate takes it to be."""
    known = entry("f")
    with pytest.raises(CommandError, match="only the compiler tells of f for sm_90"):
        budget.paired([known.resources], [])
    with pytest.raises(CommandError, match="only the disassembler tells of f for sm_90"):
        budget.paired([], [known.code])


def test_the_command_line_says_every_fault(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 5; a line when all is well; the budget alone to be pasted."""
    monkeypatch.setattr(cli, "build", lambda *_, **__: None)
    monkeypatch.setattr(budget, "entries", lambda _: [entry("f")])
    monkeypatch.setattr(budget, "limits", lambda _: {})
    assert cli.main(["--check"]) == 5
    assert capsys.readouterr().err.startswith("budget.toml: no line for f; ")
    assert cli.main(["--budget"]) == 0
    assert capsys.readouterr().out == "f = { registers = 40, load_bytes = 16 }\n"
    monkeypatch.setattr(budget, "limits", lambda _: {"f": Limits(registers=40, load_bytes=16)})
    assert cli.main(["--check"]) == 0
    assert capsys.readouterr().out.startswith("1 functions for sm_80, sm_90, sm_100: no spills, no local memory, ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--check", "--arch", "sm_90"],
            "--check, --budget: found --arch too, wanted neither --arch nor --target: both ",
        ),
        (
            ["--budget", "--target", "cpu"],
            "--check, --budget: found --target cpu too, wanted neither --arch nor --targe",
        ),
        (["--check", "--budget"], "kernels.build: argument --budget: not allowed with argument --check; --help says "),
    ],
)
def test_the_budget_is_of_every_default_architecture(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On fewer, a line that says enough would seem to say too much. One line, before anything is built."""
    assert cli.main(arguments) == 2
    found = capsys.readouterr().err
    assert found.startswith(said)
    assert found.count("\n") == 1


def test_without_a_disassembler_it_is_skipped_but_not_on_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CI runner without one would check nothing and be green."""
    monkeypatch.setattr(sass, "find", lambda *_: None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no SASS: no cuobjdump and no nvdisasm"):
        need_disassembler()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no SASS: no cuobjdump and no nvdisasm"):
        need_disassembler()
