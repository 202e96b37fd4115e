"""Loads that another pass stages in shared memory, iterations ahead.

tileas-unspecialized-pipeline runs after schedules are made and lets loads of products run ahead of
their loop. A schedule need not hide their latency, nor keep their tiles in registers.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.analysis.tokens import is_weak
from tile_tileas.sched.facts import facts_of

_PRODUCT = "nv_tileas.dot"
_LOAD = "nv_tileas.tiled_load"


def feeds_products(op: ir.OpView) -> bool:
    """Whether `op` is a load whose tile is an operand of products, and nothing else."""
    if op.operation.name != _LOAD or not is_weak(op) or any(True for _ in op.results[1].uses):
        return False
    return _ends_in_products(op.results[0], op.operation.block)


def _ends_in_products(value: ir.Value, block: ir.Block) -> bool:
    uses = list(value.uses)
    for use in uses:
        user = use.owner.operation
        if user.block != block:
            return False
        if user.name == _PRODUCT and use.operand_number < 2:
            continue
        if facts_of(user.name).class_ != "free" or len(user.results) != 1:
            return False
        if not _ends_in_products(user.results[0], block):
            return False
    return bool(uses)
