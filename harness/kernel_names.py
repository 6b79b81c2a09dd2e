"""Names of device kernels, short enough to be read."""

from __future__ import annotations

LONGEST_ARGUMENTS = 24
"""Characters of template arguments that a short name keeps."""


def short_name(demangled: str) -> str:
    """Without return type, parameters and long template arguments: `gemv2T_kernel_val<…>`, `sgemv::read<8>`."""
    text = demangled.replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    start, depth, opened = 0, 0, len(text)
    for place, sign in enumerate(text):
        if sign == "<":
            opened = min(opened, place) if depth else place
            depth += 1
        elif sign == ">":
            depth -= 1
        elif depth == 0 and sign == " ":
            start, opened = place + 1, len(text)
        elif depth == 0 and sign == "(":
            text = text[:place]
            break
    name, arguments = text[start:opened], text[opened:]
    return f"{name}<…>" if len(arguments) - 2 > LONGEST_ARGUMENTS else name + arguments
