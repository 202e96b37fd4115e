"""Views as plain records: what `make_memref` and `block_tile` say, ready for address arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir

DYNAMIC = -(1 << 63)
#: Attribute of `block_tile`: extents of the program's tiles, of which the view's are parts.
PARTS_OF = "parts_of"


@dataclass(frozen=True)
class MemRef:
    """A strided region of global memory. Sizes and strides, in elements, are ints or values."""

    base: ir.Value
    element: ir.Type
    sizes: tuple[int | ir.Value, ...]
    strides: tuple[int | ir.Value, ...]


@dataclass(frozen=True)
class TiledView:
    """Tiles of a memref: tile axis t lies along memref axis dim_map[t].

    A program's tile may reach past the end, and none lies outside as a whole; of tiles that are
    `parts_of` the program's, the extents of which that is, some may.
    """

    memref: MemRef
    tile: tuple[int, ...]
    dim_map: tuple[int, ...]
    padding: str | None
    steps: tuple[int, ...]  # from one tile to the next, in elements; the tile itself in a grid
    parts_of: tuple[int, ...]

    @property
    def is_grid(self) -> bool:
        """Whether tiles lie side by side."""
        return self.steps == self.tile


def maker(value: ir.Value) -> ir.OpView:
    """The operation whose result `value` is; views are never block arguments."""
    owner = value.owner
    assert not isinstance(owner, ir.Block), "views are not passed to blocks"
    return owner


def view_of_memref(op: ir.OpView | ir.Operation) -> MemRef:
    """The record of a `nv_tileaa.make_memref`."""
    element, shape, strides = op.results[0].type.params
    operands = list(op.operands)
    base, rest = operands[0], iter(operands[1:])
    sizes = tuple(next(rest) if n == DYNAMIC else n for n in ir.DenseI64ArrayAttr(shape))
    steps = tuple(next(rest) if n == DYNAMIC else n for n in ir.DenseI64ArrayAttr(strides))
    return MemRef(base, ir.TypeAttr(element).value, sizes, steps)


def tiled_view(value: ir.Value) -> TiledView:
    """The record of a tiled view; `value` is the result of `nv_tileaa.block_tile`."""
    _, tile, dim_map, padding = value.type.params
    op = maker(value)
    memref = view_of_memref(maker(op.operands[0]))
    word = ir.StringAttr(padding).value  # empty: elements outside are unspecified
    steps = op.attributes.get("steps", None) or tile
    whole = op.attributes.get(PARTS_OF, None) or tile
    return TiledView(
        memref,
        tuple(ir.DenseI32ArrayAttr(tile)),
        tuple(ir.DenseI32ArrayAttr(dim_map)),
        word or None,
        tuple(ir.DenseI32ArrayAttr(steps)),
        tuple(ir.DenseI32ArrayAttr(whole)),
    )
