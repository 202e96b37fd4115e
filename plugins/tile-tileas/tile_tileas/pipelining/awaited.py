"""Accesses that wait for a load which runs ahead of its loop.

Such a load happens earlier than its token says, and nobody may rely on when within the loop: only
reads may wait for it there, which do not conflict with it. Behind the loop all of its copies have
been waited for by somebody, so once all threads have met there, everything that waits for the
loop's token may happen.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.access import TMA, AccessPlan
from tile_tileas.analysis.tokens import (
    BULK_STORES,
    LOADS,
    entering,
    is_weak,
    only_reads,
    waiting_for,
)  # fmt: skip
from tile_tileas.dialect.fields import operand_of
from tile_tileas.pipelining.writer import Writer

_SYNC, _FENCE = "nv_tileas.sync", "nv_tileas.fence"
_GLOBAL = "async.global"
_JOIN = "nv_tileaa.join_mem_token"


def is_awaited_inside(load: ir.OpView, loop: ir.OpView) -> bool:
    """Whether accesses of `loop` that may conflict with a load of it wait for that."""
    return any(_may_conflict(op) for op in waiting_for(load.results[1], loop))


def is_awaited(load: ir.OpView) -> bool:
    """Whether accesses that may conflict with a load wait for it, wherever they are."""
    return any(_may_conflict(op) for op in waiting_for(load.results[1]))


def wait_for_no_reads(load: ir.OpView, loop: ir.OpView) -> None:
    """Let a load wait for what comes before `loop` alone, if all accesses of the loop that it waits
    for are reads. Who waits for the load waits for those as before.
    """
    token = operand_of(load, "token")
    if token is None or load.operation.name not in LOADS or not is_weak(load):
        return
    before = entering(token, loop)
    if before is None or before == [token]:
        return
    at = Writer(load.location)
    at.move(ir.InsertionPoint(loop))
    if len(before) == 1:
        (first,) = before
    else:
        name = _JOIN if before else "nv_tileaa.create_mem_token"
        first = at.create(name, before, [token.type]).result
    at.move(ir.InsertionPoint.after(load))
    own = load.results[1]
    both = at.create(_JOIN, [own, token], [token.type])
    own.replace_all_uses_except(both.result, both)
    place = next(n for n, operand in enumerate(load.operands) if operand == token)
    load.operands[place] = first


def hand_on_token(load: ir.OpView, *, by_engine: bool, met: bool) -> None:
    """Before a load that runs ahead of its loop goes: who waits for it waits for what it waited
    for, and behind the loop until all threads have met. `by_engine`: the copy engine made it.
    `met`: threads meet in each step, behind their wait for the step's copies.
    """
    made = load.results[1]
    if not any(True for _ in made.uses):
        return
    at, loop = Writer(load.location), load.operation.block.owner
    conflicts = [op for op in waiting_for(made) if _may_conflict(op)]
    fenced = not by_engine and any(map(_is_bulk, conflicts))
    if fenced or (conflicts and not met):
        _meet_behind(loop, at, fenced=fenced)
    came = operand_of(load, "token")
    if came is None:
        at.move(ir.InsertionPoint(load))
        came = at.create("nv_tileaa.create_mem_token", [], [made.type]).result
    made.replace_all_uses_with(came)


def _meet_behind(loop: ir.OpView, at: Writer, *, fenced: bool) -> None:
    """All threads meet behind `loop`, if they do not yet; `fenced`: bulk stores follow, which write
    by another proxy than threads that copied by cp.async read by.
    """
    behind = _next(loop)
    if _is_fence(behind):
        return
    at.move(ir.InsertionPoint(behind))
    if fenced:
        at.fence(_GLOBAL)
    if behind.operation.name != _SYNC:
        at.sync()


def _is_fence(op: ir.OpView) -> bool:
    return op.operation.name == _FENCE and ir.StringAttr(op.attributes["proxy"]).value == _GLOBAL


def _may_conflict(op: ir.OpView) -> bool:
    return not (only_reads(op) and is_weak(op))


def _is_bulk(op: ir.OpView) -> bool:
    """Whether a bulk store makes the access, or will."""
    plan = AccessPlan.of(op)
    return op.operation.name in BULK_STORES or (plan is not None and plan.copy == TMA)


def _next(op: ir.OpView | ir.Operation) -> ir.OpView:
    """The operation behind `op`."""
    ops = list(op.operation.block.operations)
    return ops[next(n for n, one in enumerate(ops) if one.operation == op.operation) + 1]
