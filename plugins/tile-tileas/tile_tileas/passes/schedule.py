"""tileas-generate-schedule-constraints: a scheduler's answer, published and written down.

The published ScheduleAnalysis is what tileas-materialize-schedule makes code of. The same stands on
the operations (`nv_tileas.start`, in cycles) and on the operation that holds the block
(`nv_tileas.ii`, `nv_tile.aws.stage`, `nv_tile.aws.order`), where it can be read and edited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tile_sched.buffers.handoff import mutexes, rings
from tile_sched.pressure import peak

from tile_core.diagnostics import ConfigurationError
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at, option
from tile_core.sched import (
    SCHEDULE_ANALYSIS,
    Composed,
    IncompleteError,
    Infeasible,
    LoopGraph,
    MachineModel,
    Schedule,
    ScheduleAnalysis,
    ScheduledBlock,
    ScheduleOptions,
    violations,
)
from tile_core.sched.document import Body, from_json
from tile_tileas.analysis.alias import AliasAnalysis
from tile_tileas.kernel_spec import num_warps
from tile_tileas.modulo.body import has_loops, is_persistent, why_not
from tile_tileas.remedies import remedy
from tile_tileas.sched.bodies import BodyOf, annotate, bodies_of
from tile_tileas.sched.model import Machinery, loop_graph
from tile_tileas.sched.pipes import pipes_of

#: How much of a thread's registers the tiles of overlapping iterations may take; addresses and
#: what instructions need take the rest (RMS norm in the timing model, H100: tiles of 176 of 255
#: registers gain 1.39, of 384 lose a tenth).
_ROOM = 0.75


def _not_negative(value: int) -> str | None:
    return "must not be negative" if value < 0 else None


@dataclass(frozen=True)
class GenerateScheduleConstraints(Pass):
    """Ask a scheduler in which order, and how far apart, operations start; check what it says."""

    name = "tileas-generate-schedule-constraints"
    anchor = "func.func"
    preserves = ("axis",)
    publishes = (SCHEDULE_ANALYSIS,)

    scheduler: str = option("serial", "scheduler (see `tilec plugins list`)")
    max_stages: int = option(1, "iterations in flight at most; 0: no bound", check=_not_negative)
    persistent_scheduler: str = option(
        "", "scheduler for loops that walk over the grid; empty: the same"
    )
    persistent_stages: int = option(
        1, "iterations in flight of loops that walk over the grid", check=_not_negative
    )
    heed_occupancy: bool = option(
        True, "overlap iterations only where other warps do not hide what one waits for"
    )
    max_constraint_iterations: int = option(
        10, "rounds in which constraints are refined", check=_not_negative
    )
    rrt_size_threshold: int = option(
        4096, "rows of a reservation table, beyond which time is coarser", check=_not_negative
    )
    enable_random_delay: bool = option(
        False, "delay operations at random, the same way every time, to look for bugs"
    )
    pipeline_strategy: str = option(
        "none", "'unspecialize': loads of products run ahead of their loops, so need not here"
    )
    machine_model: str = option("sm", "resources and times (see `tilec plugins list`)")
    parts: str = option("", "gates, costs and arms of plugins, separated by commas")
    schedule: str = option("", "file of `tilec schedule --json` whose starts are taken")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        with cx.scope("TileASGenerateSchedule"):
            self._generate(op, cx)

    def _generate(self, op: ir.Operation, cx: PassContext) -> None:
        schedulers = {name: self.scheduler_for(name, cx) for name in self._names()}
        given = self._given()
        staged = self.pipeline_strategy != "none"
        options = self.options_of_graphs()
        bodies = graphs_of(op, cx, options, self.machine_model, staged=staged)
        blocks: list[ScheduledBlock] = []
        # Inner loops first: a loop around one that overlaps its iterations keeps its own apart.
        overlapping: list[BodyOf] = []
        for body, graph, model in reversed(bodies):
            reason = why_not(body.holder) if body.is_loop else None
            if reason is None and any(body.is_around(inner) for inner in overlapping):
                reason = "those of a loop in its body overlap"
                graph = replace(graph, options=replace(graph.options, max_stages=1))
            if options.max_stages != 1 and body.is_loop and reason:
                cx.missed(
                    body.holder.operation,
                    f"runs one iteration after the other: {reason}",
                    category="schedule",
                    name="IterationsNotOverlapped",
                    hint=remedy([reason]),
                )
            if graph.name in given:
                who, found = self.schedule, _taken(body, graph, model, given[graph.name])
            else:
                who, graph, found = self._found(body, graph, model, schedulers, cx)
            if body.is_loop and found.num_stages > 1:
                overlapping.append(body)
            annotate(body, found)
            blocks.append(
                ScheduledBlock(
                    graph.name, who, graph, model, found, rings(graph, found), mutexes(graph)
                )
            )
        cx.publish(SCHEDULE_ANALYSIS, op, ScheduleAnalysis(tuple(reversed(blocks))))

    def _found(
        self,
        body: BodyOf,
        graph: LoopGraph,
        model: MachineModel,
        schedulers: Mapping[str, Any],
        cx: PassContext,
    ) -> tuple[str, LoopGraph, Schedule]:
        """The scheduler, what it was asked, and its schedule, which has been checked."""
        name, asked = self.scheduler, graph.options
        if self._overlaps_more(body):
            name, stages = self._persistent(body, graph, model, schedulers, cx)
            asked = replace(asked, max_stages=stages, heed_occupancy=False)
        graph = replace(graph, options=asked)
        found = schedulers[name].schedule(graph, model)
        if isinstance(found, Infeasible):
            raise error_at(body.holder, f"failed to find a schedule: '{name}': {found.reason}")
        for note in found.notes:
            cx.missed(body.holder.operation, note, category="schedule", name="Scheduler")
        check(body, graph, model, found, f"scheduler '{name}'")
        return name, graph, found

    def options_of_graphs(self) -> ScheduleOptions:
        """What schedulers are asked for."""
        return ScheduleOptions(
            self.max_stages,
            self.max_constraint_iterations,
            self.rrt_size_threshold,
            self.heed_occupancy,
            self.enable_random_delay,
        )

    def _names(self) -> list[str]:
        return sorted({self.scheduler, self.persistent_scheduler or self.scheduler})

    def _persistent(
        self,
        body: BodyOf,
        graph: LoopGraph,
        model: MachineModel,
        schedulers: Mapping[str, Any],
        cx: PassContext,
    ) -> tuple[str, int]:
        """Scheduler and stages of a loop over the grid; one stage if more take many registers."""
        name = self.persistent_scheduler or self.scheduler
        asked = replace(graph.options, max_stages=self.persistent_stages, heed_occupancy=False)
        found = schedulers[name].schedule(replace(graph, options=asked), model)
        if isinstance(found, Schedule) and model.registers:
            with cx.scope("ResourceConstraintBuilder::tryAddConstraintToAvoidRegSpilling"):
                registers, most = peak(graph, found), int(_ROOM * model.registers)
            if registers > most:
                cx.missed(
                    body.holder.operation,
                    f"runs one iteration after the other: {found.num_stages} would take "
                    f"{registers} registers of a thread, more than {most}",
                    category="schedule",
                    name="IterationsNotOverlapped",
                    hint=remedy(["registers of a thread"]),
                )
                return self.scheduler, self.max_stages
        return name, self.persistent_stages

    def _overlaps_more(self, body: BodyOf) -> bool:
        """Whether `persistent_stages` hold for a loop: fewer blocks than tiles were launched, so
        that few warps are there to hide what one of them waits for.
        """
        more = self.persistent_stages != 1 and self.max_stages == 1
        if not more or not body.is_loop or not is_persistent(body.holder):
            return False
        return why_not(body.holder) is None and not has_loops(body.holder)

    def scheduler_for(self, name: str, cx: PassContext) -> Any:
        """The scheduler called `name`, made of the `parts` that were asked for."""
        scheduler = cx.scheduler(name)
        names = [name for name in self.parts.split(",") if name]
        if not names:
            return scheduler
        if not isinstance(scheduler, Composed):
            raise ConfigurationError(
                f"the scheduler '{name}' takes no parts, but {', '.join(names)} are given"
            )
        return scheduler.composed([cx.schedule_part(name) for name in names])

    def _given(self) -> Mapping[str, Body]:
        if not self.schedule:
            return {}
        try:
            text = Path(self.schedule).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"cannot read '{self.schedule}': {error}") from error
        return {body.name: body for body in from_json(text, self.schedule)}


def graphs_of(
    func: ir.Operation,
    cx: PassContext,
    options: ScheduleOptions,
    machine_model: str = "sm",
    *,
    staged: bool = False,
) -> list[tuple[BodyOf, LoopGraph, MachineModel]]:
    """The bodies of a function, each with its graph and the machine it is scheduled for.

    Straight-line code, and loops whose iterations cannot overlap (`why_not`), have one stage
    whatever `options` allow. `staged`: loads of products are another pass' matter.
    """
    machinery = Machinery.of(
        cx.target, num_warps(func), cx.machine_model(machine_model), staged=staged
    )
    model = machinery.model()
    aliases, pipes = cx.analysis(AliasAnalysis, func), pipes_of(func)
    symbol = ir.StringAttr(func.attributes["sym_name"]).value
    found = []
    with cx.scope("IRWalk::findTargetForLoops"):
        bodies = bodies_of(func)
    for body in bodies:
        graph = loop_graph(
            body.block, machinery, is_loop=body.is_loop, aliases=aliases, pipes=pipes
        )
        overlaps = body.is_loop and why_not(body.holder) is None
        asked = options if overlaps else replace(options, max_stages=1)
        found.append((body, replace(graph, options=asked, name=f"{symbol}/{body.name}"), model))
    return found


def check(
    body: BodyOf, graph: LoopGraph, model: MachineModel, schedule: Schedule, who: str
) -> None:
    """Refuse a schedule that is not one: order, latency, resources, stages, depths, groups.

    Raises:
        CompileError: names the edge, or the resource and the cycle of the interval.
    """
    try:
        violation = next(violations(graph, model, schedule), None)
    except IncompleteError as error:
        raise error_at(body.holder, f"failed to legalize schedule: {who} {error}") from error
    if violation is not None:
        raise error_at(
            body.holder,
            f"failed to legalize schedule: {who} {violation.message}",
            hint="every schedule is checked, whoever made it; nothing was changed",
        )


def _taken(body: BodyOf, graph: LoopGraph, model: MachineModel, given: Body) -> Schedule:
    """The schedule of a file, if it is one of this very body."""
    names = [op.name for op in given.graph.ops]
    if names != [op.name for op in graph.ops]:
        raise error_at(
            body.holder,
            f"is not what the schedule of '{given.name}' was made for: {len(names)} operations "
            f"there, {len(graph.ops)} here",
            hint="make the file anew: `tilec schedule --json` with the same pipeline",
        )
    check(body, graph, model, given.schedule, f"the schedule of '{given.name}'")
    return given.schedule
