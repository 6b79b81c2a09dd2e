""".github/workflows: no fault by actionlint, which finds planted ones; what they must never do; their commands."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests import actionlint
from tests.test_noxfile import nox

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CI, NIGHTLY = (
    (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8") for name in ("ci", "nightly")
)


def jobs(text: str) -> dict[str, str]:
    """The text of each job."""
    parts = re.split(r"(?m)^  (\w+):\n", text.partition("\njobs:\n")[2])
    return dict(zip(parts[1::2], parts[2::2], strict=True))


PLANTED = {
    'unexpected key "timeout" for "job" section': ("timeout-minutes: 180", "timeout: 180"),
    'property "label" is not defined': ("group: gpu-${{ matrix.runner }}", "group: gpu-${{ matrix.label }}"),
    'needs job "stale" which does not exist': ("needs: [bench, fresh]", "needs: [bench, stale]"),
    "invalid CRON format": ('cron: "17 2 * * *"', 'cron: "17 2 * *"'),
    '"all" is invalid for permission of scope "issues"': ("issues: write", "issues: all"),
    '"github.event.issue.title" is potentially untrusted': ("git clean -ffd", "echo ${{ github.event.issue.title }}"),
    'undefined function "alway"': ("if: always()", "if: alway()"),
    'undefined variable "var"': ("fromJSON(vars.", "fromJSON(var."),
}
"""What it says of a fault, by what must be changed for it in nightly.yml."""


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """What actionlint says of the workflows, and of the nightly one with each of the planted faults."""
    if why := actionlint.missing():
        (pytest.fail if "GITHUB_ACTIONS" in os.environ else pytest.skip)(why)
    own = {path.name: path.read_text(encoding="utf-8") for path in WORKFLOWS}
    return actionlint.complaints(own | {said: NIGHTLY.replace(*fault, 1) for said, fault in PLANTED.items()})


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actionlint_finds_no_fault(path: Path, found: dict[str, list[str]]) -> None:
    """Keys, contexts, expressions, matrices, cron lines."""
    assert found[path.name] == []


@pytest.mark.parametrize("said", PLANTED)
def test_actionlint_finds_planted_faults(said: str, found: dict[str, list[str]]) -> None:
    """So that what it does not find is not there."""
    assert PLANTED[said][0] in NIGHTLY
    assert any(said in each for each in found[said]), found[said]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_expression_is_in_a_script(path: Path) -> None:
    """What stands in `${{ }}` becomes part of the script before a shell reads it: values come in by the environment."""
    text = path.read_text(encoding="utf-8")
    scripts = re.findall(r"(?m)^( +)(?:- )?run: (?:\|\n((?:\1  .*\n|\n)+)|(.+)\n)", text)
    assert len(scripts) == len(re.findall(r"\brun: ", text))
    assert [script for _, block, line in scripts for script in (block or line,) if "${{" in script] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_few_pinned_and_have_few_rights(path: Path) -> None:
    """GitHub's own, each at one commit, as a tag can be moved; the token may read the code, and is in no checkout."""
    text = path.read_text(encoding="utf-8")
    pins = re.findall(r"uses: (actions/[a-z-]+)@([0-9a-f]{40}  # v\d+\.\d+\.\d+)\n", CI + NIGHTLY)
    assert len(pins) == (CI + NIGHTLY).count("uses:")
    assert len(dict(pins)) == len(set(pins))
    assert re.search(r"(?m)^permissions:\n  contents: read\n\n", text)
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    assert all("timeout-minutes:" in job for job in jobs(text).values())


def test_only_the_issue_can_be_written() -> None:
    """By a job on GitHub's own machines that runs nothing of this project, nor has the store's secrets."""
    by_job = jobs(NIGHTLY)
    assert [name for name, job in by_job.items() if "write" in job.partition("steps:")[0]] == ["issue"]
    assert "secrets." not in by_job["issue"]
    assert "checkout" not in by_job["issue"]
    assert not re.search(r"secrets\.", "".join(job.partition("steps:")[0] for job in by_job.values()))


def test_two_benches_never_share_a_gpu() -> None:
    """A night waits for the one before on the same machine, and is not cut short by the next."""
    job = jobs(NIGHTLY)["bench"]
    assert re.search(r"concurrency:.*\n\s+group: gpu-\$\{\{ matrix\.runner \}\}\n\s+cancel-in-progress: false\n", job)
    assert 'runs-on: [self-hosted, "${{ matrix.runner }}"]' in job


def test_a_night_that_fails_leaves_its_pages() -> None:
    """Whatever its code is: history, summary and artifacts come after a failure, too."""
    after = jobs(NIGHTLY)["bench"].partition("- name: The night")[2]
    assert len(re.findall(r"(?m)^      - name: ", after)) == after.count("if: always()") == 3


def test_the_sessions_exist() -> None:
    """Those of the workflows and of what ci.yml calls."""
    known = set(re.findall(r"^[*-] (\w+)", nox("-l").stdout, flags=re.MULTILINE))
    called = set(re.findall(r'nox"? -s (\w+)', NIGHTLY + (ROOT / ".ci" / "run").read_text(encoding="utf-8")))
    assert {"nightly", "history", "runs", "lint", "tests", "bench"} <= called <= known
    assert "- run: .ci/run\n" in CI
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
