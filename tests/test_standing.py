"""harness.standing: files are named from where the user stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.standing import STANDING, named_file


def test_a_file_is_named_from_where_the_user_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which nox says; ~ is home, also behind an = that no shell looks behind."""
    (tmp_path / "x.py").write_text("")
    monkeypatch.setenv(STANDING, str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert named_file("--kernels", "x.py") == tmp_path / "x.py"
    monkeypatch.delenv(STANDING)
    assert named_file("--kernels", "~/x.py") == tmp_path / "x.py"
    monkeypatch.chdir(tmp_path)
    assert named_file("--kernels", "x.py") == tmp_path / "x.py"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("y.py", "--kernels: found 'y.py', which is no such file (looked at {here}/y.py)"),
        ("{here}/y.py", "--kernels: found '{here}/y.py', which is no such file"),
        (".", "--kernels: found '.', which is a folder, wanted a file (looked at {here})"),
    ],
)
def test_what_is_no_file_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
    """Where it was looked for is told once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(STANDING, raising=False)
    with pytest.raises(CommandError) as caught:
        named_file("--kernels", name.format(here=tmp_path))
    assert str(caught.value) == said.format(here=tmp_path)
    assert caught.value.code is Exit.USAGE
