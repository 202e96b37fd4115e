"""Shifts by the width or more, whose result the language leaves open.

PTX limits the amount to the width ("shl", "shr"), so that 0 or copies of the sign are left. LLVM
calls the result poison: a branch on it could go both ways, and what follows from it spread to
values that have nothing to do with it. Here it is one number: that of PTX where the amount is
known, any that LLVM likes elsewhere. Neither costs an instruction.
"""

from __future__ import annotations

from tile_core.convert import KEEP, Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import element_of
from tile_nvptx.passes.tileas.thread.whole_bytes import are_bytes, shifted_bytes


@rules.on("arith.shli", "arith.shrui", "arith.shrsi")
def shift(op: ir.OpView, cx: Kernel) -> Replacement:
    """shift by a known amount => stays within the width, but for bytes that fill words, which are
    shifted four at a time; else => llvm.freeze of the shift
    """
    source, by = op.operands
    width, amount = element_of(source.type).width, known_amount(by)
    if amount is not None and amount < width:
        in_words = isinstance(source.type, ir.VectorType) and are_bytes(source)
        if in_words and op.operation.name != "arith.shrsi":
            return shifted_bytes(cx, source, amount, up=op.operation.name == "arith.shli")
        if amount == width - 1 and "overflowFlags" in op.attributes:
            # LLVM 22's NVPTX back end widens `shl nsw x, width - 1` to a product with the negative
            # number that 1 << (width - 1) is. (Without the attribute MLIR could not print it.)
            op.attributes["overflowFlags"] = ir.Attribute.parse("#arith.overflow<none>")
        op.results[0].set_type(source.type)
        return KEEP
    if amount is None:
        attributes = {name: op.attributes[name] for name in op.attributes}
        shifted = cx.create(op.operation.name, [source, by], [source.type], attributes).result
        return cx.create("llvm.freeze", [shifted], [source.type]).result
    b = Builder(cx)
    if op.operation.name == "arith.shrsi":
        return b.with_constant("shrsi", source, width - 1)
    return b.with_constant("andi", source, 0)


def known_amount(by: ir.Value) -> int | None:
    """The number by which all elements are shifted, if it is a constant."""
    made = by.owner
    if isinstance(made, ir.Block) or made.name != "arith.constant":
        return None
    value = made.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr):
        if not value.is_splat:
            return None
        value = value.get_splat_value()
    number = ir.IntegerAttr(value)
    return number.value & ((1 << number.type.width) - 1)
