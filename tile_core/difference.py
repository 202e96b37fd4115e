"""Differences of texts, for people: unified, coloured on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from difflib import unified_diff

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def unified(before: str, after: str, first: str, second: str, context: int = 3) -> str:
    """The unified diff of two texts under these names; empty where they are equal."""
    lines = unified_diff(
        before.splitlines(), after.splitlines(), first, second, "", "", context, ""
    )
    return "".join(f"{line}\n" for line in lines)


def coloured(text: str, style: Callable[..., str]) -> str:
    """A unified diff with `style(line, fg=colour)` put on lines that differ."""
    return "".join(
        style(line, fg=_COLOURS[line[0]]) if line[:1] in _COLOURS else line
        for line in text.splitlines(keepends=True)
    )
