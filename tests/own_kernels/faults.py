"""A user's file for the CPU: one right kernel, and others that do whatever code can do."""

from __future__ import annotations

import ctypes
import os
import sys
import time

import torch

from kernels.own import kernel


@kernel("right")
def right(operands):
    """torch.matmul."""
    return lambda: torch.matmul(operands.a, operands.x, out=operands.y)


def does(body, **declared):
    """A right kernel whose launch does something else as well."""

    def bind(operands):
        launch = right(operands)

        def both():
            launch()
            body()

        return both

    kernel(body.__name__, **declared)(bind)
    return body


@does
def raises():
    raise ValueError("first line\nsecond line")


@does
def calls_torch_wrongly():
    torch.ones(2) + torch.ones(3)


@does
def exits():
    sys.exit("words of its own")


@does
def prints():
    sys.stdout.write('{"result": "mine", "lost": null}\n' * 3)
    os.write(1, b'{"phase": "none"}\n')


spoken = []


@does
def prints_by_c():
    if not spoken:
        spoken.append(ctypes.CDLL(None).printf(b"from C, no newline"))


@does
def asks_for_input():
    input("a request: ")


@does
def closes_standard_streams():
    os.closerange(0, 3)


forked = []


@does
def comes_back_twice():
    if not forked:
        forked.append(os.fork())


@does
def dies_beside_its_child():
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(7)


@does
def sets_the_default_dtype():
    torch.set_default_dtype(torch.float64)


@does
def asks_for_tf32():
    torch.backends.cuda.matmul.allow_tf32 = True


@does
def changes_folder():
    os.chdir("/")


@kernel("binds_nothing")
def binds_nothing(_):
    """Returns no launch."""


@kernel("returns_what_it_computed")
def returns_what_it_computed(operands):
    """No launch, but several lines when it is printed."""
    return operands.a @ operands.x


@kernel("takes_no_operands")
def takes_no_operands():
    """No line of the file takes part in the error."""


@kernel("launch_wants_more")
def launch_wants_more(_):
    """Nor in this one."""
    return lambda more: None  # noqa: ARG005


@kernel("writes_nothing")
def writes_nothing(_):
    """Leaves y as it was."""
    return lambda: None


@kernel("fails_to_bind")
def fails_to_bind(_):
    """Its own line is at fault."""
    return 1 // 0


@kernel("says_yes", unsupported=lambda _: True)
def says_yes(operands):
    """Of a wrong type."""
    return right(operands)


@kernel("takes_even_k", unsupported=lambda problem: f"K={problem.k} is odd" if problem.k % 2 else None)
def takes_even_k(operands):
    """Refuses in words."""
    return right(operands)


@kernel("cannot_tell", unsupported=lambda problem: problem.depth)
def cannot_tell(operands):
    """An error where it says what it takes."""
    return right(operands)


@kernel("drops_the_last_element")
def drops_the_last_element(operands):
    """Wrong."""
    return lambda: torch.matmul(operands.a[:, :-1], operands.x[:-1], out=operands.y)
