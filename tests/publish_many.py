"""A program that publishes runs into a store from many threads at once: `python -m tests.publish_many STORE NAME N`.

Each does what a bench does: it looks for what was killed, opens a draft, measures, publishes, sets refs and sends.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import replace

from harness.model import Measurement, Run
from harness.store.draft import Draft
from harness.store.open_store import open_store
from tests.s3_server import RUN


def run_of(name: str, number: int) -> Run:
    """The run of one publisher: no other has its samples."""
    run_id = f"20260101T000000Z-{name}-{number:03}"
    offset = 1 + number + sum(map(ord, name))
    return replace(RUN, id=run_id, measurements=tuple(_shifted(each, offset) for each in RUN.measurements))


def _shifted(measurement: Measurement, offset: float) -> Measurement:
    trials = (
        replace(trial, samples_ns=tuple(ns + offset for ns in trial.samples_ns), digest=None)
        for trial in measurement.trials
    )
    return replace(measurement, trials=tuple(trials))


def publish(option: str, name: str, number: int) -> None:
    """What one publisher does."""
    run, store = run_of(name, number), open_store(option)
    store.recovered()
    store.check_writable()
    draft = Draft.create(store.root, replace(run, measurements=()))
    for measurement in run.measurements:
        draft.append(measurement)
    folder = draft.publish(partial=False)
    assert folder is not None
    store.set_ref(f"own-{run.id}", run.id)
    store.set_ref("shared", run.id)
    store.send()


def main(arguments: Sequence[str]) -> int:
    """Publish; how many failed."""
    option, name, count = arguments
    failed = []

    def one(number: int) -> None:
        try:
            publish(option, name, number)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=one, args=(number,)) for number in range(int(count))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
