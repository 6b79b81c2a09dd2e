"""A program that stands in for one of NVIDIA's tools: plays a story, one part a call, and keeps what it was told."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PLAY = """#!{python}
import json, os, pathlib, subprocess, sys, time
here, words = pathlib.Path(__file__).parent, sys.argv[1:]
calls = json.loads((here / "calls.json").read_text()) if (here / "calls.json").exists() else []
calls.append(words)
(here / "calls.json").write_text(json.dumps(calls))
(here / "environment.json").write_text(json.dumps(dict(os.environ)))
story = json.loads((here / "story.json").read_text())
play = story[min(len(calls), len(story)) - 1]
code = play.get("code", 0)
if play.get("runs"):
    code = subprocess.call(words[words.index(sys.executable):])
sys.stdout.write(play.get("stdout", ""))
sys.stderr.write(play.get("stderr", ""))
sys.stdout.flush()
if "log" in play:
    pathlib.Path(words[words.index("--log-file") + 1]).write_text(play["log"])
time.sleep(play.get("sleep_s", 0))
sys.exit(code)
"""


def fake(folder: Path, name: str, *story: dict[str, Any]) -> str:
    """Path of a tool that plays one part of the story a call, and the last one from then on.

    A part says what is written to `stdout`, to `stderr` and into the file of --log-file (`log`), the exit `code`, how
    long it waits (`sleep_s`), and whether it `runs` the process that it is given.
    """
    tool = folder / name
    tool.write_text(PLAY.replace("{python}", sys.executable), encoding="utf-8")
    tool.chmod(0o755)
    (folder / "story.json").write_text(json.dumps(story), encoding="utf-8")
    return str(tool)


def calls(folder: Path) -> list[list[str]]:
    """The arguments of each call."""
    found: list[list[str]] = json.loads((folder / "calls.json").read_text(encoding="utf-8"))
    return found


def environment(folder: Path) -> dict[str, str]:
    """Of the last call."""
    found: dict[str, str] = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    return found
