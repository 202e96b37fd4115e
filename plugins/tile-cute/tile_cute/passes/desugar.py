"""Short forms of the cute dialect, spelt out in what later conversions know."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_cute import int_tuple as it
from tile_cute.dialect.base import operand_of, type_of
from tile_cute.dialect.sugar_ops import known
from tile_cute.layout import Layout
from tile_cute.swizzle import ComposedLayout
from tile_cute.values import Value, View

Rule = Callable[[ir.Operation], ir.Value | None]
_TUPLES: tuple[str, ...] = ("cute.make_shape", "cute.make_coord", "cute.make_tile")


@dataclass(frozen=True)
class Desugar(Pass):
    """Shapes, strides, layouts, views, comparisons and prints in their plain forms.

    Tuples first, then strides, then what is made of them, as each looks at what the one before
    left behind; equal tuples of known numbers become one. Atoms are named by their type, and need
    no rewriting.
    """

    name = "cute-desugar"
    anchor = "builtin.module"
    dependent_dialects: ClassVar[tuple[str, ...]] = ("cute", "scf", "arith")
    statistics: ClassVar[Mapping[str, str]] = {
        "rewritten": "short forms spelt out",
        "unified": "tuples that another one with the same numbers stands for",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for phase in _PHASES:
            for inner in list(_walk(op)):
                rule = phase.get(inner.name)
                if rule is not None:
                    _replace(inner, rule)
                    cx.count("rewritten")
        for block in _blocks(op):
            cx.count("unified", _unify(block))


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    for region in op.regions:
        for block in region:
            yield block
            for child in block.operations:
                yield from _blocks(child.operation)


def _walk(op: ir.Operation) -> Iterator[ir.Operation]:
    """Operations inside, in program order."""
    for region in op.regions:
        for block in region:
            for child in block.operations:
                yield child.operation
                yield from _walk(child.operation)


def _replace(op: ir.Operation, rule: Rule) -> None:
    with op.location, ir.InsertionPoint(op):
        new = rule(op)
    if new is not None:
        op.results[0].replace_all_uses_with(new)
    op.erase()


def _create(name: str, type_: ir.Type, operands: Sequence[ir.Value] = ()) -> ir.Value:
    return ir.Operation.create(name, results=[type_], operands=list(operands)).results[0]


def _tuple(op: ir.Operation) -> ir.Value:
    """make_shape(n...) => make_int_tuple(n...), whose type keeps the kind"""
    return _create("cute.make_int_tuple", op.results[0].type, op.operands)


def _layout(op: ir.Operation) -> ir.Value:
    """make_layout(shape, stride) => make_layout_raw(shape, stride)"""
    shape = op.operands[0]
    stride = op.operands[1] if len(op.operands) > 1 else _compact(op, shape)
    return _create("cute.make_layout_raw", op.results[0].type, [shape, stride])


def _compact(op: ir.Operation, shape: ir.Value) -> ir.Value:
    """The stride that a layout has by default: each the product of the extents before."""
    made = operand_of(op.results[0].type)
    assert isinstance(made, Value)
    type_ = type_of(Value("stride", made.value.stride))
    if it.is_static(made.value.stride):
        return _create("cute.make_int_tuple", type_)
    owner = shape.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or (
        owner.operation.name != "cute.make_int_tuple"
    ):
        raise error_at(
            op,
            f"needs the numbers of {operand_of(shape.type)} for its stride, but no operation here "
            "makes it",
            hint="give the stride as second operand",
        )
    return _create(
        "cute.make_int_tuple", type_, _products(op, made.value, owner.operation.operands)
    )


def _products(op: ir.Operation, layout: Layout, numbers: Sequence[ir.Value]) -> list[ir.Value]:
    """The unknown strides: products of the extents before, multiplied where one is needed."""
    left, waiting, found = list(numbers), [], []
    total: ir.Value | None = None
    factor = 1
    for extent, stride in layout.open_leaves():
        if isinstance(stride, it.Dynamic):
            for number in waiting:
                total = number if total is None else _times(op, total, number)
            waiting = []
            assert total is not None
            found.append(total if factor == 1 else _times(op, total, _constant(total, factor)))
        if isinstance(extent, int):
            factor *= extent
        else:
            waiting.append(left.pop(0))
    return found


def _times(op: ir.Operation, left: ir.Value, right: ir.Value) -> ir.Value:
    if left.type != right.type:
        raise error_at(op, f"cannot multiply {left.type} by {right.type} for the default stride")
    return _create("arith.muli", left.type, [left, right])


def _constant(like: ir.Value, number: int) -> ir.Value:
    attribute = ir.IntegerAttr.get(like.type, number)
    new = ir.Operation.create(
        "arith.constant", results=[like.type], attributes={"value": attribute}
    )
    return new.results[0]


def _composed(op: ir.Operation) -> ir.Value:
    """make_composed_layout(swizzle, offset, l) => make_composed_layout_raw(l, swizzle, offset)"""
    inner, offset, outer = op.operands
    return _create("cute.make_composed_layout_raw", op.results[0].type, [outer, inner, offset])


def _tensor(op: ir.Operation) -> ir.Value:
    """tensor(v) => make_view(get_iter(v), get_layout(v))"""
    source = op.operands[0]
    view = operand_of(source.type)
    assert isinstance(view, View)
    pointer = ir.Type.parse(f'!cute.ptr<{view.element}, "{view.space}", 1 : i32>')
    kind = "composed_layout" if isinstance(view.layout, ComposedLayout) else "layout"
    layout = _create("cute.get_layout", type_of(Value(kind, view.layout)), [source])
    return _create(
        "cute.make_view", source.type, [_create("cute.get_iter", pointer, [source]), layout]
    )


def _equal(op: ir.Operation) -> ir.Value:
    """equal(a, b) => tuple_eq of shapes and of strides; what is known now is a constant"""
    left, right = op.operands
    sides = operand_of(left.type), operand_of(right.type)
    if all(isinstance(side, Value) and side.kind != "layout" for side in sides):
        return _tuple_eq(left, right)
    parts = [_tuple_eq(*(_part(v, name) for v in (left, right))) for name in ("shape", "stride")]
    return _create("arith.andi", parts[0].type, parts)


def _part(value: ir.Value, name: str) -> ir.Value:
    operand = operand_of(value.type)
    layout = operand.layout if isinstance(operand, View) else operand.value  # type: ignore[union-attr]
    if name == "stride" and isinstance(operand, View):
        value = _create("cute.get_layout", type_of(Value("layout", layout)), [value])
    return _create(f"cute.get_{name}", type_of(Value(name, getattr(layout, name))), [value])


def _tuple_eq(left: ir.Value, right: ir.Value) -> ir.Value:
    bit = ir.IntegerType.get_signless(1)
    values = [operand_of(side.type) for side in (left, right)]
    answer = known(*(value.value for value in values))  # type: ignore[union-attr]
    if answer is None:
        return _create("cute.tuple_eq", bit, [left, right])
    attribute = ir.IntegerAttr.get(bit, int(answer))
    new = ir.Operation.create("arith.constant", results=[bit], attributes={"value": attribute})
    return new.results[0]


def _print(op: ir.Operation) -> None:
    """print(view) => a loop that prints the elements one by one; scalars stay"""
    scalars: list[ir.Value] = []
    for value in op.operands:
        view = operand_of(value.type)
        if isinstance(view, View):
            _print_all(op, value, view)
        else:
            scalars.append(value)
    if scalars:
        ir.Operation.create("cute.print", operands=scalars)


def _print_all(op: ir.Operation, value: ir.Value, view: View) -> None:
    layout = view.layout.outer if isinstance(view.layout, ComposedLayout) else view.layout
    if not it.is_static(layout.shape):
        raise error_at(
            op,
            f"cannot print {view}: how many elements it has is known at run time only",
            hint="print tiles of known extents",
        )
    index = ir.IndexType.get()
    bounds = [_index(index, number) for number in (0, layout.size, 1)]
    loop = ir.Operation.create("scf.for", operands=bounds, regions=1)
    body = loop.regions[0].blocks.append(index)
    with ir.InsertionPoint(body):
        left, coordinates = body.arguments[0], []
        for mode in layout:
            extent = _index(index, mode.size)
            coordinates.append(_create("arith.remui", index, [left, extent]))
            left = _create("arith.divui", index, [left, extent])
        element = ir.Type.parse(view.element)
        loaded = _create("cute.memref_load", element, [value, *coordinates])
        ir.Operation.create("cute.print", operands=[loaded])
        ir.Operation.create("scf.yield")


def _index(type_: ir.Type, number: int) -> ir.Value:
    attribute = ir.IntegerAttr.get(type_, number)
    new = ir.Operation.create("arith.constant", results=[type_], attributes={"value": attribute})
    return new.results[0]


_MADE: dict[str, Rule] = {
    "cute.make_layout": _layout,
    "cute.make_composed_layout": _composed,
    "cute.tensor": _tensor,
    "cute.equal": _equal,
    "cute.print": _print,
}
_PHASES: tuple[dict[str, Rule], ...] = (
    dict.fromkeys(_TUPLES, _tuple),
    {"cute.make_stride": _tuple},
    _MADE,
)


def _unify(block: ir.Block) -> int:
    """Tuples without operands whose types say the same."""
    first: dict[str, ir.Value] = {}
    extra: list[ir.Operation] = []
    for child in block.operations:
        op = child.operation
        if op.name != "cute.make_int_tuple" or len(op.operands):
            continue
        kept = first.setdefault(str(op.results[0].type), op.results[0])
        if kept != op.results[0]:
            op.results[0].replace_all_uses_with(kept)
            extra.append(op)
    for op in extra:
        op.erase()
    return len(extra)
