"""harness.problems.files: problems from TOML and CSV, and where a wrong one stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import CommandError, Exit
from harness.model import Layout, Problem
from harness.problems import read_shapes

TOML = """\
# those that matter
shapes = [
  "4096x4096", "1024x128:float16",
  "64x64x8:bfloat16:row_stride=100:first=1",
  "4096x4096",
]
"""
CSV = """\
\ufeffk, m, n, dtype, order, row_stride, first_element
# a comment

4096,4096,,,,,
128,1024,1,float16,row,,
64,64,8,bfloat16,,100,1
"64",32,,,col,33,
"""
BOTH = [
    Problem(m=4096, k=4096),
    Problem(m=1024, k=128, dtype="float16"),
    Problem(m=64, k=64, n=8, dtype="bfloat16", layout=Layout(row_stride=100, first_element=1)),
]


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def test_both_forms(tmp_path: Path) -> None:
    """Each problem once, in order."""
    assert read_shapes(written(tmp_path, "s.toml", TOML)) == BOTH
    by_columns = Problem(m=32, k=64, layout=Layout(order="col", row_stride=33))
    assert read_shapes(written(tmp_path, "s.CSV", CSV)) == [*BOTH, by_columns]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("s.toml", 'shapes = [\n"8x8",\n"8x",\n]', ":3: found '8x', wanted MxK or MxKxN with whole numbers"),
        ("s.toml", 'shapes = ["8x8:half"]', ":1: found '8x8:half', wanted behind MxK or MxKxN only a dtype"),
        ("s.toml", 'shapes = [\n"8x8"\n"4x4"]', ": Unclosed array (at line 3, column 1)"),
        ("s.toml", "shape = []", ': found shape, wanted shapes = ["4096x4096", …] alone'),
        ("s.toml", 'shapes = ["8x8"]\nkernels = []', ": found shapes, kernels, wanted shapes = "),
        ("s.toml", "", ": found nothing, wanted shapes = "),
        ("s.toml", "shapes = [8]", ': found 8 among the shapes, wanted text such as "4096x4096:float16"'),
        ("s.toml", "shapes = []", ": names no shape, wanted TOML"),
        ("s.toml", "\udcff", ": 'utf-8' codec can't decode byte 0xff in position 0"),
        ("s.csv", "m,k\n", ": names no shape, wanted TOML"),
        ("s.csv", "m,n\n8,8\n", ":1: found columns m,n, wanted m,k[,n][,dtype][,order][,row_stride][,first_element]"),
        ("s.csv", "m,k,m\n8,8,8\n", ":1: found columns m,k,m, wanted m,k"),
        ("s.csv", "m,k\n8,8\n8\n", ":3: found 1 cells, wanted 2: m,k"),
        ("s.csv", "m,k\n\n8,8.5\n", ":3: found k '8.5', wanted a whole number"),
        ("s.csv", "m,k,order\n8,8,down\n", ":2: found order 'down', wanted one of: row, col"),
        ("s.csv", "m,k,n\n8,8,0\n", ":2: found '8x8x0', wanted MxK or MxKxN"),
        ("s.csv", "m,k,dtype\n8,8,col\n", ":2: found dtype 'col', wanted one of: float32, tf32"),
        ("s.csv", "m,k,row_stride\n8,8,4\n", ":2: 8x8:row_stride=4: found 4 elements from one row of A to the next"),
        ("s.csv", 'm,k\n8,"8\n', ":2: unexpected end of data"),
    ],
)
def test_what_is_wrong_and_where(tmp_path: Path, name: str, text: str, said: str) -> None:
    """One line, with the file's line where it has one; wrong usage."""
    path = written(tmp_path, name, text)
    with pytest.raises(CommandError) as caught:
        read_shapes(path)
    assert str(caught.value).startswith("--shapes: ")
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.code is Exit.USAGE


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Nor is a folder one."""
    with pytest.raises(CommandError, match=r"^--shapes: .*: Is a directory; wanted TOML"):
        read_shapes(tmp_path)
