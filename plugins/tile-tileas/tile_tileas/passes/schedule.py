"""tileas-generate-schedule and tileas-materialize-schedule.

The first asks a scheduler and writes its answer on the operations (`nv_tileas.start`, in cycles)
and on the operation that holds the block (`nv_tileas.ii`, `nv_tile.aws.stage`,
`nv_tile.aws.order`), where it can be read and edited; the second moves the operations and removes
the attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tile_core.diagnostics import ConfigurationError
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at, option
from tile_core.sched import (
    Composed,
    IncompleteError,
    Infeasible,
    LoopGraph,
    MachineModel,
    Schedule,
    ScheduleOptions,
    violations,
)
from tile_core.sched.document import Body, from_json
from tile_tileas.analysis.alias import AliasAnalysis
from tile_tileas.passes.convert_tileaa import num_warps
from tile_tileas.sched.bodies import BodyOf, annotate, bodies_of, clear, read
from tile_tileas.sched.model import Machinery, loop_graph


def _not_negative(value: int) -> str | None:
    return "must not be negative" if value < 0 else None


@dataclass(frozen=True)
class GenerateSchedule(Pass):
    """Ask a scheduler in which order, and how far apart, operations start."""

    name = "tileas-generate-schedule"
    anchor = "func.func"
    preserves = ("axis",)

    scheduler: str = option("serial", "scheduler (see `tilec plugins list`)")
    max_stages: int = option(1, "iterations in flight at most; 0: no bound", check=_not_negative)
    max_constraint_iterations: int = option(
        10, "rounds in which constraints are refined", check=_not_negative
    )
    rrt_size_threshold: int = option(
        4096, "rows of a reservation table, beyond which time is coarser", check=_not_negative
    )
    enable_random_delay: bool = option(
        False, "delay operations at random, the same way every time, to look for bugs"
    )
    machine_model: str = option("sm", "resources and times (see `tilec plugins list`)")
    parts: str = option("", "gates, costs and arms of plugins, separated by commas")
    schedule: str = option("", "file of `tilec schedule --json` whose starts are taken")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        scheduler = self._scheduler(cx)
        given = self._given()
        bodies = graphs_of(op, cx, self.options_of_graphs(), self.machine_model)
        for body, graph, model in bodies:
            if graph.name in given:
                annotate(body, _taken(body, graph, model, given[graph.name]))
                continue
            found = scheduler.schedule(graph, model)
            if isinstance(found, Infeasible):
                raise error_at(
                    body.holder, f"cannot be scheduled by '{self.scheduler}': {found.reason}"
                )
            for note in found.notes:
                cx.missed(body.holder.operation, note)
            check(body, graph, model, found, f"scheduler '{self.scheduler}'")
            annotate(body, found)

    def options_of_graphs(self) -> ScheduleOptions:
        """What schedulers are asked for."""
        return ScheduleOptions(
            self.max_stages,
            self.max_constraint_iterations,
            self.rrt_size_threshold,
            self.enable_random_delay,
        )

    def _scheduler(self, cx: PassContext) -> Any:
        scheduler = cx.scheduler(self.scheduler)
        names = [name for name in self.parts.split(",") if name]
        if not names:
            return scheduler
        if not isinstance(scheduler, Composed):
            raise ConfigurationError(
                f"the scheduler '{self.scheduler}' takes no parts, but {', '.join(names)} are given"
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
    func: ir.Operation, cx: PassContext, options: ScheduleOptions, machine_model: str = "sm"
) -> list[tuple[BodyOf, LoopGraph, MachineModel]]:
    """The bodies of a function, each with its graph and the machine it is scheduled for.

    Straight-line code has one stage whatever `options` allow.
    """
    machinery = Machinery.of(cx.target, num_warps(func), cx.machine_model(machine_model))
    model = machinery.model(cx.target.max_shared)
    aliases = AliasAnalysis(func)
    symbol = ir.StringAttr(func.attributes["sym_name"]).value
    found = []
    for body in bodies_of(func):
        graph = loop_graph(body.block, machinery, is_loop=body.is_loop, aliases=aliases)
        asked = options if body.is_loop else replace(options, max_stages=1)
        found.append((body, replace(graph, options=asked, name=f"{symbol}/{body.name}"), model))
    return found


def check(
    body: BodyOf, graph: LoopGraph, model: MachineModel, schedule: Schedule, who: str
) -> None:
    """Refuse a schedule that is not one: order, latency, resources, stages, depths.

    Raises:
        CompileError: names the edge, or the resource and the cycle of the interval.
    """
    try:
        violation = next(violations(graph, model, schedule), None)
    except IncompleteError as error:
        raise error_at(body.holder, f"{who} {error}") from error
    if violation is not None:
        raise error_at(
            body.holder,
            f"{who} {violation.message}",
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


@dataclass(frozen=True)
class MaterializeSchedule(Pass):
    """Put operations in the order of their schedule."""

    name = "tileas-materialize-schedule"
    anchor = "func.func"
    statistics = {"moved": "operations that changed their place"}

    machine_model: str = option("sm", "resources and times the schedule was made for")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        scheduled = [(body, found) for body in bodies_of(op) if (found := read(body)) is not None]
        if not scheduled:
            return
        options = ScheduleOptions()
        graphs = graphs_of(op, cx, options, self.machine_model)
        of_block = {graph.name.rsplit("/", 1)[1]: (graph, model) for _, graph, model in graphs}
        for body, schedule in scheduled:
            if schedule.num_stages > 1:
                raise error_at(
                    body.holder,
                    f"has a schedule of {schedule.num_stages} stages, but only one iteration at "
                    "a time is supported",
                    hint="choose a scheduler whose starts stay below its initiation interval",
                )
            graph, model = of_block[body.name]
            check(body, graph, model, schedule, "its schedule")
            clear(body)
            cx.count("moved", _reorder(list(body.block.operations), schedule))


def _reorder(ops: list[ir.OpView], schedule: Schedule) -> int:
    """Move operations before the terminator, in order; how many changed their place."""
    order = schedule.order()
    if order[-1] != len(ops) - 1:
        # Others may start in the terminator's cycle; it still ends the block.
        order = (*(at for at in order if at != len(ops) - 1), len(ops) - 1)
    for at in order[:-1]:
        ops[at].operation.move_before(ops[-1].operation)
    return sum(1 for place, at in enumerate(order) if place != at)
