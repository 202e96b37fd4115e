"""Values that are constants, seen through the operations that only spread them."""

from __future__ import annotations

from tile_core.mlir import ir

_SPREADING = ("nv_tileaa.broadcast", "nv_tileaa.splat", "nv_tileaa.view", "nv_tileas.view")


def splat_integer(value: ir.Value) -> int | None:
    """The one integer that a scalar or tile holds, read as signed; None if it is not constant."""
    owner = value.owner
    while not isinstance(owner, ir.Block) and owner.operation.name in _SPREADING:
        owner = owner.operands[0].owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    held = owner.attributes["value"]
    if isinstance(held, ir.DenseIntElementsAttr) and held.is_splat:
        held = held.get_splat_value()
    return ir.IntegerAttr(held).value if isinstance(held, ir.IntegerAttr) else None
