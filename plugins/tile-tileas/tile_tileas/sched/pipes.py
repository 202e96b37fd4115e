"""Rings between the ends of a pipe: a consumer behind its producer, a producer behind the consumer
whose stage it fills again.

Iterators count what an end has done. Where both ends' iterators are followed to where the pipe is
made, the n-th filling meets the n-th reading, and a pipe of d stages lets a producer begin its n-th
filling when the (n - d)-th reading is done: an edge at the distance of those iterations. Of any
other pipe the steps keep the program's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tile_core.mlir import ir
from tile_core.sched import Edge, Handle, LoopOp
from tile_tileas.dialect.pipelines import is_iterator
from tile_tileas.pipes.extract import CREATE, REGIONS, STEPS, Extracted, extract
from tile_tileas.pipes.model import ACQUIRE, COMMIT, RELEASE, WAIT
from tile_tileas.sched.rotation import Place

_ITERATOR = CREATE.replace("create_pipeline", "create_iterator")
_ADVANCE = CREATE.replace("create_pipeline", "inc_iter")
_PRODUCER, _CONSUMER = (ACQUIRE, COMMIT), (WAIT, RELEASE)


def pipes_of(func: ir.OpView | ir.Operation) -> Extracted | None:
    """The pipes of a function; None if it has none."""
    made = any(op.operation.name == CREATE for op in _walk(func))
    return extract(func.operation.opview) if made else None


@dataclass
class PipeSteps:
    """What the operations of a body do with pipes.

    `steps` are (pipe, kind) of every operation of the body, those in its regions included.
    """

    ops: Sequence[ir.OpView]
    found: Extracted
    steps: list[list[tuple[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.steps = [list(self._steps(op)) for op in self.ops]

    def edges(self, nodes: Sequence[LoopOp], is_loop: bool) -> list[Edge]:
        """The rings of all pipes."""
        edges: dict[Edge, None] = {}
        for pipe in self.found.created:
            made = self._ring(pipe, nodes, is_loop)
            for edge in self._in_order(pipe, is_loop) if made is None else made:
                edges[edge] = None
        return list(edges)

    def handles(self) -> list[Handle]:
        """What operations do to pipes."""
        handles: dict[tuple[str, int], Handle] = {}
        for at, steps in enumerate(self.steps):
            for pipe, kind in steps:
                old = handles.get((pipe, at), Handle(pipe, at, writes=False))
                writes = old.writes or kind in _PRODUCER
                # What is committed is what was begun by whoever acquired the stage.
                reads = kind in _CONSUMER or (kind == COMMIT and not old.writes)
                handles[pipe, at] = Handle(pipe, at, writes, old.reads or reads)
        return list(handles.values())

    def payloads(self, at: int) -> list[ir.Value]:
        """The buffers that the pipes of an operation carry."""
        names = dict.fromkeys(pipe for pipe, _ in self.steps[at])
        return [value for name in names for value in self.found.created[name].operands]

    def _steps(self, op: ir.OpView) -> Iterator[tuple[str, str]]:
        name = op.operation.name
        kinds = (STEPS[name],) if name in STEPS else REGIONS.get(name, ())
        for kind in kinds:
            yield self.found.pipe_of[op.operands[0]], kind
        for inner in _inside(op):
            yield from self._steps(inner)

    # -- one pipe -----------------------------------------------------------------------------

    def _in_order(self, pipe: str, is_loop: bool) -> list[Edge]:
        """Its steps one after the other, and those of the next iteration behind the last one."""
        at = [op for op, steps in enumerate(self.steps) if any(name == pipe for name, _ in steps)]
        edges = [Edge(a, b, 0, kind="ring") for a, b in pairwise(at)]
        if at and is_loop:
            edges.append(Edge(at[-1], at[0], 0, 1, "ring"))
        return edges

    def _ring(self, pipe: str, nodes: Sequence[LoopOp], is_loop: bool) -> list[Edge] | None:
        """Edges by the numbers of fillings and readings; None if those are not known."""
        uses: dict[str, list[tuple[int, Place]]] = {}
        for at, steps in enumerate(self.steps):
            for name, kind in steps:
                if name != pipe:
                    continue
                place = self._place(self.ops[at])
                if place is None:
                    return None
                uses.setdefault(kind, []).append((at, place))
        numbers = [place for of in uses.values() for _, place in of]
        step = numbers[0].step if numbers else 0
        if is_loop and step < 1 and numbers:
            return None
        if not all(place.comparable(numbers[0]) for place in numbers):
            return None
        stages = ir.IntegerAttr(self.found.created[pipe].attributes["numStages"]).value
        full = self._meetings(uses.get(COMMIT, []), uses.get(WAIT, []), step, 0)
        empty = self._meetings(uses.get(RELEASE, []), uses.get(ACQUIRE, []), step, stages)
        if full is None or empty is None:
            return None
        edges = [Edge(a, b, nodes[a].latency, far, "ring") for a, b, far in full]
        return edges + [Edge(a, b, nodes[a].latency, far, "ring") for a, b, far in empty]

    def _meetings(
        self,
        before: Sequence[tuple[int, Place]],
        after: Sequence[tuple[int, Place]],
        step: int,
        stages: int,
    ) -> list[tuple[int, int, int]] | None:
        """(operation, operation that waits for it, iterations between them).

        The n-th use of one end waits for the (n - stages)-th of the other. None if the program
        stands in another order than that.
        """
        found = []
        for user, wanted in after:
            for source, given in before:
                number = given.ahead_of(wanted) + stages
                if step == 0:
                    if number == 0 and source >= user:
                        return None
                    found += [(source, user, 0)] if number == 0 and source != user else []
                    continue
                far, rest = divmod(number, step)
                if rest:
                    continue
                if far < 0 or (far == 0 and source >= user):
                    return None
                found.append((source, user, far))
        return found

    def _place(self, op: ir.OpView) -> Place | None:
        """The number of what an operation of the body does with a pipe."""
        name = op.operation.name
        index = list(op.operands)[1:]
        if (name not in STEPS and name not in REGIONS) or len(index) != 1:
            return None
        return iterator_place(index[0], op.operation.block) if is_iterator(index[0].type) else None


def iterator_place(iterator: ir.Value, block: ir.Block) -> Place | None:
    """How often an iterator has been advanced when the body of a loop (`block`) gets to it."""
    source, offset = _advanced(iterator)
    if isinstance(source.owner, ir.Block):
        loop = block.owner
        if source.owner != block or loop.operation.name != "scf.for":
            return None
        at = [value == source for value in block.arguments].index(True) - 1
        yielded, step = _advanced(list(block.operations)[-1].operands[at])
        begin, before = _advanced(loop.operands[3 + at])
        if yielded != source or isinstance(begin.owner, ir.Block):
            return None
        return Place(before, offset, step) if begin.owner.name == _ITERATOR else None
    return Place(0, offset) if source.owner.name == _ITERATOR else None


def _advanced(iterator: ir.Value) -> tuple[ir.Value, int]:
    count = 0
    while not isinstance(iterator.owner, ir.Block) and iterator.owner.name == _ADVANCE:
        iterator, count = iterator.owner.operands[0], count + 1
    return iterator, count


def _inside(op: ir.OpView | ir.Operation) -> Iterator[ir.OpView]:
    for region in op.regions:
        for block in region.blocks:
            yield from block.operations


def _walk(op: ir.OpView | ir.Operation) -> Iterator[ir.OpView]:
    for inner in _inside(op):
        yield inner
        yield from _walk(inner)
