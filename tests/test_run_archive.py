"""harness.store.run_archive: a run comes back as it was, and what somebody else has packed goes nowhere else."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import random
import tarfile
from pathlib import Path

import pytest

from harness.store import run_archive
from harness.store.run_archive import pack, tar_of, unpack, unpack_head

FILES = {
    "SHA256SUMS": f"{hashlib.sha256(b'{}').hexdigest()}  run.json\n".encode(),
    "run.json": b"{}",
    "build/cuda/sources/größe.cu": b"// \xff",
    "empty": b"",
    "long" + "/n" * 60: b"of a name that plain tar cannot hold",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of files with names and contents of every kind."""
    for name, content in FILES.items():
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "run"


def members(*made: tuple[tarfile.TarInfo, bytes], to: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=to, format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        for member, content in made:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(out.getvalue())


def member(name: str, **fields: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def test_a_run_comes_back_as_it_was(folder: Path, tmp_path: Path) -> None:
    """Every file with its content; times, owners and modes of the first one are nothing of it."""
    tar = tar_of(folder)
    (tmp_path / "again").mkdir()
    assert unpack(pack(tar), tmp_path / "again") == tar
    again = {p.relative_to(tmp_path / "again").as_posix(): p for p in (tmp_path / "again").rglob("*") if p.is_file()}
    assert {name: path.read_bytes() for name, path in again.items()} == FILES
    for path in again.values():
        path.chmod(0o600)
    assert tar_of(tmp_path / "again") == tar


def test_the_format_stays(tmp_path: Path) -> None:
    """`verify` packs again what it has fetched: another tar would call every older run altered."""
    for name in ("SHA256SUMS", "run.json"):
        (tmp_path / name).write_bytes(FILES[name])
    digest = hashlib.sha256(tar_of(tmp_path)).hexdigest()
    assert digest == "59afcae0f94f0142748666853d8c1a3444139af40fe4bcefe9d939a793bb792a"


def test_the_beginning_alone_can_be_read(folder: Path, tmp_path: Path) -> None:
    """Of a large run; but not where run.json is not as it was published, or the beginning is too short."""
    (folder / "zzz").write_bytes(os.urandom(1 << 20))
    packed = pack(tar_of(folder))
    assert len(packed) > 1 << 20
    for name, length, there in (("enough", 1 << 16, True), ("short", 200, False), ("none", 0, False)):
        (tmp_path / name).mkdir()
        assert unpack_head(packed[:length], tmp_path / name) is there
        assert {path.name for path in (tmp_path / name).iterdir()} == ({"SHA256SUMS", "run.json"} if there else set())
    (folder / "run.json").write_bytes(b"[]")
    assert not unpack_head(pack(tar_of(folder)), tmp_path / "none")


HOSTILE = {
    "above": member("../outside"),
    "above inside": member("a/../../outside"),
    "absolute": member("/outside"),
    "nothing": member("."),
    "link": member("a", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "hard link": member("a", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
    "device": member("a", type=tarfile.CHRTYPE),
    "pipe": member("a", type=tarfile.FIFOTYPE),
    "folder": member("a", type=tarfile.DIRTYPE),
    "sparse": member("a", type=tarfile.GNUTYPE_SPARSE),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_has_no_place_in_a_run_is_refused(name: str, tmp_path: Path) -> None:
    """In one line, and nothing is written beside the folder."""
    (tmp_path / "deep" / "run").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"^no packed run: ") as caught:
        unpack(members((HOSTILE[name], b"")), tmp_path / "deep" / "run")
    assert "\n" not in str(caught.value)
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []
    assert not unpack_head(members((HOSTILE[name], b"")), tmp_path / "deep" / "run")


def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    """Else a file could be another one than was checked."""
    with pytest.raises(OSError, match="File exists"):
        unpack(members((member("a"), b"1"), (member("a"), b"2")), tmp_path)


def test_what_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before it fills memory."""
    monkeypatch.setattr(run_archive, "MOST_BYTES", 1 << 20)
    with pytest.raises(ValueError, match="it unpacks to more than"):
        unpack(gzip.compress(bytes(1 << 24)), tmp_path)


def test_any_damage_is_noticed(folder: Path, tmp_path: Path) -> None:
    """Cut anywhere, with more behind it, or with any bytes changed: refused, or not what it was."""
    tar = tar_of(folder)
    packed, luck = pack(tar), random.Random(8)  # noqa: S311 - wanted: the same damage every time
    torn = [packed[: luck.randrange(len(packed))] for _ in range(50)] + [packed + b"more", b""]
    changed = [bytearray(tar) for _ in range(300)]
    for each in changed:
        for _ in range(luck.randrange(1, 4)):
            each[luck.randrange(len(tar))] = luck.randrange(256)
    for place, each in enumerate([*torn, *map(pack, map(bytes, changed))]):
        target = tmp_path / str(place)
        target.mkdir()
        try:
            found = unpack(each, target)
        except (ValueError, OSError):
            continue
        assert found != tar or gzip.decompress(each) == tar
