"""Which values steps of a pipelined loop hand on to later steps.

Iterations are counted from the step: in step k a value "at r" is that of iteration k + r. An
operation of stage s makes its results at S - 1 - s, and takes its operands there. What is taken at
r, but made at a larger one in the same step, was made in an earlier step: it comes in as an
argument of the loop, and next step's is this step's at r + 1. An argument of the original loop at
r > 0 is what the body yields at r - 1; at 0 it may be the value that the loop began with.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.analysis.pressure import used_values
from tile_tileas.modulo.body import LoopBody
from tile_tileas.modulo.plan import Instance, Plan


@dataclass(frozen=True)
class Made:
    """A result of the body by its instance in `stage`, of the iteration at `at`."""

    value: ir.Value
    stage: int
    at: int


@dataclass(frozen=True)
class Begun:
    """An argument of the original loop, of the iteration that the step finishes."""

    value: ir.Value
    at: int = 0


@dataclass(frozen=True)
class Induction:
    """The induction variable of the iteration at `at`."""

    at: int


#: What an operand is: something handed on or made, or a value from outside of the loop.
Source = Made | Begun | Induction | ir.Value


class Rings:
    """Where the operands of every step come from, and what the loop therefore has to carry."""

    def __init__(self, body: LoopBody, plan: Plan) -> None:
        self.body, self.plan = body, plan
        self.stages = plan.stages
        self.carried: dict[Made | Begun, None] = {}  # in the order of the new loop's arguments
        for step in plan.order:
            for value in used_values(body.ops[step.op]):
                self._carry(self.source(value, step.stage, self.at(step.stage)))
        for source in self.after().values():
            self._carry(source)
        for source in self.results():
            self._carry(source)

    def at(self, stage: int) -> int:
        """The iteration that `stage` works for, counted from the step."""
        return self.stages - 1 - stage

    def source(self, value: ir.Value, stage: int | None, at: int) -> Source:
        """What `value` is for a user in `stage` (None: the next iteration) that works at `at`."""
        if value in self.body.owner:
            return Made(value, self.plan.provider(self.body.owner[value], stage), at)
        if value == self.body.induction:
            return Induction(at)
        if value not in self.body.arguments:
            return value
        if at == 0:
            return Begun(value)
        return self.source(self.yielded(value), None, at - 1)

    def yielded(self, argument: ir.Value) -> ir.Value:
        """What the body yields for its own argument."""
        return self.body.yielded[self.body.arguments.index(argument)]

    def is_made(self, source: Made) -> bool:
        """Whether the step itself makes it."""
        return source.at == self.at(source.stage)

    def next(self, source: Made | Begun) -> Source:
        """What the next step gets for `source`."""
        if isinstance(source, Made):
            return Made(source.value, source.stage, source.at + 1)
        return self.source(self.yielded(source.value), None, 0)

    def results(self) -> list[Source]:
        """The results of the loop, counted from the step after the last full one."""
        return [self.source(value, None, self.stages - 2) for value in self.body.yielded]

    def after(self) -> dict[tuple[int, Instance, ir.Value], Source]:
        """The operands of the steps that only finish iterations, by (step, instance, value)."""
        found: dict[tuple[int, Instance, ir.Value], Source] = {}
        for late in range(self.stages - 1):
            for step in self.plan.order:
                if step.stage <= late:
                    continue
                at = late + self.at(step.stage)
                for value in used_values(self.body.ops[step.op]):
                    found[late, step, value] = self.source(value, step.stage, at)
        return found

    def _carry(self, source: Source) -> None:
        while isinstance(source, (Made, Begun)) and source not in self.carried:
            if isinstance(source, Made) and source.at >= self.at(source.stage):
                return
            self.carried[source] = None
            source = self.next(source)


#: Values without a register or a type that a loop can carry: views are made from scalars.
_CARRIED = (
    "!nv_tileaa.ptr", "!nv_tileaa.mem_token", "!nv_tileas.async_token",
    "!nv_tileas.pipeline_consumer_token", "!nv_tileas.pipeline_iterator",
    "!nv_tileas.pipeline_producer_token",
)  # fmt: skip


def refused(rings: Rings, ignored: Collection[ir.Value] = ()) -> str | None:
    """Why the loop cannot carry what it would have to; None if it can, but for those `ignored`."""
    for source in rings.carried:
        if any(source.value == value for value in ignored):
            continue
        type_ = source.value.type
        if isinstance(type_, (ir.RankedTensorType, ir.IntegerType, ir.IndexType, ir.FloatType)):
            continue
        if not str(type_).startswith(_CARRIED):
            return f"a value of type {type_} would go from one iteration to the next"
    return None
