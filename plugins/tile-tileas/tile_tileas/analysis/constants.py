"""Values that are constants, seen through the operations that only spread them."""

from __future__ import annotations

from math import copysign

from tile_core.mlir import ir

_SPREADING = ("nv_tileaa.broadcast", "nv_tileaa.splat", "nv_tileaa.view", "nv_tileas.view")


def splat(value: ir.Value) -> ir.Attribute | None:
    """The one constant that a scalar or tile holds, if there is one."""
    owner = value.owner
    while not isinstance(owner, ir.Block) and owner.operation.name in _SPREADING:
        owner = owner.operands[0].owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    held = owner.attributes["value"]
    if isinstance(held, ir.DenseIntElementsAttr | ir.DenseFPElementsAttr):
        return held.get_splat_value() if held.is_splat else None
    return held


def splat_integer(value: ir.Value) -> int | None:
    """The one integer that a scalar or tile holds, read as signed; None if it is not constant."""
    held = splat(value)
    return ir.IntegerAttr(held).value if isinstance(held, ir.IntegerAttr) else None


def is_zero(value: ir.Value) -> bool:
    """Whether a scalar or tile is known to hold zeros alone, all bits of each."""
    held = splat(value)
    if isinstance(held, ir.FloatAttr):
        return held.value == 0 and copysign(1, held.value) > 0
    return isinstance(held, ir.IntegerAttr) and held.value == 0
