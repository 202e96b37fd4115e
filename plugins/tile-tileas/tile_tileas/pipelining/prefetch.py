"""Which loads of a loop may run ahead of it, and into what.

A load whose tile goes to one buffer alone, through nothing but views, fills the stages of that
buffer: the product reads what was copied. Any other load fills stages of its own, which are read
where the load stood: by each thread what it copied itself, so that nobody has to meet for those, or
what one thread's copies brought.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from tile_cute.linear import LinearLayout, memory_access, strided

from tile_core.mlir import ir
from tile_tileas.access import CP_ASYNC, GENERIC, TMA, AccessPlan
from tile_tileas.analysis.constants import is_zero
from tile_tileas.analysis.tile_views import with_views
from tile_tileas.analysis.tokens import LOADS, is_weak
from tile_tileas.copying.ahead import movable_problem
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.fields import operand_of
from tile_tileas.pipelining.awaited import hand_on_token, is_awaited_inside
from tile_tileas.pipelining.read_back import read_back, shared_target
from tile_tileas.pipelining.slices import Slice, slice_of
from tile_tileas.pipelining.target import Target, seen_by, stage_for, target_of
from tile_tileas.storage import BUFFER_ALIGNMENT, storage_bits
from tile_tileas.tma.staging import staged_layout

#: Bytes that one cp.async copies (PTX ISA, "cp.async").
SIZES = (4, 8, 16)


@dataclass(frozen=True)
class Prefetch:
    """A load of a loop that can run ahead.

    Attributes:
        load: `nv_tileas.load` or `nv_tileas.tiled_load`.
        layout: which thread copies what.
        buffer: one stage, in coordinates of the load's tile.
        alignment: of the stages, in bytes.
        slice: what the load is computed from inside of the loop.
        target: the buffer whose stages are filled; None for stages of the load's own.
        by_engine: copied by tensor maps or in bulk, which one thread begins.
        to_threads: threads read the target's buffer, and not products alone.
    """

    load: ir.OpView
    layout: LinearLayout
    buffer: Buffer
    alignment: int
    slice: Slice
    target: Target | None
    by_engine: bool = False
    to_threads: bool = False

    @property
    def private(self) -> bool:
        """Whether threads read from the stages what they copied themselves, and nothing else."""
        return self.target is None and not self.by_engine and self.layout.is_injective

    @property
    def is_placed_by_memory(self) -> bool:
        """Whether its place is made of a number that is loaded: then nobody may ask for the place
        in an iteration that there is none of.
        """
        return any(op.operation.name in LOADS for op in self.slice.ops)

    def erase(self, *, met: bool = False) -> None:
        """Remove what the copies into stages have taken the place of; `met` as in `awaited`."""
        if self.target is not None:
            self.target.copy.operation.erase()
            for view in reversed(self.target.views):
                view.operation.erase()
            self.target.alloc.operation.erase()
        hand_on_token(self.load, by_engine=self.by_engine, met=met)
        self.load.operation.erase()


#: What takes a tile to shared memory, or through it.
_STAGING = ("nv_tileas.copy", "nv_tileas.convert_layout")
#: Registers of a thread that numbers of the next iteration may take.
_FEW_WORDS, _WORD_BITS = 4, 32
#: Whether another way of copying than cp.async takes a load into a buffer (in coordinates of the
#: load's tile).
Takes = Callable[[ir.OpView, Buffer], bool]


def prefetch_of(
    load: ir.OpView, loop: ir.OpView, takes: Takes, *, meets: bool = False, numbers: bool = False
) -> Prefetch | str:
    """How a load can run ahead of its loop, by cp.async unless `takes`; or why it cannot. `meets`:
    threads of the loop meet in each step anyway, and may read what others have copied. `numbers`:
    its place may be read from memory (`Prefetch.is_placed_by_memory`).
    """
    layout, plan = layout_of(load.results[0].type), AccessPlan.of(load)
    if layout is None:
        return "it loads a single element"
    problem = _movable(load, plan, loop)
    if problem is not None:
        return problem
    reads = [partial(_is_number, loop=loop)] if numbers else []
    found = slice_of(load.operands, loop, *reads)
    if isinstance(found, str):
        return found
    into = _filled(load, layout, loop.regions[0].blocks[0], takes)
    if into is not None:
        target, buffer, taken = into
        read_back(load, target)
        alignment = ir.IntegerAttr(target.alloc.attributes["alignment"]).value
        return Prefetch(load, layout, buffer, alignment, found, target, taken, target.to_threads)
    if plan is not None and not plan.by_threads:
        rows = rows_of(load, plan)
        if takes(load, rows):
            return Prefetch(load, layout, rows, BUFFER_ALIGNMENT, found, None, by_engine=True)
    tile = load.results[0]
    if meets and not layout.is_injective and are_few(tile) and not _is_staged(tile):
        return "threads have few of its elements, which several hold"
    own = _own_stage(load, layout, meets=meets)
    problem = own if isinstance(own, str) else _cp_async_problem(load, own, layout)
    if isinstance(own, str) or problem is not None:
        return str(problem)
    return Prefetch(load, layout, own, BUFFER_ALIGNMENT, found, None)


def are_few(tile: ir.Value) -> bool:
    """Whether each thread works on so few elements of a tile that it may have those of another
    iteration, too.
    """
    layout = layout_of(tile.type)
    if layout is None or prod(layout.shape) == 1:
        return True
    bits = storage_bits(ir.RankedTensorType(tile.type).element_type)
    return layout.in_size("register") * bits <= _FEW_WORDS * _WORD_BITS


def _is_staged(tile: ir.Value) -> bool:
    """Whether a tile, or a view of it, goes to a buffer or to threads that hold other elements."""
    users = [use.owner.operation for value, _ in with_views(tile) for use in value.uses]
    return any(user.name in _STAGING for user in users)


def _filled(
    load: ir.OpView, layout: LinearLayout, block: ir.Block, takes: Takes
) -> tuple[Target, Buffer, bool] | None:
    """The buffer whose stages a load may fill, as its tile sees it, and whether that `takes` the
    load; None for stages of its own.
    """
    only = target_of(load, block)
    target = shared_target(load, block) if isinstance(only, str) else only
    if target is None or masked_by(load) is not None:
        return None
    buffer = seen_by(load, target)
    taken = takes(load, buffer)
    if not taken and (target.rounds or _cp_async_problem(load, buffer, layout) is not None):
        return None
    return target, buffer, taken


def _is_number(op: ir.OpView, loop: ir.OpView) -> bool:
    """Whether an operation loads a single number that nothing of `loop` writes, such as that of a
    page: it may be loaded whenever a place is computed from it.
    """
    if op.operation.name not in LOADS or not is_weak(op) or is_awaited_inside(op, loop):
        return False
    type_, token = op.results[0].type, operand_of(op, "token")
    single = not isinstance(type_, ir.RankedTensorType) or prod(type_.shape) == 1
    owner = None if token is None else token.owner
    block = loop.regions[0].blocks[0]
    made = owner if isinstance(owner, ir.Block) or owner is None else owner.operation.block
    return single and (made is None or made != block)


def _movable(load: ir.OpView, plan: AccessPlan | None, loop: ir.OpView) -> str | None:
    """Why a load cannot happen earlier, or not by cp.async."""
    if plan is not None and plan.copy == GENERIC:
        return plan.reason(CP_ASYNC) or "its access plan leaves it to threads in passing"
    if load.operation.name not in LOADS:
        return "it is no plain load"
    if is_awaited_inside(load, loop):
        return "accesses of the loop that may conflict wait for the load"
    return movable_problem(load)


def masked_by(load: ir.OpView) -> tuple[ir.Value, ir.Value] | None:
    """(mask, what a load through pointers reads where that is false); None if that is zero, which
    is what cp.async writes, or nothing is masked.
    """
    if load.operation.name != "nv_tileas.load":
        return None
    mask, other = operand_of(load, "mask"), operand_of(load, "other")
    return None if mask is None or other is None or is_zero(other) else (mask, other)


def _own_stage(load: ir.OpView, layout: LinearLayout, *, meets: bool) -> Buffer | str:
    """A stage in which the runs of neighbouring threads lie side by side; what several hold lies
    there once.
    """
    if not (layout.is_injective or meets):
        return "several threads hold the same elements"
    registers = layout.bases["register"]
    low = max(0, _run(load, layout).bit_length() - 1)
    parts: list[Sequence[tuple[int, ...]]] = [registers[:low]]
    parts += [layout.bases["lane"], layout.bases["warp"], registers[low:]]
    offsets = [vector for part in parts for vector in part if any(vector)]
    own = LinearLayout({"offset": offsets}, layout.shape)
    return stage_for(load, own) if own.is_injective else "several threads hold the same elements"


def rows_of(load: ir.OpView, plan: AccessPlan) -> Buffer:
    """A stage that holds the tile as memory does; by a tensor map, in rows with a swizzle."""
    tile = ir.RankedTensorType(load.results[0].type)
    shape, order = tuple(tile.shape), plan.order
    if plan.copy == TMA:
        return stage_for(load, staged_layout(shape, order, storage_bits(tile.element_type)))
    return stage_for(load, strided(shape, order))


def _run(load: ir.OpView, layout: LinearLayout) -> int:
    """Elements side by side in memory that one thread loads at once."""
    plan = AccessPlan.of(load)
    if plan is None or not plan.order:
        return 1
    return min(plan.vector, layout.registers_contiguous_along(plan.order[0]))


def _cp_async_problem(load: ir.OpView, buffer: Buffer, layout: LinearLayout) -> str | None:
    """Whether threads' runs are as long as some cp.async, and lie alike on both sides."""
    if AccessPlan.of(load) is None or buffer.layout is None:
        return "the access has no plan"
    bits = storage_bits(buffer.tile.element_type)
    most = min(_run(load, layout) * bits, 8 * max(SIZES))
    side = memory_access(buffer.layout, layout, bits, most)
    if side.vector * bits // 8 not in SIZES:
        return f"runs of {side.vector * bits // 8} bytes are too short for cp.async"
    for access in side.accesses[0]:
        start = access.registers[0]
        if tuple(access.registers) != tuple(range(start, start + side.vector)):
            return "runs lie differently in global and shared memory"
    return None


def readers_of(load: Prefetch, order: Sequence[ir.Operation]) -> tuple[int, int]:
    """The places in a body of the first and the last product that read what a load fills."""
    assert load.target is not None, "products read it"
    places = [order.index(reader) for reader in load.target.readers]
    return min(places), max(places)
