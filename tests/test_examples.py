"""examples/: every run in it is whole, small and names no machine; the pair says what was done to it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.comparison.request import Compared
from harness.store import load, verify
from reports.comparison.page import render_comparison

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
RUNS = sorted(sums.parent for sums in EXAMPLES.rglob("SHA256SUMS"))
PAGES = {"h200.html": 2_500_000, "regimes.html": 2_000_000, "roofline.html": 2_500_000, "compare.html": 300_000}
"""And the most bytes that each may have."""
PAIR = (EXAMPLES / "compare" / "base", EXAMPLES / "compare" / "new")
SLOWED = "sgemv_k128_f32x4"
"""The kernel whose loop was kept from being unrolled in the pair's new run, to slow it down."""


def name(folder: Path) -> str:
    return folder.relative_to(EXAMPLES).as_posix()


def test_all_are_found() -> None:
    """Those that the documents speak of."""
    pairs = {"compare/base", "compare/new", "power/first", "power/second"}
    assert {*map(name, RUNS)} == {*pairs, "h200", "h200-peers", "regimes", "roofline", "tune", "tune-tokens"}


@pytest.mark.parametrize("folder", RUNS, ids=name)
def test_a_run_is_whole_and_small(folder: Path) -> None:
    """It verifies, and is under 6 MB."""
    verify(folder)
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 6_000_000


def test_pages_are_small() -> None:
    """Each is one that a reader opens."""
    found = {path.name: path.stat().st_size for path in EXAMPLES.glob("*.html")}
    assert found.keys() == PAGES.keys()
    assert all(found[page] < most for page, most in PAGES.items())


@pytest.mark.parametrize("folder", [*RUNS, EXAMPLES], ids=name)
def test_it_names_no_machine(folder: Path) -> None:
    """Hostname, UUID and paths are placeholders; the pages lie beside the runs."""
    kept = (
        folder.glob("*.html")
        if folder == EXAMPLES
        else [p for e in ("json", "log", "diff") for p in folder.rglob(f"*.{e}")]
    )
    for path in kept:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"GPU-(?!0{8})[0-9a-f]{8}-", text), path
        assert not re.search(r"(?<![\w.>])/(root|home|tmp|opt|work)/", text), path


def test_the_pair_says_what_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    """One kernel was changed and the words are of it alone, each with «kernel changed»; the code is that of slower."""
    assert main(["compare", *map(str, PAIR), "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert found["attribution"] == "source only"
    sure = [each for each in found["cases"] if each["change"] in {"slower", "faster"}]
    assert {each["case"]["kernel"] for each in sure} == {SLOWED}
    assert all("kernel changed" in each["notes"] for each in sure)
    assert sum(each["change"] == "slower" for each in sure) >= 4
    diff = (PAIR[1] / "build" / "source.diff").read_text(encoding="utf-8")
    assert [line for line in diff.splitlines() if re.match(r"[-+](?![-+])", line)] == ["+#pragma unroll 1"]


def test_the_pairs_page_is_of_this_version() -> None:
    """Rendered anew it is the same."""
    from harness.compare import compare

    base, new = map(load, PAIR)
    page = render_comparison(Compared(base=base, news=(new,), found=(compare(base, new),)))
    assert (EXAMPLES / "compare.html").read_text(encoding="utf-8") == page
