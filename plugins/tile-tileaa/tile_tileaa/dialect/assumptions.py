"""What `assume` may say of a value, and which values it may be said of.

A predicate is a dictionary whose `kind` says which one it is:

| kind | entries | says |
|---|---|---|
| `div_by` | divisor, every?, along? | values, or the first of each group of `every` along `along` that rise by one, are multiples |
| `bounded` | lb?, ub? | values are signed and within these bounds |
| `same_elements` | values | along each axis, so many neighbours are equal |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable

from tile_core.mlir import ir
from tile_tileaa.dialect.types import element_of, is_integer, memref_parts, pointee_of, shape_of

MAX_DIVISOR = 1 << 62


def assumption(op: ir.OpView) -> str | None:
    """The verifier of `assume`; predicates of unknown kinds are refused."""
    predicate = ir.DictAttr(op.attributes["predicate"])
    kind = ir.StringAttr(predicate["kind"]).value if "kind" in predicate else None
    check = _KINDS.get(kind or "")
    if check is None:
        return f"expects a predicate of kind {', '.join(_KINDS)}, but got {kind}"
    return check(predicate, op.source.type)


def _number(predicate: ir.DictAttr, name: str) -> int | None:
    return ir.IntegerAttr(predicate[name]).value if name in predicate else None


def _div_by(predicate: ir.DictAttr, type_: ir.Type) -> str | None:
    divisor = _number(predicate, "divisor")
    if divisor is None or divisor <= 0 or divisor & (divisor - 1):
        return "'div_by' divisor must be a power of 2"
    every, along = _number(predicate, "every"), _number(predicate, "along")
    if (every is None) != (along is None):
        return "'div_by' 'every'/'along' must be used in combination"
    if divisor > MAX_DIVISOR:
        return "'div_by' divisor is too large"
    view = memref_parts(type_) is not None
    if not view and not is_integer(element_of(type_)) and pointee_of(type_) is None:
        return "'div_by' requires an integer-, pointer-, or memref-like value"
    if every is None or along is None:
        return None
    return _groups(shape_of(type_), every, along)


def _groups(shape: list[int], every: int, along: int) -> str | None:
    if not shape:
        return "'div_by' 'every'/'along' cannot be used on views or scalars"
    if not 0 <= along < len(shape):
        return f"'div_by' along ({along}) must be >= 0 and < tile rank ({len(shape)})"
    if not 0 < every <= shape[along]:
        return f"'div_by' every ({every}) must be > 0 and <= the axis' extent ({shape[along]})"
    return None


def _bounded(predicate: ir.DictAttr, type_: ir.Type) -> str | None:
    element = element_of(type_)
    if not isinstance(element, ir.IntegerType):
        return "'bounded' requires an integer-like element type"
    low, high = -(1 << (element.width - 1)), (1 << (element.width - 1)) - 1
    lower, upper = _number(predicate, "lb"), _number(predicate, "ub")
    for name, bound in (("lower", lower), ("upper", upper)):
        if bound is not None and not low <= bound <= high:
            return f"'bounded' expects {name} bound to be within [{low}, {high}]"
    if lower is not None and upper is not None and lower > upper:
        return "'bounded' expects lower bound to be less than or equal to upper bound"
    return None


def _same_elements(predicate: ir.DictAttr, type_: ir.Type) -> str | None:
    shape = shape_of(type_)
    values = list(ir.DenseI64ArrayAttr(predicate["values"])) if "values" in predicate else []
    if len(values) != len(shape):
        return (
            f"expected number of values in 'same_elements' ({len(values)}) to match rank of "
            f"constrained tile ({len(shape)})"
        )
    for at, (value, extent) in enumerate(zip(values, shape, strict=True)):
        if not 0 <= value <= extent:
            return (
                f"expected 'same_elements' value {at} to be within 0 and the size of the "
                f"respective dimension ({extent})"
            )
    return None


_KINDS: dict[str, Callable[[ir.DictAttr, ir.Type], str | None]] = {
    "div_by": _div_by,
    "bounded": _bounded,
    "same_elements": _same_elements,
}
