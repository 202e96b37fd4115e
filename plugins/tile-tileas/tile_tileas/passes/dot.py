"""nv_tileaa.dot => nv_tileas.dot: the instruction is chosen here, by the tiers of `mma`.

Tensor cores multiply where the target has an MMA of these types whose shape divides the tiles.
8-bit floats without one are widened to f16, which is exact. What is left is computed with fused
multiply-adds: f32 is never rounded to tf32 silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.convert import Conversion, RuleSet
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.orders import axis_in_memory
from tile_tileas.dot_plan import PROMOTES
from tile_tileas.dots import FMA, PTX_TYPES, product_shape
from tile_tileas.mma.tier import Choice, Product, choose
from tile_tileas.mma.tiers import tier_of, tiers_up_to
from tile_tileas.mma.warpgroup import FAMILY as WARPGROUP
from tile_tileas.passes.scaled_dot import ScaledProduct

dot_rules = RuleSet("convert-tileaa-to-tileas")


@dataclass(frozen=True)
class DotState:
    """What decides about products besides their types: the highest tier allowed, the block."""

    highest: str
    num_warps: int  # 0 outside of kernels


_BYTE_FLOATS = ("f8E4M3FN", "f8E5M2")


@dot_rules.on("nv_tileaa.dot")
def dot(op: ir.OpView, cx: Conversion[DotState]) -> ir.Value:
    """nv_tileaa.dot => nv_tileas.dot {atom}; 8-bit floats are widened where no atom takes them,
    and elements with block scales multiplied by them before
    """

    def multiply(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        return _product(op, cx, [a, b, c])

    if op.sfa is not None:
        return ScaledProduct(op, cx, multiply).run()
    return multiply(op.a, op.b, op.c)


def _product(op: ir.OpView, cx: Conversion[DotState], operands: list[ir.Value]) -> ir.Value:
    """`op` on operands without scales."""
    if _is_single(operands) and tier_of(_choice(op, cx, operands, 2).atom).family == WARPGROUP:
        # One product, and no batch: instructions for matrices take it.
        flat = [_reshaped(cx, value, shape_of(value)[1:]) for value in operands]
        return _reshaped(cx, _product(op, cx, flat), shape_of(operands[2]))
    choice = _choice(op, cx, operands)
    if choice.atom == FMA and str(operands[0].type.element_type) in _BYTE_FLOATS:
        operands = [_widened(cx, operands[0]), _widened(cx, operands[1]), operands[2]]
        choice = _choice(op, cx, operands)
    for family, reason in choice.refused:
        message = f"does not run on {family}: {reason}"
        cx.cx.missed(op.operation, message, category="tensorcore", name="TensorCoreMMA")
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["atom"] = ir.StringAttr.get(choice.atom)
    if _promotes(op, operands[0], operands[2]):
        attributes[PROMOTES] = ir.UnitAttr.get()
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 1, 1, 0, 0])
    return cx.create("nv_tileas.dot", operands, [operands[2].type], attributes).result


def _is_single(operands: list[ir.Value]) -> bool:
    return len(shape_of(operands[0])) == 3 and shape_of(operands[0])[0] == 1


def _reshaped(cx: Conversion[DotState], value: ir.Value, shape: Sequence[int]) -> ir.Value:
    type_ = ir.RankedTensorType.get(list(shape), value.type.element_type)
    return cx.create("nv_tileas.view", [value], [type_]).result


def _choice(
    op: ir.OpView, cx: Conversion[DotState], operands: list[ir.Value], rank: int = 0
) -> Choice:
    """The instruction, of tiles of another rank if that is said."""
    a, b, c = operands
    product = Product(
        cx.target.chip,
        (_ptx_type(op, a, "a"), _ptx_type(op, b, "b"), _ptx_type(op, c, "c")),
        product_shape(shape_of(a), shape_of(b)),
        rank or len(shape_of(a)),
        cx.state.num_warps,
        cx.target.max_shared,
        promotes=_promotes(op, a, c),
        orders=(_order(a, -1), _order(b, -2)),
    )
    found = choose(product, tiers_up_to(cx.state.highest))
    assert found is not None, "multiply-adds take every product"
    return found


def _order(value: ir.Value, k: int) -> str:
    """How an operand whose axis `k` is K lies in memory; "" if nobody knows."""
    found = axis_in_memory(value)
    if found is None:
        return ""
    return "K" if found == len(shape_of(value)) + k else "MN"


def _promotes(op: ir.OpView, a: ir.Value, c: ir.Value) -> bool:
    """Whether sums of 8-bit floats have to leave the tensor cores (Tile IR specification,
    "mmaf": without `fast_acc`).
    """
    wide = str(c.type.element_type) == "f32"
    return wide and str(a.type.element_type) in _BYTE_FLOATS and "fast_acc" not in op.attributes


def _ptx_type(op: ir.OpView, value: ir.Value, operand: str) -> str:
    element = value.type.element_type
    if isinstance(element, ir.IntegerType) and element.width == 8:
        name = ir.StringAttr(op.attributes[f"signedness_{operand}"]).value
        return "s8" if name == "signed" else "u8"
    if str(element) not in PTX_TYPES:
        raise error_at(op, f"failed to find available mma partition for elements of {element}")
    return PTX_TYPES[str(element)]


def _widened(cx: Conversion[DotState], value: ir.Value) -> ir.Value:
    type_ = ir.RankedTensorType.get(value.type.shape, ir.F16Type.get())
    return cx.create("nv_tileaa.fp_to_fp", [value], [type_]).result
