"""Making buffers and copies where an operation stands."""

from __future__ import annotations

from typing import Self

from tile_cute.linear import LinearLayout

from tile_core.insertion import Inserter
from tile_core.mlir import ir
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.storage import BUFFER_ALIGNMENT, row_major


class Exchange(Inserter):
    """Makes buffers and copies before `op`, or behind it, at its location."""

    def __init__(self, op: ir.OpView | ir.Operation, *, behind: bool = False) -> None:
        super().__init__()
        self._ip = ir.InsertionPoint.after(op) if behind else ir.InsertionPoint(op)
        self._location = op.location

    def within(self, block: ir.Block) -> Self:
        """From now on at the end of a block."""
        self._ip = ir.InsertionPoint(block)
        return self

    def buffer(
        self,
        tile: ir.RankedTensorType,
        layout: LinearLayout,
        stages: int = 1,
        alignment: int = BUFFER_ALIGNMENT,
    ) -> ir.Value:
        """Shared memory for `stages` tiles of that type, laid out as `layout` (offset -> tile)."""
        held = ir.RankedTensorType(distributed(tile, layout))
        type_ = Buffer(held, "shared", stages).type
        i32 = ir.IntegerType.get_signless(32)
        attributes = {"alignment": ir.IntegerAttr.get(i32, alignment)}
        return self.create("nv_tileas.alloc_tensor", [], [type_], attributes).result

    def run_of(self, count: int, element: ir.Type) -> ir.Value:
        """Shared memory for `count` elements in a row."""
        return self.buffer(ir.RankedTensorType.get([count], element), row_major([count]))

    def store(self, tile: ir.Value, buffer: ir.Value) -> ir.Operation:
        """Copy registers to the buffer; the operation that does."""
        return self._copy([tile, buffer], [], (1, 1))

    def load(self, buffer: ir.Value, type_: ir.Type) -> ir.Value:
        """Copy the buffer to registers."""
        return self._copy([buffer], [type_], (1, 0)).result

    def _copy(
        self, operands: list[ir.Value], results: list[ir.Type], segments: tuple[int, int]
    ) -> ir.Operation:
        sizes = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(list(segments)),
            "resultSegmentSizes": ir.DenseI32ArrayAttr.get([len(results)]),
        }
        return self.create("nv_tileas.copy", operands, results, sizes)

    def staged(
        self, tile: ir.Value, layout: LinearLayout, alignment: int = BUFFER_ALIGNMENT
    ) -> ir.Value:
        """A buffer that holds `tile`, laid out as `layout`."""
        buffer = self.buffer(ir.RankedTensorType(tile.type), layout, alignment=alignment)
        self.store(tile, buffer)
        return buffer

    def put(self, op: ir.Operation) -> None:
        """Move an operation there."""
        assert self._ip is not None
        self._ip.insert(op.detach_from_parent())

    def index(self, value: int) -> ir.Value:
        """A constant i32."""
        i32 = ir.IntegerType.get_signless(32)
        attribute = {"value": ir.IntegerAttr.get(i32, value)}
        return self.create("arith.constant", [], [i32], attribute).result
