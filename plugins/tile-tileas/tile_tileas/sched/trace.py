"""The instrumentation `schedule-trace=FILE`: every decision of the schedulers of a compilation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tile_sched.view.trace import chrome_trace

from tile_core.diagnostics import ConfigurationError
from tile_core.pipeline.instrument import Instrumentation
from tile_core.sched import SCHEDULE_ANALYSIS, Schedule, ScheduleAnalysis, ScheduledBlock
from tile_core.sched.document import Body
from tile_tileas.passes.schedule import GenerateScheduleConstraints

if TYPE_CHECKING:
    from tile_core.mlir import ir
    from tile_core.passes import PassContext
    from tile_core.pipeline.build import Step
    from tile_core.pipeline.run import Run


class ScheduleTrace(Instrumentation):
    """Writes a Chrome trace of the schedules that were made (page 168's `schedule-trace-file`).

    Schedulers keep decisions only where they are asked to; each is asked again for the trace, so
    that a compilation that is traced makes the code of one that is not.
    """

    name: ClassVar[str] = "schedule-trace"
    takes: ClassVar[str] = "FILE"

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._bodies: list[Body] = []

    def before_pipeline(self, run: Run) -> None:
        self._bodies = []
        self._write()  # before any work, in case it cannot be

    def after_pass(self, step: Step, op: ir.Operation, run: Run) -> None:
        if isinstance(step.work, GenerateScheduleConstraints):
            with run.context.scope("DumpTraceImpl::run"):
                found: ScheduleAnalysis = run.context.published(SCHEDULE_ANALYSIS, op)
                self._bodies += [_traced(block, step.work, run.context) for block in found.blocks]

    def after_pipeline(self, run: Run) -> None:
        self._write()

    def _write(self) -> None:
        try:
            self._path.write_text(chrome_trace(self._bodies) + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"cannot write '{self._path}': {error.strerror}") from error


def _traced(block: ScheduledBlock, work: GenerateScheduleConstraints, cx: PassContext) -> Body:
    """A body with the decisions of whoever scheduled it; there are none if a file did."""
    where = block.graph.ops[-1].where if block.graph.ops else ""
    schedule = block.schedule
    if block.strategy != work.schedule:
        graph = replace(block.graph, options=replace(block.graph.options, trace=True))
        again = work.scheduler_for(block.strategy, cx).schedule(graph, block.model)
        if isinstance(again, Schedule):
            schedule = replace(schedule, decisions=again.decisions)
    return Body(block.name, where, block.graph, block.model, block.strategy, schedule)
