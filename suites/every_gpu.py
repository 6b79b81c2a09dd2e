"""`--device all`: a bench for every GPU of this host, one after another, each in a pytest of its own."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.children import show
from harness.device.gpus import Gpu
from harness.ending import ended
from harness.errors import CommandError, Exit
from harness.process import end_with_parent
from harness.words import visible
from suites.device import EVERY, gpus
from suites.options import typed_command

OF_ONE_RUN = {"ref": "--ref", "benchmark_json": "--benchmark-json", "xmlpath": "--junitxml"}
"""Options that name one run or file, by the name that pytest gives them."""

DEVICE = "--device"


def measure(config: pytest.Config) -> int:
    """What `config` asks for, once a GPU; the highest code that applies. What fails on one does not stop the others."""
    if "SGEMV_COMMAND" in os.environ:  # another command of this project started it, and it is of no use without that
        end_with_parent(signal.SIGTERM)
    return ended(lambda: _measure(config))


def on(gpu: Gpu, words: Sequence[str]) -> list[str]:
    """A command line that asks for all, asking for one."""
    found, pairs = [], zip(words, [*words[1:], ""], strict=True)
    for word, after in pairs:
        if (word, after) == (DEVICE, EVERY):
            next(pairs)
            found.append(f"{DEVICE}={gpu.uuid}")
        else:
            found.append(f"{DEVICE}={gpu.uuid}" if word == f"{DEVICE}={EVERY}" else word)
    return found if f"{DEVICE}={gpu.uuid}" in found else [*found, f"{DEVICE}={gpu.uuid}"]


def _measure(config: pytest.Config) -> int:
    there = gpus()
    for name, option in OF_ONE_RUN.items():
        if len(there) > 1 and getattr(config.option, name, None):
            what = f"{option}: names one, and {DEVICE} {EVERY} measures {len(there)} GPUs here"
            raise CommandError(f"{what}; leave one of them out", Exit.USAGE)
    codes, runs = [Exit.FINE], list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for place, gpu in enumerate(there, start=1):
            _say(f"GPU {place} of {len(there)}: {visible(gpu.text)}")
            path_file = Path(folder, str(place))
            codes.append(_measure_one(config, gpu, path_file))
            runs += path_file.read_text(encoding="utf-8").splitlines() if path_file.exists() else []
            _write(config, runs)
            if codes[-1] == Exit.INTERRUPTED or (place == 1 and codes[-1] == Exit.USAGE):
                break  # what is wrong usage on the first is so on all
    if config.option.path_file is None:
        _tell(runs)
    return max(codes)


def _measure_one(config: pytest.Config, gpu: Gpu, path_file: Path) -> Exit:
    words = on(gpu, [os.fspath(word) for word in config.invocation_params.args])
    command = [sys.executable, "-m", "pytest", *words, f"--path-file={path_file}"]
    typed = shlex.join(on(gpu, typed_command()))
    try:
        code = show(command, config.invocation_params.dir, {**os.environ, "SGEMV_COMMAND": typed}).code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return Exit(code) if code in set(Exit) else Exit.INFRASTRUCTURE


def _write(config: pytest.Config, runs: Sequence[str]) -> None:
    """The folders of the runs until now, a line each."""
    if config.option.path_file is not None and runs:
        Path(config.option.path_file).write_text("".join(f"{run}\n" for run in runs), encoding="utf-8")


def _tell(runs: Sequence[str]) -> None:
    """Where the runs are, and what shows them."""
    python = Path(sys.executable).name
    for run in runs:
        _say(f"run:    {run}")
        _say(f"report: {python} -m reports run {shlex.quote(run)}")
    if len(runs) > 1:
        _say(f"all:    {python} -m reports compare {shlex.join(runs)}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
