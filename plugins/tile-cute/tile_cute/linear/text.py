"""One-line text of a linear layout, exact both ways.

    register=[[0,1],[0,2]] lane=[[0,4],[1,0]] : 2x8
    offset=[[1,0],[2,0]] : register=4,lane=1

Left of the colon the spaces in canonical order, each with its bases; right of it the shape, with
names only where the dimensions are not `dim0`, `dim1`, ...; a tile of rank 0 is `()`.
"""

import re

from tile_cute.errors import LayoutError
from tile_cute.linear.layout import LinearLayout

# At most 18 digits: larger numbers are no sizes, and Python refuses to read much larger ones.
_SPACE = re.compile(r"\s*([A-Za-z_]\w*)=(\[(?:\s*\[[\d\s,]*\](?:\s*,)?)*\s*\])", re.ASCII)
_NAMED = re.compile(r"[A-Za-z_]\w*=\d{1,18}(?:,[A-Za-z_]\w*=\d{1,18})*", re.ASCII)
_PLAIN = re.compile(r"\d{1,18}(?:x\d{1,18})*", re.ASCII)
_DIGITS = 18


def print_layout(layout: LinearLayout) -> str:
    words = []
    for space, vectors in layout.bases.items():
        inner = ",".join("[" + ",".join(map(str, vector)) + "]" for vector in vectors)
        words.append(f"{space}=[{inner}]")
    words += [":", _print_shape(layout)]
    return " ".join(words)


def _print_shape(layout: LinearLayout) -> str:
    if not layout.shape:
        return "()"
    if layout.outs == tuple(f"dim{i}" for i in range(layout.rank)):
        return "x".join(map(str, layout.shape))
    return ",".join(f"{n}={s}" for n, s in zip(layout.outs, layout.shape, strict=True))


def parse_layout(text: str) -> LinearLayout:
    head, colon, tail = text.rpartition(":")
    if not colon:
        raise LayoutError(f"linear layout {text!r} has no ': shape' at its end")
    bases: dict[str, list[list[int]]] = {}
    place = 0
    while head[place:].strip():
        match = _SPACE.match(head, place)
        if match is None:
            raise LayoutError(f"expected 'space=[[..],..]' at column {place} of {text!r}")
        if match[1] in bases:
            raise LayoutError(f"space '{match[1]}' occurs twice in {text!r}")
        groups = re.findall(r"\[([^\[\]]*)\]", match[2][1:-1])
        numbers = [re.findall(r"\d+", group) for group in groups]
        if any(len(number) > _DIGITS for group in numbers for number in group):
            raise LayoutError(f"a basis of space '{match[1]}' is too large a number")
        bases[match[1]] = [[int(number) for number in group] for group in numbers]
        place = match.end()
    shape, outs = _parse_shape(tail.strip(), text)
    return LinearLayout(bases, shape, outs)


def _parse_shape(tail: str, text: str) -> tuple[list[int], list[str] | None]:
    if tail == "()":
        return [], None
    if _PLAIN.fullmatch(tail):
        return [int(size) for size in tail.split("x")], None
    if _NAMED.fullmatch(tail):
        pairs = [pair.split("=") for pair in tail.split(",")]
        return [int(size) for _, size in pairs], [name for name, _ in pairs]
    raise LayoutError(f"expected a shape such as 16x64 after ':' in {text!r}, got {tail!r}")
