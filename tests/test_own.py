"""kernels.own: what a user's file may declare, how it is run apart for what is in it, and what it may not take over."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from harness.errors import Exit
from harness.model import Layout, Operands, Problem, Role
from harness.registry import find
from kernels import registry
from kernels.own import cuda, declare, kernel, packed
from kernels.own.load import FileError, listing, load
from kernels.own.registry import Own, of_files

READS = registry.kernels()["read"].variants[0].name
ROOT = Path(__file__).parents[1]
ONE = 'from kernels.own import kernel\n@kernel("mine")\ndef bind(operands):\n    """By hand.\n\n    More."""\n'


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file of a user's."""

    def written(text: str, name: str = "mine.py") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return written


def test_what_is_in_a_file(write: Callable[..., Path]) -> None:
    """Names, lines, summaries; hashes of what it imports from beside it; versions of what is installed."""
    write("FACTOR = 2\n", "beside.py")
    path = write(f"import beside\nimport msgspec, os\n{ONE}")
    found = listing(path)
    (mine,) = found.kernels
    assert (mine.name, mine.line, mine.summary) == ("mine", 4, "By hand.")
    assert (mine.dtypes, mine.devices, mine.launcher) == (("float32",), ("cuda", "cpu"), None)
    assert [Path(name).name for name in found.sources] == ["mine.py", "beside.py"]
    assert [package.split()[0] for package in found.packages] == ["msgspec"]
    assert sorted(each.name for each in path.parent.iterdir()) == ["beside.py", "mine.py"], "nothing is left beside it"


CUDA = "from kernels.own import cuda\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\nraise ValueError('no\\nyes')\n", ":2: ValueError: no"),
        ("\n\ndef f(:\n", ":3: SyntaxError: invalid syntax"),
        ("def f():\n    return 1 // 0\n\nf()\n", ":2: ZeroDivisionError: integer division or modulo by zero"),
        ("import json\n\njson.loads('{')\n", ":3: JSONDecodeError: Expecting property name enclosed"),
        ("import not_installed\n", ":1: ModuleNotFoundError: No module named 'not_installed'"),
        ("import sys\nsys.exit('enough')\n", ":2: SystemExit: enough"),
        ("x = 1\n", ': declares no kernel, wanted @kernel("my_name") of kernels.own above a function'),
        (ONE.replace("mine", "a b"), ":2: ValueError: kernel 'a b': wanted a name of letters, digits"),
        (ONE.replace('"mine"', '"mine", dtypes="half"'), ":2: ValueError: kernel 'mine': dtypes has 'half', wanted "),
        (ONE.replace('"mine"', '"mine", devices=()'), ":2: ValueError: kernel 'mine': devices has None, wanted some "),
        (
            ONE.replace('"mine"', '"mine", unsupported=5'),
            ":2: TypeError: kernel 'mine': unsupported is a value of type int, wanted ",
        ),
        (f"{ONE}kernel('mine')(bind)\n", ":7: ValueError: kernel 'mine' is declared in line 2 already; rename one"),
        (
            "from kernels.own import kernel\nkernel('a')(5)\n",
            ":2: TypeError: @kernel('a') stands above a value of type int, ",
        ),
        (ONE.replace('("mine")', ""), ":2: TypeError: @kernel without a name, wanted one in brackets: @kernel("),
        (f"{CUDA}\ncuda('a', 'no.cu')\n", ":3: ValueError: cuda('a'): source is "),
        (
            f"{CUDA}cuda('a', 'mine.py', parameters='a x y')\n",
            ":2: ValueError: cuda('a'): parameters are 'a x y', wanted a, stream, x, y and others of: a, x, y, scale",
        ),
        (f"{CUDA}cuda('a', __file__, function='f();')\n", ":2: ValueError: cuda('a'): function is 'f();', wanted "),
    ],
)
def test_an_error_is_one_line_with_its_place(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    """The file and the line in it; wrong usage."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = write(text)
    with pytest.raises(FileError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}{said}")
    assert "\n" not in str(caught.value)
    assert caught.value.code is Exit.USAGE


def test_an_error_in_what_it_imports_has_its_own_place(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The deepest line of the user's; where a traceback is asked for, it is shown too."""
    beside = write("\ndef go():\n    return 1 // 0\n", "helping.py")
    path = write("import helping\nhelping.go()\n")
    with pytest.raises(FileError) as caught:
        listing(path)
    assert str(caught.value) == f"{beside}:3: ZeroDivisionError: integer division or modulo by zero"
    assert capfd.readouterr().err == ""
    monkeypatch.setenv("SGEMV_TRACEBACK", "1")
    with pytest.raises(FileError):
        listing(path)
    assert f'File "{path}", line 2, in <module>' in capfd.readouterr().err


def test_what_is_no_python_file_is_said(write: Callable[..., Path]) -> None:
    """A `.cu` where the file that declares it is wanted."""
    path = write("__global__ void f() {}\n", "my.cu")
    with pytest.raises(FileError) as caught:
        of_files([path])
    assert str(caught.value).startswith(f"{path}: is no .py; wanted the Python file that declares it, as cuda(")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\nraise ValueError('no\\nyes')\n", ":2: ValueError: no"),
        (
            "import sys, os\nsys.stderr.write('last words\\n')\nos._exit(3)\n",
            ": ended its process with code 3 while it was loaded: last words",
        ),
        ("import os\nos.kill(os.getpid(), 11)\n", ": was killed by SIGSEGV while it was loaded"),
    ],
)
def test_whatever_a_file_does_is_done_apart(write: Callable[..., Path], text: str, said: str) -> None:
    """Its process may die; what it last complained of is said."""
    path = write(text)
    with pytest.raises(FileError) as caught:
        listing(path)
    assert str(caught.value) == f"{path}{said}"


def test_a_file_that_hangs_is_given_up(write: Callable[..., Path]) -> None:
    """With what it has started."""
    path = write("import os, time\npid = os.fork()\nif pid: print('pid', pid, flush=True)\ntime.sleep(1000)\n")
    with pytest.raises(FileError, match=r"mine\.py: took more than 1\.5 s while it was loaded: pid \d+$") as caught:
        listing(path, patience_s=1.5)
    child = int(str(caught.value).split()[-1])
    assert ends(child)


def ends(pid: int) -> bool:
    """Whether a killed process is over soon: it dies a moment after it was told to."""
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.1)
    return False


def test_a_file_is_run_once_a_process(write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of its kernels are measured; where it is declared outside of a bench nothing collects it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = write(f"runs = open(__file__ + '.runs', 'a')\nruns.write('x')\nruns.close()\n{ONE}", "once.py")
    assert load(path) is load(path)
    assert list(load(path)) == ["mine"]
    assert Path(f"{path}.runs").read_text() == "x"
    assert sys.path[-1] == str(path.parent), "a neighbour takes over no installed package's name"
    assert kernel("elsewhere")(print) is print


@pytest.mark.parametrize("name", ["torch.matmul", "sgemv_tiles", "empty", READS])
def test_no_name_of_the_projects_is_taken_over(write: Callable[..., Path], name: str) -> None:
    """Whatever it is for, variants of `read` among them."""
    path = write(ONE.replace("mine", name))
    with pytest.raises(FileError) as caught:
        of_files([path])
    assert str(caught.value) == f"{path}:2: kernel {name!r} is one of this project's; rename it"


def test_two_files_cannot_have_one_name(write: Callable[..., Path]) -> None:
    """Both places are named; the same file twice is once."""
    first, second = write(ONE, "first.py"), write(f"\n{ONE}", "second.py")
    with pytest.raises(FileError) as caught:
        of_files([first, second])
    assert str(caught.value) == f"{second}:3: kernel 'mine' is in {first}:2 too; rename it"
    assert "mine" in of_files([first, first.parent / "." / "first.py"]).kernels()


def test_own_kernels_stand_behind_the_projects(write: Callable[..., Path]) -> None:
    """Before the limit and the floor; two files of one name are kept apart."""
    paths = [write(ONE, "a/x.py"), write(ONE.replace("mine", "his"), "b/x.py")]
    own = of_files(paths)
    known = list(registry.kernels())
    assert list(own.kernels()) == [*known[:-2], "mine", "his", *known[-2:]]
    mine = own.kernels()["mine"]
    assert (mine.role, mine.summary, mine.file, mine.by_name_only) == (Role.GEMV, "By hand.", str(paths[0]), False)
    assert [file.target for file in own._files] == ["own/x", "own/x-2"]


def test_a_worker_finds_the_same_registry(write: Callable[..., Path]) -> None:
    """By the name that its command line has, in a process without torch and with nobody's code run."""
    own = of_files([write(f"print('ran')\n{ONE}")])
    there = find(own.__name__)
    assert isinstance(there, Own)
    assert there.__name__ == own.__name__
    program = (
        "import sys; from harness.registry import find; print(*find(sys.argv[1]).kernels()); "
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, own.__name__], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == list(own.kernels())
    assert find("kernels.registry") is registry


def test_what_a_launcher_is_called_with_is_its_contract() -> None:
    """Without n one column, without row_stride no gaps; rows only."""
    plain, whole = declare.PARAMETERS.split(), ["a", "x", "y", "m", "n", "k", "row_stride", "stream"]
    gaps, columns = Layout(row_stride=96), Layout(order="col")
    problems = [Problem(m=4, k=64), Problem(m=4, k=64, n=2)]
    problems += [Problem(m=4, k=64, layout=gaps), Problem(m=4, k=64, layout=columns)]
    by_columns = "A's order is 'col', wanted 'row'"
    said = [declare.contract(plain, each) for each in problems]
    assert said == [None, "n=2 columns of x, wanted 1", "A's row stride is 96, wanted 64 (packed)", by_columns]
    assert [declare.contract(whole, each) for each in problems] == [None, None, None, by_columns]
    assert [packed(each) for each in problems] == said


def test_dtypes_are_those_of_problems() -> None:
    """One list, of a part that may not import the other."""
    from harness.dtypes import DTYPES

    assert sorted(declare.DTYPES) == sorted(DTYPES)


def test_declaring_outside_of_a_bench_is_checked_all_the_same(tmp_path: Path) -> None:
    """A user who runs the file by itself gets the same words."""
    with pytest.raises(ValueError, match=r"none\.cu, and there is no such file; wanted a \.cu file$"):
        cuda("mine", tmp_path / "none.cu")
    with pytest.raises(ValueError, match=r", which is a folder; wanted a \.cu file$"):
        cuda("mine", tmp_path)


def test_a_binds_launch_is_the_users(write: Callable[..., Path]) -> None:
    """Nothing of the project's stands between a timer and it."""
    own = of_files([write(f"{ONE}    return operands.y\n".replace("operands.y", "print"), "launches.py")])
    mine = own.kernels()["mine"]
    assert mine.bind(Operands(a=None, x=None, y=None)) is print  # type: ignore[arg-type]
    assert mine.line == 2
