"""Command lines of several verbs: one module of a package each, found by being there.

A verb is a module's name. The module says `HELP`, adds its arguments in `add_arguments(parser)` and does its work in
`run(store, options)`, which returns the exit code.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Sequence
from typing import NoReturn

from harness.ending import ended, say_error
from harness.errors import CommandError, Exit

PIPE_WIDTH = 1000
"""Columns where no terminal says how wide it is: whoever reads from a pipe needs names whole."""


class Parser(argparse.ArgumentParser):
    """Whose errors are one line with the code of wrong usage."""

    def error(self, message: str) -> NoReturn:
        """Raise CommandError (USAGE)."""
        raise CommandError(f"{self.prog.split()[-1]}: {message}; --help says what there is", Exit.USAGE)


def run_verb(package: str, description: str, arguments: Sequence[str] | None) -> int:
    """Run the verb of `package`, a module's name, that the arguments name; its exit code. An error is one line."""
    return ended(lambda: _run_verb(package, description, arguments))


def _run_verb(package: str, description: str, arguments: Sequence[str] | None) -> int:
    from harness.store.open_store import open_store  # only now, where a package that it needs may be missing

    options = _parser(package, description).parse_args(arguments)
    store = open_store(options.store)
    for line in store.recovered():
        say_error(line)
    return int(options.run_verb(store, options))


def _parser(package: str, description: str) -> Parser:
    parser = Parser(prog=f"python -m {package.partition('.')[0]}", description=description)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    for name in sorted(found.name for found in pkgutil.iter_modules(importlib.import_module(package).__path__)):
        module = importlib.import_module(f"{package}.{name}")
        verb = verbs.add_parser(name, help=module.HELP, description=module.__doc__)
        where = "folder or URL of runs, such as s3://bucket/prefix; default: SGEMV_STORE, else artifacts/"
        verb.add_argument("--store", metavar="STORE", help=where)
        module.add_arguments(verb)
        verb.set_defaults(run_verb=module.run)
    return parser
