"""cute: tuples made of numbers at run time, comparisons, and the short forms of `cute-desugar`.

A tuple's type says which of its numbers are known now; the operands are the others, from left to
right: `make_shape(%m) : (index) -> !cute.shape<"(?,8)">`.
"""

from tile_core.mlir import ir
from tile_cute import int_tuple as it
from tile_cute.dialect.base import Cute, operand_of
from tile_cute.dialect.define import define
from tile_cute.errors import LayoutError
from tile_cute.swizzle import ComposedLayout
from tile_cute.values import TUPLE_KINDS, Operand, Value, View


def _check_numbers(op: ir.OpView) -> None:
    """As many integers as the result's type leaves open."""
    operation = op.operation
    name, made = operation.name.split("make_")[1], operand_of(operation.results[0].type)
    kinds = (*TUPLE_KINDS, "tile") if name == "int_tuple" else (name,)
    if not isinstance(made, Value) or made.kind not in kinds:
        raise LayoutError(f"expects a result of kind {' or '.join(kinds)}, but got {made}")
    types = [operand.type for operand in operation.operands]
    if len(types) != made.dynamic:
        raise LayoutError(f"expects {made.dynamic} numbers for {made}, but got {len(types)}")
    for type_ in types:
        if not isinstance(type_, ir.IntegerType | ir.IndexType):
            raise LayoutError(f"expects integers, but got {type_}")


def _check_swizzle(op: ir.OpView) -> None:
    made = operand_of(op.operation.results[0].type)
    if not isinstance(made, Value) or made.kind != "swizzle":
        raise LayoutError(f"expects a result of kind swizzle, but got {made}")


def _comparable(left: Operand, right: Operand) -> bool:
    values = isinstance(left, Value) and isinstance(right, Value)
    return values and left.kind == right.kind and left.kind in TUPLE_KINDS  # type: ignore[union-attr]


def _check_tuple_eq(op: ir.OpView) -> None:
    left, right = (operand_of(operand.type) for operand in op.operation.operands)
    if not _comparable(left, right):
        raise LayoutError(f"expects two tuples of one kind, but got {left} and {right}")
    _check_bit(op)


def _check_equal(op: ir.OpView) -> None:
    sides = [operand_of(operand.type) for operand in op.operation.operands]
    for side in sides:
        layout = side.layout if isinstance(side, View) else getattr(side, "value", None)
        if isinstance(layout, ComposedLayout):
            raise LayoutError(f"cannot compare composed layouts, but got {side}")
    layouts = all(
        isinstance(s, View) or (isinstance(s, Value) and s.kind == "layout") for s in sides
    )
    if not layouts and not _comparable(*sides):
        raise LayoutError(
            f"expects two layouts, views or tuples, but got {sides[0]} and {sides[1]}"
        )
    _check_bit(op)


def _check_bit(op: ir.OpView) -> None:
    if str(op.operation.results[0].type) != "i1":
        raise LayoutError(f"expects an i1 result, but got {op.operation.results[0].type}")


def _check_tensor(op: ir.OpView) -> None:
    source, result = op.operation.operands[0].type, op.operation.results[0].type
    if not isinstance(operand_of(source), View) or source != result:
        raise LayoutError(f"expects a cute.memref and the same as result, but got {source}")


def known(left: it.IntTuple, right: it.IntTuple) -> bool | None:
    """Whether two tuples are equal; None where only their numbers at run time can tell."""
    if not it.congruent(left, right):
        return False
    pairs = list(zip(it.flatten(left), it.flatten(right), strict=True))
    settled = [p for p in pairs if not any(isinstance(v, it.Dynamic) for v in p)]
    if any(a != b for a, b in settled):
        return False
    return True if len(settled) == len(pairs) else None


# name: (operands, check, what it does)
_TABLE = {
    "make_int_tuple": (("numbers*",), _check_numbers, "a tuple of the result's kind"),
    "make_shape": (("numbers*",), _check_numbers, "extents"),
    "make_stride": (("numbers*",), _check_numbers, "strides"),
    "make_coord": (("numbers*",), _check_numbers, "a coordinate"),
    "make_tile": (("numbers*",), _check_numbers, "layouts by mode"),
    "make_swizzle": ((), _check_swizzle, "the swizzle that its type names"),
    "tuple_eq": (("lhs", "rhs"), _check_tuple_eq, "whether two tuples are equal"),
    "equal": (("lhs", "rhs"), _check_equal, "whether two layouts, views or tuples are equal"),
    "tensor": (("source",), _check_tensor, "the view of a view's memory by its layout"),
}

OPERATIONS = {
    name: define(Cute, name, operands, ("result",), doc=doc, check=check, pure=True)
    for name, (operands, check, doc) in _TABLE.items()
}
