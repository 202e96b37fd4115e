"""tileas-allocate-tensor-memory: the columns of buffers in tensor memory, taken once for a kernel.

A kernel takes all its columns when it begins and gives them back when it ends, so that blocks of
one multiprocessor wait for each other but never for ever. One warp takes them, which takes some
hundred clk; the others do what comes before tensor memory is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tile_cute.atoms.records import TENSOR
from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_tileas.analysis.accumulators import made_by_pairs
from tile_tileas.analysis.buffers import Life, lives_of
from tile_tileas.analysis.unmet import goes_to_all, signals_others
from tile_tileas.analysis.users import first_user, within
from tile_tileas.dialect.agents import SWITCH, agents_of
from tile_tileas.dialect.barriers import PAIR
from tile_tileas.dialect.tensor import LEAST_COLUMNS, MET, ORDERED
from tile_tileas.kernel_spec import occupancy
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.passes.allocate_shared import place
from tile_tileas.pipelining.slices import is_pure

_MEETINGS = ("nv_tileas.sync", "nv_tileas.cluster_sync")
#: Where blocks of a cluster meet, or `tileas-insert-barriers` may let them.
_TO_ALL = "copies into all blocks"
_OF_CLUSTERS = ("nv_tileas.cluster_sync", "nv_tileas.barrier_arrive_in_cluster", _TO_ALL)


@dataclass(frozen=True)
class AllocateTensorMemory(Pass):
    """Give buffers in tensor memory their columns; take them at the start, give them back at the
    end. Buffers that do not live at once share columns.
    """

    name = "tileas-allocate-tensor-memory"
    anchor = "func.func"
    statistics = {"columns": "columns of tensor memory that the kernel takes"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        lives = lives_of(op, TENSOR)
        if not lives:
            return
        needed = place(lives, COLUMNS // occupancy(op))
        if needed > COLUMNS:
            needed = place(lives, 0)
        if needed > COLUMNS:
            worst = max(lives, key=lambda life: life.size)
            raise error_at(worst.op, f"allocated tmem out of resource: {needed} vs {COLUMNS}")
        columns = max(LEAST_COLUMNS, 1 << (needed - 1).bit_length())
        block, buffers = op.regions[0].blocks[0], [life.op.results[0] for life in lives]
        first = first_user(block, buffers)
        first = block.operations[len(block.operations) - 1].operation if first is None else first
        cx.count("columns", columns)
        if first.name == SWITCH:
            _take_for_agents(op, columns, first, lives)
            return
        last = _last_user(block, buffers)
        address = _take(op, columns, first, last, pair=made_by_pairs(op))
        for life in lives:
            at = Exchange(first if life.op.operation.block == first.block else life.op)
            i32 = ir.IntegerType.get_signless(32)
            column: dict[str, ir.Attribute] = {"column": ir.IntegerAttr.get(i32, life.offset)}
            if ORDERED in life.op.attributes:
                column[ORDERED] = ir.UnitAttr.get()
            type_ = life.op.results[0].type
            made = at.create("nv_tileas.tmem_buffer", [address], [type_], column)
            life.op.results[0].replace_all_uses_with(made.result)
            life.op.operation.erase()


def _last_user(block: ir.Block, buffers: Sequence[ir.Value]) -> ir.Operation:
    """The last operation of a kernel's block that works on `buffers`, or a part of one."""
    found = [op.operation for op in block.operations if _works_on(op, {*buffers})]
    return found[-1] if found else block.operations[len(block.operations) - 2].operation


def _works_on(op: ir.OpView, buffers: set[ir.Value]) -> bool:
    """Whether an operation, or one inside, has one of `buffers` or a view of it."""
    found = any(value in buffers for value in op.operands)
    if found and op.operation.name == "nv_tileas.tmem_view":
        buffers.update(op.results)
    inner = (one for region in op.regions for block in region.blocks for one in block.operations)
    works = [_works_on(one, buffers) for one in inner]  # all of them, as views are found so
    return found or any(works)


def _behind_meetings(block: ir.Block, first: ir.Operation) -> Exchange:
    """Where the kernel begins, but behind the meetings before `first`, which would all wait."""
    ops = list(block.operations)
    before = ops[: [op.operation for op in ops].index(first)]
    meetings = [op for op in before if op.operation.name in _MEETINGS]
    return Exchange(meetings[-1], behind=True) if meetings else Exchange(ops[0])


def _take(
    func: ir.Operation, columns: int, first: ir.Operation, last: ir.Operation, *, pair: bool
) -> ir.Value:
    """The address, for what is from `first` to `last`, of columns that the kernel takes before and
    has to its end.
    """
    i32, count = ir.IntegerType.get_signless(32), _count(columns, pair=pair)
    block = func.regions[0].blocks[0]
    at = _behind_meetings(block, first)
    word = at.run_of(1, i32)
    taken = at.create("nv_tileas.alloc_tmem", [word], [], count)
    if pair:
        # The first block's products write tensor memory of both.
        _meet_in_pair(taken, first)
    address = Exchange(first).create("nv_tileas.tmem_address", [word], [i32]).result
    end = block.operations[len(block.operations) - 1].operation
    if pair and not _meets_between(last, end):
        # Blocks arrive when they have read what was theirs, and wait when all else is done.
        _arrive(Exchange(last, behind=True))
        Exchange(end).create("nv_tileas.cluster_wait")
        count[MET] = ir.UnitAttr.get()
    Exchange(end).create("nv_tileas.dealloc_tmem", [address], [], count)
    return address


def _take_for_agents(
    func: ir.Operation, columns: int, switch: ir.Operation, lives: Sequence[Life]
) -> None:
    """The first of the agents takes columns for all; others use theirs when it has said that they
    are free. They are given back behind the agents, which have fenced and met.
    """
    count = _count(columns, pair=made_by_pairs(func))
    block = func.regions[0].blocks[0]
    i32 = ir.IntegerType.get_signless(32)
    word = Exchange(block.operations[0]).run_of(1, i32)
    bodies = [agent.regions[0].blocks[0] for agent in agents_of(switch)]
    at = Exchange(bodies[0].operations[0])
    at.create("nv_tileas.alloc_tmem", [word], [], count)
    buffers = [life.op.results[0] for life in lives]
    known = [_address_for(body, buffers, word, first=body == bodies[0]) for body in bodies]
    for life in lives:
        for use in list(life.op.results[0].uses):
            own = Exchange(use.owner)
            inside = [within(use.owner.operation, body) is not None for body in bodies]
            address = known[inside.index(True)] if any(inside) else None
            if address is None:
                address = own.create("nv_tileas.tmem_address", [word], [i32]).result
            column = {"column": ir.IntegerAttr.get(i32, life.offset)}
            type_ = life.op.results[0].type
            made = own.create("nv_tileas.tmem_buffer", [address], [type_], column)
            use.owner.operands[use.operand_number] = made.result
        life.op.operation.erase()
    end = Exchange(block.operations[len(block.operations) - 1])
    if signals_others(func.regions[0]):  # and nobody is gone where others arrive
        for body in bodies:
            _arrive(Exchange(body.operations[len(body.operations) - 1]))
        end.create("nv_tileas.cluster_wait")
    count[MET] = ir.UnitAttr.get()  # agents meet where they end
    address = end.create("nv_tileas.tmem_address", [word], [i32]).result
    end.create("nv_tileas.dealloc_tmem", [address], [], count)


def _address_for(
    body: ir.Block, buffers: Sequence[ir.Value], word: ir.Value, *, first: bool
) -> ir.Value | None:
    """The address of the columns, for all that an agent does with `buffers`; None if another one
    than the `first`, which takes them, may wait for them inside of what uses them.
    """
    user = first_user(body, buffers)
    if user is None or (len(user.regions) and not first):
        return None
    i32 = ir.IntegerType.get_signless(32)
    return Exchange(user).create("nv_tileas.tmem_address", [word], [i32]).result


def _arrive(at: Exchange) -> None:
    """Threads have done what they do in tensor memory, as blocks of the cluster will know."""
    at.create("nv_tileas.tmem_fence", [], [], {"side": ir.StringAttr.get("before")})
    at.create("nv_tileas.cluster_arrive")


def _count(columns: int, *, pair: bool) -> dict[str, ir.Attribute]:
    """How many columns are taken or given back, and whether by pairs."""
    i32 = ir.IntegerType.get_signless(32)
    count: dict[str, ir.Attribute] = {"columns": ir.IntegerAttr.get(i32, columns)}
    if pair:
        count[PAIR] = ir.UnitAttr.get()
    return count


def _meet_in_pair(taken: ir.Operation, first: ir.Operation) -> None:
    """Let blocks meet between `taken` and `first`; all arrive before copies begin, and wait behind
    them, where blocks do not meet in between for another reason.
    """
    between = _between(taken, first)
    begins = [op for op in between if len(op.regions) or not is_pure(op.opview)]
    if not begins or _meets_between(taken, first):
        Exchange(first).create("nv_tileas.cluster_sync")
        return
    Exchange(begins[0]).create("nv_tileas.cluster_arrive")
    Exchange(first).create("nv_tileas.cluster_wait")


def _meets_between(first: ir.Operation, last: ir.Operation) -> bool:
    """Whether blocks of the cluster meet between both, for another reason."""
    return any(name in _OF_CLUSTERS for op in _between(first, last) for name in _names(op))


def _between(taken: ir.Operation, first: ir.Operation) -> list[ir.Operation]:
    ops = [op.operation for op in taken.block.operations]
    return ops[ops.index(taken) + 1 : ops.index(first)]


def _names(op: ir.Operation | ir.OpView) -> Iterator[str]:
    """Names of an operation and all inside; one of its own of what copies into all blocks."""
    one = op.opview if isinstance(op, ir.Operation) else op
    yield _TO_ALL if goes_to_all(one) else one.operation.name
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _names(inner)
