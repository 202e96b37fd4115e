"""tileas-specialize-warps: kernels with loops that only copy become agents.

    values that all compute: arguments, places in the grid, views
    barriers of the stages; all meet
    agent_switch
      agent 0    the kernel, without the loops that copy
      agent 1    those loops, and the loops and branches around them (`agents.replica`)
    what comes behind

The agent that copies needs one thread. It has a warpgroup where that lets it give registers to the
other one (`setmaxnreg` changes those of whole warpgroups), else one warp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_core.target import Target
from tile_tileas.agents.leaders import mark_leaders
from tile_tileas.agents.needs import FOR, Needs, used_outside
from tile_tileas.agents.registers import (
    Warps,
    warps_for,
    warps_with_registers,
    warps_with_scaling,
)
from tile_tileas.agents.replica import Replica
from tile_tileas.analysis.buffers import ALLOC, is_storage
from tile_tileas.analysis.held import registers_needed
from tile_tileas.analysis.unmet import signals_others
from tile_tileas.dialect.agents import AGENT, ALONE, SWITCH, YIELD
from tile_tileas.kernel_spec import SPEC, num_warps, occupancy
from tile_tileas.pipelining.apart import LEADS, PRODUCER, SCALES
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tma.barriers import BEGINS

_INIT, _DEALLOC = "nv_tileas.barrier_init", "nv_tileas.dealloc"
_SEGMENTS = 16
#: Another number in each agent.
_TEAM = "nv_tileas.team"


@dataclass(frozen=True)
class SpecializeWarps(Pass):
    """Give loops that are marked to copy an agent of their own, beside the rest of the kernel."""

    name = "tileas-specialize-warps"
    anchor = "func.func"
    statistics: ClassVar[dict[str, str]] = {
        "agents": "agents of kernels that have some",
        "loops": "loops that copy for other agents",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        mark_leaders(op)
        marked = list(_marked(op.regions[0]))
        if not marked:
            return
        split = _Split(op, marked, cx.target)
        split.run()
        cx.count("agents", 1 + len(split.parts))
        cx.count("loops", sum(one.name == FOR for one in marked))


def _marked(region: ir.Region) -> Iterator[ir.Operation]:
    for block in region.blocks:
        for op in block.operations:
            if PRODUCER in op.attributes:
                yield op.operation
            for inner in op.regions:
                yield from _marked(inner)


@dataclass(frozen=True)
class _Part:
    """What one agent beside the first does: marked operations, and what it needs for them."""

    marked: Sequence[ir.Operation]
    needs: Needs

    @staticmethod
    def of(marked: Sequence[ir.Operation]) -> _Part:
        needs, own = Needs(), {result for op in marked for result in op.results}
        for op in marked:
            used = [value for value in used_outside(op) if value not in own]
            values = [value for value in used if not is_storage(value)]
            problem = needs.add_places(values, op.opview)
            if problem is not None:  # who marks operations asks before
                raise error_at(op, f"cannot be an agent's of its own: {problem}")
        return _Part(marked, needs)


class _Split:
    """One kernel."""

    def __init__(self, func: ir.Operation, marked: Sequence[ir.Operation], target: Target) -> None:
        self._func, self._marked = func, marked
        self._block = func.regions[0].blocks[0]
        self._at = Writer(func.location)
        self._numbers = numbers = sorted({_agent_of(op) for op in marked})
        self.parts = [_Part.of([op for op in marked if _agent_of(op) == n]) for n in numbers]
        if len(numbers) == 1:
            self._works, copies = warps_for(num_warps(func), occupancy(func), target)
            self._warps = [copies]
        elif SCALES in numbers:
            found = warps_with_scaling(num_warps(func), target)
            assert found is not None, "who marks operations asks before"
            self._works, *self._warps = found
        else:
            needed, blocks = registers_needed(func), occupancy(func)
            self._works, *self._warps = warps_with_registers(
                num_warps(func), len(numbers), needed, blocks, target
            )
        count = len(numbers)
        self._beside, self._idle = self._warps[:count], self._warps[count:]

    def run(self) -> None:
        """Make the agents."""
        at, ops = self._at, list(self._block.operations)
        shared = self._shared(ops)
        behind = [op for op in ops if op.operation.name == _DEALLOC]
        apart = [op.operation for op in (*shared, *behind, ops[-1])]
        rest = [op for op in ops if op.operation not in apart]
        at.move(ir.InsertionPoint(ops[-1]))
        for op in shared:
            at.place.insert(op.operation.detach_from_parent())
        at.fence("mbarrier_init")
        others = signals_others(self._func.regions[0])
        at.meet(in_cluster=others).attributes[BEGINS] = ir.UnitAttr.get()
        sizes = ir.DenseI32ArrayAttr.get([1] * (1 + len(self._warps)))
        switch = at.create(
            SWITCH, [], [],
            {"num_agents_per_group": sizes, "isolated": ir.BoolAttr.get(False)},
            regions=1,
        )  # fmt: skip
        agents = switch.regions[0].blocks.append()
        for number, part, warps in zip(self._numbers, self.parts, self._beside, strict=True):
            body = self._agent(agents, warps, alone=number == LEADS)
            at.move(ir.InsertionPoint(body))
            Replica(at, part.needs, part.marked).of(rest)
            rest = [op for op in rest if op.operation not in part.marked]
            self._end(body)
        for warps in self._idle:
            self._end(self._agent(agents, warps))
        body = self._agent(agents, self._works, first=True)
        at.move(ir.InsertionPoint(body))
        for op in rest:
            at.place.insert(op.operation.detach_from_parent())
        self._end(body)
        for op in self._marked:
            del op.attributes[PRODUCER]
        for op in behind:
            op.operation.move_before(ops[-1].operation)
        self._launch(sum(one.number for one in (self._works, *self._warps)))

    def _shared(self, ops: Sequence[ir.OpView]) -> list[ir.OpView]:
        """What comes before the agents part: scalars without effects that follow from arguments,
        stages and barriers of the loops that copy, memory that lasts as long as the kernel.
        """
        used = {one for op in self._marked for value in used_outside(op) for one in _seen_in(value)}
        found: list[ir.OpView] = []
        known: set[ir.Value] = set(self._block.arguments)
        for op in ops[:-1]:
            name, results = op.operation.name, list(op.results)
            if name == ALLOC:
                users = [use.owner.operation.name for use in results[0].uses]
                taken = results[0] in used or _DEALLOC in users
            elif name == _INIT:
                taken = results[0] in used
            else:
                plain = not len(op.regions) and is_pure(op) and not any(map(_is_tile, results))
                taken = plain and name != _TEAM and all(value in known for value in op.operands)
            if taken:
                found.append(op)
                known.update(results)
        return found

    def _agent(
        self, block: ir.Block, warps: Warps, *, first: bool = False, alone: bool = False
    ) -> ir.Block:
        place = ir.InsertionPoint.at_block_begin(block) if first else ir.InsertionPoint(block)
        self._at.move(place)
        i32 = self._at.i32
        attributes: dict[str, ir.Attribute] = {
            "num_warps": ir.IntegerAttr.get(i32, warps.number),
            "max_regs": ir.IntegerAttr.get(i32, warps.registers),
        }
        if alone:
            attributes[ALONE] = ir.UnitAttr.get()
        return self._at.create(AGENT, [], [], attributes, regions=1).regions[0].blocks.append()

    def _end(self, block: ir.Block) -> None:
        self._at.move(ir.InsertionPoint(block))
        none = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0] * _SEGMENTS)}
        self._at.create(YIELD, [], [], none)

    def _launch(self, warps: int) -> None:
        """A block has the warps of all agents."""
        spec = ir.DictAttr(self._func.attributes[SPEC])
        found = {item.name: item.attr for item in spec}
        found["num_warps"] = ir.IntegerAttr.get(self._at.i32, warps)
        self._func.attributes[SPEC] = ir.DictAttr.get(found)


def _agent_of(op: ir.Operation) -> int:
    """The number of the agent that a marked operation is for."""
    mark = op.attributes[PRODUCER]
    return mark.value if isinstance(mark, ir.IntegerAttr) else 1


def _seen_in(value: ir.Value) -> Iterator[ir.Value]:
    """A value, and the memory that it is a view of."""
    yield value
    if not is_storage(value) or isinstance(value.owner, ir.Block):
        return
    made = value.owner.operation.opview
    if is_pure(made):
        for operand in made.operands:
            yield from _seen_in(operand)


def _is_tile(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)
