"""What a value of the cute dialect stands for: its kind and all of it that is known now.

The text of a value is the parameter of its MLIR type: `!cute.layout<"(4,8):(1,4)">`.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tile_cute import int_tuple as it
from tile_cute import text
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout
from tile_cute.layout_algebra import tile_text
from tile_cute.swizzle import ComposedLayout, Swizzle

TUPLE_KINDS = ("shape", "stride", "coord", "int_tuple")
LAYOUT_KINDS = ("layout", "composed_layout")
KINDS = ("composed_layout", "layout", "coord_tensor", "swizzle", "tile", *TUPLE_KINDS)


@dataclass(frozen=True)
class Value:
    """A layout, tuple, ...: `kind` is the mnemonic of its type, `value` the Python object, with
    `it.Dynamic` for numbers that operations supply at run time."""

    kind: str
    value: Any

    @property
    def text(self) -> str:
        if self.kind == "tile":
            return tile_text(self.value)
        return it.text(self.value) if self.kind in TUPLE_KINDS else str(self.value)

    @property
    def dynamic(self) -> int:
        """How many numbers are known at run time only, from left to right in the text."""
        return self.text.count("?")

    def __str__(self) -> str:
        return f"!cute.{self.kind}<{self.text}>"


@dataclass(frozen=True)
class View:
    """A tensor: where its elements are and how they are laid out."""

    element: str
    space: str
    layout: Layout | ComposedLayout

    def __str__(self) -> str:
        return f"!cute.memref<{self.element}, {self.space}, {self.layout}>"


@dataclass(frozen=True)
class Other:
    """A value of a type that is not cute's own, such as an index at run time."""

    type: str

    def __str__(self) -> str:
        return self.type


Operand = Value | View | Other

_READERS = {
    "layout": text.parse_layout,
    "composed_layout": text.parse_layout,
    "coord_tensor": text.parse_layout,
    "swizzle": text.parse_swizzle,
    "tile": text.parse_tile,
}


@lru_cache(maxsize=4096)
def parse_value(kind: str, source: str) -> Value:
    """The value a type's text describes; LayoutError if the text is not of this kind."""
    value = _READERS.get(kind, text.parse_int_tuple)(source)
    if kind == "layout" and not isinstance(value, Layout):
        raise LayoutError(f"'{source}' is a composed layout, not a layout")
    if kind == "composed_layout" and not isinstance(value, ComposedLayout):
        raise LayoutError(f"'{source}' is a layout, not a composed layout")
    if kind == "swizzle" and not isinstance(value, Swizzle):
        raise LayoutError(f"'{source}' is no swizzle")
    return Value(kind, value)


def of_layout(layout: Layout | ComposedLayout) -> Value:
    """A layout as a value of the fitting kind."""
    return Value("layout" if isinstance(layout, Layout) else "composed_layout", layout)
