"""Values that are constants, seen through the operations that only spread them."""

from __future__ import annotations

import struct
from math import copysign, isnan

from tile_core.mlir import ir

_BYTE = 8
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


def splat_bytes(value: ir.Value) -> bytes | None:
    """The bytes in memory, the low ones first, of the one element that a scalar or tile holds; None
    if that is not constant, of another type than integers of bytes, f16, bf16, f32 and f64, or no
    number: which of those it is, Python's floats do not keep.
    """
    held = splat(value)
    if isinstance(held, ir.IntegerAttr):
        width = getattr(held.type, "width", 0)
        if width < _BYTE or width % _BYTE:
            return None
        return (held.value % (1 << width)).to_bytes(width // _BYTE, "little")
    if isinstance(held, ir.FloatAttr) and not isnan(held.value):
        if isinstance(held.type, ir.BF16Type):
            return struct.pack("<f", held.value)[2:]
        form = {"f16": "<e", "f32": "<f", "f64": "<d"}.get(str(held.type))
        return None if form is None else struct.pack(form, held.value)
    return None
