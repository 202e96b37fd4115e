"""Tiles that are multiplied, and that threads work on, too: those read the product's buffer.

    x = load                          x = load
    x -> buffer                       x -> buffer
    product of the buffer             product of the buffer
    sum of x                          y = buffer
                                      sum of y

On the left threads hold x, which has a stage of its own that copies fill ahead, and each step
stores it into another buffer for the product. On the right copies fill what the product reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.mlir import ir
from tile_tileas.analysis.buffers import ALLOC
from tile_tileas.analysis.tile_views import with_views
from tile_tileas.analysis.users import within
from tile_tileas.pipelining.target import Target, reads_problem, seen_by
from tile_tileas.pipelining.writer import Writer

_COPY = "nv_tileas.copy"


def shared_target(load: ir.OpView, block: ir.Block) -> Target | None:
    """The one buffer of `block` that a tile is stored in, through views, where others use the tile,
    too.
    """
    found = list(_stored(load, block))
    return found[0] if len(found) == 1 and reads_problem(found[0], block) is None else None


def _stored(load: ir.OpView, block: ir.Block) -> Iterator[Target]:
    for value, views in with_views(load.results[0]):
        for use in value.uses:
            copy = use.owner.operation
            if copy.name != _COPY or len(copy.results) or copy.block != block:
                continue
            alloc = copy.operands[1].owner
            if not isinstance(alloc, ir.Block) and alloc.operation.name == ALLOC:
                yield Target(tuple(views), copy.opview, alloc.operation.opview)


def read_back(load: ir.OpView, target: Target) -> None:
    """Let who uses the tile beside the copy into `target` read it there, where the first of them
    stands.
    """
    block = target.copy.operation.block
    path = [*(view.operation for view in target.views), target.copy.operation]
    values = [load.results[0], *(view.results[0] for view in target.views)]
    others = [
        [use for use in value.uses if use.owner.operation != following]
        for value, following in zip(values, path, strict=True)
    ]
    users = {within(use.owner.operation, block) for uses in others for use in uses}
    if not users:
        return
    _move_behind(load.operation, [target.alloc.operation, *path])
    at = Writer(load.location)
    at.move(ir.InsertionPoint(next(op for op in block.operations if op.operation in users)))
    buffer = at.reinterpret(target.alloc.results[0], seen_by(load, target).type)
    tile = at.read(buffer, load.results[0].type)
    for number, uses in enumerate(others):
        for use in uses:
            use.owner.operation.operands[use.operand_number] = tile
        if any(others[number + 1 :]):
            tile = _seen_again(at, path[number], tile)


def _move_behind(load: ir.Operation, ops: Sequence[ir.Operation]) -> None:
    """What fills the buffer comes before all who may read it."""
    last = load
    for op in ops:
        op.move_after(last)
        last = op


def _seen_again(at: Writer, view: ir.Operation, tile: ir.Value) -> ir.Value:
    """The same view of another tile."""
    again = view.clone()
    again.operands[0] = tile
    at.place.insert(again)
    return again.results[0]
