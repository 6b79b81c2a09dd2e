"""Refs: names that mean a run, such as `baseline`."""

from __future__ import annotations

import re

from harness.errors import CommandError, Exit

REF_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


def check_ref_name(name: str) -> None:
    """Raise CommandError (USAGE) unless `name` can be a ref."""
    if not re.fullmatch(REF_NAME, name) or name == "latest":
        reserved = "; the word is reserved: it means the newest run" if name == "latest" else ""
        wanted = "1 to 64 letters, digits, '.', '_' or '-' starting with a letter or digit"
        raise CommandError(
            f"--ref: found {name!r}, wanted {wanted}{reserved}",
            Exit.USAGE,
        )


def meaning(content: bytes) -> str:
    """The id that a ref's content means, its first word; of none, the empty word. Damaged, it is that of no run."""
    return (content.decode("utf-8", errors="replace").split() or [""])[0]


def damage(content: bytes) -> str | None:
    """Why a ref's content means no run, in words; None: it is one word, as it should be."""
    words = content.decode("utf-8", errors="replace").split()
    if not words:
        return "its file is empty"
    if not all(word.isprintable() and "\N{REPLACEMENT CHARACTER}" not in word for word in words):
        return "its file is not text"
    return None if len(words) == 1 else f"its file holds {len(words)} words, wanted one, the id of a run"
