"""Tiles that cross stages go through shared memory: a pipe for each, in place of registers.

    x = producer                  x = producer
    ...                     =>    produce_one { copy x to a stage }
    user(x), stages later         y = consume_one { copy from the stage }; user(y)

The loop is right with and without overlap: producer and consumer follow one another in an
iteration. Once a plan puts them into different stages, the pipe holds what is in flight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tile_cute.linear import LinearLayout
from tile_tileaa.dialect.folds import SLOTS

from tile_core.mlir import ir
from tile_core.sched import Edge, LoopGraph, LoopOp, Schedule
from tile_tileas.analysis.pressure import used_values
from tile_tileas.cloning import replace_operands
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.pipelines import ConsumerTokenType, IteratorType, ProducerTokenType
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.modulo.body import LoopBody
from tile_tileas.modulo.plan import Dependences
from tile_tileas.sched.edges import carried_edges, data_edges
from tile_tileas.sched.pipes import PipeSteps, pipes_of
from tile_tileas.storage import storage_bits

_P = "nv_tileas.async_pipeline_"
#: Attribute of a pipe that a schedule asked for: its name there.
NAME = "nv_tileas.pipe"
_ACCESS_BITS = 128  # that a thread moves at once


@dataclass(frozen=True)
class Crossing:
    """A tile that operation `producer` makes and `users`, stages later, take."""

    value: ir.Value
    producer: int
    users: tuple[int, ...]
    filled: int  # cycle
    read: int  # cycle
    depth: int  # stages of the pipe
    layout: LinearLayout  # of its buffer

    @property
    def bytes(self) -> int:
        """Shared memory of the pipe."""
        return self.depth * self.layout.size * storage_bits(self.value.type.element_type) // 8


def crossings(
    body: LoopBody, deps: Dependences, graph: LoopGraph, schedule: Schedule
) -> list[Crossing]:
    """The tiles that cross stages, in program order, and that a pipe can carry.

    A pipe is filled once the tile is there: before, who copies it would wait for it. What is made
    again where it is used (addresses, broadcasts) is no user of its own.
    """
    found, ii = [], schedule.ii
    for at, op in enumerate(body.ops):
        if at in deps.cheap or at in deps.late:
            continue
        filled = schedule.start[at] + graph.ops[at].latency
        for value in op.results:
            users = [u for u, user in enumerate(body.ops) if value in used_values(user)]
            later = tuple(user for user in users if schedule.stages[user] > filled // ii)
            layout = _placed(value.type)
            if not later or layout is None or any(user in deps.cheap for user in users):
                continue
            read = min(schedule.start[user] for user in later)
            depth = read // ii - filled // ii + 1
            found.append(Crossing(value, at, later, filled, read, depth, layout))
    return found


def _placed(type_: ir.Type) -> LinearLayout | None:
    """Where a tile lies in shared memory: 16 bytes of each thread beside those of the next one, so
    that no banks meet. None unless every element is in one register of one thread.
    """
    layout = layout_of(type_)
    if layout is None or not layout.is_injective or not layout.is_surjective:
        return None
    flat = {space: list(layout.flat(space)) for space in layout.spaces}
    if not set(flat) <= {"register", "lane", "warp"}:
        return None
    first = max(0, (_ACCESS_BITS // storage_bits(type_.element_type)).bit_length() - 1)
    registers = flat.get("register", [])
    order = [*registers[:first], *flat.get("lane", []), *flat.get("warp", []), *registers[first:]]
    return LinearLayout.from_flat({"offset": order}, layout.shape)


class Piping:
    """Rewrites one `scf.for` so that tiles go through pipes."""

    def __init__(self, body: LoopBody, found: Sequence[Crossing], names: Mapping[int, str]) -> None:
        """`names`: of pipes, by producer."""
        self.body, self.found, self.names = body, found, names
        self.loop = body.loop
        #: New operations, and the cycles that they start in.
        self.starts: list[tuple[ir.Operation, int]] = []

    def run(self) -> ir.OpView:
        """The new loop, in place of the old one."""
        at = Exchange(self.loop)
        ends = [end for crossing in self.found for end in self._created(at, crossing)]
        block, arguments, new = self._widened(at, ends)
        given: list[ir.Value] = []
        for number, crossing in enumerate(self.found):
            given += self._ends(crossing, arguments[4 * number : 4 * number + 4])
        last = list(block.operations)[-1]
        Exchange(last).create("scf.yield", [*last.operands, *given])
        last.operation.erase()
        return new

    def _created(self, at: Exchange, crossing: Crossing) -> list[ir.Value]:
        """The pipe before the loop: both ends, each with its iterator."""
        tile = ir.RankedTensorType(crossing.value.type)
        buffer = at.buffer(tile, crossing.layout, crossing.depth)
        i8, i32 = (ir.IntegerType.get_signless(bits) for bits in (8, 32))
        attributes = {
            "numStages": ir.IntegerAttr.get(i32, crossing.depth),
            "producerGroupId": ir.IntegerAttr.get(i8, 0),
            "consumerGroupId": ir.IntegerAttr.get(i8, 0),
            NAME: ir.StringAttr.get(self.names[crossing.producer]),
        } | _slots("operand", 1)
        types = [ProducerTokenType.get(), ConsumerTokenType.get()]
        ends = at.create(f"{_P}create_pipeline", [buffer], types, attributes).results
        stage = IteratorType.get(ir.TypeAttr.get(_stage(buffer)))
        return [
            value
            for end in ends
            for value in (end, at.create(f"{_P}create_iterator", [end], [stage]).result)
        ]

    def _widened(
        self, at: Exchange, more: Sequence[ir.Value]
    ) -> tuple[ir.Block, list[ir.Value], ir.OpView]:
        """The loop that carries `more` along; its body still ends as it did."""
        old = self.loop
        types = [*(result.type for result in old.results), *(value.type for value in more)]
        attributes = {name: old.attributes[name] for name in old.attributes}
        new = at.create("scf.for", [*old.operands, *more], types, attributes, regions=1)
        old.regions[0].blocks[0].append_to(new.regions[0])
        block = new.regions[0].blocks[0]
        added: list[ir.Value] = [block.add_argument(value.type, old.location) for value in more]
        for before, result in zip(old.results, new.results, strict=False):
            before.replace_all_uses_with(result)
        old.operation.erase()
        return block, added, new.opview

    def _ends(self, crossing: Crossing, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """Filling behind the producer, reading before the first user; what is carried on."""
        producer, into, consumer, out = carried
        made, first = self.body.ops[crossing.producer], self.body.ops[crossing.users[0]]
        filled = self._produce(made, crossing, producer, into)
        read, value = self._consume(first, crossing, consumer, out)
        for user in crossing.users:
            replace_operands(self.body.ops[user], {crossing.value: value})
        return [*filled, *read]

    def _produce(
        self, made: ir.OpView, crossing: Crossing, end: ir.Value, place: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        at = Exchange(made, behind=True)
        stage = IteratorType(place.type).params[0]
        attributes = {
            "kind": ir.StringAttr.get("generic"),
            "producer_types": ir.ArrayAttr.get([stage]),
        } | _slots("result", 1, 0)
        op = at.create(f"{_P}produce_one", [end, place], [end.type], attributes, regions=1)
        inside = _inside(op, ir.TypeAttr(stage).value, made)
        inside.store(crossing.value, op.regions[0].blocks[0].arguments[0])
        _end_region(inside)
        step = Exchange(op, behind=True).create(f"{_P}inc_iter", [place], [place.type])
        self.starts += [(op, crossing.filled), (step, crossing.filled)]
        return op.results[0], step.result

    def _consume(
        self, first: ir.OpView, crossing: Crossing, end: ir.Value, place: ir.Value
    ) -> tuple[tuple[ir.Value, ir.Value], ir.Value]:
        at, type_ = Exchange(first), crossing.value.type
        stage = IteratorType(place.type).params[0]
        attributes = {
            "kind": ir.StringAttr.get("generic"),
            "consumer_types": ir.ArrayAttr.get([stage]),
            "consumer_idx": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0),
        } | _slots("result", 1, 1)
        op = at.create(f"{_P}consume_one", [end, place], [end.type, type_], attributes, regions=1)
        inside = _inside(op, ir.TypeAttr(stage).value, first)
        _end_region(inside, inside.load(op.regions[0].blocks[0].arguments[0], type_))
        step = at.create(f"{_P}inc_iter", [place], [place.type])
        self.starts += [(op, crossing.read), (step, crossing.read)]
        return (op.results[0], step.result), op.results[1]

    def scheduled(
        self, func: ir.Operation, new: ir.OpView, graph: LoopGraph, schedule: Schedule
    ) -> tuple[LoopGraph, Schedule]:
        """Graph and schedule of the new loop."""
        block = new.regions[0].blocks[0]
        ops = list(block.operations)
        position = {op.operation: at for at, op in enumerate(ops)}
        old = [position[op.operation] for op in self.body.ops] + [len(ops) - 1]
        starts, nodes = [0] * len(ops), [LoopOp("", "control", 0, uses=())] * len(ops)
        for before, after in enumerate(old):
            starts[after], nodes[after] = schedule.start[before], graph.ops[before]
        for made, start in self.starts:
            starts[position[made]] = start
            nodes[position[made]] = LoopOp(made.name, "compute", 0, uses=())
        values = {result: at for at, op in enumerate(ops) for result in op.results}
        edges = [Edge(old[e.src], old[e.dst], e.latency, e.distance, e.kind) for e in graph.edges
                 if e.kind not in ("data", "token")]  # fmt: skip
        edges += data_edges(ops, values, nodes) + carried_edges(block, ops, values, nodes)
        pipes = pipes_of(func)
        assert pipes is not None, "some have just been made"
        edges += PipeSteps(ops, pipes).edges(nodes, is_loop=True)
        made_graph = LoopGraph(tuple(nodes), tuple(edges), True, graph.trip_count, graph.options)
        return made_graph, Schedule(tuple(starts), schedule.ii)


def _stage(buffer: ir.Value) -> ir.Type:
    """The type of one stage of a buffer."""
    record = Buffer.of(buffer.type)
    assert record is not None
    return Buffer(record.tile, record.space, 1).type


def _inside(op: ir.Operation, stage: ir.Type, where: ir.OpView) -> Exchange:
    """Makes operations in the region of an end of a pipe, which takes a stage."""
    block = op.regions[0].blocks.append(stage, arg_locs=[where.location])
    return Exchange(where).within(block)


def _end_region(inside: Exchange, *values: ir.Value) -> None:
    inside.create(f"{_P}yield", list(values), [], _slots("operand", len(values)))


def _slots(what: str, *given: int) -> dict[str, ir.Attribute]:
    """How many values the fields of an operation hold: the first `given`, none in further slots."""
    count = SLOTS + len(given) - 1
    sizes = [*given, *[0] * (count - len(given))]
    return {f"{what}SegmentSizes": ir.DenseI32ArrayAttr.get(sizes)}
