"""What all records are: plain data that goes to JSON and comes back checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from harness.json_text import encodable

SCHEMA_VERSION = 1
"""Version of run.json. Readers refuse a newer one. A field that may be absent does not make a new version."""


class RecordError(ValueError):
    """A record that does not fit its schema; the message carries the path to the bad field."""


class Record:
    """Mixin: conversion to and from JSON-ready dicts."""

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, strings, numbers, booleans and None; every string can be written as UTF-8."""
        plain: dict[str, Any] = encodable(msgspec.to_builtins(self))
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The record `data` describes.

        Raises:
            RecordError: a field is missing or has the wrong type; the message names it by its path.
        """
        try:
            return msgspec.convert(encodable(dict(data)), type=cls)
        except msgspec.ValidationError as error:
            raise RecordError(f"{cls.__name__}: {error}") from error
