"""Two products of an iteration by tcgen05, of which the second reads what was made of the first.

    iteration i     S = Q K(i)    P = softmax(S)    O = scaled O + P V(i)

The tensor core works beside the threads, all the time:

    S(0) = Q K(0)
    for i:
        wait for S(i); read it; K's stage is filled anew; begin S(i+1) = Q K(i+1)
        P = softmax(S(i))                    meanwhile the tensor core has P V(i-1), then S(i+1)
        wait for P V(i-1), add it to scaled O; its stage is filled anew
        store P; begin P V(i)
    wait for both; add the last one

Where one stage of each tile fits, the next one is on its way while threads compute:

    for i:
        wait for S(i); read it; K's stage is filled anew
        what scales O                                        P V(i-1) is made
        wait for P V(i-1), add it to scaled O; V's stage is filled anew
        begin S(i+1) = Q K(i+1)
        P, the rest of the softmax                           S(i+1) is made
        store P; begin P V(i)

What a product gives is carried by the loop, and `dot_wait` says where it is needed: for that of S,
where an iteration begins; for that of O, before P is stored over what it reads. The last iteration
multiplies a tile too many, which tensor maps read as zeros where there is none. Order and rounding
of sums do not change.

Only the thread that begins a product waits for what all do before it (that they have read S, that P
is there); others go on with the next tile, and warps run apart until they need what was begun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.accumulators import sums, tensor_products, together_with
from tile_tileas.analysis.buffers import ALLOC
from tile_tileas.analysis.constants import is_zero, splat_integer
from tile_tileas.analysis.pressure import used_values
from tile_tileas.analysis.users import within
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dot_plan import FREES, IN_FLIGHT, OVER, tensor_plan_of
from tile_tileas.pipelining.carrying import carrying, hand_on
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.pipelining.spotted import Spot
from tile_tileas.pipelining.writer import Writer

_DOT, _COPY, _WAIT = "nv_tileas.dot", "nv_tileas.copy", "nv_tileas.dot_wait"
_FOLD = "nv_tileas.reduce"


@dataclass(frozen=True)
class Chain:
    """The two products of a loop.

    Attributes:
        early: the one whose operands are there when an iteration begins, or the last one of several
            that add to one sum.
        late: the one that reads what is made of it, and adds to what the loop carries.
        place: of that among the carried values.
        loads: what those that make `early`'s sum read in each iteration, one each.
        scaling: what is made of the carried value before `late` adds to it.
        stored: the copy that `late` reads.
    """

    early: ir.OpView
    late: ir.OpView
    place: int
    loads: tuple[Prefetch, ...]
    scaling: tuple[ir.OpView, ...]
    stored: ir.OpView

    @property
    def parts(self) -> list[ir.OpView]:
        """The products that make `early`'s sum, itself the last."""
        return together_with(self.early)

    def put_early(self, place: ir.Operation) -> None:
        """Put what makes `early`'s sum behind `place`."""
        for product in self.parts:
            product.operation.move_after(place)
            place = product.operation

    def taken(self, warps: int) -> int:
        """Columns of `early`'s sum."""
        return tensor_plan_of(self.early, warps).taken

    def lie_over(self, warps: int) -> None:
        """Let what `late` reads take the columns of `early`'s sum, rows of each instruction those
        of the same rows, which the same warps have read.
        """
        held, plan = self.late.operands[0], tensor_plan_of(self.late, warps)
        buffer = Buffer.of(held.type)
        assert buffer is not None, "asked before"
        layout = plan.held_every(self.taken(warps) // plan.counts[0])
        assert layout is not None, "asked before"
        plain = ir.RankedTensorType.get(buffer.shape, buffer.tile.element_type)
        tile = ir.RankedTensorType(distributed(plain, layout))
        held.set_type(Buffer(tile, buffer.space, buffer.stages).type)
        held.owner.attributes[OVER] = ir.UnitAttr.get()

    def early_spots(self, wait: ir.OpView, first: Sequence[ir.Operation]) -> dict[ir.Value, Spot]:
        """By the buffer, where `early`'s sum reads it, behind what it is filled anew (`wait`), and
        who reads its first tile.
        """
        pairs = zip(self.parts, first, strict=True)
        return {op.operands[1]: Spot(op, wait, made.opview) for op, made in pairs}


def chain_of(
    loop: ir.OpView, loads: Sequence[Prefetch], by_map: Callable[[Prefetch], bool]
) -> Chain | str | None:
    """The chained products of `loop`; why they are made one after the other, or None if it has no
    such products. `by_map`: whether a tensor map copies a load.
    """
    products, every = sums(loop), list(tensor_products(loop))
    block = loop.regions[0].blocks[0]
    dots = [op for op in block.operations if op.operation.name == _DOT]
    if len(products) != 2 or len(dots) != len(every) or any(op not in dots for op in every):
        return None
    early, late = products
    parts = together_with(early)
    if len(parts) + 1 != len(dots) or late.operation not in _users(early.results[0], block):
        return None
    filled = {load.target.alloc.results[0]: load for load in loads if load.target is not None}
    values = filled.get(late.operands[1])
    tiles = [load for op in parts if (load := filled.get(op.operands[1])) is not None]
    whole = values is not None and len(tiles) == len(parts) and len(loads) == len(dots)
    if values is None or not whole or not all(map(by_map, loads)):
        return "tensor maps do not copy all that they read, and nothing else"
    if any(load.to_threads for load in loads):
        return "threads read what they read, too"
    if any(load.is_placed_by_memory for load in loads):
        return "places of tiles are read from memory"
    if values.slice.carried:
        return "a tile is looked for in an earlier iteration"
    scaling = _scaling(late, block)
    stored = _stored(late, block)
    if scaling is None or stored is None:
        return "the second product does not add to what the loop carries and nothing else uses"
    initial = parts[0].operands[2]
    waits = any(_is_inside(value, block) for value in (initial, *(op.operands[0] for op in parts)))
    if waits or not is_zero(initial):
        return "the first product has more to wait for than one tile"
    if any(load.slice.carried or not _begins_anywhere(load, loop) for load in tiles):
        return "the first tile may lie outside of its array"
    place = ir.BlockArgument(scaling[0]).arg_number - 1
    return Chain(early, late, place, tuple(tiles), scaling[1], stored)


def _is_inside(value: ir.Value, block: ir.Block) -> bool:
    owner = value.owner
    return owner == block if isinstance(owner, ir.Block) else owner.operation.block == block


def _users(value: ir.Value, block: ir.Block) -> set[ir.Operation]:
    """Operations of `block` that depend on a value within an iteration."""
    found: set[ir.Operation] = set()
    pending = [value]
    while pending:
        for use in pending.pop().uses:
            user = within(use.owner.operation, block)
            if user is not None and user not in found:
                found.add(user)
                pending += user.results
                if user.name == _COPY and len(list(user.operands)) == 2:
                    pending.append(user.operands[1])
    return found


def _scaling(late: ir.OpView, block: ir.Block) -> tuple[ir.Value, tuple[ir.OpView, ...]] | None:
    """The carried value that `late` adds to, and what scales it before; None if it is used for
    something else, or the sum is not carried on in its place.
    """
    uses = list(late.results[0].uses)
    end = block.operations[len(block.operations) - 1]
    if len(uses) != 1 or uses[0].owner.operation != end.operation:
        return None
    argument = block.arguments[uses[0].operand_number + 1]
    users = _users(argument, block)
    others = (late.operation, end.operation)
    ops = [op for op in block.operations if op.operation in users and op.operation not in others]
    for op in ops:
        inside = all(use.owner.operation in users for result in op.results for use in result.uses)
        if len(op.regions) or not is_pure(op) or not inside:
            return None
    makes = late.operands[2] == argument or any(late.operands[2] in op.results for op in ops)
    if not makes or not users <= {late.operation, end.operation, *(op.operation for op in ops)}:
        return None
    behind = any(end_operand in op.results for op in ops for end_operand in end.operands)
    operands = {value for op in ops for value in op.results} | {argument}
    reads = [value for value in list(late.operands)[:2] if value in operands]
    return None if behind or reads else (argument, tuple(ops))


def _stored(late: ir.OpView, block: ir.Block) -> ir.OpView | None:
    """The copy to shared memory of what `late` has on its left, if nothing else uses that."""
    owner = late.operands[0].owner
    if isinstance(owner, ir.Block) or owner.operation.name != ALLOC:
        return None
    users = [use.owner.operation for use in late.operands[0].uses]
    copies = [op for op in users if op.name == _COPY and op.operands[1] == late.operands[0]]
    if owner.operation.block != block or len(users) != 2 or len(copies) != 1:
        return None
    (copy,) = copies
    return copy.opview if copy.block == block else None


def _begins_anywhere(load: Prefetch, loop: ir.OpView) -> bool:
    """Whether the tile of the first iteration may be read by threads though there is no such one:
    they look at its bounds, or it is known to be there.
    """
    lower, upper = (splat_integer(value) for value in list(loop.operands)[:2])
    if lower is not None and upper is not None:
        return lower < upper
    plan = AccessPlan.of(load.load)
    tile = list(load.load.results[0].type.shape)
    return plan is not None and {at for at, size in enumerate(tile) if size > 1} <= {*plan.checked}


# -- the loop --------------------------------------------------------------------------------------


class Turned:
    """Rewrites the loop of a chain. `tight`: there is one stage of each tile.

    Attributes:
        loop: the new one.
        spots: by the buffer, where what it holds is read, and where it may be filled anew.
    """

    def __init__(self, loop: ir.OpView, chain: Chain, *, tight: bool) -> None:
        self._old, self._chain, self._tight = loop, chain, tight
        self._at = Writer(loop.location)
        self.loop, self.spots = self._run()

    def _turn(self) -> tuple[list[ir.Operation], ir.Operation, ir.Block, ir.Operation]:
        """Let the first product be of the iteration behind: what makes that before the loop, the
        new loop, its body, and the wait in it for what is carried.
        """
        at, early, late = self._at, self._chain.early, self._chain.late
        self._hoist()
        first = self._first()
        new, block, (carried,) = carrying(self._old, [first[-1].results[0]])
        for product in (early, late):
            product.attributes[IN_FLIGHT] = ir.UnitAttr.get()
        at.move(ir.InsertionPoint.at_block_begin(block))
        scores = self._await(carried)
        early.results[0].replace_all_uses_with(scores.results[0])
        hand_on(block, [early.results[0]])
        return first, new, block, scores

    def _run(self) -> tuple[ir.OpView, dict[ir.Value, Spot]]:
        at, chain = self._at, self._chain
        late = chain.late
        first, new, block, scores = self._turn()
        self._scores = scores
        awaited, scaled = self._late(block)
        chain.put_early(scaled if self._tight else self._folded(scores))
        at.move(ir.InsertionPoint.after(new))
        for result in (new.results[len(new.results) - 1], new.results[chain.place]):
            self._await(result)
        if self._tight:
            for wait in (scores, awaited):
                wait.attributes[FREES] = ir.UnitAttr.get()
        spots = chain.early_spots(scores.opview, first)
        return new.opview, {**spots, late.operands[1]: Spot(late, awaited)}

    def _hoist(self) -> None:
        """What `late` reads is read while the next iteration runs."""
        alloc = self._chain.late.operands[0].owner
        assert not isinstance(alloc, ir.Block), "allocated in the loop"
        alloc.operation.move_before(self._old)

    def _first(self) -> list[ir.Operation]:
        """What makes the first sum, before the loop; of tiles in buffers that stages stand for."""
        place, found = ir.InsertionPoint(self._old), list[ir.Operation]()
        for product, load in zip(self._chain.parts, self._chain.loads, strict=True):
            assert load.target is not None, "found by it"
            buffer = load.target.alloc.operation.clone(ip=place)
            made = product.operation.clone(ip=place)
            made.operands[1] = buffer.results[0]
            if found:
                made.operands[2] = found[-1].results[0]
            found.append(made)
        return found

    def _await(self, value: ir.Value) -> ir.Operation:
        """All other uses of a product's result are of what it is once it is there."""
        made = self._at.create(_WAIT, [value], [value.type])
        value.replace_all_uses_except(made.results[0], made)
        return made

    def _late(self, block: ir.Block) -> tuple[ir.OpView, ir.Operation]:
        """Wait for the product of the iteration before: where what it read is written again, or as
        soon as what scales its sum is known. The wait, and the last operation that scales.
        """
        at, chain = self._at, self._chain
        if self._tight:
            at.move(ir.InsertionPoint.after(self._known(block)))
        else:
            at.move(ir.InsertionPoint(chain.stored))
        awaited = last = self._await(block.arguments[chain.place + 1])
        for op in chain.scaling:
            if self._tight:
                op.operation.move_after(last)
            else:
                op.operation.move_before(chain.late)
            last = op.operation
        return awaited.opview, last

    def _folded(self, scores: ir.Operation) -> ir.Operation:
        """Behind what the first product of the next iteration begins: as a rule the wait for
        `scores`, as the code generator folds rows while one thread waits for the others. It takes
        no arithmetic past a branch: where what is folded comes out of one, as with a mask for the
        last tiles, behind the fold.
        """
        given, branched = set(scores.results), False
        for op in scores.block.operations:
            if op.operation == self._chain.stored.operation:
                break
            if not given.intersection(used_values(op)):
                continue
            if op.operation.name == _FOLD:
                return op.operation if branched else scores
            branched |= len(op.regions) > 0
            given.update(op.results)
        return scores

    def _known(self, block: ir.Block) -> ir.OpView:
        """The operation behind which all is known that scales the sum, which is computed as early
        as can be.
        """
        scaling = [op.operation for op in self._chain.scaling]
        wanted = {self._scores}
        pending = [value for op in scaling for value in op.operands]
        while pending:
            owner = pending.pop().owner
            if isinstance(owner, ir.Block) or owner.operation.block != block:
                continue
            if owner.operation not in wanted and owner.operation not in scaling:
                wanted.add(owner.operation)
                pending += owner.operands
        last: ir.OpView | None = None
        for op in [op for op in block.operations if op.operation in wanted]:
            if last is not None and is_pure(op) and not len(op.regions):
                op.operation.move_after(last.operation)
            last = op
        assert last is not None, "the wait for the first product is one"
        return last
