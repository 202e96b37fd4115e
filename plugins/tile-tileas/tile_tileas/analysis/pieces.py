"""Pieces of shared and tensor memory that operations read and write, once they have places."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.analysis.buffers import allocation_of, is_shared, stage_bytes
from tile_tileas.analysis.constants import splat_integer
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.effects import buffer_effects
from tile_tileas.dialect.tensor import ORDERED, column_runs, tensor_columns
from tile_tileas.pipelining.multistage import PIPELINED

#: The first byte of a piece of shared memory, the first one behind it, and the pipelined buffer
#: that it belongs to: what its loop does to that is ordered by the loop's own waits and meetings.
#: Columns of tensor memory are numbered from `_TENSOR` on, behind all bytes of shared memory.
Piece = tuple[int, int, ir.Value | None]
_TENSOR = 1 << 20
_TMEM_BUFFER, _TMEM_COLUMNS = "nv_tileas.tmem_buffer", "nv_tileas.tmem_columns"
_TMEM_VIEW = "nv_tileas.tmem_view"


def piece_of(op: ir.OpView, buffer: ir.Value) -> Piece:
    """Where the memory of a buffer lies that `op` works on.

    Raises:
        CompileError: nobody has given it a place.
    """
    made = allocation_of(buffer)
    if made is None or "shared_offset" not in made.attributes:
        raise error_at(op, "works on a buffer without a place; run 'tileas-allocate-shared' before")
    whole = Buffer.of(made.results[0].type)
    assert whole is not None
    start = ir.IntegerAttr(made.attributes["shared_offset"]).value
    pipelined = made.results[0] if PIPELINED in made.attributes else None
    return start, start + stage_bytes(whole) * whole.stages, pipelined


def pieces(op: ir.OpView, kind: str) -> Iterator[Piece]:
    """What an operation does to shared and tensor memory; `kind` is "read" or "write"."""
    for effect, value in buffer_effects(op):
        if effect != kind:
            continue
        if is_shared(value.type):
            yield piece_of(op, value)
        else:
            yield from _columns_of(value)
    if op.operation.name == "nv_tileaa.print" and kind == "read":
        yield from (piece_of(op, value) for value in op.operands if is_shared(value.type))


def _columns_of(value: ir.Value) -> Iterator[Piece]:
    """The columns of a buffer in tensor memory that has some; nothing of all else."""
    owner, start = value.owner, _TENSOR
    while not isinstance(owner, ir.Block) and owner.name in (_TMEM_COLUMNS, _TMEM_VIEW):
        column = splat_integer(owner.operands[1]) if owner.name == _TMEM_VIEW else 0
        if column is None:
            value, start = owner.operands[0], _TENSOR  # all columns of it, whichever it has
        else:
            start += column
        owner = owner.operands[0].owner
    if isinstance(owner, ir.Block) or owner.name != _TMEM_BUFFER:
        return
    buffer = Buffer.of(value.type)
    assert buffer is not None
    start += ir.IntegerAttr(owner.attributes["column"]).value
    ordered = owner.results[0] if ORDERED in owner.attributes else None
    whole = (tensor_columns(buffer), [0])
    each, places = whole if value.owner == owner else column_runs(buffer)
    yield from ((start + at, start + at + each, ordered) for at in places)


def in_tensor(found: set[Piece]) -> set[Piece]:
    """Those of tensor memory."""
    return {piece for piece in found if piece[0] >= _TENSOR}


def overlap(left: set[Piece], right: set[Piece]) -> bool:
    """Whether they have memory in common that no loop of theirs takes care of."""
    return any(
        a < d and c < b and (one is None or other is None or one != other)
        for a, b, one in left
        for c, d, other in right
    )


def touch(left: set[Piece], right: set[Piece]) -> bool:
    """Whether they have memory in common."""
    return any(a < d and c < b for a, b, _ in left for c, d, _ in right)
