"""Loads outside of loops that the copy engine makes: begun where they stood, waited for where
their tile is used.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.buffers import lives_between, stage_bytes
from tile_tileas.analysis.users import first_user
from tile_tileas.copying.engines import EngineLoads
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dot_plan import family_of
from tile_tileas.mma.families import TENSOR
from tile_tileas.pipelining.filling import Place, Slot
from tile_tileas.pipelining.multistage import is_inside_loop
from tile_tileas.pipelining.prefetch import Prefetch, rows_of
from tile_tileas.pipelining.slices import Slice
from tile_tileas.pipelining.target import Target, seen_by, target_of
from tile_tileas.pipelining.writer import Writer
from tile_tileas.storage import BUFFER_ALIGNMENT
from tile_tileas.tma.filling import Tma

_DOT = "nv_tileas.dot"

#: Bytes of shared memory for the barriers of one load.
_BARRIERS = 128


def copy_by_engine(
    func: ir.Operation, load: ir.OpView, bounds: BoundsAnalysis, most: int
) -> str | None:
    """Let the copy engine make a load as its plan says; why it cannot, if so.

    Args:
        most: bytes of shared memory that a block may have.
    """
    if is_inside_loop(load):
        return "its loop does not run ahead, and would begin and end a barrier in each iteration"
    made = EngineLoads(func, load, bounds)
    taken = _taken(load, made)
    if isinstance(taken, str):
        return taken
    reason = _no_room(func, load, taken, most)
    if reason is not None:
        return reason
    at = Writer(load.location)
    at.move(ir.InsertionPoint(load))
    (filling, (taken,)), *_ = made.fillings([taken])
    stage = Buffer(taken.buffer.tile, taken.buffer.space, 1).type
    aligned = {"alignment": ir.IntegerAttr.get(at.i32, taken.alignment)}
    buffer = at.create("nv_tileas.alloc_tensor", [], [stage], aligned).result
    filling.prepare(at, 1, 1)
    slot = Slot(at.constant(0), at.constant(0))
    filling.fill(at, taken, buffer, slot, Place({}))
    if taken.target is not None:
        at.move(ir.InsertionPoint(taken.target.copy))
        if isinstance(filling, Tma) and _begun_by_one(taken.target):
            filling.wait(at, slot, 0, leader=True)
        else:
            filling.wait(at, slot, 0)
        named = taken.target.alloc.results[0]
        named.replace_all_uses_with(at.reinterpret(buffer, named.type))
    else:
        at.move(ir.InsertionPoint(_reader(load)))
        filling.wait(at, slot, 0)
        load.results[0].replace_all_uses_with(at.read(buffer, load.results[0].type))
    taken.erase()
    return None


def _begun_by_one(target: Target) -> bool:
    """Whether nobody reads the buffer but products that one thread begins."""
    return all(reader.name == _DOT and family_of(reader) == TENSOR for reader in target.readers)


def _taken(load: ir.OpView, engines: EngineLoads) -> Prefetch | str:
    """The buffer that the engine fills: that of the product that reads the tile, or one of rows."""
    layout, plan = layout_of(load.results[0].type), AccessPlan.of(load)
    assert plan is not None, "planned"
    if layout is None:
        return "it loads a single element"
    if any(True for _ in load.results[1].uses):
        return "other accesses wait for the load"
    if not any(True for _ in load.results[0].uses):
        return "nobody uses its tile"
    nothing = Slice((), ())
    target = target_of(load, load.operation.block, inside=True)
    if not isinstance(target, str):
        buffer = seen_by(load, target)
        if engines.takes(load, buffer):
            aligned = ir.IntegerAttr(target.alloc.attributes["alignment"]).value
            return Prefetch(load, layout, buffer, aligned, nothing, target, by_engine=True)
    rows = rows_of(load, plan)
    if engines.takes(load, rows):
        return Prefetch(load, layout, rows, BUFFER_ALIGNMENT, nothing, None, by_engine=True)
    return "its buffer is no sequence of what is copied at once"


def _no_room(func: ir.Operation, load: ir.OpView, taken: Prefetch, most: int) -> str | None:
    """Why the tile does not fit beside what lives until it is read; a product has room for it."""
    if taken.target is not None:
        return None
    size = stage_bytes(taken.buffer)
    beside = lives_between(func, load, _reader(load).opview)
    others = sum(-(-life.size // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT for life in beside)
    if size + others + _BARRIERS <= most:
        return None
    return f"its tile of {size} bytes does not fit into {most} of shared memory beside {others}"


def _reader(load: ir.OpView) -> ir.Operation:
    """The first operation of the load's block that uses the tile, or has inside what does."""
    found = first_user(load.operation.block, [load.results[0]])
    assert found is not None, "a tile that nobody uses is not copied"
    return found
