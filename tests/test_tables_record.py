"""harness.store.tables: what a record holds whose samples and readings are in tables."""

from __future__ import annotations

import statistics

from harness.store.tables import without_tables
from tests.planted_tables import WHOLE


def test_a_record_without_samples_says_what_they_come_to() -> None:
    """Readers of many runs need no more; beside samples a digest would say it twice."""
    for whole, bare in zip(WHOLE, without_tables(WHOLE), strict=True):
        for trial, slim in zip(whole.trials, bare.trials, strict=True):
            assert trial.digest is None
            if not trial.samples_ns:
                assert slim.digest is None
                continue
            assert slim.digest is not None
            assert slim.digest.count == len(trial.samples_ns)
            assert slim.digest.median_ns == statistics.median(trial.samples_ns)


def test_a_record_without_tables_has_none_of_their_content() -> None:
    """It would be on disk twice."""
    bare = without_tables(WHOLE)
    fields = ("samples_ns", "sample_times_unix_s", "sample_clocks_mhz", "states")
    assert {getattr(t, name) for m in bare for t in m.trials for name in fields} == {()}
    assert [t.verdict for m in bare for t in m.trials] == [t.verdict for m in WHOLE for t in m.trials]
