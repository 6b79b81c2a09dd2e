"""Kills benches with SIGKILL at random moments and holds the store against what their journals held.

    python -m tests.kill_nine --rounds 200 --seed 1 --store /tmp/killed

A round is a bench of the suites on the CPU. Most are killed as a whole: the parent by the signal, its workers by their
parent's end. In every fourth a single worker is killed, and the bench goes on. The bench of the next round publishes
what the killed one left, and may be killed while it does. Moments are drawn by the seed: so many lines of progress,
then up to `LONGEST_S`; what a moment hits also depends on the machine. Exit code 1 where a run does not verify, lacks a
measurement that was in its journal, or anything is left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from harness.errors import CommandError
from harness.model import Measurement
from harness.store import Store, load, verify
from harness.store.draft import JOURNAL, PREFIX

ROOT = Path(__file__).parents[1]

BENCH = (
    *("-m", "pytest", "-c", "pyproject.toml", "--rootdir=.", "suites", "-q", "-p", "no:cacheprovider"),
    *("--benchmark-quiet", "--device", "cpu", "--cache", "hot", "--shape", "64x64", "--trials", "2"),
    *("--max-time", "0.01", "-k", "async"),
)
CASES = 9
"""Of that bench: as many lines of progress."""

WITH_WORKERS = 2
"""Of them, after which workers still have work for a while."""

LONGEST_S = 0.4
"""After the last line that is waited for: more than a case takes, or publishing."""

PATIENCE_S = 120.0
"""For anything that ends by itself."""

FINISHED = {0, 5, 6}
"""Exit codes of a bench that lost a worker: none, one in a case, one while it started."""


class BrokenError(AssertionError):
    """What must never be."""


@dataclass
class Killer:
    """Kills benches into one store and remembers what their journals held."""

    store: Store
    chance: random.Random
    held: dict[str, list[Measurement]] = field(default_factory=dict)
    """By run: what was in its journal when it, or a worker of it, was killed."""
    checked: set[str] = field(default_factory=set)
    """Runs that were found right."""
    seconds: list[float] = field(default_factory=list)
    """Of each round."""

    def round(self, *, whole_bench: bool) -> str:
        """One bench with a kill in it; what was killed, in a word."""
        started = time.monotonic()
        log = self.store.root.with_name(f"{self.store.root.name}.log")
        with log.open("wb") as out:
            bench = psutil.Popen(
                [sys.executable, *BENCH, "--store", str(self.store.root)],
                cwd=ROOT,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"},
                start_new_session=True,
            )
        try:
            self._wait(bench, log, CASES if whole_bench else WITH_WORKERS)
            killed = self._kill_all(bench) if whole_bench else self._kill_worker(bench)
        finally:
            with suppress(psutil.NoSuchProcess):
                bench.kill()
            bench.wait()
        code = bench.returncode
        if code not in ({-signal.SIGKILL, 0} if whole_bench else FINISHED):
            raise BrokenError(f"exit code {code} after {killed}: {log.read_text(errors='replace')[-2000:]}")
        self.check()
        self.seconds.append(time.monotonic() - started)
        return killed

    def check(self) -> None:
        """Hold all runs that are new against their journals.

        Raises:
            BrokenError: one does not verify, or lacks what its journal held.
        """
        for run_id in set(self.store.ids()) - self.checked:
            folder = self.store.root / run_id
            try:
                verify(folder)
                run = load(folder)
            except CommandError as error:
                raise BrokenError(str(error)) from error
            held = self.held.get(run_id, [])
            if list(run.measurements[: len(held)]) != held:
                raise BrokenError(f"{folder}: its journal held {len(held)} measurements that it has not")
            if run.partial and len(run.measurements) != len(held):
                raise BrokenError(f"{folder}: {len(run.measurements)} measurements, its journal held {len(held)}")
            if not run.partial and len(run.measurements) != CASES:
                raise BrokenError(f"{folder}: whole, with {len(run.measurements)} measurements of {CASES}")
            self.checked.add(run_id)

    def outcome(self) -> Counter[str]:
        """Publish the last one too, check, and count the runs.

        Raises:
            BrokenError: something is wrong or left behind.
        """
        last = subprocess.run(
            [sys.executable, "-m", "harness", "runs", "--store", str(self.store.root)],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        if last.returncode != 0:
            raise BrokenError(last.stdout + last.stderr)
        self.check()
        if missing := sorted(run_id for run_id, held in self.held.items() if held and run_id not in self.checked):
            raise BrokenError(f"measured and lost: {', '.join(missing)}")
        there = {path.name for path in self.store.root.iterdir()}
        if left := sorted(there - self.checked - {".gitignore"}):
            raise BrokenError(f"left behind: {', '.join(left)}")
        partial = [load(self.store.root / run_id).partial for run_id in self.checked]
        return Counter("partial" if each else "whole" for each in partial)

    def _wait(self, bench: psutil.Popen, log: Path, most_lines: int) -> None:
        """Until the moment to kill; the bench may end before."""
        lines, rest_s = self.chance.randint(0, most_lines), self.chance.uniform(0.0, LONGEST_S)
        if lines == 0:
            rest_s *= 10  # starting takes longer than a case
        deadline = time.monotonic() + PATIENCE_S
        while log.read_bytes().count(f"/{CASES} ".encode()) < lines and bench.poll() is None:
            if time.monotonic() > deadline:
                raise BrokenError(
                    f"no {lines} cases within {PATIENCE_S:g} s: {log.read_text(errors='replace')[-2000:]}"
                )
            time.sleep(0.005)
        with suppress(psutil.TimeoutExpired):
            bench.wait(rest_s)

    def _kill_all(self, bench: psutil.Popen) -> str:
        """The parent by SIGKILL; no worker may outlive it."""
        workers = _workers(bench)
        with suppress(psutil.NoSuchProcess):
            bench.kill()
        bench.wait()
        _, alive = psutil.wait_procs(workers, timeout=10)
        if alive:
            raise BrokenError(f"outlived their parent: {alive}")
        self._remember()
        return "a bench"

    def _kill_worker(self, bench: psutil.Popen) -> str:
        """One worker by SIGKILL, if there is one; the bench then comes to its own end."""
        workers = _workers(bench)
        self._remember()
        if workers:
            with suppress(psutil.NoSuchProcess):
                self.chance.choice(workers).kill()
        bench.wait(PATIENCE_S)
        return "a worker" if workers else "nothing"

    def _remember(self) -> None:
        for draft in self.store.root.glob(f"{PREFIX}*/"):
            lines = _complete_lines(draft / JOURNAL)
            self.held[draft.name.removeprefix(PREFIX)] = [Measurement.from_dict(json.loads(line)) for line in lines]


def _workers(bench: psutil.Popen) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return [child for child in bench.children(recursive=True) if "harness.trial" in _command_of(child)]
    return []


def _command_of(process: psutil.Process) -> list[str]:
    with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return list(process.cmdline())
    return []


def _complete_lines(journal: Path) -> Iterator[str]:
    if journal.exists():
        *lines, _torn = journal.read_text(encoding="utf-8").split("\n")
        yield from lines


def kill(root: Path, rounds: int, seed: int) -> str:
    """So many rounds into a new store; what came of them, in a line.

    Raises:
        BrokenError: something must never have been.
    """
    killer = Killer(store=Store(root), chance=random.Random(seed))  # noqa: S311 - no secret
    killed = Counter(killer.round(whole_bench=number % 4 != 3) for number in range(rounds))
    runs = killer.outcome()
    held = [measurement for each in killer.held.values() for measurement in each]
    samples = sum(len(measurement.samples_ns) for measurement in held)
    return (
        f"{rounds} rounds in {sum(killer.seconds):.0f} s, seed {seed}: killed "
        f"{', '.join(f'{what} {count} times' for what, count in sorted(killed.items()))}; runs: {runs['whole']} whole, "
        f"{runs['partial']} partial, {rounds - runs.total()} times nothing had been measured; "
        f"{len(held)} measurements with {samples} samples were in journals, 0 are lost"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what came of it."""
    parser = argparse.ArgumentParser(prog="tests.kill_nine", description="kill benches at random moments")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", type=Path, help="a folder that is not there yet (default: a temporary one)")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        try:
            sys.stdout.write(f"{kill(options.store or Path(folder) / 'store', options.rounds, options.seed)}\n")
        except BrokenError as broken:
            sys.stderr.write(f"{broken}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
