"""Matrix products of constants: of integers only, since 0 * NaN is not 0, nor -0.0 + 0 -0.0."""

from __future__ import annotations

from itertools import product

from tile_core.mlir import ir
from tile_core.rewrite import Rewriter
from tile_tileaa.canonical.registry import constant_of, number, rules, uniform_integer
from tile_tileaa.dialect.types import count_of, element_of, is_integer, shape_of

#: Multiplications that are done here at most.
MAX_MULTIPLICATIONS = 1 << 14


@rules.on("nv_tileaa.dot")
def product_with_zero(op: ir.OpView, _: Rewriter) -> ir.Value | None:
    """dot(0, b, c), dot(a, 0, c) => c, of integers"""
    a, b, c = op.a, op.b, op.c
    if not is_integer(element_of(a.type)):
        return None
    return c if uniform_integer(a) == 0 or uniform_integer(b) == 0 else None


@rules.on("nv_tileaa.dot")
def product_of_constants(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """dot(a, b, c) of constant integers => constant"""
    a, b, c = op.a, op.b, op.c
    *batch, m, k = shape_of(a.type)
    n = shape_of(b.type)[-1]
    work = count_of(batch) * m * n * k
    if not is_integer(element_of(a.type)) or work > MAX_MULTIPLICATIONS:
        return None
    left, right, total = _numbers(op, a, "a"), _numbers(op, b, "b"), _numbers(op, c, None)
    if left is None or right is None or total is None:
        return None
    for at, row, column in product(range(count_of(batch)), range(m), range(n)):
        total[(at * m + row) * n + column] += sum(
            left[(at * m + row) * k + i] * right[(at * k + i) * n + column] for i in range(k)
        )
    return _constant(total, op.results[0].type, cx)


def _numbers(op: ir.OpView, value: ir.Value, operand: str | None) -> list[int] | None:
    """The elements in row-major order; those of `operand` with its signedness."""
    width, count = element_of(value.type).width, count_of(shape_of(value.type))
    uniform = uniform_integer(value)
    if uniform is not None:
        found = [uniform] * count
    else:
        attr = constant_of(value)
        if not isinstance(attr, ir.DenseIntElementsAttr):
            return None
        found = [int(element) for element in attr]
    if operand is None:
        return found
    mask = (1 << width) - 1
    if ir.StringAttr(op.attributes[f"signedness_{operand}"]).value == "unsigned":
        return [element & mask for element in found]
    half = 1 << (width - 1)
    return [(element + half) % (2 * half) - half for element in found]


def _constant(numbers: list[int], type_: ir.Type, cx: Rewriter) -> ir.Value:
    """Wrapped to the element's width."""
    element = element_of(type_)
    half = 1 << (element.width - 1)
    attrs = [ir.IntegerAttr.get(element, (x + half) % (2 * half) - half) for x in numbers]
    if all(attr == attrs[0] for attr in attrs):
        return number(attrs[0], type_, cx)
    dense = ir.DenseElementsAttr.get(attrs, type_)
    return cx.create("arith.constant", [], [type_], {"value": dense}).result
