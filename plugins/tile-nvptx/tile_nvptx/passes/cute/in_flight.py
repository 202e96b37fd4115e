"""Sums of warpgroups in flight: nobody but the next product and the wait may look at them."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_core.walk import inside

PRODUCT, WAIT = "cute_nvgpu.arch_mma_sm90", "cute_nvgpu.arch_mma_sm90_wait"
ATTRIBUTE = "in_flight"


def check_sums_in_flight(func: ir.Operation) -> None:
    """Follow the result of each product in flight through loops and branches.

    Raises:
        CompileError: it is used for something else than the next product's sum, which has to be
            added to for sure, or a wait.
    """
    for op in inside(func):
        if op.name == PRODUCT and ATTRIBUTE in op.attributes:
            _follow(op.results[0], op, set())


def _follow(value: ir.Value, product: ir.Operation, seen: set[ir.Value]) -> None:
    if value in seen:
        return
    seen.add(value)
    for use in value.uses:
        user, at = use.owner.operation, use.operand_number
        if user.name == WAIT:
            continue
        if user.name == PRODUCT and at == 0:
            if not is_true(user.operands[3]):
                raise error_at(user, "adds to a sum in flight, or not: wait for it before")
            continue
        if user.name != "scf.yield":
            raise error_at(
                product,
                f"is in flight, and '{user.name}' uses its result",
                hint=f"put '{WAIT}' in between",
            )
        parent = user.parent
        assert parent is not None
        outer = parent.operation
        if outer.name == "scf.for":
            _follow(outer.regions[0].blocks[0].arguments[at + 1], product, seen)
        elif outer.name != "scf.if":
            raise error_at(product, f"is in flight through '{outer.name}': wait for it before")
        _follow(outer.results[at], product, seen)


def is_true(flag: ir.Value) -> bool:
    """Whether a condition is the constant true."""
    owner = flag.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return False
    return str(owner.operation.attributes["value"]) == "true"
