"""What a loop over tile blocks asks launch control, and answers that go to agents through a pipe.

the agent that copies: until all agents of all blocks have read what the stage held; ask
..
each agent:            take_program_id: wait for the answer, read it, say so
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.analysis.users import within
from tile_tileas.dialect import distributed
from tile_tileas.dialect.barriers import CTAS, LEADER, WITH_WARP
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.launched import ANSWER_WORDS, AXES, CANCEL, IS_VALID, TAKE
from tile_tileas.kernel_spec import num_ctas
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.writer import Writer
from tile_tileas.storage import row_major
from tile_tileas.tma.barriers import BEGINS, BarrierPlace

_MEETING = "nv_tileas.cluster_sync"
_WORD_BYTES = 4
#: Answers on their way, or not read by all agents: the agent that copies is at most a tile block
#: ahead of that which has the rest.
_ANSWERS = 2


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
    def around(func: ir.Operation, op: ir.OpView) -> Question | None:
        """That of the loop over tile blocks of `func` which `op` stands in, if there is one."""
        place = within(op.operation, func.regions[0].blocks[0])
        assert place is not None, "inside of the kernel"
        loop = place.opview
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
        at, entry = Writer(self.loop.location), func.regions[0].blocks[0]
        at.move(ir.InsertionPoint.at_block_begin(entry))
        barriers, ctas = BarrierPlace(func, again=False), num_ctas(func)
        asked, read = (barriers.made_once(at, _ANSWERS, count) for count in (1, warps * ctas))
        pipe = Pipe(answers(at, entry, _ANSWERS), asked, read, ctas)
        body = self.loop.regions[0].blocks[0]
        before = [op.operation for op in body.operations]
        place = within(loop.operation, body)
        assert place is not None, "found around it"
        at.move(ir.InsertionPoint(place))
        pipe.ask(at)
        for op in body.operations:
            if op.operation not in before:
                for name, value in mark.items():
                    op.attributes[name] = value
        at.move(ir.InsertionPoint(self.reads[0]))
        self._replace(pipe.take(at))

    def _replace(self, taken: Sequence[ir.Value]) -> None:
        """Have what was `taken` in place of what an answer said, and no more of the question."""
        for op in self.reads:
            if op.operation.name == IS_VALID:
                op.results[0].replace_all_uses_with(taken[0])
            elif "axis" in op.attributes:
                axis = ir.IntegerAttr(op.attributes["axis"]).value
                op.results[0].replace_all_uses_with(taken[1 + axis])
        old = list(self.asks[-1].operands)[:2]
        for op in [*reversed(self.reads), *reversed(self.asks)]:
            op.operation.erase()
        for value in old:
            _erase_made(value)
        if self.begins is not None:  # agents meet before they part
            at = Writer(self.begins.location)
            at.move(ir.InsertionPoint(self.begins))
            at.meet(in_cluster=False).attributes[BEGINS] = ir.UnitAttr.get()
            self.begins.operation.erase()


@dataclass(frozen=True)
class Pipe:
    """Answers on their way: the buffer that they come to, the barriers at which they arrive and at
    which those arrive that have read them, and for how many blocks they are.
    """

    held: ir.Value
    asked: ir.Value
    read: ir.Value
    ctas: int

    def ask(self, at: Writer) -> None:
        """One thread asks when all have read what the next stage held."""
        slot = Slot(*at.create("nv_tileas.barrier_next", [self.read], [at.i32, at.i32]).results)
        assert slot.phase is not None, "asked for"
        turned = at.binary("xori", slot.phase, at.constant(1))
        alone = {LEADER: ir.UnitAttr.get(), WITH_WARP: ir.UnitAttr.get()}
        at.create("nv_tileas.barrier_wait", [self.read, slot.index, turned], [], alone)
        ask(at, at.view(self.held, slot.index), self.asked, slot.index, self.ctas)

    def take(self, at: Writer) -> list[ir.Value]:
        """Whether there is a tile block, and its place in the grid."""
        types = [ir.IntegerType.get_signless(1), *[at.i32] * AXES]
        operands = [self.held, self.asked, self.read]
        return list(at.create(TAKE, operands, types, for_cluster(at, self.ctas)).results)


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
