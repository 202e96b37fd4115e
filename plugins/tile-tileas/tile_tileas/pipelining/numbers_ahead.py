"""Few numbers that a loop loads, an iteration ahead in registers.

    for i in [a, b):                    n = a < b ? load p(a) : 0
        n = load p(i)           =>      for i in [a, b), n:
        work on n                           m = load p(i + 1 < b ? i + 1 : i)
                                            work on n; hand m on

Copies that run ahead (`prefetch`) go through shared memory, where each thread, or the copy engine,
brings runs of neighbours. A number alone, such as the scale of a block or how many rows a group
has, is in a register of every thread, as are a few that several threads hold, and an iteration that
waits for them takes as long as memory. The last iteration loads its own once more.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.analysis.constants import splat_integer
from tile_tileas.analysis.tokens import LOADS, is_weak
from tile_tileas.copying.ahead import latency_of
from tile_tileas.dialect.fields import operand_of
from tile_tileas.pipelining.awaited import is_awaited, wait_for_no_reads
from tile_tileas.pipelining.carrying import carrying, hand_on
from tile_tileas.pipelining.prefetch import are_few
from tile_tileas.pipelining.slices import Slice, is_pure, slice_of
from tile_tileas.pipelining.writer import Writer

_ASYNC, _UNSIGNED = "nv_tileas.async_", "unsignedCmp"
_SLT, _ULT = 2, 6  # arith.CmpIPredicate


def numbers_of(loop: ir.OpView) -> list[tuple[ir.OpView, Slice]]:
    """The loads of single numbers of `loop` that may be made an iteration ahead, and what their
    places are computed from.
    """
    found: list[tuple[ir.OpView, Slice]] = []
    for op in list(loop.regions[0].blocks[0].operations):
        if op.operation.name not in LOADS or not _is_number(op) or not any(op.results[0].uses):
            continue
        if _places_others(op):
            continue
        wait_for_no_reads(op, loop)
        places = slice_of(op.operands, loop)
        if isinstance(places, Slice) and not places.carried:
            found.append((op, places))
    return found


def _is_number(load: ir.OpView) -> bool:
    """Whether threads have few numbers of it, and nobody may rely on when they are loaded."""
    type_ = load.results[0].type
    tile = isinstance(type_, ir.RankedTensorType)
    element = ir.RankedTensorType(type_).element_type if tile else type_
    known = isinstance(element, ir.FloatType | ir.IntegerType)
    alike = known and are_few(load.results[0]) and is_weak(load)
    return alike and latency_of(load) != 1 and not is_awaited(load)


def _places_others(load: ir.OpView) -> bool:
    """Whether accesses of the same body, or of branches in it, find their place by what is loaded.

    B200 (model), products of 128 x 128 of one in four blocks, found by tables: 147 us, 154 with the
    numbers of tables ahead.
    """
    block, pending, seen = load.operation.block, [load.results[0]], set[ir.Operation]()
    while pending:
        for use in pending.pop().uses:
            user = use.owner.opview if isinstance(use.owner, ir.Operation) else use.owner
            if user.operation in seen or not _is_beside(user.operation, block):
                continue
            seen.add(user.operation)
            if is_pure(user):
                pending += user.results
            elif user.operation.name in LOADS or user.operation.name.startswith(_ASYNC):
                return True
    return False


def _is_beside(op: ir.Operation, block: ir.Block) -> bool:
    """Whether an operation is in `block`, or in branches there, and in no loop of it."""
    while op.block != block:
        parent = op.parent
        if parent is None or parent.name != "scf.if":
            return False
        op = parent.operation
    return True


def load_ahead(loop: ir.OpView, numbers: list[tuple[ir.OpView, Slice]]) -> ir.Operation:
    """Let each iteration load the numbers of the next one; returns the new loop."""
    at = Writer(loop.location)
    at.move(ir.InsertionPoint(loop))
    upper, step = list(loop.operands)[1:3]
    first = _first(at, numbers, loop)
    new, block, carried = carrying(loop, first)
    index = block.arguments[0]
    at.move(ir.InsertionPoint.at_block_begin(block))
    following = at.binary("addi", index, step)
    # What is left is exact as an unsigned number, whatever the loop counts and to where.
    flag = at.compare(_ULT, step, at.binary("subi", upper, index))
    next_ = at.create("arith.select", [flag, following, index], [index.type]).result
    made = [_loaded(at, load, places, index, next_) for load, places in numbers]
    for (load, _), number in zip(numbers, carried, strict=True):
        load.results[0].replace_all_uses_with(number)
        _hand_on_token(load)
        load.operation.erase()
    hand_on(block, made)
    return new


def _first(at: Writer, numbers: list[tuple[ir.OpView, Slice]], loop: ir.OpView) -> list[ir.Value]:
    """The numbers of the first iteration; zeros where there is none."""
    lower, upper = list(loop.operands)[:2]
    index = loop.regions[0].blocks[0].arguments[0]

    def loaded() -> list[ir.Value]:
        return [_loaded(at, load, places, index, lower) for load, places in numbers]

    begin, end = splat_integer(lower), splat_integer(upper)
    if begin is not None and end is not None and 0 <= begin < end:
        return loaded()
    order = _ULT if _UNSIGNED in loop.attributes else _SLT
    runs = at.compare(order, lower, upper)
    return at.choice(runs, loaded, [at.zeros(load.results[0].type) for load, _ in numbers])


def _loaded(
    at: Writer, load: ir.OpView, places: Slice, index: ir.Value, there: ir.Value
) -> ir.Value:
    """What `load` gives in the iteration of another index."""
    values = {index: there}
    with at.instead_of(load):
        for op in (*places.ops, load):
            made = op.operation.clone(ip=at.place)
            for place, value in enumerate(op.operands):
                if value in values:
                    made.operands[place] = values[value]
            values.update(zip(op.results, made.results, strict=True))
    return values[load.results[0]]


def _hand_on_token(load: ir.OpView) -> None:
    """Nobody who waits for a load may conflict with it: they wait for what it waited for."""
    made = load.results[1]
    if not any(made.uses):
        return
    came = operand_of(load, "token")
    if came is None:
        at = Writer(load.location)
        at.move(ir.InsertionPoint(load))
        came = at.create("nv_tileaa.create_mem_token", [], [made.type]).result
    made.replace_all_uses_with(came)
