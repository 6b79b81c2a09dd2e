"""The kernels built anew, and whether they came out as the run's."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.children import ask
from harness.errors import first_line
from harness.json_text import parsed
from harness.model import BuildRecord
from harness.reproduce import cannot

VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
"""Environment variables that nvcc takes flags from; a build's record has them among its flags."""

NAMED = 4
"""Files that a line names at most."""

LAST = 20
"""Lines of a compiler's log that are shown."""


def flag_variables(builds: tuple[BuildRecord, ...]) -> dict[str, str]:
    """Nvcc's variables as they were for the run."""
    pairs = (flag.partition("=") for build in builds for flag in build.flags)
    return {name: value for name, _, value in pairs if name in VARIABLES}


def rebuild(tree: Path, build: BuildRecord, environment: Mapping[str, str]) -> BuildRecord:
    """The record of the same library, built by the code of the worktree.

    Raises:
        CommandError: it does not build, or from other sources than the run's (INFRASTRUCTURE).
    """
    architectures = ["--arch", *build.architectures] if build.architectures else []
    command = [sys.executable, "-m", "kernels.build", "--target", build.target, *architectures]
    done = ask(command, tree, environment)
    if done.code:
        complaint = done.complaint
        for log in _failed(environment):
            complaint = complaint.replace(str(log), "the lines above")  # it goes away with the worktree
        raise cannot(f"the kernels do not build ({build.target}): {complaint}")
    record = Path((done.stdout.splitlines() or [""])[0]).parent / "build-record.json"
    try:
        new = BuildRecord.from_dict(parsed(record.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:  # RecordError is one
        raise cannot(
            f"the build of the kernels ({build.target}) says nothing of itself: {first_line(error)}"
        ) from error
    if other := _differing(build.sources_sha256, new.sources_sha256):
        raise cannot(f"{_named(other)} in kernels/csrc is not what the run was built from")
    return new


def compilers_words(environment: Mapping[str, str]) -> Iterator[str]:
    """The last lines of what compilers said in builds that failed, from the cache that `environment` names."""
    for log in _failed(environment):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        yield f"the last of {len(lines)} lines of {log.name}:" if len(lines) > LAST else f"{log.name}:"
        yield from lines[-LAST:]


def _failed(environment: Mapping[str, str]) -> list[Path]:
    return sorted(Path(environment["SGEMV_CACHE"], "failed").glob("*.log"))


def said_of(old: BuildRecord, new: BuildRecord) -> list[str]:
    """How a build came out against the run's: tools and flags that differ, then the code, a line each."""
    tools = {
        "compiler": (old.compiler_version, new.compiler_version),
        "C++ compiler": (old.host_compiler_version, new.host_compiler_version),
        "torch's headers": (old.torch_version, new.torch_version),
        "flags": (" ".join(old.flags), " ".join(new.flags)),
    }
    if old.target == "cpu":
        del tools["compiler"]  # it is the C++ compiler
    differing = {name: pair for name, pair in tools.items() if pair[0] != pair[1]}
    lines = [f"{name}: {was} for the run, {now} here" for name, (was, now) in differing.items()]
    return [*lines, *_code(old, new, list(differing))]


def _code(old: BuildRecord, new: BuildRecord, tools: list[str]) -> list[str]:
    what = "device code" if old.target == "cuda" else "machine code of the C++ kernels"
    because = f"; so do: {', '.join(tools)}" if tools else ", though compiler, flags and sources are the same"
    if not old.device_code_sha256:
        return [f"{what}: the run keeps no hash of it"]
    other = _differing(old.device_code_sha256, new.device_code_sha256)
    count = len(old.device_code_sha256)
    if not other:
        return [f"{what}: identical, bit for bit ({count} source{'' if count == 1 else 's'})"]
    lines = [f"{what}: {len(other)} of {count} differ{'s' if len(other) == 1 else ''}: {_named(other)}{because}"]
    needs = {row.function for row in set(old.resources) ^ set(new.resources)}
    if needs:
        lines.append(f"registers, spills or shared memory differ for: {_named(sorted(needs))}")
    return lines


def _differing(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
