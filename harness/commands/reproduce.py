"""Measure RUN again, from the commit, changes, flags and options that it records, and say whether it comes out alike.

The code that the run records is built and run: reproduce runs of people that you trust. The new run goes into the
store.

Leaves with 0: it was reproduced; 1: it was not; 2: wrong usage; 3: nothing can be told (another device, no case with
figures in both, none known to be the same); 4: the run is missing or damaged; 5: a kernel or the selfcheck failed;
6: it cannot be tried here (no commit, GPU, compiler, writable store); 130: interrupted, what was measured is kept.
"""

from __future__ import annotations

import argparse

from harness.compare import THRESHOLD
from harness.comparison.thresholds import thresholds
from harness.pool import ROOT
from harness.reproduce.session import reproduce
from harness.store import SELECTORS, Store

HELP = "measure a run again from what it records"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and what counts as a change."""
    parser.add_argument("run", metavar="RUN", help=SELECTORS)
    fraction = f"smallest change that counts (default: {THRESHOLD})"
    parser.add_argument("--threshold", metavar="FRACTION", help=fraction)


def run(store: Store, options: argparse.Namespace) -> int:
    """Leaves with one of the codes above."""
    threshold, _ = thresholds(options.threshold, None)
    return int(reproduce(store, store.resolve(options.run), threshold, ROOT))
