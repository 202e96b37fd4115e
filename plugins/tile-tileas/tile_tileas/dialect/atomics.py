"""Atomic operations of nv_tileas: each element by one thread, the result in all that hold it."""

# pyright: reportGeneralTypeIssues=false

from typing import Any

from tile_tileaa.dialect.atomics import ATOMIC_ORDERINGS
from tile_tileaa.dialect.memory import verify_ordering
from tile_tileaa.dialect.multimem import verify_multimem

from tile_core.dialect import Operand, Operation, Result
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS


class AtomicRmwOp(Operation, dialect=NvTileAS, name="atomic_rmw"):
    """Replace what each pointer points to by `rmw_mode` of it and the value; gives what was there.

    Where the mask is false, nothing happens and the result is unspecified.
    """

    base: Operand[Any]
    value: Operand[Any]
    mask: Operand[Any] | None
    token: Operand[Any] | None
    result: Result[Any]
    result_token: Result[Any]
    mem_semantic: ir.StringAttr
    mem_scope: ir.StringAttr
    rmw_mode: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "AtomicRmwOp") -> bool:
        return verify_ordering(op, ATOMIC_ORDERINGS)


class AtomicCasOp(Operation, dialect=NvTileAS, name="atomic_cas"):
    """Store `value` where the bits of `cmp` are found; gives what was there.

    Where the mask is false, nothing happens and the result is `cmp`.
    """

    base: Operand[Any]
    cmp: Operand[Any]
    value: Operand[Any]
    mask: Operand[Any] | None
    token: Operand[Any] | None
    result: Result[Any]
    result_token: Result[Any]
    mem_semantic: ir.StringAttr
    mem_scope: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "AtomicCasOp") -> bool:
        return verify_ordering(op, ATOMIC_ORDERINGS)


class MultimemOp(Operation, dialect=NvTileAS, name="multimem"):
    """As nv_tileaa.multimem: each element by one thread, the result in all that hold it."""

    base: Operand[Any]
    value: Operand[Any] | None
    mask: Operand[Any]
    token: Operand[Any] | None
    result: Result[Any]
    result_token: Result[Any]
    mem_semantic: ir.StringAttr
    action: ir.StringAttr
    reduction: ir.StringAttr
    verify_invariants = staticmethod(verify_multimem)
