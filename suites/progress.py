"""Progress on the terminal: one line a case, and on a terminal a bar with the time left."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from harness.model import Measurement, Word
from harness.problems import shape_text
from harness.stats import summarize

MARKS = {Word.PASSED: "[green]✓[/]", Word.UNSUPPORTED: "[dim]–[/]", Word.NOT_MEASURED: "[yellow]![/]"}
"""Anything else is a failure."""


class Progress:
    """Says what was just measured and how long the rest will take."""

    def __init__(self, config: pytest.Config, *, total: int, width: int = 12) -> None:
        """`total` cases, whose problems take `width` columns at most."""
        self._width = width
        self._capture = config.pluginmanager.getplugin("capturemanager")
        self._total = total
        self._done = 0
        self._started = time.monotonic()
        with self._uncaptured():
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(errors="replace")  # an ASCII terminal gets ? for what it cannot show
            self._console = Console(highlight=False)
            self._bar = Bar(
                TextColumn("measuring"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
                auto_refresh=False,
                disable=not self._console.is_terminal,
            )
            self._task = self._bar.add_task("cases", total=total)
            self._bar.start()

    def begin(self) -> None:
        """Count the time left from here: building and starting workers is not a case."""
        self._started = time.monotonic()

    def say(self, text: str) -> None:
        """A line above the bar."""
        with self._uncaptured():
            self._console.print(escape(text), soft_wrap=True)

    def measured(self, measurement: Measurement) -> None:
        """After every case."""
        self._done += 1
        with self._uncaptured():
            self._console.print(self._line(measurement), soft_wrap=True)
            self._bar.update(self._task, completed=self._done)
            self._bar.refresh()

    def close(self) -> None:
        """Remove the bar."""
        with self._uncaptured():
            self._bar.stop()

    def _line(self, measurement: Measurement) -> str:
        case, verdict = measurement.case, measurement.verdict
        what = escape(f"{shape_text(case.problem):>{self._width}}  {case.timer:8} {case.cache:4}  {case.kernel:18}")
        start = f"[dim]{self._done:>4}/{self._total}[/] {MARKS.get(verdict.word, '[red]✗[/]')} {what}"
        summary = summarize(measurement)
        if summary is None:
            return f"{start} {verdict.word}: {escape(verdict.reason or '')}"
        figure = f"{summary.median_ns.estimate / 1e3:10.3f} µs"
        if len(summary.trial_medians_ns) > 1:
            figure += f"  spread {100 * summary.spread:4.1f} %"
        left_s = (time.monotonic() - self._started) / self._done * (self._total - self._done)
        minutes, seconds = divmod(round(left_s), 60)
        return f"{start} {figure}  [dim]{minutes}:{seconds:02} left[/]"

    @contextmanager
    def _uncaptured(self) -> Iterator[None]:
        """Pytest captures what a test prints; this is meant for the person in front of it."""
        if self._capture is None:
            yield
        else:
            with self._capture.global_and_fixture_disabled():
                yield
        sys.stdout.flush()
