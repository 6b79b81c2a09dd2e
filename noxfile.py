"""One verb a session. Each passes its arguments on and leaves with the exit code of what it ran.

All sessions share one environment under `.nox/`, since torch alone takes a gigabyte and more; `--no-venv` uses the
Python on PATH with what it has, and installs nothing. `SGEMV_TORCH=2.12.0` replaces torch's pin, in an environment of
its own. This file runs in nox's Python: standard library and nox only.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2025.5.1"
nox.options.sessions = ["bench"]

ROOT = Path(__file__).parent
CONSTRAINTS = ROOT / "constraints.txt"
TORCH = os.environ.get("SGEMV_TORCH")
ENVIRONMENT = ROOT / ".nox" / f"python{sys.version_info[0]}.{sys.version_info[1]}{f'-torch{TORCH}' if TORCH else ''}"

INTERRUPT_S, ENDING_S = 1.0, 60.0
"""What a child may take after Ctrl-C until it is told once more, by SIGTERM, which it does not heed if it has heard:
Ctrl-C comes to a child from the terminal, and from `kill` not at all; and what it may take to keep what it measured."""

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What ends a session as Ctrl-C does."""

WRONG_USAGE, NOT_COMPARABLE, INFRASTRUCTURE, INTERRUPTED = 2, 3, 6, 130
PYTEST_USAGE_ERROR = 4

REGISTRY = ("--registry", "kernels.registry")

NAMING_FILES = ("--kernels", "--shapes")
"""Options of the suites that name a file."""


@nox.session(python=False)
def bench(session: nox.Session) -> None:
    """Build the kernels, check and time them, keep the run, render its page."""
    measure(session)


@nox.session(python=False, default=False)
def selfcheck(session: nox.Session) -> None:
    """A bench that also holds the timers against each other; needs a GPU."""
    measure(session, "--selfcheck")


@nox.session(python=False, default=False)
def peers(session: nox.Session) -> None:
    """A bench beside Triton's do_bench and NVBench, where they are installed; needs a GPU."""
    measure(session, "--peers")


@nox.session(python=False, default=False)
def tune(session: nox.Session) -> None:
    """Measure every kernel that another picks among, and say what that one's rule loses; needs a GPU."""
    measure(session, "--variants", "--timer=graph", "--cache=cold", show=("harness", "regret"))


@nox.session(python=False, default=False)
def roofline(session: nox.Session) -> None:
    """Measure GEMM against GEMV over tokens, dtypes and LLM layers, with energy and the device's ceilings."""
    measure(session, "--suite=roofline")


@nox.session(python=False, default=False)
def nightly(session: nox.Session) -> None:
    """Check the machine, bench it as ref nightly, then hold the run against the night before and baseline."""
    python = prepare(session, "measure", "page", nvcc=has_nvidia_gpu())
    leave(run(session, [python, "-m", "harness.nightly", *one_word(session.posargs)], **typed(session)))


@nox.session(python=False)
def tests(session: nox.Session) -> None:
    """Run the tests; none needs a GPU, and those that want one are skipped without it."""
    python = prepare(session, "tests", nvcc=True)
    leave(run(session, [python, "-m", "pytest", "tests", "-n", "logical", "--dist", "loadfile", *session.posargs]))


@nox.session(python=False, default=False)
def sanitize(session: nox.Session) -> None:
    """Run compute-sanitizer's four tools over all kernels on small problems; needs a GPU."""
    python = prepare(session, "measure", nvcc=has_nvidia_gpu())
    leave(run(session, [python, "-m", "harness.sanitize", *REGISTRY, *session.posargs], **standing(session)))


@nox.session(python=False, default=False)
def lint(session: nox.Session) -> None:
    """Ruff and mypy."""
    python = prepare(session, "tests", "lint")
    for check in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
        code = run(session, [python, "-m", *check])
        if code:
            leave(code)


@nox.session(python=False, default=False)
def build(session: nox.Session) -> None:
    """Build the CUDA extension, or with --kernels FILE your own, and print what each kernel needs; --check: budget."""
    python = prepare(session, "measure", *(["machine-code"] if "--check" in session.posargs else []), nvcc=True)
    leave(run(session, [python, "-m", "kernels.build", *session.posargs], **standing(session)))


@nox.session(python=False, default=False)
def explain(session: nox.Session) -> None:
    """Say which kernel is picked for a shape, and why: `nox -s explain -- 8x65536 4096x4096x8:int8`; needs no GPU."""
    python = prepare(session, "measure")
    leave(run(session, [python, "-m", "kernels", "explain", *session.posargs]))


@nox.session(python=False, default=False)
def report(session: nox.Session) -> None:
    """Render the page of a run: `nox -s report -- RUN`."""
    python = prepare(session, "measure", "page")
    leave(run(session, [python, "-m", "reports", "run", *session.posargs]))


@nox.session(python=False, default=False)
def runs(session: nox.Session) -> None:
    """List the runs of the store."""
    python = prepare(session, "measure")
    leave(run(session, [python, "-m", "harness", "runs", *session.posargs]))


@nox.session(python=False, default=False)
def verify(session: nox.Session) -> None:
    """Check every file of a run against its sums: `nox -s verify -- RUN`."""
    python = prepare(session, "measure")
    leave(run(session, [python, "-m", "harness", "verify", *session.posargs]))


@nox.session(python=False, default=False)
def prune(session: nox.Session) -> None:
    """Show the runs that are older than so many days, or with --yes delete them: `nox -s prune -- --keep-days 90`."""
    python = prepare(session, "measure")
    leave(run(session, [python, "-m", "harness", "prune", *session.posargs]))


@nox.session(python=False, default=False)
def compare(session: nox.Session) -> None:
    """Say what changed from a run to others, case by case, or with --html or --markdown write it: `-- BASE NEW`."""
    written = {"--html", "--markdown"} & {word.partition("=")[0] for word in session.posargs}
    python = prepare(session, "measure", *(["page"] if written else []))
    leave(run(session, [python, "-m", "reports" if written else "harness", "compare", *session.posargs]))


@nox.session(python=False, default=False)
def history(session: nox.Session) -> None:
    """Render the page of all runs of the store over time."""
    python = prepare(session, "measure", "page")
    leave(run(session, [python, "-m", "reports", "history", *session.posargs]))


@nox.session(python=False, default=False)
def export(session: nox.Session) -> None:
    """Write a run for another tool: `nox -s export -- RUN --to csv --output FILE`."""
    python = prepare(session, "measure")
    leave(run(session, [python, "-m", "harness", "export", *session.posargs]))


@nox.session(python=False, default=False)
def reproduce(session: nox.Session) -> None:
    """Measure a run again from its commit, changes, flags and options: `nox -s reproduce -- RUN`."""
    python = prepare(session, "measure", nvcc=has_nvidia_gpu())
    leave(run(session, [python, "-m", "harness", "reproduce", *session.posargs]))


@nox.session(python=False, default=False)
def power(session: nox.Session) -> None:
    """Say how often compare is wrong, from runs with many trials: `nox -s power -- RUN`; default: those kept here."""
    python = prepare(session, "measure")
    kept = sorted(str(path) for path in Path("examples/power").iterdir())
    leave(run(session, [python, "-m", "harness", "power", *(session.posargs or kept)]))


@nox.session(python=False, default=False)
def regret(session: nox.Session) -> None:
    """Say what the rule of a kernel loses in a run that holds what it picks among: `nox -s regret -- RUN`."""
    python = prepare(session, "measure")
    leave(run(session, [python, "-m", "harness", "regret", *session.posargs]))


@nox.session(python=False, default=False)
def profile(session: nox.Session) -> None:
    """Read hardware counters with Nsight Compute, where it is: `nox -s profile -- --kernel NAME --shape MxK[:col]`."""
    python = prepare(session, "measure", nvcc=has_nvidia_gpu())
    leave(run(session, [python, "-m", "harness.ncu", *REGISTRY, *session.posargs], **standing(session)))


def measure(session: nox.Session, *options: str, show: Sequence[str] = ("reports", "run", "--table")) -> None:
    """Run the suites, then show each run (a module, its verb and what comes after the run), and all, where several."""
    python = prepare(session, "measure", "page", nvcc=has_nvidia_gpu())
    with tempfile.TemporaryDirectory() as folder:
        path_file = Path(folder) / "run"
        quiet = ["-q", "--no-header", "--no-summary", "--benchmark-quiet", "-o", "console_output_style=classic"]
        here = ["-c", "pyproject.toml", "--rootdir=."]  # else pytest looks in every folder that an option names
        suites = [python, "-m", "pytest", *here, "suites", *quiet, f"--path-file={path_file}", *options]
        code = pytest_code(run(session, [*suites, *one_word(session.posargs)], **typed(session)))
        module, verb, *rest = show
        found = path_file.read_text().splitlines() if path_file.exists() else []
        for each in found:
            code = max(code, run(session, [python, "-m", module, verb, each, *rest]))
        if len(found) > 1 and code != INTERRUPTED:
            over_all = run(session, [python, "-m", "reports", "compare", "--fail-on=nothing", *found])
            code = max(code, 0 if over_all == NOT_COMPARABLE else over_all)  # GPUs of several models
    leave(code)


def typed(session: nox.Session) -> dict[str, str]:
    """For what measures, as environment variables: the command line that its run records, and where the user stands."""
    words = ["nox", "-s", session.name, *(["--", *session.posargs] if session.posargs else [])]
    return {"SGEMV_COMMAND": shlex.join(words), **standing(session)}


def standing(session: nox.Session) -> dict[str, str]:
    """For what takes files of the user, as an environment variable: where the user stands."""
    return {"SGEMV_STANDING": session.invoked_from}


def one_word(words: Sequence[str]) -> list[str]:
    """An option and the file that it names as one word: pytest takes a file for tests, and runs a conftest.py there."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in NAMING_FILES:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def prepare(session: nox.Session, *groups: str, nvcc: bool = False) -> str:
    """The Python to run with: of the shared environment, brought up to date, or under --no-venv the one on PATH."""
    os.chdir(ROOT)
    words = (os.environ.get("SGEMV_STORE", ""), *session.posargs)
    if any(re.search(r"://([^/]*:[^/]*@|.*[?#])", word) for word in words):  # before it is shown as what is run
        sys.stderr.write("a URL holds a login or a query; credentials come from the environment alone\n")
        leave(WRONG_USAGE)
    if any(re.search(r"\bs3a?://", word) for word in words):
        groups = (*groups, "s3")
    if "--no-venv" in sys.argv:  # nox does not tell a session without a venv of its own
        return python_on_path(session, [group for group in groups if group != "page"])
    pins = constraints()
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        must(session, [sys.executable, "-m", "virtualenv", "--quiet", str(ENVIRONMENT)])
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", str(pins)]
    must(session, [*pip, *requirements(*groups)])
    if nvcc:
        needed = session.run(str(python), "-m", "kernels.build", "--needs", silent=True, external=True, log=False)
        if needed and needed.strip():
            must(session, [*pip, needed.strip()])
    return str(python)


def python_on_path(session: nox.Session, groups: Sequence[str]) -> str:
    """The Python on PATH, if it has what the groups need; the page's packages are missed only when it is rendered."""
    python = shutil.which("python3") or shutil.which("python") or session.error("--no-venv: no python3 on PATH")
    names = [re.split(r"[^\w.-]", requirement)[0] for requirement in requirements(*groups)]
    look = f"""
from importlib.metadata import PackageNotFoundError, version
for name in {names}:
    try:
        version(name)
    except PackageNotFoundError:
        print(name)
"""
    missing = (session.run(python, "-c", look, silent=True, external=True, log=False) or "").split()
    if missing:
        pins = "pip install -c constraints.txt " + " ".join(missing)
        sys.stderr.write(f"{python} lacks {', '.join(missing)}: {pins}, or leave --no-venv out\n")
        leave(INFRASTRUCTURE)
    return python


def requirements(*groups: str) -> list[str]:
    """Everything that the groups of pyproject.toml ask for."""
    project = nox.project.load_toml(ROOT / "pyproject.toml")
    return list(dict.fromkeys(nox.project.dependency_groups(project, *groups)))


def constraints() -> Path:
    """The pins, with torch's replaced where SGEMV_TORCH asks for another."""
    if TORCH is None:
        return CONSTRAINTS
    if not re.fullmatch(r"\d+\.\d+\.\d+(\+\w+)?", TORCH):
        sys.stderr.write(f"SGEMV_TORCH: found {TORCH!r}, wanted a version such as 2.12.0\n")
        raise SystemExit(WRONG_USAGE)
    pins = re.sub(r"(?m)^torch==.*$", f"torch=={TORCH}", CONSTRAINTS.read_text())
    ENVIRONMENT.parent.mkdir(exist_ok=True)
    replaced = ENVIRONMENT.with_suffix(".txt")
    replaced.write_text(pins)
    return replaced


def has_nvidia_gpu() -> bool:
    """Whether the driver shows a GPU; the harness looks closer."""
    return Path("/dev/nvidia0").exists() or Path("/dev/dxg").exists()


def run(session: nox.Session, command: Sequence[str], **environment: str) -> int:
    """Run a child; its exit code. Only the first Ctrl-C counts: a further one does not cut the child's end short."""
    patience = {"interrupt_timeout": INTERRUPT_S, "terminate_timeout": ENDING_S}
    heeded = {each: handler for each in ENDING if (handler := signal.getsignal(each)) is not signal.SIG_IGN}  # nohup
    for each in heeded:
        signal.signal(each, interrupt_once)
    try:
        session.run(*command, env=environment, external=True, **patience)
    except CommandFailed as error:
        code = getattr(error, "return_code", None)  # older nox has the code in the message alone
        return code if code is not None else int((re.findall(r"-?\d+", str(error)) or ["6"])[-1])
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        for each, handler in heeded.items():
            signal.signal(each, handler)
    return 0


def interrupt_once(*_: object) -> None:
    """Handle a signal of `ENDING` by KeyboardInterrupt, and then none any more."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def must(session: nox.Session, command: Sequence[str]) -> None:
    """Run a child that sets things up; leave if it fails."""
    code = run(session, command)
    if code == INTERRUPTED:
        leave(code)
    if code:
        session.log("could not set the environment up: the lines above say why")
        leave(INFRASTRUCTURE)


def pytest_code(code: int) -> int:
    """The suites leave with the project's codes; only an option that pytest itself does not know is pytest's own."""
    return WRONG_USAGE if code == PYTEST_USAGE_ERROR else code


def leave(code: int) -> None:
    """End with `code`: nox itself only knows 0 and 1."""
    if code:
        raise SystemExit(code if code > 0 else INFRASTRUCTURE)
