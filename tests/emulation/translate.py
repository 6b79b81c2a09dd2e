"""Makes a CUDA source plain C++ for cuda_on_cpu.h: launches and shared memory; all else is macros and functions there.

Every line stays where it is, so that what a sanitizer says leads to the source.
"""

from __future__ import annotations

import re

_NAME = r"[A-Za-z_]\w*(?:::\w+)*(?:<[^<>;{}()]*>)?"
_LAUNCH = re.compile(rf"({_NAME})(\s*)<<<(.*?)>>>(\s*)\(", re.DOTALL)
_SHARED = re.compile(rf"__shared__ ((?:alignas|__align__)\(\d+\) )?({_NAME}(?: {_NAME})*) (\w+)((?:\[[^]]+\])*);")
_DYNAMIC = re.compile(rf"extern __shared__ (?:(?:alignas|__align__)\(\d+\) )?({_NAME}(?: {_NAME})*) (\w+)\[\];")
_LEFT_OVER = re.compile(r"<<<|>>>|__shared__")


class NotUnderstoodError(ValueError):
    """A line that is outside the few forms known here; the message starts with file:line."""


def translate(source: str, name: str) -> str:
    """C++ that does what the CUDA source `name` does.

    Raises:
        NotUnderstoodError: a launch or a shared variable is written in another form.
    """
    text = _LAUNCH.sub(r"cuda::launch(\1,\2 \3)\4(", source)
    text = _DYNAMIC.sub(r"\1* \2 = cuda::dynamic_shared<\1>();", text)
    text = _SHARED.sub(_shared, text)
    for number, line in enumerate(text.splitlines(), start=1):
        if _LEFT_OVER.search(line):
            raise NotUnderstoodError(
                f"{name}:{number}: found {line.strip()!r}, wanted kernel<<<grid, block, bytes, stream>>>(…), "
                "__shared__ type name[count]; or extern __shared__ type name[];",
            )
    return f'#line 1 "{name}"\n{text}'


def _shared(match: re.Match[str]) -> str:
    alignment, kind, name, counts = match.groups()
    alignas = re.sub(r"\D", "", alignment or "") or f"alignof({kind})"
    return f'auto& {name} = cuda::shared<{kind}{counts}, {alignas}>("{name}", [] {{}});'
