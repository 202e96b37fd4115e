"""Two chained products by tcgen05 of blocks in turn, the second one's sum in tensor memory.

    S(0) = Q K(0);  O = what it begins with, in tensor memory
    for i:
        wait for S(i); read it; K's stage is filled anew
        three quarters of P, and beside them O = scaled O, some columns at a time
        store them where S(i) was, and begin O += P V(i) with them
        the last quarter, while those are multiplied; store it, and begin the rest of O += P V(i)
        begin S(i+1) = Q K(i+1)
        a thread that begins no products waits for P V(i); V's stage is filled anew
    wait for S(N), which nobody reads; read O

As `tcgen05_paired`, but that threads do not hold O: S stays in their registers from one read to the
end, for which 128 of them had no room beside it. Nobody waits for P V(i) but whoever copies V, as
S(i+1) is there only when all is done that began before it (PTX ISA, "tcgen05.commit"). The tensor
core adds to what is scaled, as the program says; in registers scaled sums came last.

Teams (`teams`) do so each for itself. What is scaled has to be there before the first part of the
product, so that part is the larger one: powers of three quarters take as long as reading, scaling
and writing O. Parts need a P whose scores
are read and not chosen by a branch, behind which the code generator moves nothing: one that changes
S or leaves it, as the mask of causal attention, writes over S in tensor memory before it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile_cute.atoms.records import TENSOR

from tile_core.mlir import ir
from tile_tileas.agents.leaders import LED_APART
from tile_tileas.analysis.pressure import used_values
from tile_tileas.dialect import distributed
from tile_tileas.dialect.barriers import COPIER, LEADER, TEAM, in_teams
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.staging import FEW
from tile_tileas.dialect.tensor import LEAST_COLUMNS, ORDERED, STEPS
from tile_tileas.dot_plan import FREES, IN_PLACE, tensor_plan_of
from tile_tileas.materialize.tensor_parts import change_of
from tile_tileas.pipelining.apart import PRODUCER, SCALES
from tile_tileas.pipelining.factors import Factors, factors_of, spread
from tile_tileas.pipelining.signals import Signals, commit_products
from tile_tileas.pipelining.sliced import (
    Dependents,
    Part,
    columns_of,
    is_divisible,
    part_type,
    some_of,
)
from tile_tileas.pipelining.spotted import Spot
from tile_tileas.pipelining.tcgen05_chain import Chain, Turned
from tile_tileas.pipelining.teams import Apart, teams_of
from tile_tileas.storage import storage_bits

_LANES = 32
#: Of P that are made one after the other, and those whose product begins before the rest is made.
_PARTS, _FIRST = 4, 3
#: Registers of S that are read at a time, and of O that are scaled at a time.
_READ, _SCALED = 32, 32
#: The same of O by teams that share their registers with another block, and where P of bytes goes
#: through shuffles. B200 (model), causal attention of 16 heads of 64, 4096 x 4096, 256 x 64: 97 us
#: with 32, 90 with 16; 8-bit attention of 32 heads 281 and 266. Others: attention of 32 heads of
#: 128, 4096 x 4096, 128 x 128, 248 and 249, causal 8192 458 and 472.
_FEWER_SCALED = 16
_HALF_WORD = 16
_SIGNEDNESS = ("signedness_a", "signedness_b")


def problem_of(chain: Chain, warps: int) -> str | None:
    """Why the second product's sum cannot be scaled in tensor memory; None if it can."""
    late = chain.late
    known = _scaling(chain)
    if known.first or not all(map(is_divisible, known.ops)):
        return "not each of its elements is scaled by itself"
    if not _is_known(chain):
        return "what scales it is computed behind what is stored for it"
    width = _width(chain, warps)
    held = columns_of(_sums(chain, warps), width)
    if held is None or part_type(late.results[0].type, width) is None:
        return "threads have no columns of their own of it"
    scores = chain.early.results[0]
    change = change_of(scores)
    why = None if change is None else change.problem(scores)
    if why is not None:
        return why
    if not _is_in_parts(chain, warps):
        return "what it reads is not made of each element, or each row, of the first one by itself"
    return None


def _gathered(product: ir.Operation) -> ir.OpView:
    """Where the leader waits for others before a product: tiles have come before those do, as a
    rule, so that it waits for them first.
    """
    ops = list(product.block.operations)
    before = ops[: [op.operation for op in ops].index(product)]
    return next(op for op in reversed(before) if op.operation.name == "nv_tileas.barrier_wait")


def _is_known(chain: Chain) -> bool:
    """Whether all that scales the sum is there before P is stored."""
    block = chain.stored.operation.block
    ops = [op.operation for op in block.operations]
    scaling = [op.operation for op in chain.scaling]
    behind = ops[ops.index(chain.stored.operation) :]
    needed = [value.owner for op in chain.scaling for value in used_values(op)]
    return not any(
        not isinstance(owner, ir.Block) and owner.operation in behind
        for owner in needed
        if isinstance(owner, ir.Block) or owner.operation not in scaling
    )


def _is_in_parts(chain: Chain, warps: int) -> bool:
    """Whether threads make P in parts, which are steps of its product."""
    held = Buffer.of(chain.late.operands[0].type)
    assert held is not None, "asked before"
    steps = tensor_plan_of(chain.late, warps)
    width = _part_of(chain)
    known = Dependents(_read(chain.early.results[0]), chain.stored.operands[0], chain.stored)
    whole = steps.counts[2] % _PARTS == 0 and steps.shape[2] == _PARTS * width
    parts = whole and columns_of(held, width) is not None and known.is_divisible(width)
    # What folds find of all parts is known when the last is made, and the sum is scaled before.
    return parts and not any(map(known.folds_reach, chain.scaling))


def _read(scores: ir.Value) -> ir.Value:
    """S as P is made of it: behind a branch that changes it in tensor memory, or as it is."""
    change = change_of(scores)
    return scores if change is None else change.result


def _part_of(chain: Chain) -> int:
    """Columns of a part of P."""
    return list(chain.early.results[0].type.shape)[-1] // _PARTS


def _carried(chain: Chain) -> ir.Value:
    """What the loop carries of the second product's sum."""
    return chain.late.operation.block.arguments[chain.place + 1]


def _scaling(chain: Chain) -> Dependents:
    """What is made of the sum before the second product adds to it."""
    return Dependents(_carried(chain), chain.late.operands[2], chain.late)


def _is_of_bytes(chain: Chain) -> bool:
    """Whether words hold more than two elements of P."""
    held = Buffer.of(chain.late.operands[0].type)
    return held is not None and storage_bits(held.tile.element_type) < _HALF_WORD


def _width(chain: Chain, warps: int, registers: int = _SCALED) -> int:
    """Columns of O that are scaled at a time, in so many registers."""
    rows, columns = list(chain.late.results[0].type.shape)[-2:]
    each = rows * columns // (warps * _LANES)
    return max(columns * min(registers, each) // each, 1)


def _sums(chain: Chain, warps: int) -> Buffer:
    """Tensor memory for the second product's sum."""
    tile = ir.RankedTensorType(chain.late.results[0].type)
    plain = ir.RankedTensorType.get(tile.shape, tile.element_type)
    layout = tensor_plan_of(chain.late, warps).buffer
    return Buffer(ir.RankedTensorType(distributed(plain, layout)), TENSOR, 1)


class Scaled(Turned):
    """Rewrites the loop of a chain of `func`, whose `problem_of` is None."""

    def __init__(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        chain: Chain,
        warps: int,
        *,
        tight: bool,
        apart: Apart,
    ) -> None:
        """`apart`: what may be agents of their own."""
        self._warps, self._teams = warps, teams_of(chain, warps)
        self._signals = Signals(func, warps * _LANES, self._teams)
        self._begun: ir.Value | None = None
        self._apart = apart if self._teams > 1 else Apart()
        shared = self._teams > 1 and not self._apart.leaders
        fewer = shared or _is_of_bytes(chain)
        self._columns = _width(chain, warps, _FEWER_SCALED if fewer else _SCALED)
        self._factors = factors_of(_scaling(chain)) if self._apart.scaling else None
        super().__init__(loop, chain, tight=tight)

    def _run(self) -> tuple[ir.OpView, dict[ir.Value, Spot]]:
        at, chain = self._at, self._chain
        late = chain.late
        chain.lie_over(self._warps)
        for name, value in in_teams(self._teams).items():
            for product in (*chain.parts, late):
                product.attributes[name] = value
        first, new, block, scores = self._turn()
        self._sum = self._held(new)
        values = late.operands[1]
        multiplied = self._multiplied(scores)
        if change_of(scores.results[0]) is not None:
            scores.attributes[IN_PLACE] = ir.UnitAttr.get()
        spots = self._spots(scores, first, multiplied, values)
        at.move(ir.InsertionPoint.after(new))
        self._await(new.results[len(new.results) - 1])
        if self._teams > 1:
            at.sync()  # a team has waited for its own products alone
        self._read_behind(new, block)
        scores.attributes[FREES] = ir.UnitAttr.get()
        if not self._apart.leaders:
            scores.attributes[FEW] = ir.IntegerAttr.get(at.i32, _READ)
        if self._apart.leaders:
            new.attributes[LED_APART] = ir.UnitAttr.get()
        return new.opview, spots

    def _spots(
        self,
        scores: ir.Operation,
        first: Sequence[ir.Operation],
        multiplied: Sequence[ir.Operation],
        values: ir.Value,
    ) -> dict[ir.Value, Spot]:
        """Begin the next scores, and say where stages are read and filled anew: those of the second
        product where it is awaited, for that alone, or where all teams have read them.
        """
        chain = self._chain
        begins, last = (one.opview for one in (multiplied[0], multiplied[-1]))
        spots = chain.early_spots(scores.opview, first)
        if self._teams == 1:
            chain.put_early(self._committed(last.operation))
            freed = self._done_before(last.operation.block)
            return {**spots, values: Spot(begins, freed.opview, own=True, apart=True)}
        chain.put_early(last.operation)
        of_teams = {
            buffer: replace(spot, apart=True, last=spot.read, teams=self._teams)
            for buffer, spot in spots.items()
        }
        body = last.operation.block.operations
        end = body[len(body) - 2]  # in front of what ends it
        own = Spot(
            _gathered(begins.operation), end, own=True, apart=True, last=last, teams=self._teams
        )
        return {**of_teams, values: own}

    # -- the sum -------------------------------------------------------------------------------

    def _held(self, loop: ir.Operation) -> ir.Value:
        """Tensor memory with what the sum begins with."""
        at = self._at
        at.move(ir.InsertionPoint(loop))
        attributes = {
            "alignment": ir.IntegerAttr.get(at.i32, LEAST_COLUMNS),
            ORDERED: ir.UnitAttr.get(),
        }
        type_ = _sums(self._chain, self._warps).type
        held = at.create("nv_tileas.alloc_tensor", [], [type_], attributes).result
        at.store(loop.operands[3 + self._chain.place], held)
        return held

    def _scale_apart(self, factors: Factors) -> ir.Value:
        """Let an agent of its own scale the sum, which is told by what: where it arrives, as all
        who store P do.
        """
        at, signals = self._at, self._signals
        outer, loop = at.place, self._chain.stored.operation.parent
        assert loop is not None, "in a loop"
        at.move(ir.InsertionPoint(loop))
        held = factors.held(at)
        at.move(outer)
        ready, here = signals.meeting(), signals.meeting(times=2)
        factors.store(at, held)
        signals.arrive(at, ready)
        block = self._chain.stored.operation.block
        before = [op.operation for op in block.operations]
        signals.wait(at, ready)
        given = factors.read(at, held)
        whole = list(self._chain.late.results[0].type.shape)[-1]
        for number in range(whole // self._columns):
            self._scale(number, given)
        signals.arrive(at, here)
        for op in block.operations:
            if op.operation not in before:
                op.attributes[PRODUCER] = ir.IntegerAttr.get(at.i32, SCALES)
        return here

    def _scale(self, number: int, given: Mapping[ir.Value, ir.Value] | None = None) -> None:
        """Scale some columns of the sum. `given`: by tiles that it is scaled by, rows of theirs."""
        at, chain = self._at, self._chain
        width, type_ = self._columns, chain.late.results[0].type
        some, part = some_of(at, self._sum, number, width), part_type(type_, width)
        assert part is not None, "asked before"
        known = _scaling(chain)
        parts = spread(at, given or {}, width)
        made = Part(at, known, number, width, at.read(some, part), is_part=True, given=parts)
        at.store(made.of(chain.late.operands[2]), some)

    def _read_behind(self, loop: ir.Operation, block: ir.Block) -> None:
        """Read the sum behind the loop, which carries nothing in its place."""
        at, place, flag = self._at, self._chain.place, ir.IntegerType.get_signless(1)
        result = loop.results[place]
        result.replace_all_uses_with(at.read(self._sum, result.type))
        at.move(ir.InsertionPoint(loop))
        nothing = at.constant(0, flag)
        end = block.operations[len(block.operations) - 1]
        loop.operands[3 + place] = end.operands[place] = nothing
        for op in reversed(self._chain.scaling):
            op.operation.erase()
        block.arguments[place + 1].set_type(flag)
        result.set_type(flag)

    # -- the second product --------------------------------------------------------------------

    def _multiplied(self, scores: ir.Operation) -> list[ir.Operation]:
        """Make P in parts, scale the sum beside all but the last, and begin the product of those
        and then of that.
        """
        at, chain = self._at, self._chain
        stored, late, width = chain.stored, chain.late, _part_of(chain)
        known = Dependents(_read(scores.results[0]), stored.operands[0], stored)
        at.move(ir.InsertionPoint(stored))
        begun: list[ir.Operation] = []
        found: list[list[ir.Value]] = []
        here = None if self._factors is None else self._scale_apart(self._factors)
        turns = self._signals.in_turn() if self._apart.leaders else None
        if turns is not None:
            turns.wait(at)
        for number in range(_PARTS):
            part = Part(at, known, number, width, known.tile)
            made = part.of(stored.operands[0])
            for chunk in self._scaled_beside(number):
                self._scale(chunk)
            found.append([part.folded(fold) for fold in known.folds])
            if turns is not None and number + 1 == _PARTS:
                turns.hand_on(at)
            at.store(made, some_of(at, late.operands[0], number, width))
            if number + 1 == _FIRST:
                begun.append(self._begin(0, _FIRST, here))
                if turns is not None:
                    turns.stay(at)
        begun.append(self._begin(_FIRST, _PARTS))
        # Behind the products, which nobody is to wait for longer.
        at.move(ir.InsertionPoint(stored))
        known.combine(at, found)
        stored.operation.erase()
        for op in reversed(known.late):
            if not any(len(list(result.uses)) for result in op.results):
                op.operation.erase()
        late.results[0].replace_all_uses_with(late.operands[2])
        late.operation.erase()
        return begun

    def _scaled_beside(self, number: int) -> range:
        """Which of the columns of the sum are scaled beside part `number` of P."""
        chain = self._chain
        whole = list(chain.late.results[0].type.shape)[-1]
        inline = len(chain.scaling) and self._factors is None
        chunks = whole // self._columns if inline else 0
        start, end = (chunks * min(one, _FIRST) for one in (number, number + 1))
        return range(-(-start // _FIRST), -(-end // _FIRST))

    def _begin(self, first: int, end: int, here: ir.Value | None = None) -> ir.Operation:
        """Begin what the product has of some parts of P, when all have stored those, and arrived
        `here`, if others do, too.
        """
        at, late = self._at, self._chain.late
        each = tensor_plan_of(late, self._warps).counts[2] // _PARTS
        names = ("atom", *(name for name in (*_SIGNEDNESS, TEAM) if name in late.attributes))
        attributes = {name: late.attributes[name] for name in names}
        attributes[STEPS] = ir.DenseI32ArrayAttr.get((each * first, each * end))
        # There is a wait for each of both in each iteration: they have their turns in common.
        self._begun = self._signals.gather(at, self._begun, here)
        adds = at.constant(1, ir.IntegerType.get_signless(1))
        a, b = list(late.operands)[:2]
        return at.create("nv_tileas.umma", [a, b, self._sum, adds], [], attributes)

    def _committed(self, last: ir.Operation) -> ir.Operation:
        """What says, behind the last part of the product, that all of it is done."""
        at = self._at
        self._done = self._signals.barrier()
        at.move(ir.InsertionPoint.after(last))
        return commit_products(at, self._done, at.constant(0))

    def _done_before(self, block: ir.Block) -> ir.Operation:
        """Where an iteration ends, whoever copies waits for the product. He takes each turn, as the
        next one cannot end before he has arrived for the next product himself.
        """
        at = self._at
        assert self._begun is not None, "products have begun"
        at.move(ir.InsertionPoint(block.operations[len(block.operations) - 1]))
        how: dict[str, ir.Attribute] = {LEADER: ir.UnitAttr.get(), COPIER: ir.UnitAttr.get()}
        operands = [self._done, at.constant(0), self._begun]
        return at.create("nv_tileas.barrier_wait", operands, [], how)
