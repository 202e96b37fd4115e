"""Views whose elements are addressed one by one: rows picked by an index tile, atomic updates.

They become accesses through tiles of pointers, masked where they leave the tensor.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileaa.passes.cudatile.rules import constant, element

DYNAMIC = -(1 << 63)
_ULT = 6  # arith.CmpIPredicate
_PADDING = {
    "": 0.0,
    "zero": 0.0,
    "neg_zero": -0.0,
    "nan": float("nan"),
    "pos_inf": float("inf"),
    "neg_inf": float("-inf"),
}


@dataclass
class Addresses:
    """Pointers to the elements of one tile of a view, and which of them are inside the tensor."""

    pointers: ir.Value
    inside: ir.Value


def is_gather(index: list[ir.Value]) -> bool:
    """Whether an index is a tile, so that rows are picked one by one."""
    return any(isinstance(value.type, ir.RankedTensorType) for value in index)


def padding(op: ir.OpView, cx: Conversion, view: ir.Value, type_: ir.Type) -> ir.Value:
    """What elements outside the tensor read."""
    word = ir.StringAttr(view.type.params[3]).value
    number = _PADDING[word]
    is_int = isinstance(element(type_), ir.IntegerType)
    return constant(cx, type_, int(number) if is_int else number)


class ViewAddresses:
    """Builds the `Addresses` of one tile.

    Args:
        reshape: the operation that puts a 1-D tile along an axis, in the stage that is made.
    """

    def __init__(
        self, op: ir.OpView, cx: Conversion, view: ir.Value, reshape: str = "nv_tileaa.view"
    ) -> None:
        tiled = view.owner
        if isinstance(tiled, ir.Block) or tiled.name != "nv_tileaa.block_tile":
            raise error_at(op, "needs a view that was made in this function")
        self.cx, self.reshape = cx, reshape
        self.i64 = ir.IntegerType.get_signless(64)
        memref = tiled.operands[0].owner
        kind, shape, strides = memref.results[0].type.params
        self.element = ir.TypeAttr(kind).value
        operands = list(memref.operands)
        self.base, rest = operands[0], iter(operands[1:])
        self.sizes = [self._extent(n, rest) for n in ir.DenseI64ArrayAttr(shape)]
        self.strides = [self._extent(n, rest) for n in ir.DenseI64ArrayAttr(strides)]
        self.tile = list(ir.DenseI32ArrayAttr(view.type.params[1]))
        self.dim_map = list(ir.DenseI32ArrayAttr(view.type.params[2]))
        self.counts_elements = "sparse_dim" in tiled.attributes
        steps = tiled.attributes["steps"] if "steps" in tiled.attributes else view.type.params[1]
        self.steps = list(ir.DenseI32ArrayAttr(steps))

    def _extent(self, number: int, rest) -> ir.Value:
        return constant(self.cx, self.i64, number) if number != DYNAMIC else self._wide(next(rest))

    def _wide(self, value: ir.Value, extend: str = "extui") -> ir.Value:
        """An integer, or a tile of them, as i64."""
        if element(value.type) == self.i64:
            return value
        type_: ir.Type = self.i64
        if isinstance(value.type, ir.RankedTensorType):
            type_ = ir.RankedTensorType.get(value.type.shape, self.i64)
        return self.cx.create(f"arith.{extend}", [value], [type_]).result

    def of(self, index: list[ir.Value]) -> Addresses:
        """The addresses of the tile at `index`, one per tile axis."""
        i1 = ir.IntegerType.get_signless(1)
        less = {"predicate": ir.IntegerAttr.get(self.i64, _ULT)}
        offset = inside = None
        for axis, place in enumerate(index):
            dim = self.dim_map[axis]
            coords = self._coordinates(axis, place)
            flags = ir.RankedTensorType.get([self.tile[axis]], i1)
            bound = self._splat(self.sizes[dim], coords.type)
            flag = self.cx.create("arith.cmpi", [coords, bound], [flags], less).result
            scaled = self._binary("muli", coords, self._splat(self.strides[dim], coords.type))
            flag, scaled = self._spread(flag, axis), self._spread(scaled, axis)
            offset = scaled if offset is None else self._binary("addi", offset, scaled)
            inside = flag if inside is None else self._binary("andi", inside, flag)
        assert offset is not None
        assert inside is not None
        type_ = ir.RankedTensorType.get(self.tile, self.base.type)
        base = self._splat(self.base, type_)
        pointers = self.cx.create("nv_tileaa.addptr", [base, offset], [type_]).result
        return Addresses(pointers, inside)

    def _coordinates(self, axis: int, place: ir.Value) -> ir.Value:
        """Coordinates along a tile axis: rows as given, or steps from the tile's origin.

        A view that picks rows counts elements along its other axes too, and may begin outside.
        """
        if isinstance(place.type, ir.RankedTensorType):
            return self._wide(place)
        if self.counts_elements:
            origin = self._wide(place, "extsi")
        else:
            step = constant(self.cx, self.i64, self.steps[axis])
            origin = self._binary("muli", self._wide(place), step)
        type_ = ir.RankedTensorType.get([self.tile[axis]], self.i64)
        along = self.cx.create("nv_tileaa.make_range", [], [type_]).result
        return self._binary("addi", self._splat(origin, type_), along)

    def _binary(self, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.cx.create(f"arith.{name}", [left, right], [left.type]).result

    def _splat(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        return self.cx.create("nv_tileaa.splat", [value], [type_]).result

    def _spread(self, value: ir.Value, axis: int) -> ir.Value:
        """A 1-D tile along `axis` of the tile's shape."""
        kind = value.type.element_type
        thin = [extent if at == axis else 1 for at, extent in enumerate(self.tile)]
        if len(thin) > 1:
            type_ = ir.RankedTensorType.get(thin, kind)
            value = self.cx.create(self.reshape, [value], [type_]).result
        if thin == self.tile:
            return value
        type_ = ir.RankedTensorType.get(self.tile, kind)
        return self.cx.create("nv_tileaa.broadcast", [value], [type_]).result
