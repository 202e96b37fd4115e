"""The nv_tileas dialect: tiles with layouts, memory accesses with a plan.

A distributed tile is `tensor<SxE, #nv_tileas.layout<"...">>`; the text is a linear layout of
`tile_cute.linear`, a map from (register, lane, warp, block) bits to tile coordinates. Operation
contracts follow the Tile IR specification, "nv_tileas operation roster".
"""

# pyright: reportGeneralTypeIssues=false

from functools import lru_cache
from typing import Any

from tile_cute.linear import LinearLayout

from tile_core.dialect import Attribute, Dialect
from tile_core.mlir import ir


class NvTileAS(Dialect, name="nv_tileas"):
    """Tile operations with layouts."""


class LayoutAttr(Attribute, dialect=NvTileAS, name="layout"):
    """A distributed layout, as the canonical text of a `LinearLayout`."""

    text: Any


@lru_cache(maxsize=4096)
def _parsed(text: str) -> LinearLayout:
    return LinearLayout.parse(text)


def layout_attr(layout: LinearLayout) -> ir.Attribute:
    """`#nv_tileas.layout<"...">` of `layout`."""
    return LayoutAttr.get(ir.StringAttr.get(str(layout)))


def layout_of(type_: ir.Type) -> LinearLayout | None:
    """The layout of a distributed tile; None for scalars and tiles without one."""
    if not isinstance(type_, ir.RankedTensorType):
        return None
    encoding = type_.encoding
    return None if encoding is None else layout_in(encoding)


def layout_in(attribute: ir.Attribute) -> LinearLayout:
    """The layout that `#nv_tileas.layout<"...">` holds."""
    return _parsed(ir.StringAttr(LayoutAttr(attribute).params[0]).value)


def distributed(type_: ir.RankedTensorType, layout: LinearLayout) -> ir.Type:
    """The tile type `type_` with `layout`."""
    return ir.RankedTensorType.get(type_.shape, type_.element_type, layout_attr(layout))
