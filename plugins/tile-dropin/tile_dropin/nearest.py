"""Which option an unknown one was meant to be."""

from __future__ import annotations

from tile_dropin.options import OPTIONS, SUGGESTED_FIRST


def nearest_option(text: str) -> str:
    """The option fewest edits away from `text` (no dashes), with the value that stood there."""
    best, distance = "", -1
    name, _, value = text.partition("=")
    if not text:
        return ""
    for known in SUGGESTED_FIRST:
        bare = OPTIONS[known].kind == "action"
        found = edits(known, text if bare else name)
        if distance < 0 or found < distance:
            best, distance = known if bare or not value else f"{known}={value}", found
    return best


def edits(first: str, second: str) -> int:
    """Levenshtein's distance: insertions, deletions and replacements."""
    row = list(range(len(second) + 1))
    for i, x in enumerate(first, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(second, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]
