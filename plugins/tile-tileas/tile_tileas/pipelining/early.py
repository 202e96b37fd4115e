"""How far before a loop its first stages can be filled: in front of what waits for loads that
threads make for it themselves, as attention does for its queries, so that both are under way at
once. Behind those loads, though, which are smaller and would stand in line behind whole stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tile_core.mlir import ir
from tile_tileas.analysis.buffers import ALLOC, allocation_of
from tile_tileas.pipelining.slices import is_pure, move_before


def front_of(
    loop: ir.OpView, needed: Iterable[ir.Value], readers: Sequence[ir.OpView] = ()
) -> ir.OpView:
    """The operation before which stages of `loop` can be filled; `needed` are the values that this
    takes. What computes them comes before it then.

    Passed are copies to buffers that the loop reads, which live with its stages in any case, and
    `readers` of the stages, which have to come behind.
    Nothing else with an effect is: buffers that live before the loop alone may have the memory of
    its stages.
    """
    before: list[ir.OpView] = []
    for op in loop.operation.block.operations:
        if op.operation == loop.operation:
            break
        before.append(op)
    wanted = _origins(needed, before)
    front, passed = loop, False
    for op in reversed(before):
        copies = _copies_for(op, loop) or op in readers
        if not (copies or _is_plain(op)) or (op.operation in wanted and not is_pure(op)):
            break
        passed = passed or copies
        front = front if op.operation in wanted else op  # what is wanted comes before it
    if not passed:
        return loop
    move_before(front.operation, [op for op in before if op.operation in wanted])
    return front


def _copies_for(op: ir.OpView, loop: ir.OpView) -> bool:
    """Whether `op` stores a tile for `loop`."""
    if op.operation.name != "nv_tileas.copy" or len(op.results):
        return False
    alloc = allocation_of(op.operands[1])
    return alloc is not None and _is_read_in(alloc, loop)


def _is_plain(op: ir.OpView) -> bool:
    """Whether it is all the same if stages are filled before or behind `op`."""
    return op.operation.name in (ALLOC, "nv_tileas.sync") or (is_pure(op) and not len(op.regions))


def _is_read_in(alloc: ir.OpView, loop: ir.OpView) -> bool:
    """Whether a buffer lives until `loop` does not run any more."""
    block = loop.regions[0].blocks[0]
    return any(use.owner.operation.block == block for use in alloc.results[0].uses)


def _origins(values: Iterable[ir.Value], ops: list[ir.OpView]) -> list[ir.Operation]:
    """Those of `ops` that `values` are computed from."""
    inside = [op.operation for op in ops]
    found: list[ir.Operation] = []
    pending = list(values)
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, ir.Block):
            continue
        op = owner.operation
        if op not in found and op in inside:
            found.append(op)
            pending += op.operands
    return found
