"""Measure RUN again, from the commit, changes, flags and options that it records, and say whether it comes out alike.

The code that the run records is built and run: reproduce runs of people that you trust. The new run goes into the
store.
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
    """0 reproduced, 1 not, 3 nothing comparable, 5 a kernel failed, 6 cannot be tried here."""
    threshold, _ = thresholds(options.threshold, None)
    return int(reproduce(store, store.resolve(options.run), threshold, ROOT))
