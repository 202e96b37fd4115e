"""pack and unpack: the bytes of a tile, in the order in which they would lie in memory."""

from __future__ import annotations

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileaa.passes.cudatile.rules import constant, i32, rules

#: Bytes that an element takes.
_BYTES = {"i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "tf32": 4, "i64": 8, "f64": 8}
#: Bits of elements of which several share a byte, the first in the lowest bits.
_BITS = {"i1": 1, "i4": 4, "f4E2M1FN": 4}


@rules.on("cuda_tile.pack")
def pack(op: ir.OpView, cx: Conversion) -> ir.Value:
    """pack => each element cut into bytes, those of one element side by side"""
    source, make = op.operands[0], _Make(cx)
    count, kind = source.type.shape[0], source.type.element_type
    if str(kind) in _BITS:
        width = _BITS[str(kind)]
        parts = make.bitcast(source, ir.IntegerType.get_signless(width))
        bytes_ = make.view(parts, [count * width // 8, 8 // width])
        return make.merged(make.columns(bytes_), width, 8)
    size = _size(op, kind)
    whole = make.bitcast(source, ir.IntegerType.get_signless(8 * size))
    parts = [make.low_bits(whole, 8 * k, 8) for k in range(size)]
    return make.view(make.side_by_side(parts), [count * size])


@rules.on("cuda_tile.unpack")
def unpack(op: ir.OpView, cx: Conversion) -> ir.Value:
    """unpack => neighbouring bytes merged into each element"""
    source, make = op.operands[0], _Make(cx)
    result = cx.type(op.results[0].type)
    count, kind = result.shape[0], result.element_type
    if str(kind) in _BITS:
        width = _BITS[str(kind)]
        parts = [make.low_bits(source, at, width) for at in range(0, 8, width)]
        return make.bitcast(make.view(make.side_by_side(parts), [count]), kind)
    size = _size(op, kind)
    whole = make.merged(make.columns(make.view(source, [count, size])), 8, 8 * size)
    return make.bitcast(whole, kind)


def _size(op: ir.OpView, kind: ir.Type) -> int:
    if str(kind) not in _BYTES:
        raise error_at(op, f"of elements of type {kind} is not supported")
    return _BYTES[str(kind)]


class _Make:
    """Operations on tiles of integers."""

    def __init__(self, cx: Conversion) -> None:
        self.cx = cx

    def view(self, value: ir.Value, shape: list[int]) -> ir.Value:
        """The same elements in another shape."""
        type_ = ir.RankedTensorType.get(shape, value.type.element_type)
        return self.cx.create("nv_tileaa.view", [value], [type_]).result

    def bitcast(self, value: ir.Value, kind: ir.Type) -> ir.Value:
        """The same bits as elements of `kind`."""
        if value.type.element_type == kind:
            return value
        type_ = ir.RankedTensorType.get(value.type.shape, kind)
        return self.cx.create("nv_tileaa.bitcast", [value], [type_]).result

    def low_bits(self, value: ir.Value, start: int, width: int) -> ir.Value:
        """`width` bits of each element from bit `start` on."""
        shift = constant(self.cx, value.type, start)
        moved = self.cx.create("arith.shrui", [value, shift], [value.type]).result
        kind = ir.IntegerType.get_signless(width)
        type_ = ir.RankedTensorType.get(value.type.shape, kind)
        return self.cx.create("arith.trunci", [moved], [type_]).result

    def side_by_side(self, parts: list[ir.Value]) -> ir.Value:
        """A power of two of 1-D tiles as the columns of a 2-D one."""
        parts = [self.view(part, [part.type.shape[0], 1]) for part in parts]
        while len(parts) > 1:
            rows, width = parts[0].type.shape
            type_ = ir.RankedTensorType.get([rows, 2 * width], parts[0].type.element_type)
            parts = [
                self.cx.create("nv_tileaa.cat", [left, right], [type_], {"axis": i32(1)}).result
                for left, right in zip(parts[::2], parts[1::2], strict=True)
            ]
        return parts[0]

    def columns(self, value: ir.Value) -> list[ir.Value]:
        """The columns of a 2-D tile as 1-D ones."""
        rows, count = value.type.shape
        type_ = ir.RankedTensorType.get([rows, 1], value.type.element_type)
        index = ir.IntegerType.get_signless(32)
        found = []
        for k in range(count):
            places = [constant(self.cx, index, 0), constant(self.cx, index, k)]
            column = self.cx.create("nv_tileaa.extract_slice", [value, *places], [type_]).result
            found.append(self.view(column, [rows]))
        return found

    def merged(self, parts: list[ir.Value], width: int, total: int) -> ir.Value:
        """Integers of `total` bits: part k from bit k * width on."""
        kind = ir.IntegerType.get_signless(total)
        type_ = ir.RankedTensorType.get(parts[0].type.shape, kind)
        result: ir.Value | None = None
        for k, part in enumerate(parts):
            wide = self.cx.create("arith.extui", [part], [type_]).result
            shift = constant(self.cx, type_, k * width)
            moved = self.cx.create("arith.shli", [wide, shift], [type_]).result
            if result is not None:
                moved = self.cx.create("arith.ori", [result, moved], [type_]).result
            result = moved
        assert result is not None
        return result
