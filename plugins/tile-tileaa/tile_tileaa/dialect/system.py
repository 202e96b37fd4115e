"""What a tile block asks of the system: memory of its own, other grids, fences of aliases."""

# pyright: reportGeneralTypeIssues=false

from typing import Any

from tile_core.dialect import Operand, Operation, Result, reject
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA


class AllocaOp(Operation, dialect=NvTileAA, name="alloca"):
    """New memory of `size` bytes at a multiple of `alignment`, or a trap if there is none.

    It is visible to every tile block that learns the address, and lasts until it is freed.
    `block` is what `free` takes.
    """

    result: Result[Any]
    block: Result[Any]
    size: ir.IntegerAttr
    alignment: ir.IntegerAttr

    @staticmethod
    def verify_invariants(op: "AllocaOp") -> bool:
        size, alignment = op.size.value, op.alignment.value
        if size < 0:
            return reject(op, f"expects a size of at least 0 bytes, but got {size}")
        if alignment <= 0 or alignment & (alignment - 1):
            return reject(op, f"expects an alignment that is a power of two, but got {alignment}")
        return True


class FreeOp(Operation, dialect=NvTileAA, name="free"):
    """The end of what `alloca` has given; no access to it comes after this."""

    block: Operand[Any]


class GdcLaunchDependentsOp(Operation, dialect=NvTileAA, name="gdc_launch_dependents"):
    """Grids that wait for this one may be launched once every tile block has come here."""

    token: Operand[Any] | None
    result_token: Result[Any]


class GdcWaitOp(Operation, dialect=NvTileAA, name="gdc_wait"):
    """Goes on when the grids that this one depends on are over and their memory is visible."""

    token: Operand[Any] | None
    result_token: Result[Any]


class FenceAliasOp(Operation, dialect=NvTileAA, name="fence_alias"):
    """Orders accesses to one place of memory under different addresses."""

    token: Operand[Any]
    result_token: Result[Any]
