"""tileas-materialize-schedule: code for the schedules that stand on bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_sched.buffers.handoff import rings

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at, option
from tile_core.sched import (
    SCHEDULE_ANALYSIS,
    LoopGraph,
    Schedule,
    ScheduleAnalysis,
    ScheduleOptions,
    body_order,
)
from tile_tileas.modulo.body import LoopBody, dependences
from tile_tileas.modulo.expand import Expander
from tile_tileas.modulo.pipes import Piping, crossings
from tile_tileas.modulo.plan import plan
from tile_tileas.modulo.rings import Rings, refused
from tile_tileas.passes.schedule import check, graphs_of
from tile_tileas.remedies import remedy
from tile_tileas.sched.bodies import INVALIDATED, BodyOf, bodies_of, clear, read

#: How much of a block's shared memory pipes may take; exchanges and loads that run ahead take the
#: rest.
_ROOM = 0.5


@dataclass(frozen=True)
class MaterializeSchedule(Pass):
    """Put operations in the order of their schedule; let iterations overlap where it says so.

    A loop of several stages becomes a prologue, a loop of full steps and an epilogue. One that
    cannot be keeps one iteration at a time, in the order of its schedule, with a remark. Schedules
    are those that the pass before published; without one, those that stand on the operations.
    """

    name = "tileas-materialize-schedule"
    anchor = "func.func"
    accepts = (SCHEDULE_ANALYSIS,)
    statistics = {
        "moved": "operations that changed their place",
        "overlapped": "loops whose iterations overlap",
        "stages": "stages of those loops",
        "pipes": "tiles that cross their stages in shared memory",
    }

    pipeline_strategy: str = option(
        "none", "'unspecialize': loads of products stay with their product, to run ahead later"
    )
    rings: str = option(
        "registers",
        "where tiles are that cross stages: registers, or pipes in shared memory",
        choices=("registers", "shared"),
    )
    machine_model: str = option(
        "", "resources and times to check with; empty: those of the schedule, and 'sm' of a text's"
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        analysis = cx.accepted(SCHEDULE_ANALYSIS, op)
        bodies = bodies_of(op)
        if analysis is not None:
            _check_unchanged(analysis, bodies)
        scheduled = [(body, found) for body in bodies if (found := read(body)) is not None]
        if not scheduled:
            return
        if analysis is None or self.machine_model:
            graphs = self._read(op, scheduled, cx)
        else:
            graphs = [_published(analysis, body, schedule) for body, schedule in scheduled]
        for body, _ in scheduled:
            clear(body)
        with cx.scope("legalizeLoopScheduleForMaterialization"):
            found = [
                _Found(body, schedule, graph, self._planned(body, schedule, graph))
                for (body, schedule), graph in zip(scheduled, graphs, strict=True)
            ]
        overlapping = [one for one in found if isinstance(one.made, Rings)]
        for one in found:
            if isinstance(one.made, Rings) and not any(one.is_around(o) for o in overlapping):
                continue
            if one.made is not None:
                cx.missed(
                    one.body.holder.operation,
                    f"runs one iteration after the other: {one.reason}",
                    category="schedule",
                    name="IterationsNotOverlapped",
                    hint=remedy([one.reason]),
                )
            one.made = None
            cx.count("moved", _reorder(list(one.body.block.operations), one.schedule))
        # Once all that only moves is in its place: loops are copied here. The last one first, since
        # the plans of those behind a loop know its results, which go with it.
        for one in reversed(found):
            if isinstance(one.made, Rings):
                self._expand(op, one, one.made, cx)

    def _planned(self, body: BodyOf, schedule: Schedule, graph: LoopGraph) -> Rings | str | None:
        """What becomes of a loop of several stages; None for anything else."""
        if schedule.num_stages == 1:
            return None
        return _overlapped(body, graph, schedule, staged=self.pipeline_strategy != "none")

    def _expand(self, func: ir.Operation, one: _Found, made: Rings, cx: PassContext) -> None:
        if self.rings == "shared":
            made = self._piped(func, made, one.graph, one.schedule, cx)
        cx.count("overlapped")
        cx.count("stages", made.stages)
        cx.passed(
            made.body.loop.operation,
            f"{made.stages} iterations overlap, one begins every {one.schedule.ii} cycles",
            category="schedule",
            name="IterationsOverlapped",
            facts={"stages": made.stages, "interval": one.schedule.ii},
        )
        with cx.scope("Schedule::unrollStaticForLoop"):
            Expander(made).run()

    def _piped(
        self, func: ir.Operation, made: Rings, graph: LoopGraph, schedule: Schedule, cx: PassContext
    ) -> Rings:
        """The same loop, whose tiles cross stages in pipes as far as there is room for them."""
        deps = dependences(made.body, graph, late_loads=self.pipeline_strategy != "none")
        names = {ring.canonical: ring.name for ring in rings(graph, schedule)}
        room, found = int(_ROOM * cx.target.max_shared), []
        for crossing in crossings(made.body, deps, graph, schedule):
            if crossing.producer in names and crossing.bytes <= room:
                room -= crossing.bytes
                found.append(crossing)
        if not found:
            return made
        if _is_before_a_condition(made.body.loop):
            cx.failed(
                made.body.loop.operation,
                "tiles that cross stages stay in registers: pipes cannot be followed before the "
                "condition of the loop around",
                category="schedule",
                name="PipesNotMade",
            )
            return made
        piping = Piping(made.body, found, names)
        loop = piping.run()
        cx.count("pipes", len(found))
        graph, schedule = piping.scheduled(func, loop, graph, schedule)
        body = BodyOf(loop, loop.regions[0].blocks[0], True, "")
        again = _overlapped(body, graph, schedule, staged=self.pipeline_strategy != "none")
        assert isinstance(again, Rings), f"pipes keep the order of what they carry: {again}"
        return again

    def _read(
        self, op: ir.Operation, scheduled: Sequence[tuple[BodyOf, Schedule]], cx: PassContext
    ) -> list[LoopGraph]:
        """The graphs of bodies whose schedules were read from attributes, which are checked."""
        staged = self.pipeline_strategy != "none"
        graphs = graphs_of(op, cx, ScheduleOptions(), self.machine_model or "sm", staged=staged)
        of_block = {graph.name.rsplit("/", 1)[1]: (graph, model) for _, graph, model in graphs}
        for body, schedule in scheduled:
            check(body, *of_block[body.name], schedule, "its schedule")
        return [of_block[body.name][0] for body, _ in scheduled]


def _is_before_a_condition(loop: ir.OpView) -> bool:
    """Whether an `scf.while` around a loop runs it before its condition, once more than its body.

    `tileas-verify-pipes` follows no pipes there.
    """
    inner, op = loop.operation, loop.operation.parent
    while op is not None and op.name != "func.func":
        if op.name == "scf.while" and inner.block in list(op.regions[0].blocks):
            return True
        inner, op = op.operation, op.operation.parent
    return False


@dataclass
class _Found:
    """A body, its schedule, and what a loop of several stages becomes, or why it does not."""

    body: BodyOf
    schedule: Schedule
    graph: LoopGraph
    made: Rings | str | None

    @property
    def reason(self) -> str:
        """Why its iterations do not overlap."""
        return self.made if isinstance(self.made, str) else "those of a loop in its body overlap"

    def is_around(self, other: _Found) -> bool:
        """Whether `other` is a loop inside of this one."""
        return self.body.is_around(other.body)


def _published(analysis: ScheduleAnalysis, body: BodyOf, schedule: Schedule) -> LoopGraph:
    """The graph that a body's schedule was made for.

    Raises:
        CompileError: the attributes say something else.
    """
    block = analysis.block(body.name)
    if block is None or block.schedule != schedule:
        raise error_at(body.holder, INVALIDATED)
    return block.graph


def _check_unchanged(analysis: ScheduleAnalysis, bodies: Sequence[BodyOf]) -> None:
    """All bodies have the operations that they were scheduled with.

    Raises:
        CompileError: one has others.
    """
    for body in bodies:
        block = analysis.block(body.name)
        names = [op.operation.name for op in body.block.operations]
        if block is None or [op.name for op in block.graph.ops] != names:
            raise error_at(body.holder, INVALIDATED)


def _overlapped(body: BodyOf, graph: LoopGraph, schedule: Schedule, *, staged: bool) -> Rings | str:
    """What the loop becomes; or why its iterations do not overlap. Nothing is changed yet."""
    reason = None
    loop = LoopBody.of(body.holder.operation.opview)
    order = [op for op in body_order(graph, schedule) if op < len(loop.ops)]
    for late in (True, False) if staged else (False,):
        try:
            found = plan(dependences(loop, graph, late_loads=late), order, schedule.stages)
        except ValueError as error:
            reason = str(error)
            continue
        if found.stages == 1:
            return "all of it is in one stage, once loads stand where they are used"
        if graph.trip_count is not None and graph.trip_count < found.stages:
            return f"it has {graph.trip_count} iterations, for {found.stages} stages"
        rings = Rings(loop, found)
        return refused(rings) or rings
    return reason or "it has no plan"


def _reorder(ops: list[ir.OpView], schedule: Schedule) -> int:
    """Move operations before the terminator, in order; how many changed their place."""
    order = schedule.order()
    if order[-1] != len(ops) - 1:
        # Others may start in the terminator's cycle; it still ends the block.
        order = (*(at for at in order if at != len(ops) - 1), len(ops) - 1)
    for at in order[:-1]:
        ops[at].operation.move_before(ops[-1].operation)
    return sum(1 for place, at in enumerate(order) if place != at)
