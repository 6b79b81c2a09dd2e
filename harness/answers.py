"""What a driver answers, or why it does not: `Unknown` stands for what could not be had, with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.model import Environment

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """Stands for what could not be had."""

    reason: str
    """Why, in one line."""


class NotPermitted(Unknown):
    """What another user, such as root, could have had."""


Fact = str | int | float | bool | Unknown
"""A value of the environment, or why it could not be had."""


def split(facts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The facts with None for every `Unknown`, and the reasons by the same names."""
    reasons = {name: fact.reason for name, fact in facts.items() if isinstance(fact, Unknown)}
    return {name: None if name in reasons else fact for name, fact in facts.items()}, reasons


def table(facts: Mapping[str, Fact]) -> Environment:
    """The facts as a (part of an) environment."""
    values, unknown = split(facts)
    return Environment(values=values, unknown=unknown)


def ask(library: Any, function: str, *arguments: Any) -> Any:
    """What an NVML call returns; an `Unknown` where nvidia-ml-py or the driver lacks it, or it fails."""
    call = getattr(library, function, None)
    if call is None:
        return Unknown(reason=f"{function}: this version of nvidia-ml-py lacks it")
    try:
        return call(*arguments)
    except library.NVMLError as error:
        kind = NotPermitted if isinstance(error, library.NVMLError_NoPermission) else Unknown
        return kind(reason=f"{function}: {error}")


def first(library: Any, functions: tuple[str, ...], *arguments: Any) -> Any:
    """What the first of these functions that works returns: a newer name, then an older one; else all the reasons."""
    reasons = []
    for function in functions:
        answer = ask(library, function, *arguments)
        if not isinstance(answer, Unknown):
            return answer
        reasons.append(answer.reason)
    return Unknown(reason="; ".join(reasons))


def mapped(answer: Any, convert: Callable[[Any], _T]) -> _T | Unknown:
    """What `convert` makes of an answer; an `Unknown` stays what it is."""
    return answer if isinstance(answer, Unknown) else convert(answer)
