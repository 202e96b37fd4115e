"""nv_tileaa.dot => nv_tileas.dot: the instruction is chosen here.

Tensor cores multiply where the target has an MMA of these types whose shape divides the tiles.
8-bit floats without one are widened to f16, which is exact. What is left is computed with fused
multiply-adds: f32 is never rounded to tf32 silently.
"""

from __future__ import annotations

from tile_core.convert import Conversion, RuleSet
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.analysis.axis import shape_of
from tile_tileas.dots import FMA, PTX_TYPES, choose_atom, product_shape
from tile_tileas.passes.scaled_dot import ScaledProduct

dot_rules = RuleSet("convert-tileaa-to-tileas")

_BYTE_FLOATS = ("f8E4M3FN", "f8E5M2")


@dot_rules.on("nv_tileaa.dot")
def dot(op: ir.OpView, cx: Conversion) -> ir.Value:
    """nv_tileaa.dot => nv_tileas.dot {atom}; 8-bit floats are widened where no atom takes them,
    and elements with block scales multiplied by them before
    """

    def multiply(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        return _product(op, cx, [a, b, c])

    if op.sfa is not None:
        return ScaledProduct(op, cx, multiply).run()
    return multiply(op.a, op.b, op.c)


def _product(op: ir.OpView, cx: Conversion, operands: list[ir.Value]) -> ir.Value:
    """`op` on operands without scales."""
    atom = _atom(op, cx, operands)
    if atom == FMA and str(operands[0].type.element_type) in _BYTE_FLOATS:
        operands = [_widened(cx, operands[0]), _widened(cx, operands[1]), operands[2]]
        atom = _atom(op, cx, operands)
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["atom"] = ir.StringAttr.get(atom)
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 1, 1, 0, 0])
    return cx.create("nv_tileas.dot", operands, [operands[2].type], attributes).result


def _atom(op: ir.OpView, cx: Conversion, operands: list[ir.Value]) -> str:
    a, b, c = operands
    types = (_ptx_type(op, a, "a"), _ptx_type(op, b, "b"), _ptx_type(op, c, "c"))
    _, m, n, k = product_shape(shape_of(a), shape_of(b))
    atom = choose_atom(cx.target.chip, types, (m, n, k))
    return FMA if atom is None else atom.row.name


def _ptx_type(op: ir.OpView, value: ir.Value, operand: str) -> str:
    element = value.type.element_type
    if isinstance(element, ir.IntegerType) and element.width == 8:
        name = ir.StringAttr(op.attributes[f"signedness_{operand}"]).value
        return "s8" if name == "signed" else "u8"
    if str(element) not in PTX_TYPES:
        raise error_at(op, f"failed to find available mma partition for elements of {element}")
    return PTX_TYPES[str(element)]


def _widened(cx: Conversion, value: ir.Value) -> ir.Value:
    type_ = ir.RankedTensorType.get(value.type.shape, ir.F16Type.get())
    return cx.create("nv_tileaa.fp_to_fp", [value], [type_]).result
