"""`python -m kernels explain SHAPE…`: which kernel is picked for a problem, and why; needs no GPU and no nvcc."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Column, Table

from harness.command_line import PIPE_WIDTH, Parser
from harness.ending import ended
from harness.errors import CommandError, Exit
from harness.model import Problem
from harness.problems import SHAPE, parse_shapes
from harness.words import problem_in_words, visible
from kernels import registry
from kernels.explain import H200, Machine, explain, machine_of
from kernels.rules import RULES, chooser_for

MOST_MULTIPROCESSORS = 4096
"""Far more than any device has: what is beyond is a slip."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    return ended(lambda: _run(_parser().parse_args(arguments)))


def _parser() -> Parser:
    parser = Parser(prog="python -m kernels", description="What the kernels say of themselves.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    verb = verbs.add_parser("explain", help=f"which kernel {', '.join(RULES)} picks, and why", description=__doc__)
    verb.add_argument("shape", nargs="+", metavar="SHAPE", help=SHAPE)
    verb.add_argument("--multiprocessors", metavar="N", help="of the device; default: of the GPU here, else an H200's")
    verb.add_argument("--no-clusters", action="store_true", help="the device has no thread-block clusters")
    return parser


def _run(options: argparse.Namespace) -> int:
    problems = parse_shapes(options.shape, "SHAPE")
    machine, where = _machine(options.multiprocessors, no_clusters=options.no_clusters)
    answers = [(problem, *_answer(problem, machine)) for problem in problems]
    clusters = "thread-block clusters" if machine.clusters else "no thread-block clusters"
    sys.stdout.write(f"{where}: {machine.multiprocessors} multiprocessors, {clusters}\n")
    sys.stdout.flush()
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    Console(width=width, highlight=False, markup=False, emoji=False).print(_table(answers))
    return Exit.FINE


def _machine(multiprocessors: str | None, *, no_clusters: bool) -> tuple[Machine, str]:
    """What the rule is asked for, and whose it is."""
    import torch

    asked = _multiprocessors(multiprocessors)
    if torch.cuda.is_available():
        machine, name = machine_of(torch.device("cuda:0")), visible(torch.cuda.get_device_name(0))
        where = f"on this {name}"
    else:
        machine, name = H200, "an H200"
        where = f"no usable GPU here, so as on {name}"
    if asked is None and not no_clusters:
        return machine, where
    clusters = machine.clusters and not no_clusters
    asked_of = replace(machine, multiprocessors=asked or machine.multiprocessors, clusters=clusters)
    return asked_of, f"as asked, else as on {name}"


def _multiprocessors(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= MOST_MULTIPROCESSORS:
        wanted = f"a whole number from 1 to {MOST_MULTIPROCESSORS}"
        raise CommandError(f"--multiprocessors: found {text!r}, wanted {wanted}", Exit.USAGE)
    return int(text)


def _answer(problem: Problem, machine: Machine) -> tuple[str, str]:
    """The kernel and the reason; a dash and why not, where the kernel that picks for the dtype does not take it."""
    chooser = chooser_for(problem.dtype)
    if chooser is None:
        return "–", f"dtype is {problem.dtype}, wanted {', '.join(rule.dtype for rule in RULES.values())}"
    refused = registry.kernels()[chooser].unsupported(problem)
    if refused is not None:
        return "–", refused
    choice = explain(problem, machine)
    return choice.kernel, choice.reason


def _table(answers: Iterable[tuple[Problem, str, str]]) -> Table:
    table = Table("problem", Column("kernel", overflow="fold"), "reason", box=None, pad_edge=False, header_style="dim")
    for problem, kernel, reason in answers:
        table.add_row(problem_in_words(problem), kernel, reason)
    return table


if __name__ == "__main__":
    sys.exit(main())
