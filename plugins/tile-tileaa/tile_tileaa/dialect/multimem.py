"""Accesses to multicast memory: one address, a copy on each of several GPUs."""

# pyright: reportGeneralTypeIssues=false

from typing import Any

from tile_core.dialect import Operand, Operation, Result, reject
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA
from tile_tileaa.dialect.memory import verify_ordering

MULTIMEM_ACTIONS = ("load_reduce", "reduce", "store")
REDUCTIONS = ("add", "min", "max", "and", "or", "xor", "umin", "umax")


def verify_multimem(op: Operation) -> bool:
    """A known action and reduction; a value goes with all but loads."""
    action, reduction = op.action.value, op.reduction.value
    if action not in MULTIMEM_ACTIONS:
        return reject(op, f"expects an action of {', '.join(MULTIMEM_ACTIONS)}, but got '{action}'")
    if reduction not in REDUCTIONS:
        return reject(op, f"expects a reduction of {', '.join(REDUCTIONS)}, but got '{reduction}'")
    if (op.value is None) != (action == "load_reduce"):
        return reject(op, f"expects a value with every action but load_reduce, not '{action}'")
    return verify_ordering(op, ("weak", "relaxed", "acquire", "release"))


class MultimemOp(Operation, dialect=NvTileAA, name="multimem"):
    """Act on all copies that multicast addresses stand for, where the mask is true.

    `load_reduce` gives the reduction of the copies, `reduce` combines the value into each, `store`
    overwrites each. The result of the latter two is unspecified.
    """

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
