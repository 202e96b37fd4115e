"""IR for reading: short locations at the end of lines, aliases for long types, no bookkeeping.

What comes out is for people and for differences; `tilec opt` reads the plain form only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

_ALIAS = re.compile(r"^#(loc\w*) = loc\((.*)\)$")
_PLACE = re.compile(r'"([^"]*)":(\d+):(\d+)')
_REFERENCE = re.compile(r"#(loc\w*)")
#: Attributes that say what the operands show.
_BOOKKEEPING = re.compile(
    r"(?:, )?(?:operandSegmentSizes|resultSegmentSizes) = array<i32[^>]*>(?:, (?=\w))?"
)
_EMPTY = re.compile(r" (?:<\{\}>|\{\})(?= :)")
_DYNAMIC = "-9223372036854775808"
#: Shorter texts stay where they are.
_LONG = 40
_MARKS = ("!", "#")
_OPEN, _CLOSE = "(<[{", ")>]}"


def pretty(text: str, *, locations: bool = True, aliases: bool = True) -> str:
    """Printed MLIR, made readable.

    Args:
        locations: write file and line behind each operation that has them.
        aliases: give types and attributes of more than 40 characters that occur twice a name.
    """
    places = _places(text)
    lines = []
    for line in text.splitlines():
        if _ALIAS.match(line):
            continue
        plain, place = _without_locations(line, places)
        plain = _EMPTY.sub("", _BOOKKEEPING.sub("", plain)).replace(_DYNAMIC, "?")
        if place and locations:
            plain = f"{plain}  // {place}"
        lines.append(plain.rstrip())
    body = "\n".join(lines).strip("\n") + "\n"
    return _aliased(body) if aliases else body


# --- locations ------------------------------------------------------------------------------------


def _places(text: str) -> dict[str, str]:
    """Alias of a location -> "file:line:column", the innermost that it leads to."""
    found = {m[1]: m[2] for m in map(_ALIAS.match, text.splitlines()) if m is not None}
    return {name: _place(name, found, set()) for name in found}


def _place(name: str, aliases: dict[str, str], seen: set[str]) -> str:
    if name in seen or name not in aliases:
        return ""
    seen.add(name)
    return _short(aliases[name], lambda other: _place(other, aliases, seen))


def _short(text: str, look_up: Callable[[str], str]) -> str:
    """The first place inside of a location; metadata of fused ones is skipped."""
    inner = text
    while inner.startswith("fused<"):
        inner = inner[_end_of(inner, len("fused")) :]
    direct = _PLACE.search(inner)
    if direct is not None:
        return f"{direct[1].rpartition('/')[2]}:{direct[2]}:{direct[3]}"
    for other in _REFERENCE.finditer(inner):
        found = look_up(other[1])
        if found:
            return found
    return ""


def _without_locations(line: str, places: dict[str, str]) -> tuple[str, str]:
    """The line less every `loc(...)`, and the place of the last one."""
    kept, at, place = [], 0, ""
    while (start := line.find(" loc(", at)) >= 0:
        end = _end_of(line, start + len(" loc"))
        kept.append(line[at:start])
        place = _short(line[start + len(" loc(") : end - 1], lambda name: places.get(name, ""))
        at = end
    return "".join(kept) + line[at:], place


def _end_of(text: str, start: int) -> int:
    """Behind the bracket that closes the one at `start`; strings and arrows are passed over."""
    depth, at, quoted = 0, start, False
    while at < len(text):
        char = text[at]
        if char == '"' and text[at - 1] != "\\":
            quoted = not quoted
        elif not quoted and char in _OPEN:
            depth += 1
        elif not quoted and char in _CLOSE and text[at - 1 : at + 1] != "->":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return len(text)


# --- aliases --------------------------------------------------------------------------------------


def _aliased(body: str) -> str:
    """Long types and attributes under names, inner ones first."""
    definitions: list[str] = []
    numbers: Counter[str] = Counter()
    while True:
        found = Counter(text for text in _candidates(body) if len(text) > _LONG)
        again = [text for text, count in found.items() if count > 1]
        if not again:
            break
        # An inner one is part of outer ones: the shortest first.
        chosen = min(again, key=lambda text: (len(text), body.index(text)))
        stem = re.split(r"[<.]", chosen[1:], maxsplit=2)
        kind = stem[1] if len(stem) > 1 and not chosen.startswith("tensor") else "tile"
        kind = "tile" if chosen.startswith("tensor") else kind
        mark = chosen[0] if chosen[0] in _MARKS else "!"
        name = f"{mark}{kind}{numbers[mark + kind]}"
        numbers[mark + kind] += 1
        definitions = [line.replace(chosen, name) for line in definitions]
        definitions.append(f"{name} = {chosen}")
        body = body.replace(chosen, name)
    return "".join(f"{line}\n" for line in definitions) + body


_START = re.compile(r"(?:[!#][\w.]+|\btensor)(?=<)")


def _candidates(body: str) -> list[str]:
    """Types and attributes with parameters, as they stand in the text."""
    return [body[m.start() : _end_of(body, m.end())] for m in _START.finditer(body)]
