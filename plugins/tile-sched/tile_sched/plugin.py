"""What tile-sched brings: schedulers and machine models."""

from collections.abc import Iterable

from tile_core.hookspecs import SPEC_VERSION, Lazy, hookimpl

TILE_SPEC_VERSION = SPEC_VERSION


@hookimpl
def tile_schedulers() -> Iterable[Lazy]:
    return (
        Lazy("serial", "tile_sched.schedulers.serial:SerialScheduler", "program order"),
        Lazy("list", "tile_sched.schedulers.list:ListScheduler", "critical path first"),
        Lazy("cost", "tile_sched.schedulers.cost:CostScheduler", "iterations overlap, four arms"),
        Lazy("fast", "tile_sched.schedulers.cost:FastScheduler", "iterations overlap, first arm"),
        Lazy("ims", "tile_sched.schedulers.ims:IterativeScheduler", "iterations overlap, eviction"),
        Lazy("exact", "tile_sched.schedulers.exact:ExactScheduler", "the shortest interval"),
    )


@hookimpl
def tile_machine_models() -> Iterable[Lazy]:
    return (
        Lazy("sm", "tile_sched.machine:sm.toml", "times of the GPU's machine file"),
        Lazy("spec", "tile_sched.machine:spec.toml", "round numbers of the specification"),
    )
