"""What differs between the environments of two runs, what it comes down to, and what forbids a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.comparison.records import EnvironmentDifference, Value
from harness.environment import ENVIRONMENT_KEYS, Group
from harness.model import BuildRecord, Run

SAME = "same environment"
"""The attribution where nothing differs."""

MUST_MATCH = frozenset({"ecc", "mig"})
"""Besides the keys whose `must_match_to_compare` is set: both change the bandwidth that the device has."""

VARIABLES = "environment_variables"
"""The key that holds several facts, as JSON; its name with a dot starts the keys of single variables."""

_SUBJECTS = {
    "gpu_uuid": "board",  # another one of the same model
    "gpu_pci_bus_id": "board",
    "vbios_version": "VBIOS",
    "cuda_runtime_version": "torch",  # it comes with torch, as cuBLAS does
    "cublas_version": "torch",
    "torch_version": "torch",
    "python_version": "Python",
    "pytest_benchmark_version": "pytest-benchmark",
    VARIABLES: "environment variables",
    "power_limit_mw": "power limit",
    "power_limit_default_mw": "power limit",
    "max_sm_clock_mhz": "clocks",
    "max_memory_clock_mhz": "clocks",
    "application_sm_clock_mhz": "clocks",
    "application_memory_clock_mhz": "clocks",
    "options.lock_clocks_mhz": "locked clock",
}
"""What a key speaks of, where that is not its group."""

_GROUPS = {
    Group.GPU: "GPU",
    Group.DRIVER: "driver",
    Group.SOFTWARE: "software",
    Group.HOST: "host",
    Group.SETTINGS: "settings",
    Group.SOURCE: "source",
}
"""How each group is called in an attribution."""

_NAMES = {"gpu_name": "GPU model", "device_name": "device", "ecc": "ECC", "mig": "MIG mode", "allow_tf32": "TF32 flag"}
"""How a key is called in a reason, where its name would not do."""

_BUILD_FIELDS = ("compiler_version", "host_compiler_version", "flags", "architectures")
"""Of a build's record: whatever changes the code besides the sources and torch."""

BUILD = "build."
"""Starts the keys of what is kept with a build."""

OPTIONS = "options."
"""Starts the keys of how the runs were asked to measure."""

_OPTIONS: dict[str, str | None] = {"quick": None, "trials": None, "max_time_s": "s", "lock_clocks_mhz": "MHz"}
"""Of `Options`: what changes how sure a figure is, or what is measured at all; and its unit."""

READ_BACK = "locked_sm_clock_mhz"
"""The key of a moment's reading: what was asked for, among the options, is what tells runs apart."""

INSTANCE = "MIG-"
"""Starts the UUID of a part of a board."""

CHANGES = "git_diff_sha256"
"""The key that tells the changes of checkouts apart."""

UNKNOWN_CHANGES = "perhaps source (uncommitted changes in both)"
"""The subject where both checkouts had changes, and a run from before `CHANGES` does not know which."""

NOT_SET = "(not set)"
"""Stands for the value of a variable or option that a run was started without; an empty one is ""."""


def differences(base: Run, new: Run) -> tuple[EnvironmentDifference, ...]:
    """The facts in which the runs differ, None against a value included; keys of a newer program come last."""
    known = list(ENVIRONMENT_KEYS)
    others = sorted({*base.environment.values, *new.environment.values} - ENVIRONMENT_KEYS.keys())
    found = [
        difference
        for key in known + others
        if base.environment.get(key) != new.environment.get(key) and (key != CHANGES or _both_changed(base, new))
        if key != READ_BACK
        for difference in _differences(key, base.environment.get(key), new.environment.get(key))
    ]
    return (*found, *_option_differences(base, new), *_build_differences(base, new))


def attribution(found: tuple[EnvironmentDifference, ...], base: Run, new: Run) -> str:
    """What the differences `found` come down to: `same environment`, `driver only`, `several: driver, torch`.

    What one run does not know is not known to differ, and takes no part unless there is nothing else; but of two
    checkouts with changes that are not known nobody may think that they are the same.
    """
    both_known = [each for each in found if each.base is not None and each.new is not None]
    subjects = list(dict.fromkeys(_subject(each) for each in both_known))
    if _unknown_changes(base, new) and _GROUPS[Group.SOURCE] not in subjects:
        if not subjects:
            return UNKNOWN_CHANGES
        subjects.append(UNKNOWN_CHANGES)
    if len(subjects) > 1:
        return f"several: {', '.join(subjects)}"
    if subjects:
        return f"{subjects[0]} only"
    return f"{SAME}, as far as both runs know it" if found or _unknown_source(base, new) else SAME


def _both_changed(base: Run, new: Run) -> bool:
    """Else `git_dirty` says it all."""
    return all(run.environment.get("git_dirty") is True for run in (base, new))


def _unknown_changes(base: Run, new: Run) -> bool:
    unknown = any(run.environment.get(CHANGES) is None for run in (base, new))
    return base.id != new.id and unknown and _both_changed(base, new)


def _unknown_source(base: Run, new: Run) -> bool:
    """Neither run knows its commit, as outside of git, or whether that is all."""
    unknown = (run.environment.get(key) is None for run in (base, new) for key in ("git_commit", "git_dirty"))
    return base.id != new.id and any(unknown)


def obstacles(base: Run, new: Run) -> tuple[str, ...]:
    """Why no case of these runs may be compared, a line each; empty: nothing forbids it.

    A fact that one run does not know forbids nothing; it stands among the differences.
    """
    types = (base.options.device_type, new.options.device_type)
    if types[0] != types[1]:
        named = {"cuda": "GPU", "cpu": "CPU"}
        return (f"{named.get(types[1], types[1])} against {named.get(types[0], types[0])}",)
    wanted = [key for key, about in ENVIRONMENT_KEYS.items() if about.must_match_to_compare or key in MUST_MATCH]
    pairs = {key: (base.environment.get(key), new.environment.get(key)) for key in wanted}
    differing = {key: pair for key, pair in pairs.items() if None not in pair and pair[0] != pair[1]}
    if "gpu_name" in differing:
        differing.pop("device_name", None)  # the same fact by another name
    return tuple(
        f"other {_NAMES.get(key, key)}: {_shown(new_value)} against {_shown(value)}"
        for key, (value, new_value) in differing.items()
    )


def _shown(value: Value) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


def _differences(key: str, base: Value, new: Value) -> Iterator[EnvironmentDifference]:
    """One of a fact; of the environment variables one for each that differs, where both runs kept them as JSON."""
    old, fresh = (_variables(value) if key == VARIABLES else None for value in (base, new))
    if old is None or fresh is None:
        yield _difference(key, base, new)
        return
    for name in sorted({*old, *fresh}):
        values = old.get(name, NOT_SET), fresh.get(name, NOT_SET)
        if values[0] != values[1]:
            yield _difference(f"{VARIABLES}.{name}", *values)


def _variables(value: Value) -> dict[str, str] | None:
    """By name; None: this is no JSON object."""
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None
    return {name: str(each) for name, each in found.items()} if isinstance(found, dict) else None


def _difference(key: str, base: Value, new: Value) -> EnvironmentDifference:
    about = ENVIRONMENT_KEYS.get(key)
    return EnvironmentDifference(
        key=key,
        group=about.group if about else Group.SETTINGS,
        base=base,
        new=new,
        unit=about.unit if about else None,
    )


def _subject(difference: EnvironmentDifference) -> str:
    values = (difference.base, difference.new)
    if difference.key == "gpu_uuid" and all(str(each).startswith(INSTANCE) for each in values):
        return "MIG instance"
    if difference.key in _SUBJECTS:
        return _SUBJECTS[difference.key]
    for prefix in (BUILD, OPTIONS):
        if difference.key.startswith(prefix):
            return prefix.removesuffix(".")
    key = VARIABLES if difference.key.startswith(f"{VARIABLES}.") else difference.key
    return _SUBJECTS.get(key, _GROUPS[difference.group])


def _option_differences(base: Run, new: Run) -> Iterator[EnvironmentDifference]:
    for name, unit in _OPTIONS.items():
        values = (getattr(run.options, name) for run in (base, new))
        old, fresh = (NOT_SET if value is None else value for value in values)
        if old != fresh:
            key = f"{OPTIONS}{name}"
            yield EnvironmentDifference(key=key, group=Group.SETTINGS, base=old, new=fresh, unit=unit)


def _build_differences(base: Run, new: Run) -> Iterator[EnvironmentDifference]:
    """Of libraries for the same target, in both runs; a library that one lacks is seen by its cases."""
    olds = {build.target: build for build in base.builds}
    for build in new.builds:
        old = olds.get(build.target)
        for name in _BUILD_FIELDS if old else ():
            values = _text(old, name), _text(build, name)
            if values[0] != values[1]:
                key = f"{BUILD}{build.target}.{name}"
                yield EnvironmentDifference(key=key, group=Group.SOURCE, base=values[0], new=values[1])


def _text(build: BuildRecord | None, name: str) -> str:
    value = getattr(build, name)
    return value if isinstance(value, str) else " ".join(value)
