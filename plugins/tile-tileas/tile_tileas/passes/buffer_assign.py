"""tileas-buffer-assign: places of buffers, and named barriers of agents, by when they live.

Tile IR specification, "Buffer Assignment and Named-Barrier Binding": lifetimes, named barriers,
places, sharing, in this order. Decisions are those of `tile_sched.buffers`, which sees plain data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from tile_cute.atoms.records import TENSOR
from tile_cute.atoms.tensor_memory import COLUMNS
from tile_sched.buffers.lifetimes import Barriers, Request, place_shared

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_tileas.analysis.buffers import OFFSET, Life, lives_of
from tile_tileas.dialect.agents import SWITCH, agents_of
from tile_tileas.dialect.barriers import NAMED_BARRIERS
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.pipes.extract import CREATE


@dataclass(frozen=True)
class BufferAssign(Pass):
    """Give buffers in shared memory their places and agents their named barriers.

    Agents run side by side: what lives in one of them lives in all. A pipe's payloads live from the
    pipe to the function's end. Agents of switches that follow one another may have the same
    barriers.
    """

    name = "tileas-buffer-assign"
    anchor = "func.func"
    statistics = {
        "barriers": "agents that got a named barrier",
        "bytes": "shared memory of the kernel",
        "shared": "pairs of buffers that share memory",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        switches = list(_all(op, SWITCH))
        _check_pipes(op)
        lives, tensor = lives_of(op), lives_of(op, TENSOR)
        cx.count("barriers", _bind(switches))
        _placed(tensor, COLUMNS, "tmem")  # by `tileas-allocate-tensor-memory`, if they fit
        offsets = _placed(lives, cx.target.max_shared, "smem")
        i32 = ir.IntegerType.get_signless(32)
        for life, offset in zip(lives, offsets, strict=True):
            life.offset = offset
            life.op.attributes[OFFSET] = ir.IntegerAttr.get(i32, offset)
        cx.count("bytes", max((life.offset + life.size for life in lives), default=0))
        for one, other in combinations(lives, 2):
            if _shares(one, other):
                cx.count("shared")
                cx.observed(
                    other.op.operation, "share pipeline buffer", category="memory", name="Buffer"
                )


def _all(op: ir.Operation | ir.OpView, name: str) -> Iterator[ir.OpView]:
    """Operations of one name inside of `op`, program order."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == name:
                    yield inner
                yield from _all(inner.operation, name)


def _check_pipes(func: ir.Operation) -> None:
    """Both ends of a pipe are used: otherwise nothing says how long its payload lives."""
    for pipe in _all(func, CREATE):
        if not all(next(iter(token.uses), None) is not None for token in pipe.results):
            raise error_at(pipe, "fails to resolve lifetime").noted("one end of the pipe is unused")


# --- barriers and places --------------------------------------------------------------------------


def _bind(switches: Sequence[ir.OpView]) -> int:
    """A named barrier for each agent; how many that are."""
    pool, bound = Barriers(NAMED_BARRIERS - 1), 0
    i32 = ir.IntegerType.get_signless(32)
    for turn, switch in enumerate(switches):
        for agent in agents_of(switch):
            try:
                number = pool.bind(1 << turn)
            except CompileError as full:
                raise error_at(agent, full.message) from None
            agent.attributes["barrier"] = ir.IntegerAttr.get(i32, number)
            bound += 1
    return bound


def _placed(lives: Sequence[Life], most: int, what: str) -> list[int]:
    """Where each allocation begins."""
    requests = [
        Request(str(at), life.size, 1, life.alignment, _rows(life)) for at, life in enumerate(lives)
    ]
    try:
        places = place_shared(requests, most)
    except CompileError as full:
        largest = max(lives, key=lambda life: life.size)
        error = error_at(largest.op, f"fails to assign {what} buffer")
        raise error.noted(f"buffer {'; '.join(full.notes)}") from None
    return [places[request.name] for request in requests]


def _rows(life: Life) -> int:
    """The places of the program at which it lives, as bits."""
    return ((1 << (life.last - life.first + 1)) - 1) << life.first


def _shares(one: Life, other: Life) -> bool:
    """Whether two of a kind lie in the same bytes, one after the other."""
    first, second = (Buffer.of(life.op.results[0].type) for life in (one, other))
    assert first is not None
    assert second is not None
    alike = first.tile.element_type == second.tile.element_type and one.size == other.size
    return alike and one.offset == other.offset
