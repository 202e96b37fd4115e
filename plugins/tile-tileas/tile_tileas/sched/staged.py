"""Loads that another pass stages in shared memory, iterations ahead.

tileas-unspecialized-pipeline runs after schedules are made and lets loads of products run ahead of
their loop, if shared memory has room for them. A schedule need not hide their latency, nor keep
their tiles in registers; what finds no room is loaded by threads, where the schedule puts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tile_core.mlir import ir
from tile_tileas.access import GENERIC, TMA, UNDECIDED, AccessPlan
from tile_tileas.analysis.tokens import is_weak
from tile_tileas.pipelining.depth import LEAST
from tile_tileas.sched.facts import facts_of, is_pure
from tile_tileas.storage import storage_bits

_PRODUCT, _COPY = "nv_tileas.dot", "nv_tileas.copy"
#: Operands of products that come from memory, and what is copied to a buffer, where it waits for
#: them.
_READ = {_PRODUCT: 2, _COPY: 1}
_LOAD = "nv_tileas.tiled_load"


def loads_ahead(ops: Sequence[ir.OpView], room: int) -> frozenset[int]:
    """Positions of the loads of a loop's body that `runs_ahead` finds; none where `LEAST` stages of
    their tiles are more than `room` bytes of shared memory, since then all are left to threads.

    Tensor maps refill one stage as soon as it has been read. What else lies in shared memory is
    not known yet: a loop whose tiles just fit may turn out not to.

    On an RTX 5090 keys and values of 64 KiB each fit neither twice nor once: a schedule that took
    its loads as done had threads wait for the values in each of the loop's steps (attention of one
    query, 0.937 of the speed in the timing model).
    """
    found = frozenset(at for at, op in enumerate(ops) if runs_ahead(op))
    plans = [AccessPlan.of(ops[at]) for at in found]
    refilled = all(plan is not None and plan.copy == TMA for plan in plans)
    total = sum(_tile_bytes(ops[at].results[0]) for at in found)
    return found if total * (1 if refilled else LEAST) <= room else frozenset()


def _tile_bytes(tile: ir.Value) -> int:
    type_ = ir.RankedTensorType(tile.type)
    return prod(type_.shape) * storage_bits(type_.element_type) // 8


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
    return is_only_multiplied(op)


def is_only_multiplied(load: ir.OpView) -> bool:
    """Whether the tile of a load goes into products of its block of code alone, made of it by pure
    operations or as it is.
    """
    return _ends_in_products(load.results[0], load.operation.block, is_pure)


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
        if user.name in (_PRODUCT, _COPY) and use.operand_number < _READ[user.name]:
            continue
        if len(user.results) != 1 or not through(user):
            return False
        if not _ends_in_products(user.results[0], block, through):
            return False
    return bool(uses)
