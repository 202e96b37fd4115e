"""What an element of a tile is, as a form of where it stands in the tile and of scalars."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.mlir import ir
from tile_tileas.analysis.axis import pointee_bytes, shape_of
from tile_tileas.analysis.constants import splat, splat_integer
from tile_tileas.analysis.forms import Form, Forms, Moved, TooDeepError

#: The coordinate that an induction variable is: of no tile's axis.
INDUCTION = -1
_ADDRESS_BITS = 64
#: Operations on the way to what an element is made of.
_FURTHEST = 96
#: Dialects whose operations make an element of the same elements of others alone: not of where it
#: stands, as what pads outside of a view does, nor of its neighbours, as packed assembly may.
_ELEMENTWISE = ("arith.", "math.")
#: Values of arith.CmpIPredicate that say the same with their operands exchanged.
_EXCHANGED = {4: 2, 5: 3, 8: 6, 9: 7}


class Elements:
    """Forms of the elements of integer tiles and tiles of pointers, and of scalars.

    A tile's coordinates are numbered as its axes are; `induction`, of a loop, is coordinate
    `INDUCTION`. Forms of one `Elements` may be compared, while the operations stay as they are.
    """

    def __init__(self, induction: ir.Value | None = None) -> None:
        self.forms = Forms()
        self._found: dict[ir.Value, Form] = {}
        if induction is not None:
            self._found[induction] = self.forms.coordinate(INDUCTION, _bits(induction))
        self._symbols: dict[ir.Value, int] = {}
        self._depth = 0

    def __getitem__(self, value: ir.Value) -> Form:
        """The form of an element.

        Raises:
            TooDeepError: too many operations make it.
        """
        if value not in self._found:
            if self._depth == _FURTHEST:
                raise TooDeepError
            self._depth += 1
            try:
                self._found[value] = self._made(value)
            finally:
                self._depth -= 1
        return self._found[value]

    def _made(self, value: ir.Value) -> Form:
        op = value.owner
        if isinstance(op, ir.Block) or len(op.regions):
            return self.symbol(value)
        number = splat_integer(value)
        if number is not None:
            return self.forms.constant(number, _bits(value))
        rule = _RULES.get(op.operation.name)
        if rule is not None:
            return rule(op, self)
        known = op.operation.name.startswith(_ELEMENTWISE) and len(op.results) == 1
        return self.of(op) if known else self.symbol(value)

    def symbol(self, value: ir.Value) -> Form:
        """Something of each element that nothing is known of."""
        number = self._symbols.setdefault(value, len(self._symbols))
        places = [
            self.forms.coordinate(axis, _ADDRESS_BITS)
            for axis, extent in enumerate(shape_of(value))
            if extent > 1
        ]
        return self.forms.applied(("value", number), places, _bits(value))

    def of(self, op: ir.OpView) -> Form:
        """A function of the operands' elements, by name and attributes."""
        attributes = tuple((name, str(op.attributes[name])) for name in op.attributes)
        name = (op.operation.name, attributes, str(_element(op.results[0])))
        operands = [self[operand] for operand in op.operands]
        return self.forms.applied(name, operands, _bits(op.results[0]))

    def extended(self, value: ir.Value, bits: int) -> Form:
        """The form with as many bits of the same sign."""
        form = self[value]
        return form if form.bits == bits else self.forms.applied(("extended", bits), [form], bits)


Rule = Callable[[ir.OpView, Elements], Form]


def _element(value: ir.Value) -> ir.Type:
    return value.type.element_type if isinstance(value.type, ir.RankedTensorType) else value.type


def _bits(value: ir.Value) -> int:
    element = _element(value)
    return element.width if isinstance(element, ir.IntegerType | ir.FloatType) else _ADDRESS_BITS


def _add(op: ir.OpView, known: Elements) -> Form:
    return known.forms.add(known[op.operands[0]], known[op.operands[1]])


def _subtract(op: ir.OpView, known: Elements) -> Form:
    return known.forms.add(known[op.operands[0]], known[op.operands[1]], -1)


def _multiply(op: ir.OpView, known: Elements) -> Form:
    return known.forms.multiply(known[op.operands[0]], known[op.operands[1]])


def _shift_left(op: ir.OpView, known: Elements) -> Form:
    by, bits = splat_integer(op.operands[1]), _bits(op.results[0])
    if by is None or not 0 <= by < bits:
        return known.of(op)
    return known.forms.multiply(known[op.operands[0]], known.forms.constant(1 << by, bits))


def _extend(op: ir.OpView, known: Elements) -> Form:
    return known.extended(op.operands[0], _bits(op.results[0]))


def _cast_index(op: ir.OpView, known: Elements) -> Form:
    bits = _bits(op.results[0])
    narrows = bits < _bits(op.operands[0])
    return _truncate(op, known) if narrows else known.extended(op.operands[0], bits)


def _truncate(op: ir.OpView, known: Elements) -> Form:
    return known.forms.narrowed(known[op.operands[0]], _bits(op.results[0]))


def _compare(op: ir.OpView, known: Elements) -> Form:
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    operands = [known[operand] for operand in op.operands]
    if predicate in _EXCHANGED:
        predicate, operands = _EXCHANGED[predicate], operands[::-1]
    return known.forms.applied(("compare", predicate), operands, 1)


def _and(op: ir.OpView, known: Elements) -> Form:
    return _multiply(op, known) if _bits(op.results[0]) == 1 else known.of(op)


def _addptr(op: ir.OpView, known: Elements) -> Form:
    base, offset = op.operands
    by = known.extended(offset, _ADDRESS_BITS)
    return known.forms.add(known[base], by, pointee_bytes(base.type))


def _constant(op: ir.OpView, known: Elements) -> Form:
    number, value = splat(op.results[0]), op.results[0]
    if number is None:
        return known.symbol(value)
    return known.forms.applied(("constant", str(number)), [], _bits(value))


def _same(op: ir.OpView, known: Elements) -> Form:
    return known[op.operands[0]]


def _range(op: ir.OpView, known: Elements) -> Form:
    return known.forms.coordinate(0, _bits(op.results[0]))


def _broadcast(op: ir.OpView, known: Elements) -> Form:
    places: list[Moved] = [
        (axis, (None, 0)) for axis, extent in enumerate(shape_of(op.operands[0])) if extent == 1
    ]
    return known.forms.moved(known[op.operands[0]], tuple(places))


def _view(op: ir.OpView, known: Elements) -> Form:
    """Axes of extent 1 come and go; who reshapes otherwise asks for other elements."""
    source, result = shape_of(op.operands[0]), shape_of(op.results[0])
    wanted = [axis for axis, extent in enumerate(result) if extent != 1]
    if [extent for extent in source if extent != 1] != [result[axis] for axis in wanted]:
        return known.symbol(op.results[0])
    axes = iter(wanted)
    places: list[Moved] = [
        (axis, (None if extent == 1 else next(axes), 0)) for axis, extent in enumerate(source)
    ]
    return known.forms.moved(known[op.operands[0]], tuple(places))


def _permute(op: ir.OpView, known: Elements) -> Form:
    axes = list(ir.DenseI32ArrayAttr(op.attributes["permutation"]))
    places: list[Moved] = [(axis, (axes.index(axis), 0)) for axis in range(len(axes))]
    return known.forms.moved(known[op.operands[0]], tuple(places))


_RULES: dict[str, Rule] = {
    "arith.addi": _add,
    "arith.andi": _and,
    "arith.cmpi": _compare,
    "arith.constant": _constant,
    "arith.extsi": _extend,
    "arith.index_cast": _cast_index,
    "arith.muli": _multiply,
    "arith.shli": _shift_left,
    "arith.subi": _subtract,
    "arith.trunci": _truncate,
    "nv_tileaa.addptr": _addptr,
    "nv_tileaa.assume": _same,
    "nv_tileaa.broadcast": _broadcast,
    "nv_tileaa.make_range": _range,
    "nv_tileaa.permute": _permute,
    "nv_tileaa.splat": _same,
    "nv_tileas.convert_layout": _same,
    "nv_tileas.view": _view,
}
