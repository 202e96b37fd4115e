"""Bounds analysis: the `Range` of every integer value of a function, one for all of a tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.analysis import ranges
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.forward import Forward
from tile_tileas.analysis.ranges import Range
from tile_tileas.analysis.views import view_of_memref
from tile_tileas.dialect.cluster import MOST_CTAS

#: Blocks of a grid along x, y and z (CUDA programming guide, technical specifications).
_GRID = ((1 << 31) - 1, 65535, 65535)
#: Elements up to which a constant tile is looked through.
_ELEMENTS = 4096
#: arith.CmpIPredicate, by number.
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def width_of(type_: ir.Type) -> int | None:
    """Bits of an integer, or of a tile's integers; None for anything else."""
    element = type_.element_type if isinstance(type_, ir.RankedTensorType) else type_
    if isinstance(element, ir.IntegerType):
        return element.width
    return 64 if isinstance(element, ir.IndexType) else None


def _width(value: ir.Value) -> int:
    width = width_of(value.type)
    assert width is not None, "only integers are tracked"
    return width


class BoundsAnalysis(Forward[Range]):
    """The values that integers of one function may have."""

    name: ClassVar[str] = "bounds"

    def __init__(self, op: ir.Operation, cx: PassContext | None = None) -> None:
        super().__init__(op)

    def tracks(self, type_: ir.Type) -> bool:
        return width_of(type_) is not None

    def unknown(self, value: ir.Value) -> Range:
        return ranges.full(_width(value))

    def join(self, left: Range, right: Range) -> Range:
        return ranges.hull(left, right)

    def induction(self, loop: ir.OpView) -> Range:
        """lower .. upper - 1, if stepping past the upper bound cannot wrap around."""
        lower, upper, step = (self[value] for value in list(loop.operands)[:3])
        variable = loop.regions[0].blocks[0].arguments[0]
        room = ranges.full(_width(variable))
        unsigned = "unsignedCmp" in loop.attributes
        if unsigned and (lower.lo < 0 or upper.lo < 0):
            return room
        wraps = upper.hi - 1 + step.hi > room.hi
        if step.lo <= 0 or wraps:
            return room
        return Range(lower.lo, max(lower.lo, upper.hi - 1))


#: What is known of an operation's first result, or of each.
Rule = Callable[[ir.OpView, BoundsAnalysis], Range | list[Range]]


def _constant(op: ir.OpView, known: BoundsAnalysis) -> Range:
    held, width = op.attributes["value"], _width(op.results[0])
    if isinstance(held, ir.DenseIntElementsAttr) and held.is_splat:
        held = held.get_splat_value()
    if isinstance(held, ir.IntegerAttr | ir.BoolAttr):
        return _number(int(held.value), width)
    if isinstance(held, ir.DenseIntElementsAttr) and len(held) <= _ELEMENTS:
        found = [_number(int(number), width) for number in held]
        return Range(min(r.lo for r in found), max(r.hi for r in found))
    return ranges.full(width)


def _number(value: int, width: int) -> Range:
    if width == 1:
        value &= 1
    elif value >= 1 << (width - 1):
        value -= 1 << width
    return Range(value, value)


def _binary(compute: Callable[[Range, Range, int], Range]) -> Rule:
    def rule(op: ir.OpView, known: BoundsAnalysis) -> Range:
        left, right = op.operands
        return compute(known[left], known[right], _width(op.results[0]))

    return rule


def _arithmetic(compute: Callable[[Range, Range, int], Range]) -> Rule:
    """Arithmetic that takes signs; of single bits nothing is worth knowing."""
    return _binary(lambda a, b, width: ranges.BIT if width == 1 else compute(a, b, width))


def _division(rounding: str, *, unsigned: bool = False) -> Rule:
    divide = ranges.divide_unsigned if unsigned else ranges.divide
    return _arithmetic(lambda a, b, width: divide(a, b, width, rounding))


def _ordered(compute: Callable[[Range, Range], Range], *, unsigned: bool) -> Rule:
    """Minimum or maximum."""

    def chosen(a: Range, b: Range, width: int) -> Range:
        if unsigned and (a.lo < 0 or b.lo < 0):
            return ranges.hull(a, b)
        if width == 1 and not unsigned:
            return ranges.BIT
        return compute(a, b)

    return _binary(chosen)


def _compare(op: ir.OpView, known: BoundsAnalysis) -> Range:
    left, right = op.operands
    predicate = PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
    return ranges.compare(predicate, known[left], known[right], _width(left))


def _select(op: ir.OpView, known: BoundsAnalysis) -> Range:
    condition, left, right = (known[operand] for operand in op.operands)
    if condition.is_single:
        return left if condition.lo else right
    return ranges.hull(left, right)


def _sign_extend(op: ir.OpView, known: BoundsAnalysis) -> Range:
    source = op.operands[0]
    return ranges.signed_of(known[source], _width(source))


def _zero_extend(op: ir.OpView, known: BoundsAnalysis) -> Range:
    source = op.operands[0]
    return ranges.unsigned_of(known[source], _width(source))


def _truncate(op: ir.OpView, known: BoundsAnalysis) -> Range:
    source = known[op.operands[0]]
    return ranges.wrapped(source.lo, source.hi, _width(op.results[0]))


def _index_cast(op: ir.OpView, known: BoundsAnalysis) -> Range:
    wider = _width(op.operands[0]) < _width(op.results[0])
    return _sign_extend(op, known) if wider else _truncate(op, known)


def _absolute(op: ir.OpView, known: BoundsAnalysis) -> Range:
    width = _width(op.results[0])
    return ranges.BIT if width == 1 else ranges.absolute(known[op.operands[0]], width)


def _count(op: ir.OpView, known: BoundsAnalysis) -> Range:
    result = op.results[0]
    return ranges.wrapped(0, shape_of(result)[0] - 1, _width(result))


def _program_id(op: ir.OpView, known: BoundsAnalysis) -> Range:
    return Range(0, _GRID[ir.IntegerAttr(op.attributes["axis"]).value] - 1)


def _taken(op: ir.OpView, known: BoundsAnalysis) -> list[Range]:
    """Whether there is one, and where in the grid."""
    return [ranges.BIT, *(Range(0, extent - 1) for extent in _GRID)]


def _num_programs(op: ir.OpView, known: BoundsAnalysis) -> Range:
    return Range(1, _GRID[ir.IntegerAttr(op.attributes["axis"]).value])


def _rank(op: ir.OpView, known: BoundsAnalysis) -> Range:
    return Range(0, MOST_CTAS - 1)


def _dim_size(op: ir.OpView, known: BoundsAnalysis) -> Range:
    width = _width(op.results[0])
    memref = op.operands[0].owner
    if isinstance(memref, ir.Block) or memref.operation.name != "nv_tileaa.make_memref":
        return ranges.full(width)
    size = view_of_memref(memref).sizes[ir.IntegerAttr(op.attributes["dim"]).value]
    found = Range(size, size) if isinstance(size, int) else known[size]
    return ranges.wrapped(found.lo, found.hi, width)


def _assume(op: ir.OpView, known: BoundsAnalysis) -> Range:
    found = known[op.operands[0]]
    predicate = ir.DictAttr(op.attributes["predicate"])
    if ir.StringAttr(predicate["kind"]).value != "bounded" or _width(op.results[0]) == 1:
        return found
    ends = [ir.IntegerAttr(predicate[k]).value if k in predicate else None for k in ("lb", "ub")]
    return ranges.narrowed(found, *ends)


def _same(op: ir.OpView, known: BoundsAnalysis) -> Range:
    source = op.operands[0]
    if not known.tracks(source.type):  # slices of buffers
        return known.unknown(op.results[0])
    return known[source]


def _either(op: ir.OpView, known: BoundsAnalysis) -> Range:
    parts = list(op.operands)[:2]
    if not all(known.tracks(part.type) for part in parts):  # one in a buffer
        return known.unknown(op.results[0])
    return ranges.hull(known[parts[0]], known[parts[1]])


BoundsAnalysis.rules = {
    "arith.addi": _arithmetic(ranges.add),
    "arith.andi": _binary(ranges.bit_and),
    "arith.ceildivsi": _division("up"),
    "arith.ceildivui": _division("up", unsigned=True),
    "arith.cmpi": _compare,
    "arith.constant": _constant,
    "arith.divsi": _division("zero"),
    "arith.divui": _division("zero", unsigned=True),
    "arith.extsi": _sign_extend,
    "arith.extui": _zero_extend,
    "arith.floordivsi": _division("down"),
    "arith.index_cast": _index_cast,
    "arith.maxsi": _ordered(ranges.larger, unsigned=False),
    "arith.maxui": _ordered(ranges.larger, unsigned=True),
    "arith.minsi": _ordered(ranges.smaller, unsigned=False),
    "arith.minui": _ordered(ranges.smaller, unsigned=True),
    "arith.muli": _arithmetic(ranges.multiply),
    "arith.ori": _binary(ranges.bit_or),
    "arith.remsi": _arithmetic(ranges.remainder),
    "arith.remui": _arithmetic(ranges.remainder_unsigned),
    "arith.select": _select,
    "arith.shli": _arithmetic(ranges.shift_left),
    "arith.shrsi": _arithmetic(ranges.shift_right),
    "arith.shrui": _arithmetic(ranges.shift_right_unsigned),
    "arith.subi": _arithmetic(ranges.subtract),
    "arith.trunci": _truncate,
    "arith.xori": _binary(ranges.bit_xor),
    "math.absi": _absolute,
    "nv_tileaa.assume": _assume,
    "nv_tileaa.broadcast": _same,
    "nv_tileaa.cat": _either,
    "nv_tileaa.expand_dims": _same,
    "nv_tileaa.extract": _same,
    "nv_tileaa.extract_slice": _same,
    "nv_tileaa.get_dim_size": _dim_size,
    "nv_tileaa.get_num_programs": _num_programs,
    "nv_tileaa.get_program_id": _program_id,
    "nv_tileaa.insert_slice": _either,
    "nv_tileaa.make_range": _count,
    "nv_tileaa.permute": _same,
    "nv_tileaa.splat": _same,
    "nv_tileaa.view": _same,
    "nv_tileas.cat": _either,
    "nv_tileas.convert_layout": _same,
    "nv_tileas.cta_rank": _rank,
    "nv_tileas.extract_slice": _same,
    "nv_tileas.insert_slice": _either,
    "nv_tileas.next_program_id": _program_id,
    "nv_tileas.take_program_id": _taken,
    "nv_tileas.view": _same,
}
