"""Powers of two whose subnormal results nobody can tell from zero.

`ex2.approx.f32` without `.ftz` is four instructions: a comparison, two products and `MUFU.EX2`.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.mlir import ir
from tile_core.rewrite import Rewriter
from tile_tileaa.canonical.registry import attributes_of, rules, uniform_constant
from tile_tileaa.dialect.types import element_of

#: Formats whose least number is more than twice the greatest subnormal of f32.
_COARSE = (
    ir.F16Type, ir.Float8E5M2Type, ir.Float8E4M3FNType, ir.Float6E3M2FNType, ir.Float6E2M3FNType,
    ir.Float4E2M1FNType,
)  # fmt: skip
#: To a number as large, which has 24 bits, no subnormal of f32 adds anything that rounds up.
_LARGE = 2.0**-100
_THROUGH = (
    "arith.select", "nv_tileaa.view", "nv_tileaa.permute", "nv_tileaa.broadcast",
    "nv_tileaa.expand_dims", "nv_tileaa.extract", "nv_tileaa.extract_slice", "nv_tileaa.splat",
)  # fmt: skip
_FLUSHES = "ftz"


@rules.on("nv_tileaa.exp2")
def power_without_subnormals(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """exp2 of f32 => exp2 {ftz}, where all that reads it rounds subnormals away

    What reads it converts it to a format of fewer exponents, or adds it to a constant, as sigmoids
    do. Subnormal operands are flushed, too, and 2 to the power of them is 1 as that of zero.
    """
    attributes = attributes_of(op)
    if _FLUSHES in attributes or "rounding_mode" in attributes:
        return None
    (result,) = op.results
    if not isinstance(element_of(result.type), ir.F32Type) or not _rounds_away(result):
        return None
    attributes[_FLUSHES] = ir.UnitAttr.get()
    return cx.create("nv_tileaa.exp2", list(op.operands), [result.type], attributes).result


def _rounds_away(value: ir.Value) -> bool:
    """Whether it is the same to all users of `value` if subnormals are zeros."""
    uses = [(use.owner, use.operand_number) for use in value.uses]
    return bool(uses) and all(_forgets(user, number) for user, number in uses)


def _forgets(user: ir.Operation | ir.OpView, number: int) -> bool:
    name = user.operation.name
    if name in _THROUGH:
        return _rounds_away(user.results[0])
    forgets = _FORGETS.get(name)
    return forgets is not None and "rounding_mode" not in user.attributes and forgets(user, number)


def _is_coarse(user: ir.Operation | ir.OpView, _: int) -> bool:
    return isinstance(element_of(user.results[0].type), _COARSE)


def _adds_to_constant(user: ir.Operation | ir.OpView, number: int) -> bool:
    other = uniform_constant(user.operands[1 - number])
    return isinstance(other, ir.FloatAttr) and abs(other.value) >= _LARGE


_FORGETS: dict[str, Callable[[ir.Operation | ir.OpView, int], bool]] = {
    "nv_tileaa.fp_to_fp": _is_coarse,
    "nv_tileaa.addf": _adds_to_constant,
    "nv_tileaa.subf": _adds_to_constant,
    "arith.addf": _adds_to_constant,
    "arith.subf": _adds_to_constant,
}
