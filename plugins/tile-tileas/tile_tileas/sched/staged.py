"""Loads that another pass stages in shared memory, iterations ahead.

tileas-unspecialized-pipeline runs after schedules are made and lets loads of products run ahead of
their loop. A schedule need not hide their latency, nor keep their tiles in registers.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.mlir import ir
from tile_tileas.access import GENERIC, UNDECIDED, AccessPlan
from tile_tileas.analysis.tokens import is_weak
from tile_tileas.sched.facts import facts_of, is_pure

_PRODUCT = "nv_tileas.dot"
_LOAD = "nv_tileas.tiled_load"


def runs_ahead(op: ir.OpView) -> bool:
    """Whether `op` is a load that is under way iterations before its products, so that another
    order of its loop hides nothing.

    Besides those that `feeds_products` finds: loads that are planned as asynchronous copies, whose
    tiles are converted first, or whose tokens order what comes behind the loop.
    """
    if feeds_products(op):
        return True
    if op.operation.name != _LOAD or not is_weak(op):
        return False
    plan = AccessPlan.of(op)
    if plan is None or plan.copy in (GENERIC, UNDECIDED):
        return False
    return _ends_in_products(op.results[0], op.operation.block, is_pure)


def feeds_products(op: ir.OpView) -> bool:
    """Whether `op` is a load whose tile is an operand of products, and nothing else."""
    if op.operation.name != _LOAD or not is_weak(op) or any(True for _ in op.results[1].uses):
        return False
    return _ends_in_products(op.results[0], op.operation.block, _is_free)


def _is_free(op: ir.OpView | ir.Operation) -> bool:
    return facts_of(op.operation.name).class_ == "free"


def _ends_in_products(
    value: ir.Value, block: ir.Block, through: Callable[[ir.OpView | ir.Operation], bool]
) -> bool:
    """Whether a value is an operand of products only, `through` such operations of one result."""
    uses = list(value.uses)
    for use in uses:
        user = use.owner.operation
        if user.block != block:
            return False
        if user.name == _PRODUCT and use.operand_number < 2:
            continue
        if len(user.results) != 1 or not through(user):
            return False
        if not _ends_in_products(user.results[0], block, through):
            return False
    return bool(uses)
