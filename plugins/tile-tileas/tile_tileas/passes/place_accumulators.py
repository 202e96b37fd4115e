"""tileas-place-accumulators: accumulators of tcgen05 in tensor memory, products begun and awaited.

A `dot` of tiles becomes a `umma` into a buffer, the wait for it and a copy to registers. Before one
that a pair of blocks makes, which reads the memory of both, their threads meet, unless the loop
knows better (`in_flight`). An
accumulator that a loop only adds to stays in its buffer while the loop runs: what is carried is
whether the buffer holds something yet, the first product overwrites it, and it is read once, behind
the loop. Other accumulators are added to what the product gives, in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.analysis.accumulators import (
    begun_with,
    carried_place,
    fit_together,
    is_of_pair,
    sums,
    together_with,
)
from tile_tileas.analysis.constants import is_zero, splat_integer
from tile_tileas.analysis.users import first_user
from tile_tileas.dialect.barriers import TEAM
from tile_tileas.dialect.tensor import UMMA
from tile_tileas.dot_plan import (
    FREES,
    IN_FLIGHT,
    tensor_plan_of,
)
from tile_tileas.kernel_spec import num_warps
from tile_tileas.materialize.tensor_parts import (
    change_in_place,
    change_to_place,
    few_of,
    follows_meeting,
    follows_product,
    lay_over,
    led_from,
)
from tile_tileas.mma.tensor import WARPS
from tile_tileas.pipelining.held_columns import scales_of, sums_of
from tile_tileas.pipelining.opaque import read_or
from tile_tileas.pipelining.signals import Signals
from tile_tileas.pipelining.writer import Writer

_COPY, _DOT, _WAIT = "nv_tileas.copy", "nv_tileas.dot", "nv_tileas.dot_wait"


@dataclass(frozen=True)
class PlaceAccumulators(Pass):
    """Give products of tcgen05 their accumulators in tensor memory, and wait for them.

    Accumulators stay in tensor memory over loops that only add to them, where those of all
    products of the kernel fit at once.
    """

    name = "tileas-place-accumulators"
    anchor = "func.func"
    statistics = {
        "accumulators": "accumulators in tensor memory",
        "carried": "accumulators that stay there while a loop runs",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        products = sums(op)
        if not products:
            return
        warps = num_warps(op)
        stay = fit_together(op, warps)
        threads, pair = warps * cx.target.warp_size, is_of_pair(products[0])
        placing = _Placing(op, warps, threads, pair=pair)
        later = [IN_FLIGHT in one.attributes and is_read_later(one) for one in products]
        awaited = [one for one, late in zip(products, later, strict=True) if late]
        begun = {one.operation for one in filter(None, map(begun_with, awaited))}
        work = [
            (one, late)
            for one, late in zip(products, later, strict=True)
            if one.operation not in begun  # those are placed with what is carried on from them
        ]
        for product, late in work:
            place = carried_place(product) if stay else None
            if late:
                placing.later(product)
            elif IN_FLIGHT in product.attributes and place is None:
                placing.here(product)
            elif place is None:
                placing.alone(product)
            else:
                placing.carried(product, place)
                cx.count("carried")
            cx.count("accumulators")


@dataclass(frozen=True)
class _Held:
    """Buffers of a product in tensor memory: its accumulator, and block scales of A and B."""

    sums: ir.Value
    scales: Sequence[ir.Value] = ()


class _Placing:
    def __init__(self, func: ir.Operation, warps: int, threads: int, *, pair: bool) -> None:
        """`pair`: pairs of blocks make the products."""
        self._warps, self._signals = warps, Signals(func, threads)
        self._in_teams = Signals(func, threads, warps // WARPS)
        self._pair = pair
        self._done: ir.Value | None = None

    # -- the two forms -----------------------------------------------------------------------

    def alone(self, op: ir.OpView) -> None:
        """The product is read where it stands, and its accumulator added to it."""
        at = Writer(op.location)
        at.move(ir.InsertionPoint(op))
        held, initial = self._held(at, op), _initial(op)
        self._begin(at, op, held, _flag(at, value=False))
        self._wait(at)
        result = _sum(at, at.read(held.sums, op.results[0].type), initial)
        op.results[0].replace_all_uses_with(result)
        _erase(op)

    def carried(self, op: ir.OpView, place: int) -> None:
        """The loop around the product carries whether the buffer holds something in its place."""
        loop = op.operation.parent
        assert loop is not None
        at = Writer(op.location)
        at.move(ir.InsertionPoint(loop))
        held, initial = self._held(at, op), loop.operands[3 + place]
        loop.operands[3 + place] = _flag(at, value=False)
        argument = loop.regions[0].blocks[0].arguments[place + 1]
        type_ = op.results[0].type
        at.move(ir.InsertionPoint(op))
        argument.set_type(ir.IntegerType.get_signless(1))
        if IN_FLIGHT in op.attributes and _is_stored_for(op):
            self._signals.gather(at)
        self._begin(at, op, held, argument)
        if IN_FLIGHT not in op.attributes:
            self._wait(at)
        end = next(iter(op.results[0].uses))
        end.owner.operands[end.operand_number] = _flag(at, value=True)
        _erase(op)
        _read_behind(at, loop, place, held.sums, initial, type_)

    def here(self, op: ir.OpView) -> None:
        """The product is read where somebody waits for it, behind what begins meanwhile."""
        assert not self._pair, "loops of a cluster are not turned so"
        (use,) = op.results[0].uses
        wait = use.owner.operation
        assert wait.name == _WAIT, "carried otherwise"
        at = Writer(op.location)
        assert op.operation.parent is not None, "in a loop"
        at.move(ir.InsertionPoint(op.operation.parent))
        held, done, initial = self._held(at, op), self._signals.barrier(), _initial(op)
        at.move(ir.InsertionPoint(op))
        if not (follows_product(op) or follows_meeting(op)):
            self._signals.gather(at)
        self._begin(at, op, held, _flag(at, value=False))
        self._signals.commit(at, done)
        at.move(ir.InsertionPoint(wait))
        self._signals.wait(at, done)
        user = first_user(wait.block, wait.results)
        if FREES in wait.attributes and user is not None and not _begins_between(wait, user):
            at.move(ir.InsertionPoint(user))
        result = _sum(at, at.read(held.sums, op.results[0].type, few_of(wait)), initial)
        wait.results[0].replace_all_uses_with(result)
        wait.erase()
        _erase(op)

    def later(self, op: ir.OpView) -> None:
        """The product is read in the next iteration of its loop, and behind that: where somebody
        waits for what is carried, which is what there is to add to it.
        """
        assert not self._pair, "loops of a cluster are not turned so"
        signals = self._in_teams if TEAM in op.attributes else self._signals
        loop, block = op.operation.parent, op.operation.block
        assert loop is not None
        (use,) = op.results[0].uses
        place, carried, first = use.operand_number, _initial(op), begun_with(op)
        begin = loop.operands[3 + place]
        at = Writer(op.location)
        at.move(ir.InsertionPoint(loop if first is None else first))
        held, done = self._held(at, op), signals.barrier()
        lay_over(at, held.sums, loop)
        if first is not None:
            if TEAM in op.attributes:
                signals.gather(at)  # leaders may be another agent, which is told of columns
            # What it reads lives in the loop, which waits for it.
            self._begin(at, first, held, _flag(at, value=False))
            loop.operands[3 + place] = carried
            at.move(ir.InsertionPoint(loop))
            _erase(first)
        else:
            _fill(at, held.sums, op.results[0].type)
            at.sync()  # here, and not in the loop
        signals.commit(at, done)
        at.move(ir.InsertionPoint(op))
        if _is_awaited_before(op, block.arguments[place + 1]) and not follows_product(op):
            at.move(ir.InsertionPoint(led_from(op)))
            signals.gather(at)
            at.move(ir.InsertionPoint(op))
        self._begin(at, op, held, _flag(at, value=False))
        signals.commit(at, done)
        use.owner.operands[place] = carried
        _erase(op)
        adds = not (is_zero(carried) and (first is not None or is_zero(begin)))
        for value in (block.arguments[place + 1], loop.results[place]):
            for wait in [user.owner.operation for user in value.uses]:
                at.move(ir.InsertionPoint(wait))
                signals.wait(at, done)
                user = first_user(wait.block, wait.results)
                if user is not None:
                    _read_for(at, wait, user, held.sums, adds=adds)
                wait.erase()

    # -- parts ---------------------------------------------------------------------------------

    def _held(self, at: Writer, op: ir.OpView) -> _Held:
        """Tensor memory for the accumulator, and for block scales."""
        plan = tensor_plan_of(op, self._warps)
        return _Held(sums_of(at, op, plan), scales_of(at, op, plan))

    def _begin(
        self,
        at: Writer,
        op: ir.OpView,
        held: _Held,
        accumulate: ir.Value,
    ) -> None:
        """Begin a product with all that add to its sum; blocks of a pair meet for them once."""
        if is_of_pair(op) and IN_FLIGHT not in op.attributes:
            at.create("nv_tileas.cluster_sync")
        for number, one in enumerate(together_with(op)):
            if number:
                accumulate = _flag(at, value=True)
            a, b, _, *scales = one.operands
            names = ("atom", "signedness_a", "signedness_b", TEAM)
            attributes = {name: one.attributes[name] for name in names if name in one.attributes}
            name = "nv_tileas.umma_scaled" if scales else "nv_tileas.umma"
            operands = [a, b, held.sums, accumulate, *scales, *held.scales]
            at.create(name, operands, [], attributes)

    def _wait(self, at: Writer) -> None:
        """Until all products are done that have begun; accesses to tensor memory stay behind."""
        if self._done is None:
            self._done = self._signals.barrier()
        self._signals.commit(at, self._done, pair=self._pair)
        self._signals.wait(at, self._done)


def _flag(at: Writer, *, value: bool) -> ir.Value:
    return at.constant(int(value), ir.IntegerType.get_signless(1))


def _initial(op: ir.OpView) -> ir.Value:
    """What a product adds to, or the first of those that add to one sum."""
    return together_with(op)[0].operands[2]


def _erase(op: ir.OpView) -> None:
    """Erase a product with all that add to its sum."""
    for one in reversed(together_with(op)):
        one.operation.erase()


def _is_stored_for(op: ir.OpView) -> bool:
    """Whether threads store something that a product reads, in its block."""
    users = [use.owner.operation for value in list(op.operands)[:2] for use in value.uses]
    return any(user.name == _COPY and user.block == op.operation.block for user in users)


def is_read_later(op: ir.OpView) -> bool:
    """Whether a product is carried on as it is, and awaited in the next iteration."""
    uses = list(op.results[0].uses)
    block = op.operation.block
    end = block.operations[len(block.operations) - 1]
    if len(uses) != 1 or uses[0].owner.operation != end.operation:
        return False
    value = block.arguments[uses[0].operand_number + 1]
    return all(use.owner.operation.name == _WAIT for use in value.uses)


def _read_for(
    at: Writer, wait: ir.Operation, user: ir.Operation, sums: ir.Value, *, adds: bool
) -> None:
    """Read what is awaited where `at` stands, or where `user` is the first to use it. `adds`: what
    is carried is added to it.
    """
    tile, few, free = wait.results[0], few_of(wait), not _begins_between(wait, user)
    change = change_to_place(wait)
    if change is not None and free and not adds:
        change_in_place(at, sums, tile, change, few)
        return
    if FREES in wait.attributes and free:
        at.move(ir.InsertionPoint(user))
    found = at.read(sums, tile.type, few)
    tile.replace_all_uses_with(_added(at, found, wait.operands[0]) if adds else found)


def _begins_between(wait: ir.Operation, user: ir.Operation) -> bool:
    """Whether a product begins between both, which may write where the awaited one is read."""
    ops = [op.operation for op in wait.block.operations]
    between = ops[ops.index(wait) : ops.index(user)]
    return any(op.name in (*UMMA, _DOT) for op in between)


def _is_awaited_before(op: ir.OpView, value: ir.Value) -> bool:
    """Whether somebody waits for `value` in the block of `op`, in front of it."""
    users = {use.owner.operation for use in value.uses}
    for before in op.operation.block.operations:
        if before.operation == op.operation:
            return False
        if before.operation in users:
            return True
    return False


def _fill(at: Writer, buffer: ir.Value, type_: ir.Type) -> None:
    """Nothing, in tensor memory: what is added to it stays as it is, the sign of zero, too."""
    element = type_.element_type
    zero = (
        ir.FloatAttr.get(element, -0.0)
        if isinstance(element, ir.FloatType)
        else ir.IntegerAttr.get(element, 0)
    )
    value = {"value": ir.DenseElementsAttr.get_splat(type_, zero)}
    nothing = at.create("arith.constant", [], [type_], value).result
    at.store(nothing, buffer)


def _sum(at: Writer, product: ir.Value, initial: ir.Value) -> ir.Value:
    """Both in registers; zeros are not added."""
    return product if is_zero(initial) else _added(at, product, initial)


def _added(at: Writer, product: ir.Value, initial: ir.Value) -> ir.Value:
    is_float = isinstance(product.type.element_type, ir.FloatType)
    name = "arith.addf" if is_float else "arith.addi"
    return at.create(name, [product, initial], [product.type]).result


def _read_behind(
    at: Writer,
    loop: ir.Operation,
    place: int,
    buffer: ir.Value,
    initial: ir.Value,
    type_: ir.Type,
) -> None:
    """Copy the accumulator to registers behind the loop, or where somebody waits for it there.
    If the loop did not run, it is what it was before.
    """
    flag = loop.results[place]
    users = [(use.owner.operation, use.operand_number) for use in flag.uses]
    waits = [user for user, _ in users if user.name == _WAIT]
    flag.set_type(ir.IntegerType.get_signless(1))
    at.move(ir.InsertionPoint(waits[0]) if waits else ir.InsertionPoint.after(loop))

    def read() -> ir.Value:
        return _sum(at, at.read(buffer, type_), initial)

    found = read() if _runs(loop) else read_or(at, flag, read, initial)
    for user, number in users:
        if user.name == _WAIT:
            user.results[0].replace_all_uses_with(found)
            user.erase()
        else:
            user.operands[number] = found


def _runs(loop: ir.Operation) -> bool:
    """Whether the loop is known to have an iteration."""
    lower, upper = (splat_integer(value) for value in list(loop.operands)[:2])
    return lower is not None and upper is not None and lower < upper
