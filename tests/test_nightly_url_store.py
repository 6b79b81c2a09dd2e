"""Nights of machines that share a store at a URL, on a real S3 server on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.store.url_store import UrlStore
from tests.played_nights import Nights
from tests.s3_server import KEY, S3, SECRET, TOKEN, Proxy, on_machine, s3, s3_server, way
from tests.ten_nights import Played

__all__ = ["s3", "s3_server", "way"]


def test_two_machines_share_a_store(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one has measured the other compares with, and no credential is in what they say."""
    first, second = Played(number=1), Played(number=2)
    seen = Nights(tmp_path / "a", UrlStore(s3.url))(first)
    assert seen.code == 0, seen.out
    other = on_machine(s3.url, tmp_path / "other", monkeypatch)
    assert not other.root.exists()
    seen = Nights(tmp_path / "b", other, pages=True)(second)
    assert seen.code == 0, seen.out
    assert f"against: the night before: {first.run_id}; same environment" in seen.lines
    assert any(f"--store={s3.url}" in line for line in seen.lines if line.startswith("bench: "))
    assert {f"deep/runs/{night.run_id}.tar.gz" for night in (first, second)} <= s3.objects().keys()
    assert s3.objects()["deep/runs/refs/nightly"].decode().split() == [second.run_id]
    pages = "".join(page.read_text(encoding="utf-8") for page in (tmp_path / "b" / "reports").iterdir())
    assert [word for word in (KEY, SECRET, TOKEN) if word in seen.out + pages] == []


def test_a_store_that_is_out_of_reach_is_said_before_anything_is_measured(s3: S3, way: Proxy, tmp_path: Path) -> None:
    """Code 6, one line; it is a fault of the machine like any other."""
    store = UrlStore(s3.url)
    way.close()
    seen = Nights(tmp_path, store)()
    assert seen.code == 6
    assert seen.lines[-1].startswith(f"exit code: 6: store {s3.url}")
    assert [word for word in (KEY, SECRET, TOKEN) if word in seen.out + seen.summary] == []
