"""From resolved names to a plan: pass objects, checked against each other before any IR is seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tile_core.diagnostics import ConfigurationError, TileError
from tile_core.passes import ALL_ANALYSES, Pass, invalidated
from tile_core.pipeline.resolve import NATIVE, PassCall, Resolved, SegmentCall
from tile_core.registry import Registry
from tile_core.target import Target

ROOT = "builtin.module"
#: In `nest`: any number of operations in between. As `Pass.anchor`: any operation.
ANY = "*"


@dataclass(frozen=True)
class Step:
    """A pass in its place. `work` is None for an upstream pass, which is `native` text then."""

    call: PassCall
    segment: str
    nest: tuple[str, ...]
    work: Pass | None = None
    native: str = ""
    preserves: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The pass's name, "mlir:cse" for upstream ones."""
        return self.call.name

    @property
    def qualified(self) -> str:
        """ "segment/id", unique in a pipeline unless a segment repeats a pass without ids."""
        return f"{self.segment}/{self.call.id}"

    @property
    def anchor(self) -> str:
        """What it runs on."""
        return self.nest[-1] if self.nest else ROOT


@dataclass(frozen=True)
class PlanSegment:
    """A segment of a plan."""

    name: str
    nest: tuple[str, ...]
    steps: tuple[Step, ...]
    removes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What a run does; immutable, and fixed before the IR is touched."""

    name: str
    target: Target
    options: Mapping[str, Any]
    segments: tuple[PlanSegment, ...]

    def steps(self) -> list[Step]:
        """All steps in order."""
        return [step for segment in self.segments for step in segment.steps]


def build(resolved: Resolved, registry: Registry) -> Plan:
    """The plan of a resolved pipeline.

    Raises:
        ConfigurationError: an unknown pass or option, a pass on the wrong anchor, or one that
            drops what a later one requires.
    """
    segments = tuple(_segment(segment, registry) for segment in resolved.segments)
    plan = Plan(resolved.name, resolved.target, resolved.options, segments)
    _check_published(plan.steps())
    return plan


def _segment(segment: SegmentCall, registry: Registry) -> PlanSegment:
    steps = tuple(make_step(call, segment, registry) for call in segment.passes)
    return PlanSegment(segment.name, segment.nest, steps, segment.removes)


def make_step(call: PassCall, segment: SegmentCall, registry: Registry) -> Step:
    """The pass of `call`, with its options checked, in its place.

    Raises:
        ConfigurationError: an unknown pass or option, or a pass on the wrong anchor.
    """
    try:
        if call.name.startswith(NATIVE):
            return Step(
                call, segment.name, segment.nest,
                native=str(call).removeprefix(NATIVE), preserves=call.preserve,
            )  # fmt: skip
        known = registry.load("pass", call.name)
        work = known.configured(call.options)
        preserves = (*known.preserves, *call.preserve)
        step = Step(call, segment.name, segment.nest, work, preserves=preserves)
        _check_anchor(step, work)
        return step
    except TileError as error:
        if error.where is None and call.spot is not None and not _is_overridden(call, registry):
            error.where = call.spot.source.at(call.spot.path)
        raise


def _is_overridden(call: PassCall, registry: Registry) -> bool:
    """Whether a refused call would stand without what the command line gave it."""
    if not call.overridden:
        return False
    options = {k: v for k, v in call.options.items() if k not in call.overridden}
    try:
        registry.load("pass", call.name).configured(options)
    except TileError:
        return False
    return True


def _check_anchor(step: Step, work: Pass) -> None:
    if work.anchor not in (step.anchor, ANY):
        raise ConfigurationError(
            f"pass '{step.name}' anchored on '{work.anchor}' "
            f"added to pipeline anchored on '{step.anchor}'",
            hint=f"put it into a segment whose nest ends in '{work.anchor}'",
        )


def _check_published(steps: Sequence[Step]) -> None:
    """Whatever a pass requires was published before; that, and what it accepts, survives."""
    for at, step in enumerate(steps):
        if step.work is None:
            continue
        for needed in (*step.work.requires, *step.work.accepts):
            providers = [
                i
                for i, other in enumerate(steps[:at])
                if other.work is not None and needed in other.work.publishes
            ]
            if providers:
                _check_kept(needed, steps[providers[-1] : at + 1])
            elif needed in step.work.requires:
                raise ConfigurationError(
                    f"pass '{step.name}' requires {needed}, which no pass before it publishes"
                )


def _check_kept(name: str, steps: Sequence[Step]) -> None:
    """Every pass between the first and the last of `steps` preserves the analysis `name`."""
    first, *between, last = steps
    for other in between:
        if not keeps(other.preserves, name):
            raise ConfigurationError(
                invalidated(name),
                notes=(
                    f"pass '{other.name}' between '{first.name}' and '{last.name}' does not "
                    f"preserve {name}",
                ),
                hint=f'if it leaves all operations where they are: preserve = ["{name}"]',
            )


def keeps(preserves: Iterable[str], analysis: str) -> bool:
    """Whether a pass that declares `preserves` leaves `analysis` valid."""
    return analysis in preserves or ALL_ANALYSES[0] in preserves
