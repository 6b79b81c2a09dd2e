"""How a program ends: whatever happens is an exit code and at most one line, and its output may be cut short.

Needs the standard library alone, so that a package that is not installed can be named.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from harness.errors import OWN, ROOT, TRACEBACK, CommandError, Exit, first_line, show_traceback
from harness.words import LONGEST_LINE, visible

PACKAGES = {"pynvml": "nvidia-ml-py", "vl_convert": "vl-convert-python"}
"""Packages whose name is not their module's."""

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that ask a program to end: Ctrl-C, a supervisor, a terminal that is closed."""


def ended(work: Callable[[], int]) -> int:
    """Do `work`; its exit code, or the code of what went wrong, said in one line on stderr.

    A reader of the output that has enough, as of `| head`, is no error: the work goes on to its own code.
    """
    with interrupted_once(), _own_streams():
        return max(_guarded(work), _guarded(_flush))


def interrupt_once() -> None:
    """From here on the first signal of `ENDING` is a KeyboardInterrupt, and every further one nothing.

    It would else cut short what keeps the measured. One that whoever started this process had it ignore, as nohup does,
    stays ignored.
    """
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def interrupt_no_more() -> None:
    """From here on no signal of `ENDING` does anything."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def outlast(stream: TextIO | None, on_full: Callable[[CommandError], object]) -> None:
    """Let a standard stream go on into nothing once it cannot be written to.

    It is changed in place, since others, as pytest does, may hold it already.

    Args:
        stream: the process's stdout or stderr; None where that was closed before the program began.
        on_full: told once, unless it is a reader that has enough or a terminal that is gone.
    """
    if stream is None:
        return
    told = False

    def lasting(call: Callable[..., Any]) -> Callable[..., Any]:
        def go(*arguments: Any) -> Any:
            nonlocal told
            try:
                return call(*arguments)
            except OSError as error:
                _into_nothing(stream.fileno())
                if not told and error.errno not in (errno.EPIPE, errno.EIO):
                    told = True
                    on_full(_full("the standard output", error))
                return call(*arguments)

        return go

    for name in ("write", "flush"):
        setattr(stream, name, lasting(getattr(stream, name)))


def say_error(line: object) -> None:
    """One line on stderr, whatever is in it."""
    sys.stderr.write(f"{visible(str(line), 10 * LONGEST_LINE)}\n")


def _guarded(work: Callable[[], int]) -> int:
    try:
        return int(work())
    except CommandError as error:
        say_error(error)
        return int(error.code)
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)
    except SystemExit as left:  # argparse's, after --help
        return int(left.code or 0)
    except ModuleNotFoundError as error:
        return _missing(error)
    except Exception as error:  # noqa: BLE001 - Python's own code for it, 1, means that a case is slower
        return _unexpected(error)


def _flush() -> int:
    sys.stdout.flush()
    return Exit.FINE


def _missing(error: ModuleNotFoundError) -> int:
    module = (error.name or "").partition(".")[0]
    if not module or module in OWN or module in sys.stdlib_module_names:
        return _unexpected(error)
    package = PACKAGES.get(module, module.replace("_", "-"))
    say_error(f"{package} is not installed for {sys.executable}: pip install -c constraints.txt {package}")
    return Exit.INFRASTRUCTURE


def _unexpected(error: Exception) -> int:
    show_traceback(error)
    what = f"unexpected {type(error).__name__} at {_place(error)}: {first_line(error)}"
    say_error(f"{what}; {TRACEBACK}=1 shows how it came about, for a report of this defect")
    return Exit.INFRASTRUCTURE


def _place(error: Exception) -> str:
    """The line of this project's that was the last to run."""
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [(file, line) for file, line in frames if any(file.is_relative_to(ROOT / part) for part in OWN)]
    file, line = (own or frames)[-1]
    return f"{file.relative_to(ROOT) if own else file}:{line}"


def _into_nothing(number: int) -> None:
    """Let the file descriptor lead to where everything can be written."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, number)
    os.close(nothing)


def _full(name: str, error: OSError) -> CommandError:
    return CommandError(f"{name} cannot be written to: {error.strerror}; send it elsewhere", Exit.INFRASTRUCTURE)


class _Output(io.FileIO):
    """A standard stream that goes on into nothing once it cannot be written to."""

    def __init__(self, number: int, name: str | None) -> None:
        """`name` is what the error of a full disk calls it; None: that is no error either."""
        super().__init__(number, "wb", closefd=False)
        self._called = name

    def write(self, data: object) -> int:
        """All or nothing of the bytes.

        Raises:
            CommandError: it is full or gone, once (INFRASTRUCTURE).
        """
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            _into_nothing(self.fileno())
            if self._called is None or isinstance(error, BrokenPipeError):
                return len(memoryview(data).cast("B"))  # type: ignore[arg-type]
            raise _full(self._called, error) from error


def _interrupt(_number: int, _frame: object) -> None:
    interrupt_no_more()
    raise KeyboardInterrupt


@contextmanager
def interrupted_once() -> Iterator[None]:
    """`interrupt_once` until the work is done; not in a thread, where Python has no signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    interrupt_once()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _own_streams() -> Iterator[None]:
    """The process's own stdout and stderr, as `_Output`; a stream that a test or a caller put there is left alone."""
    before = sys.stdout, sys.stderr
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(sys.stdout, "the standard output")
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(sys.stderr, None)
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def _stream(stream: TextIO | None, name: str | None) -> TextIO:
    """What a terminal's encoding lacks, such as µ, becomes a question mark and no error."""
    if not isinstance(stream, io.TextIOWrapper):  # closed before the program began
        return Path(os.devnull).open("w", encoding="utf-8")
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(stream.fileno(), name)),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering or stream.write_through,
    )
