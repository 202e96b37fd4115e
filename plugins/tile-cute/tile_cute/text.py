"""Reading the notation that layouts, tiles, swizzles and int tuples are printed in.

(4,(2,3)):(1,(8,16))     layout; the stride may be left out
(4,8):(1@0,1@1)          with steps along modes
S<3,4,3> o 0 o (8,64):(64,1)
<3:4,8:2>                tile, by mode; `_` leaves a mode alone
(?,8):(1,?{div=16})      numbers known at run time only; here a multiple of 16
"""

import re
from fractions import Fraction

from tile_cute.errors import LayoutError
from tile_cute.int_tuple import Basis, Dynamic, IntTuple
from tile_cute.layout import Layout
from tile_cute.layout_algebra import Tile
from tile_cute.swizzle import ComposedLayout, Swizzle

_DEPTH = 32  # of nested tuples; real ones have four or five levels

_TOKEN = re.compile(
    r"\s*(-?\d{1,18}(?:/\d{1,18})?|\?(?:\{div=\d{1,18}\})?|[(),:<>@_o]|S(?=<)|Sw(?=<))", re.ASCII
)


class _Reader:
    """A token stream that knows where it stands."""

    def __init__(self, source: str, what: str) -> None:
        self.source = source
        self.what = what
        self.tokens: list[tuple[str, int]] = []
        place = 0
        while source[place:].strip():
            match = _TOKEN.match(source, place)
            if match is None:
                place += len(source[place:]) - len(source[place:].lstrip())
                raise LayoutError(f"failed to parse {what} {source!r}: column {place}")
            self.tokens.append((match[1], match.start(1)))
            place = match.end()
        self.place = 0

    def peek(self) -> str:
        return self.tokens[self.place][0] if self.place < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            column = self.tokens[self.place][1] if token else len(self.source)
            wanted = f": expected '{expected}' at" if expected else ":"
            raise LayoutError(
                f"failed to parse {self.what} {self.source!r}{wanted} column {column}"
            )
        self.place += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.place += 1
        return True

    def end(self, error: str = "") -> None:
        if self.peek():
            error = error or f"unexpected text behind {self.what}"
            raise LayoutError(
                f"{error}: {self.source!r} from column {self.tokens[self.place][1]} on"
            )

    def integer(self) -> int:
        token = self.take()
        try:
            return int(token)
        except ValueError:
            raise LayoutError(
                f"failed to parse {self.what} {self.source!r}: expected an integer, got {token!r}"
            ) from None

    def count(self) -> int | Fraction:
        token = self.take()
        try:
            value = Fraction(token)
        except (ValueError, ZeroDivisionError):
            raise LayoutError(
                f"failed to parse {self.what} {self.source!r}: {token!r} is no number"
            ) from None
        return int(value) if value.denominator == 1 else value

    def dynamic(self) -> Dynamic:
        token = self.take()
        return Dynamic(int(token[6:-1]) if len(token) > 1 else 1)

    def extent(self) -> IntTuple:
        return self.dynamic() if self.peek().startswith("?") else self.integer()

    def nested(self, depth: int) -> int:
        if depth >= _DEPTH:
            raise LayoutError(f"failed to parse {self.what}: more than {_DEPTH} levels of nesting")
        return depth + 1

    def tuple_(self, leaf, depth: int = 0) -> IntTuple:  # type: ignore[no-untyped-def]
        if not self.accept("("):
            return leaf()
        inner = self.nested(depth)
        items = []
        while not self.accept(")"):
            items.append(self.tuple_(leaf, inner))
            if self.peek() != ")":
                self.take(",")
        return tuple(items)

    def leaf(self) -> IntTuple:
        if self.accept("_"):
            return None
        if self.peek().startswith("?"):
            return self.dynamic()
        number = self.count()
        path = []
        while self.accept("@"):
            path.append(self.integer())
        if path:
            return Basis(number, tuple(path))
        if isinstance(number, Fraction):
            raise LayoutError(
                f"failed to parse {self.what} {self.source!r}: {number} is no integer"
            )
        return number

    def layout(self) -> Layout:
        shape = self.tuple_(self.extent)
        return Layout(shape, self.tuple_(self.leaf) if self.accept(":") else None)

    def swizzle(self) -> Swizzle:
        if not self.accept("Sw"):
            self.take("S")
        self.take("<")
        numbers = [self.integer()]
        while self.accept(","):
            numbers.append(self.integer())
        self.take(">")
        if len(numbers) != 3:
            raise LayoutError(f"swizzle {self.source!r} needs three numbers <bits,base,shift>")
        return Swizzle(*numbers)

    def tile(self, depth: int = 0) -> "Tile | Layout | None":
        if self.accept("_"):
            return None
        if not self.accept("<"):
            return self.layout()
        inner = self.nested(depth)
        items = []
        while not self.accept(">"):
            items.append(self.tile(inner))
            if self.peek() != ">":
                self.take(",")
        return tuple(items)


def parse_int_tuple(source: str) -> IntTuple:
    """An int tuple, stride or coordinate (`_` becomes None)."""
    reader = _Reader(source, "int tuple")
    value = reader.tuple_(reader.leaf)
    reader.end()
    return value


def parse_layout(source: str) -> Layout | ComposedLayout:
    """A layout or a composed layout."""
    reader = _Reader(source, "layout")
    if reader.peek() in ("S", "Sw"):
        inner = reader.swizzle()
        reader.take("o")
        offset = reader.integer()
        reader.take("o")
        layout: Layout | ComposedLayout = ComposedLayout(inner, offset, reader.layout())
    else:
        layout = reader.layout()
    reader.end("unexpected trailing layout text")
    return layout


def parse_swizzle(source: str) -> Swizzle:
    reader = _Reader(source, "swizzle")
    swizzle = reader.swizzle()
    reader.end()
    return swizzle


def parse_tile(source: str) -> "Tile | Layout | None":
    """A tile `<...>`, or the layout or `_` that stands for one mode of it."""
    reader = _Reader(source, "tile")
    tile = reader.tile()
    reader.end()
    return tile


def parse_basis_group(source: str) -> tuple[IntTuple, ...]:
    """The basis-descriptor grammar of tensor-map partitions.

        group := "(" [entry {"," entry}] ")"     entry := group | count "@" dim {"@" dim}
        count := int ["/" int]

    `()` is legal, a zero denominator and an entry without '@' are not.
    """
    reader = _Reader(source, "layout descriptor")
    if reader.peek() != "(":
        raise LayoutError(f"failed to parse layout descriptor {source!r}: expected '('")

    def entry() -> IntTuple:
        value = reader.leaf()
        if not isinstance(value, Basis):
            raise LayoutError(
                f"failed to parse layout descriptor {source!r}: {value} names no dimension"
            )
        return value

    group = reader.tuple_(entry)
    reader.end("unexpected trailing layout text")
    return group


def print_basis_group(group: IntTuple) -> str:
    """The canonical text of a basis descriptor, without blanks."""
    if isinstance(group, tuple):
        return "(" + ",".join(map(print_basis_group, group)) + ")"
    return str(group)
