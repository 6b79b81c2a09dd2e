"""One night, from the look at the machine to the exit code."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.children import show
from harness.errors import CommandError, Exit
from harness.nightly.machine import ALL, CPU, Machine, checks
from harness.nightly.night import BASELINE, REF, Night, Wish, exit_of
from harness.nightly.standing import hold
from harness.output import write_file
from harness.pool import ROOT
from harness.store import read_run
from harness.suites_command import PYTEST_USAGE_ERROR, suites_command

ENDS = {int(code): code for code in (Exit.USAGE, Exit.KERNEL, Exit.INFRASTRUCTURE, Exit.INTERRUPTED)}
ENDS |= {PYTEST_USAGE_ERROR: Exit.USAGE}
"""Of a bench, by its code; every other one is pytest's own, or of one that was killed."""

SUMMARY = "--summary"
BEGUN = "## SGEMV nightly: it began, and ended before it could say anything\n"
"""The summary of a night that was killed."""

INTERRUPTED = "interrupted; what was measured is kept, see nox -s runs"


def nightly(wish: Wish, machine: Machine | None = None, bench: Sequence[str] | None = None) -> Exit:
    """Check the machine, build, measure and keep the run, then hold it against others; the highest code that applies.

    Whatever happens is said in the summary, too.

    Args:
        wish: what was asked for.
        machine: how it is asked; None: as it is.
        bench: a command that publishes a run in place of the suites, given --device, --ref, --store and --path-file.

    Raises:
        CommandError: the summary cannot be written (INFRASTRUCTURE).
    """
    night = Night(wish=wish, machine=machine or Machine(), bench=bench)
    diary, otherwise = night.diary, "no case is known to be slower"
    if wish.summary.is_file() or not wish.summary.exists():  # that of the night before goes, and this can be written
        write_file(BEGUN.encode(), wish.summary, SUMMARY)
    try:
        otherwise = _steps(night) or otherwise
    except CommandError as error:
        diary.fault("ended", str(error), error.code)
    except KeyboardInterrupt:
        diary.fault("ended", INTERRUPTED, Exit.INTERRUPTED)
    diary.end(otherwise)
    write_file(diary.markdown(night.markdown).encode("utf-8", "replace"), wish.summary, SUMMARY)
    return diary.code


def _steps(night: Night) -> str | None:
    """All of them; what a fine night comes to, where that is not that no case is slower."""
    diary, store = night.diary, night.store
    for line in store.recovered():
        diary.say("store", line)
    if not _machine_is_fit(night):
        return None
    before, baseline = store.ids(), _baseline(night)
    if not _built(night):
        return None
    folders = _measured(night)
    said = [hold(night, folder, before, baseline) for folder in folders]
    return "nothing to compare with" if folders and not any(said) else None


def _machine_is_fit(night: Night) -> bool:
    diary, wish = night.diary, night.wish
    for each in checks(night.machine, wish.store, wish.device, wish.idle_wait_s, lambda line: diary.say("wait", line)):
        if each.fault:
            diary.fault(each.what, each.said, Exit.INFRASTRUCTURE)
        else:
            diary.say(each.what, each.said)
    return diary.code is Exit.FINE


def _baseline(night: Night) -> Path | None:
    """The run that the ref means now, before anything is measured; None: it is not set, or cannot be read."""
    if night.store.ref(BASELINE) is None:
        return None
    try:
        return night.store.resolve(BASELINE)
    except CommandError as error:
        night.diary.fault(BASELINE, str(error), error.code)
        return None


def _built(night: Night) -> bool:
    """So that what does not build is said before a bench begins."""
    target = "cpu" if night.wish.device == CPU else "cuda"
    done = night.machine.ask([sys.executable, "-m", "kernels.build", "--target", target])
    if done.code:
        night.diary.fault("build", done.complaint, exit_of(done.code))
        return False
    night.diary.say("build", (done.stdout.splitlines() or ["done"])[0])
    return True


def _measured(night: Night) -> list[Path]:
    """Folders of the runs of this night: they are kept whatever comes after."""
    diary, wish, store = night.diary, night.wish, night.store
    several = wish.device == ALL  # a ref means one run, so it is set here
    options = [f"--device={wish.device}", *([] if several else [f"--ref={REF}"]), f"--store={night.store_option}"]
    arguments = ["suites", *wish.options, *options]
    diary.say("bench", shlex.join(["pytest", *arguments]))
    with tempfile.TemporaryDirectory(prefix="sgemv-nightly-") as work:
        path_file = Path(work) / "run"
        own = None if night.bench is None else [*night.bench, *options, f"--path-file={path_file}"]
        ended = show(own or suites_command(arguments, path_file), ROOT, _environment(arguments))
        folders = [Path(line) for line in path_file.read_text("utf-8").splitlines()] if path_file.is_file() else []
    recovered = store.recover()  # of a bench that was killed: what it had measured is a run that was cut short
    for folder in [*(each for each in folders if several or read_run(each).partial), *recovered]:
        if stays := store.set_ref(REF, folder.name):  # the bench has said so on its own terminal alone
            diary.say("ref", stays)
    folders += recovered
    try:
        for line in store.send():
            diary.say("store", line)
    except CommandError as error:  # the run is here, and can be looked at
        diary.fault("store", str(error), error.code)
    if ended.code:
        code = ENDS.get(ended.code, Exit.INFRASTRUCTURE)
        what = "found a kernel wrong or crashed" if code is Exit.KERNEL else "did not end well"
        how = f"exit code {int(code)}" if ended.code in ENDS else ended.how
        why = f"the bench {what} ({how}): its own lines say more"
        diary.fault("bench", INTERRUPTED if code is Exit.INTERRUPTED else why, code)
    elif not folders:
        diary.fault("bench", "no case was measured", Exit.USAGE)
    return [] if diary.code is Exit.INTERRUPTED else folders


def _environment(arguments: Sequence[str]) -> Mapping[str, str]:
    """Of the suites, which end with whoever started them; a session of nox has said what was typed."""
    return {"SGEMV_COMMAND": shlex.join(["python", "-m", "pytest", *arguments]), **os.environ}
