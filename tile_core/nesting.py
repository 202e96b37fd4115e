"""How deep text is nested: MLIR's parser recurses, and a stack that ends, ends the process."""

from __future__ import annotations

import re

from tile_core.diagnostics import InputError, SourceLocation

#: Brackets, or signs in a row, inside each other. MLIR takes ten times as many on a stack of
#: 8 MiB, Linux's default; no program comes near.
MAX_DEPTH = 256

_OPENING, _CLOSING = "([{<", ")]}>"
# Strings, comments and arrows hold brackets that are none.
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>=]=|-(?:\s*-)+|[()\[\]{}<>]')


def too_deep(text: str) -> int | None:
    """Where textual MLIR is nested deeper than `MAX_DEPTH`, as an offset; None if it is not."""
    if sum(map(text.count, (*_OPENING, "-"))) <= MAX_DEPTH:
        return None
    depth = 0
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in _OPENING:
            depth += 1
        elif word in _CLOSING:
            depth = max(depth - 1, 0)
        signs = word.count("-") if word.startswith("-") else 0
        if depth > MAX_DEPTH or signs > MAX_DEPTH:
            return token.start()
    return None


def check_nesting(text: str) -> None:
    """Refuse textual MLIR that is nested deeper than the parser can go.

    Raises:
        InputError: at the bracket that is one too many; the file is called "-".
    """
    at = too_deep(text)
    if at is not None:
        place = SourceLocation("-", text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
        raise InputError(f"nested deeper than {MAX_DEPTH} levels", where=place)
