"""Command lines of several verbs: one module of a package each, found by being there.

A verb is a module's name. The module says `HELP`, adds its arguments in `add_arguments(parser)` and does its work in
`run(store, options)`, which returns the exit code.
"""

from __future__ import annotations

import argparse
import importlib
import io
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

from harness.errors import CommandError, Exit
from harness.store import Store, store_root

PIPE_WIDTH = 1000
"""Columns where no terminal says how wide it is: whoever reads from a pipe needs names whole."""


class Parser(argparse.ArgumentParser):
    """Whose errors are one line with the code of wrong usage."""

    def error(self, message: str) -> NoReturn:
        """Raise CommandError (USAGE)."""
        raise CommandError(f"{self.prog.split()[-1]}: {message}; --help says what there is", Exit.USAGE)


def run_verb(package: ModuleType, description: str, arguments: Sequence[str] | None) -> int:
    """Run the verb of `package` that the arguments name; its exit code. An error is one line on stderr."""
    survive_poor_terminals()
    try:
        options = _parser(package, description).parse_args(arguments)
        store = Store(store_root(options.store))
        for line in store.recovered():
            sys.stderr.write(f"{line}\n")
        return int(options.run_verb(store, options))
    except CommandError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.code)
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)


def survive_poor_terminals() -> None:
    """What a terminal's encoding lacks, such as µ, becomes a question mark and no error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _parser(package: ModuleType, description: str) -> Parser:
    root = package.__name__.partition(".")[0]
    parser = Parser(prog=f"python -m {root}", description=description)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    for name in sorted(found.name for found in pkgutil.iter_modules(package.__path__)):
        module = importlib.import_module(f"{package.__name__}.{name}")
        verb = verbs.add_parser(name, help=module.HELP, description=module.__doc__)
        verb.add_argument("--store", metavar="FOLDER", help="where the runs are; default: SGEMV_STORE, else artifacts/")
        module.add_arguments(verb)
        verb.set_defaults(run_verb=module.run)
    return parser
