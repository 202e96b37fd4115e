"""Kernels whose blocks take over tile blocks that have not been launched.

    scf.while (%x = get_program_id 0, %y = .., %z = ..) {
      async_cancel_next_program_id %answer       one thread asks for a block not launched yet
      ..                                         the kernel, with %x, %y, %z for its program id
      barrier_wait                               until the answer is there
      scf.condition(is_valid_program_id) next_program_id 0, 1, 2
    }

What is the same for all tile blocks stays in front. A block that is launched late finds nothing to
do: the grid is as it was, and no launch needs to know (PTX ISA, "clusterlaunchcontrol"; page 066).
Blocks of a cluster ask for one tile block: the first one does, and meets the others before, as all
have to have read the last answer.

For agents, which go through tile blocks each at its own pace, answers go through a pipe:

    the agent that copies: until all agents of all blocks have read what the stage held; ask
    ..
    each agent:            take_program_id: wait for the answer, read it, say so
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.analysis.tokens import ACCESSES, is_weak
from tile_tileas.analysis.users import within
from tile_tileas.dialect import distributed
from tile_tileas.dialect.barriers import CTAS, LEADER, WITH_WARP
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.launched import ANSWER_WORDS, AXES, CANCEL, IS_VALID, TAKE
from tile_tileas.kernel_spec import num_ctas
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.pipelining.writer import Writer
from tile_tileas.storage import row_major
from tile_tileas.tile_graph import is_tile
from tile_tileas.tma.barriers import BEGINS, BarrierPlace

PROGRAM_ID = "nv_tileaa.get_program_id"
_MEETING = "nv_tileas.cluster_sync"
#: Compute capability from which blocks can be taken over, times 10.
_SINCE = 100
_WORD_BYTES = 4
#: Answers on their way, or not read by all agents: the agent that copies is at most a tile block
#: ahead of that which has the rest.
_ANSWERS = 2


def problem_of(func: ir.Operation, sm: int) -> str | None:
    """Why blocks of a kernel take over no others; None if they can."""
    if sm < _SINCE:
        return f"sm_{sm} has no launch control, which comes with sm_{_SINCE}"
    if not any(one.operation.name == PROGRAM_ID for one in ops_in(func.regions[0])):
        return "the kernel does not ask for its program id"
    return None


def is_taken_over(func: ir.Operation) -> bool:
    """Whether blocks of a kernel take over others already."""
    return any(one.operation.name in (IS_VALID, TAKE) for one in ops_in(func.regions[0]))


def ordered_in(func: ir.Operation) -> Iterator[str]:
    """Accesses of a kernel that others may wait for: with those, blocks that have not begun may
    have to go on beside the ones that have.
    """
    for op in ops_in(func.regions[0]):
        if op.operation.name in ACCESSES and not is_weak(op):
            yield op.operation.name


def ops_in(region: ir.Region) -> Iterator[ir.OpView]:
    """All operations of a region."""
    for block in region.blocks:
        for op in block.operations:
            yield op
            for inner in op.regions:
                yield from ops_in(inner)


class TakenOver:
    """Puts the body of a kernel into a loop over tile blocks."""

    def __init__(self, func: ir.Operation) -> None:
        self._func = func
        self._ctas = num_ctas(func)
        self._block = func.regions[0].blocks[0]
        self._at = Writer(func.location)

    def wrap(self) -> None:
        *body, end = list(self._block.operations)
        inside = self._inside(body)
        for op in inside:
            op.operation.detach_from_parent()
        at = self._at
        at.move(ir.InsertionPoint(end))
        first = [self._program_id(axis) for axis in range(AXES)]
        kinds = [at.i32] * AXES
        loop = at.create("scf.while", first, kinds, regions=2)
        places = [self._func.location] * AXES
        before = loop.regions[0].blocks.append(*kinds, arg_locs=places)
        after = loop.regions[1].blocks.append(*kinds, arg_locs=places)
        at.move(ir.InsertionPoint(loop))
        answer = answers(at, self._block, 1)
        place = BarrierPlace(self._func, again=False)
        barrier = place.made(at, 1)
        place.seen(at, in_cluster=self._ctas > 1)
        at.move(ir.InsertionPoint(before))
        stage = at.constant(0)
        if self._ctas > 1:
            at.create(_MEETING)
        ask(at, answer, barrier, stage, self._ctas)
        for op in inside:
            before.append(op)
        _use(before, list(before.arguments))
        at.move(ir.InsertionPoint(before))
        phase = at.create("nv_tileas.barrier_turn", [barrier], [at.i32]).result
        at.create("nv_tileas.barrier_wait", [barrier, stage, phase])
        i1 = ir.IntegerType.get_signless(1)
        valid = at.create(IS_VALID, [answer], [i1]).result
        following = [self._next(answer, axis) for axis in range(AXES)]
        at.create("scf.condition", [valid, *following])
        at.move(ir.InsertionPoint(after))
        at.create("scf.yield", list(after.arguments))

    def _inside(self, body: list[ir.OpView]) -> list[ir.OpView]:
        """Program ids, what depends on them or has effects, and tiles, which would take registers
        from one tile block to the next.
        """
        moving: set[ir.Value] = set()
        inside = []
        for op in body:
            stays = (
                op.operation.name != PROGRAM_ID
                and not len(op.regions)
                and is_pure(op)
                and not any(is_tile(result) for result in op.results)
                and not any(value in moving for value in op.operands)
            )
            if not stays:
                inside.append(op)
                moving |= set(op.results)
        return inside

    def _program_id(self, axis: int) -> ir.Value:
        return self._at.create(PROGRAM_ID, [], [self._at.i32], self._axis(axis)).result

    def _next(self, answer: ir.Value, axis: int) -> ir.Value:
        at = self._at
        return at.create("nv_tileas.next_program_id", [answer], [at.i32], self._axis(axis)).result

    def _axis(self, axis: int) -> dict[str, ir.Attribute]:
        return {"axis": ir.IntegerAttr.get(self._at.i32, axis)}


def answers(at: Writer, block: ir.Block, stages: int) -> ir.Value:
    """Memory that nothing else ever uses, from a kernel's beginning to its end."""
    outer, tile = at.place, ir.RankedTensorType.get([ANSWER_WORDS], at.i32)
    held = ir.RankedTensorType(distributed(tile, row_major([ANSWER_WORDS])))
    aligned = {"alignment": ir.IntegerAttr.get(at.i32, ANSWER_WORDS * _WORD_BYTES)}
    at.move(ir.InsertionPoint.at_block_begin(block))
    type_ = Buffer(held, "shared", stages).type
    made = at.create("nv_tileas.alloc_tensor", [], [type_], aligned).result
    at.move(ir.InsertionPoint(block.operations[len(block.operations) - 1]))
    at.create("nv_tileas.dealloc", [made])
    at.move(outer)
    return made


def ask(at: Writer, answer: ir.Value, barrier: ir.Value, stage: ir.Value, ctas: int) -> None:
    """Ask for a tile block, for all `ctas` blocks of a cluster."""
    size = {"bytes": ir.IntegerAttr.get(at.i32, ANSWER_WORDS * _WORD_BYTES)}
    at.create("nv_tileas.barrier_expect", [barrier, stage], [], size)
    at.create(CANCEL, [answer, barrier, stage], [], for_cluster(at, ctas))


def for_cluster(at: Writer, ctas: int) -> dict[str, ir.Attribute]:
    """The attribute of what concerns all blocks of a cluster; nothing for one."""
    return {CTAS: ir.IntegerAttr.get(at.i32, ctas)} if ctas > 1 else {}


def _use(block: ir.Block, ids: list[ir.Value]) -> None:
    """Program ids of the loop instead of the launch's."""
    for op in list(block.operations):
        for region in op.regions:
            for inner in region.blocks:
                _use(inner, ids)
        if op.operation.name == PROGRAM_ID:
            axis = ir.IntegerAttr(op.attributes["axis"]).value
            op.results[0].replace_all_uses_with(ids[axis])
            op.operation.erase()


@dataclass(frozen=True)
class Question:
    """What a loop over tile blocks does to take over the next one.

    Attributes:
        loop: the `scf.while`.
        asks: in front of the tile block: where blocks meet, bytes that are expected, the question.
        reads: behind it: the turn, the wait, what the answer says.
        begins: where blocks of a cluster meet before the loop, if it has several.
    """

    loop: ir.OpView
    asks: Sequence[ir.OpView]
    reads: Sequence[ir.OpView]
    begins: ir.OpView | None

    @property
    def ops(self) -> list[ir.Operation]:
        """All of them."""
        begins = [] if self.begins is None else [self.begins]
        return [op.operation for op in (*begins, *self.asks, *self.reads)]

    @staticmethod
    def around(op: ir.OpView) -> Question | None:
        """That of the loop over tile blocks which `op` stands in, if there is one."""
        loop = _outermost(op)
        ops = list(loop.regions[0].blocks[0].operations) if loop.name == "scf.while" else []
        found = next((one for one in ops if one.operation.name == CANCEL), None)
        if found is None:
            return None
        answer, barrier, _ = found.operands
        at = [one.operation for one in ops].index(found.operation) + 1
        mine = [
            [one for one in part if any(value in (answer, barrier) for value in one.operands)]
            for part in (ops[:at], ops[at:])
        ]
        met = [one for one in ops[:at] if one.operation.name == _MEETING]
        begins = [
            one
            for one in loop.operation.block.operations
            if BEGINS in one.attributes and one.operation.name == _MEETING
        ]
        return Question(loop, [*met, *mine[0]], mine[1], begins[0] if begins else None)

    def through_pipe(
        self,
        func: ir.Operation,
        warps: int,
        loop: ir.OpView,
        mark: Mapping[str, ir.Attribute],
    ) -> None:
        """Let answers go to `warps` of each block of the cluster through a pipe. Whoever has begun
        all copies for `loop`, or comes to a branch that it stands in, asks: operations with the
        attributes of `mark`.
        """
        ctas, at = num_ctas(func), Writer(self.loop.location)
        entry = func.regions[0].blocks[0]
        at.move(ir.InsertionPoint.at_block_begin(entry))
        place = BarrierPlace(func, again=False)
        asked, read = (place.made_once(at, _ANSWERS, count) for count in (1, warps * ctas))
        held = answers(at, entry, _ANSWERS)
        body = self.loop.regions[0].blocks[0]
        before = [op.operation for op in body.operations]
        at.move(ir.InsertionPoint(within(loop.operation, body)))
        slot = Slot(*at.create("nv_tileas.barrier_next", [read], [at.i32, at.i32]).results)
        assert slot.phase is not None, "asked for"
        turned = at.binary("xori", slot.phase, at.constant(1))
        alone = {LEADER: ir.UnitAttr.get(), WITH_WARP: ir.UnitAttr.get()}
        at.create("nv_tileas.barrier_wait", [read, slot.index, turned], [], alone)
        ask(at, at.view(held, slot.index), asked, slot.index, ctas)
        for op in body.operations:
            if op.operation not in before:
                for name, value in mark.items():
                    op.attributes[name] = value
        at.move(ir.InsertionPoint(self.reads[0]))
        i1 = ir.IntegerType.get_signless(1)
        taken = at.create(TAKE, [held, asked, read], [i1, *[at.i32] * AXES], for_cluster(at, ctas))
        for op in self.reads:
            if op.operation.name == IS_VALID:
                op.results[0].replace_all_uses_with(taken.results[0])
            elif "axis" in op.attributes:
                axis = ir.IntegerAttr(op.attributes["axis"]).value
                op.results[0].replace_all_uses_with(taken.results[1 + axis])
        old = [self.asks[-1].operands[0], self.asks[-1].operands[1]]
        for op in [*reversed(self.reads), *reversed(self.asks)]:
            op.operation.erase()
        for value in old:
            _erase_made(value)
        if self.begins is not None:  # agents meet before they part
            at.move(ir.InsertionPoint(self.begins))
            at.meet(in_cluster=False).attributes[BEGINS] = ir.UnitAttr.get()
            self.begins.operation.erase()


def _outermost(op: ir.OpView) -> ir.OpView:
    """What it stands in of a kernel's own operations, or itself."""
    one = op.operation
    while one.parent is not None and one.parent.name != "func.func":
        one = one.parent
    return one.opview


def _erase_made(value: ir.Value) -> None:
    """Erase what makes a buffer or a barrier that nobody uses any more, and gives it back."""
    made = value.owner
    assert not isinstance(made, ir.Block), "made by the kernel"
    for use in list(value.uses):
        use.owner.operation.erase()
    operands = list(made.operands)
    made.operation.erase()
    for operand in operands:
        _erase_made(operand)
