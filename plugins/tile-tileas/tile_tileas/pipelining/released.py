"""Stages that warps release when they have read them, in place of meetings of the whole block.

Products of warpgroups have read a stage when they have been waited for. Each warp says so at a
barrier of the stage; who fills it again waits for all of them. Warpgroups then run apart, as far as
there are stages: one has the tensor cores while another one works on what they gave.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_tileas.analysis.users import operations
from tile_tileas.dialect.barriers import LEADER
from tile_tileas.dot_plan import family_of
from tile_tileas.mma.families import WARPGROUP
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tma.filling import Tma, TmaLoads

_DOT, _COPY = "nv_tileas.dot", "nv_tileas.copy"
_FAMILIES = (WARPGROUP,)
_WAITS = ("nv_tileas.dot_wait", "nv_tileas.async_wait")


def can_be_released(
    loads: Sequence[Prefetch],
    tma: TmaLoads,
    families: Sequence[str] = _FAMILIES,
    *,
    to_threads: bool = False,
) -> bool:
    """Whether tensor maps fill all stages of `loads`, and products of `families` alone read them,
    in shared memory or as fragments that are read for one of them; `to_threads`: or threads, beside
    such products.

    Not where blocks of a cluster fill each other's: those are told where threads meet.
    """
    if tma.is_shared or any(load.load.results[0] not in tma.copies for load in loads):
        return False
    return all(_multiplied(load, families, to_threads=to_threads) for load in loads)


def _multiplied(load: Prefetch, families: Sequence[str], *, to_threads: bool) -> bool:
    if load.target is None:
        return False
    readers = load.target.readers
    products = [reader for reader in readers if _is_product(reader, families)]
    others = [reader for reader in readers if reader not in products]
    if to_threads and products:
        return all(reader.name == _COPY for reader in others)
    return all(map(_reads_fragments, others))


def _is_product(op: ir.Operation, families: Sequence[str] = _FAMILIES) -> bool:
    return op.name == _DOT and family_of(op) in families


def _reads_fragments(op: ir.Operation) -> bool:
    """Whether an operation brings a buffer to registers for a product of its block, which is
    waited for behind it.
    """
    if op.name != _COPY or len(op.results) != 1:
        return False
    users = [use.owner.operation for use in op.results[0].uses]
    return all(_is_product(user) and user.block == op.block for user in users)


def release(loop: ir.Operation, filling: Tma, stages: int, lag: int, *, begun: bool) -> None:
    """Release a stage in each step of `loop`, behind its last wait for products: that of the step,
    or (`lag` of 1) of the one before. `begun`: there was one before the first step, too.
    """
    block = loop.regions[0].blocks[0]
    at = Writer(loop.location)
    index = _slot(block)
    last = _last_read(block) if filling.is_read_by_threads and not lag else _last_wait(block)
    at.move(ir.InsertionPoint.after(last))

    def free() -> list[ir.Value]:
        if filling.is_apart:
            filling.release_next(at)
            return []
        stage = index
        if lag:
            stage = at.select(index, 0, at.constant(stages - 1), at.plus(index, -1))
        filling.release(at, stage)
        return []

    if begun or not lag:
        free()
    else:
        lower = at.wide(loop.operands[0])
        at.choice(at.is_less(lower, at.wide(block.arguments[0])), free)


def release_before(kernel: ir.Operation, filling: Tma) -> None:
    """Release the stage of the step before the loop of full steps, which has waited for what reads
    it.
    """
    before: list[ir.OpView] = []
    for op in kernel.block.operations:
        if op.operation == kernel:
            break
        before.append(op)
    at = Writer(kernel.location)
    at.move(ir.InsertionPoint.after([op for op in before if op.operation.name == _DOT][-1]))
    filling.release(at, _slot_of(before))


def _slot(block: ir.Block) -> ir.Value:
    """The stage that a step waits for."""
    return _slot_of(list(block.operations))


def _slot_of(ops: Sequence[ir.OpView]) -> ir.Value:
    return next(
        op.operands[1]
        for op in ops
        if op.operation.name == "nv_tileas.barrier_wait" and LEADER not in op.attributes
    )


def _last_wait(block: ir.Block) -> ir.OpView:
    """The operation behind which no product of the step's stage reads any more."""
    return [op for op in block.operations if _waits(op)][-1]


def _last_read(block: ir.Block) -> ir.OpView:
    """The operation behind which no thread reads the step's stage any more, either."""
    return [op for op in block.operations if _waits(op) or _reads_shared(op)][-1]


def _waits(op: ir.OpView) -> bool:
    return op.operation.name in (*_WAITS, _DOT)


def _reads_shared(op: ir.OpView) -> bool:
    """Whether threads bring what a buffer has to registers, there or inside."""
    inside = (one for region in op.regions for one in operations(region))
    return any(one.operation.name == _COPY and len(one.results) for one in (op, *inside))
