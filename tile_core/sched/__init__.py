"""What schedulers exchange with the passes: a plain loop graph, a machine model, a schedule.

No MLIR here. A scheduler is a class with a `name` and a `schedule` method, registered through
`tile_schedulers`; it must be deterministic, and ties go by program order. Whatever it returns is
checked (`violations`) before anything is made of it.
"""

from tile_core.sched.analysis import (
    SCHEDULE_ANALYSIS,
    Mutex,
    Ring,
    ScheduleAnalysis,
    ScheduledBlock,
)
from tile_core.sched.check import (
    IncompleteError,
    Violation,
    violated_edge,
    violations,
)
from tile_core.sched.graph import (
    Constraints,
    Edge,
    Handle,
    LoopGraph,
    LoopOp,
    ScheduleOptions,
    Use,
    topological_order,
)
from tile_core.sched.machine import MachineModel
from tile_core.sched.reservation import ReservationTable
from tile_core.sched.schedule import (
    Composed,
    Decision,
    Infeasible,
    Schedule,
    Scheduler,
    body_order,
    stage_orders,
)

__all__ = [
    "SCHEDULE_ANALYSIS",
    "Composed",
    "Constraints",
    "Decision",
    "Edge",
    "Handle",
    "IncompleteError",
    "Infeasible",
    "LoopGraph",
    "LoopOp",
    "MachineModel",
    "Mutex",
    "ReservationTable",
    "Ring",
    "Schedule",
    "ScheduleAnalysis",
    "ScheduleOptions",
    "ScheduledBlock",
    "Scheduler",
    "Use",
    "Violation",
    "body_order",
    "stage_orders",
    "topological_order",
    "violated_edge",
    "violations",
]
