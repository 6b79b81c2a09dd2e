"""harness.errors: what a line says of a wrong name, and where it says that something was raised."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import CommandError, Exit, first_line, said, unknown

MANY = [f"sgemv_{number}" for number in range(40)]


def test_of_many_names_the_nearest_are_told() -> None:
    """Of a few all are; the hint stands where one looks for more."""
    few = unknown("--cache", "warm", ["cold", "hot"], " (as --help says)")
    assert str(few) == "--cache: found 'warm', wanted one of: cold, hot"
    assert few.code is Exit.USAGE
    near = unknown("--kernel", "sgenv_17", MANY, " (as --help says)")
    assert str(near).startswith(
        "--kernel: found 'sgenv_17', wanted one of 40 names (as --help says); did you mean sgemv_17 "
    )
    assert len(str(near)) < 150
    assert str(unknown("--kernel", "other", MANY)) == "--kernel: found 'other', wanted one of 40 names"


def raised(path: Path, text: str) -> Exception:
    """What running the text as that file raises."""
    path.write_text(text)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any
        exec(compile(text, str(path), "exec"), {})  # noqa: S102
    return caught.value


def test_the_deepest_line_of_the_users_is_named(tmp_path: Path) -> None:
    """Of the file or of one beside it, by its path or from the file's folder; else the line that is given."""
    file = tmp_path / "mine.py"
    error = raised(file, "import json\n\njson.loads('{')\n")
    words = "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    assert said(error) == words
    assert said(error, str(file)) == f"{file}:3: {words}"
    assert said(error, str(file), 9, by_name=True) == f"mine.py:3: {words}"
    (tmp_path / "parts").mkdir()
    beside = raised(tmp_path / "parts" / "x.py", "\nraise ValueError\n")
    assert said(beside, str(file), 9, by_name=True) == "parts/x.py:2: ValueError"
    elsewhere = ValueError("never raised")
    assert said(elsewhere, str(file), 9, by_name=True) == "mine.py:9: ValueError: never raised"
    assert said(elsewhere, str(file)) == f"{file}: ValueError: never raised"


def test_neither_installed_nor_our_own_lines_are_a_users() -> None:
    """A file in the project's root has all of it below its folder; this line here is the deepest that is neither."""
    root = Path(__file__).parents[1]
    with pytest.raises(TypeError) as caught:
        unknown("--x", "y", None)  # type: ignore[arg-type]
    assert said(caught.value, str(root / "mine.py"), by_name=True).startswith("tests/test_errors.py:")
    with pytest.raises(CommandError) as told:
        raise unknown("--x", "y", ["z"])
    assert said(told.value, str(root / "mine.py")) == "--x: found 'y', wanted one of: z"


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("no such layout\nsecond", "no such layout"),
        ("\n  indented\n", "indented"),
        (
            "at 10:23:\n    acc += tl.summ(a)\n           ^\nAttributeError('no summ')\n",
            "at 10:23: AttributeError('no summ')",
        ),
        ("expected:", "expected:"),
        ("", "ValueError"),
    ],
)
def test_the_line_that_says_it(message: str, line: str) -> None:
    """The first, and behind one that only announces, as Triton's do, the last."""
    assert first_line(ValueError(message)) == line
