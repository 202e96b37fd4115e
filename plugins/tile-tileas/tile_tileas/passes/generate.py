"""A region that gives the element of an index, computed for all elements at once."""

from __future__ import annotations

from tile_tileaa.dialect.base import MemTokenType

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.passes.ruleset import rules
from tile_tileas.tile_graph import kind_of

_LOAD = "nv_tileaa.load"
#: Of an index, which MLIR takes to have 64 bits -> of integers of other widths.
_CASTS = {"arith.index_cast": "arith.extsi", "arith.index_castui": "arith.extui"}


@rules.on("nv_tileaa.generate")
def generate(op: ir.OpView, cx: Conversion) -> ir.Value:
    """generate => its region's operations on tiles; indices are tiles of i64"""
    return _Whole(op, cx).run()


class _Whole:
    """The operations of a region, moved in front of it, as operations on tiles of one shape."""

    def __init__(self, op: ir.OpView, cx: Conversion) -> None:
        self.op, self.cx = op, cx
        self.shape = list(op.results[0].type.shape)
        self.index = ir.IntegerType.get_signless(64)

    def run(self) -> ir.Value:
        """The tile."""
        body = self.op.regions[0].blocks[0]
        for axis, argument in enumerate(body.arguments):
            argument.replace_all_uses_with(self._indices(axis))
        *inside, end = body.operations
        for inner in inside:
            self._expect(inner)
            inner.operation.move_before(self.op.operation)
            self._on_tiles(inner)
        return self._tile(end.operands[0])

    def _of(self, element: ir.Type) -> ir.Type:
        return ir.RankedTensorType.get(self.shape, element)

    def _indices(self, axis: int) -> ir.Value:
        """The tile of coordinates along an axis, i64."""
        extent, create = self.shape[axis], self.cx.create
        line = ir.RankedTensorType.get([extent], self.index)
        thin = [extent if at == axis else 1 for at in range(len(self.shape))]
        numbers = create("nv_tileaa.make_range", [], [line]).result
        standing = ir.RankedTensorType.get(thin, self.index)
        numbers = create("nv_tileas.view", [numbers], [standing]).result
        return create("nv_tileaa.broadcast", [numbers], [self._of(self.index)]).result

    def _expect(self, op: ir.OpView) -> None:
        """Raise an error for what has no form on tiles, or none for all elements at once."""
        name = op.operation.name
        if kind_of(op) != "same" and name not in (_LOAD, "arith.constant"):
            raise error_at(
                op,
                "cannot be computed for all elements of nv_tileaa.generate at once",
                hint="its region may hold arithmetic, casts, addresses and weak loads; choices are "
                "arith.select",
            )
        if name == _LOAD and ir.StringAttr(op.attributes["mem_semantic"]).value != "weak":
            raise error_at(op, "has an order, which loads of many elements at once do not keep")

    def _on_tiles(self, op: ir.OpView) -> None:
        """Give `op`, which has been moved, tiles where an operand is one, and convert it."""
        if any(isinstance(value.type, ir.RankedTensorType) for value in op.operands):
            with self.cx.at(ir.InsertionPoint(op)):
                if op.operation.name in _CASTS:
                    self._cast(op)
                    return
                for at, operand in enumerate(op.operands):
                    if not isinstance(operand.type, MemTokenType):
                        op.operands[at] = self._tile(operand)
            for result in op.results:
                if not isinstance(result.type, MemTokenType):
                    result.set_type(self._of(self._number(result.type)))
        self.cx.convert_op(op)

    def _cast(self, op: ir.OpView) -> None:
        """Between an index and an integer: of one width, or of another."""
        source, kind = op.operands[0], self._number(op.results[0].type)
        width = source.type.element_type.width
        if kind.width != width:
            name = _CASTS[op.operation.name] if kind.width > width else "arith.trunci"
            source = self.cx.create(name, [source], [self._of(kind)]).result
        op.results[0].replace_all_uses_with(source)
        op.operation.erase()

    def _number(self, type_: ir.Type) -> ir.Type:
        return self.index if isinstance(type_, ir.IndexType) else type_

    def _tile(self, value: ir.Value) -> ir.Value:
        """A value of the region for all elements."""
        if isinstance(value.type, ir.RankedTensorType):
            return value
        if isinstance(value.type, ir.IndexType):
            value = self.cx.create("arith.index_cast", [value], [self.index]).result
        return self.cx.create("nv_tileaa.splat", [value], [self._of(value.type)]).result
