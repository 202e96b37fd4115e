"""What a pass is: a frozen dataclass whose fields are its options.

@dataclass(frozen=True)
class SinkNegF(Pass):
    '''negf(broadcast(x)) => broadcast(negf(x))'''
    name = "sink-negf-through-shapes"
    anchor = "func.func"
    max_depth: int = option(8, "how far to look")

    def run(self, op: ir.Operation, cx: PassContext) -> None: ...
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, Unpack

from tile_core.diagnostics import CompileError
from tile_core.options import configured, fields_of, option

__all__ = [
    "ALL_ANALYSES",
    "Analysis",
    "Pass",
    "PassContext",
    "Services",
    "error_at",
    "invalidated",
    "option",
]

if TYPE_CHECKING:
    from tile_core.mlir import ir
    from tile_core.remarks import About
    from tile_core.target import Target

#: `preserves` of a pass that changes nothing an analysis could see.
ALL_ANALYSES = ("*",)


@dataclass(frozen=True)
class Pass:
    """A transformation or check of one anchor operation."""

    name: ClassVar[str] = ""
    anchor: ClassVar[str] = "builtin.module"
    #: Dialects the pass creates operations of; loaded before it runs.
    dependent_dialects: ClassVar[tuple[str, ...]] = ()
    #: Names of analyses that stay valid; everything else is dropped after the pass.
    preserves: ClassVar[tuple[str, ...]] = ()
    #: Analyses that the pass publishes for later ones (`PassContext.publish`), and those it takes
    #: over (`PassContext.published`). Nothing in between may drop them; checked before any run.
    #: What it `accepts` it takes over where some pass publishes it (`PassContext.accepted`).
    publishes: ClassVar[tuple[str, ...]] = ()
    requires: ClassVar[tuple[str, ...]] = ()
    accepts: ClassVar[tuple[str, ...]] = ()
    #: Counters that `PassContext.count` may raise: name -> what is counted.
    statistics: ClassVar[Mapping[str, str]] = {}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        """Transform `op` in place.

        Raises:
            CompileError: the program cannot be compiled; `op` may be left half changed.
        """
        raise NotImplementedError

    @classmethod
    def description(cls) -> str:
        """The first line of the class's docstring."""
        return (cls.__doc__ or "").strip().split("\n", 1)[0]

    @classmethod
    def options(cls) -> dict[str, dataclasses.Field[Any]]:
        """Option name as pipelines spell it (dashes) -> field."""
        return fields_of(cls)

    @classmethod
    def configured(cls, values: Mapping[str, Any]) -> Self:
        """The pass with `values` (names with dashes) over its defaults, validated.

        Raises:
            ConfigurationError: unknown option, wrong type, or a value that is not allowed.
        """
        return configured(cls, f"pass '{cls.name}'", values)


class Analysis(Protocol):
    """A cached fact about an anchor operation; `name` is what `Pass.preserves` lists."""

    name: ClassVar[str]

    def __init__(self, op: ir.Operation, cx: PassContext) -> None: ...


A = TypeVar("A", bound=Analysis)


class Services(Protocol):
    """What a pass may ask of the run it is part of; `tile_core.pipeline` implements it."""

    def analysis(self, kind: type[A], op: ir.Operation) -> A:
        """The analysis of `op`, computed at most once until a pass invalidates it."""
        ...

    def publish(self, name: str, op: ir.Operation, value: Any) -> None: ...

    def published(self, name: str, op: ir.Operation) -> Any: ...

    def accepted(self, name: str, op: ir.Operation) -> Any: ...

    def count(self, statistic: str, amount: int) -> None: ...

    def remark(self, op: ir.Operation, kind: str, message: str, about: About) -> None: ...

    def error(self, error: CompileError) -> None: ...

    @property
    def is_watched(self) -> bool: ...

    def permits(self, action: str, tag: str, op: ir.Operation) -> bool: ...

    def scope(self, name: str) -> AbstractContextManager[Any]: ...

    def scheduler(self, name: str) -> Any: ...

    def schedule_part(self, name: str) -> Any: ...

    def machine_model(self, name: str) -> tuple[str, str]: ...

    def layout_strategy(self, name: str) -> Any: ...

    def patterns(self, pass_name: str) -> list[Any]: ...


@dataclass(frozen=True)
class PassContext:
    """What a pass knows besides its operation and its own options."""

    target: Target
    options: Mapping[str, Any]  # resolved pipeline options, names with dashes
    services: Services

    def analysis(self, kind: type[A], op: ir.Operation) -> A:
        """The (cached) analysis `kind` of `op`."""
        return self.services.analysis(kind, op)

    def publish(self, name: str, op: ir.Operation, value: Any) -> None:
        """Leave a result for a later pass on the same anchor; it must be in `Pass.publishes`."""
        self.services.publish(name, op, value)

    def published(self, name: str, op: ir.Operation) -> Any:
        """What an earlier pass published about `op`.

        Raises:
            CompileError: nothing, or a pass in between dropped it.
        """
        return self.services.published(name, op)

    def accepted(self, name: str, op: ir.Operation) -> Any:
        """What an earlier pass published about `op`; None where none did."""
        return self.services.accepted(name, op)

    def count(self, statistic: str, amount: int = 1) -> None:
        """Raise a declared statistic of the running pass."""
        self.services.count(statistic, amount)

    def passed(self, op: ir.Operation, message: str, **about: Unpack[About]) -> None:
        """Remark that something was done to `op`; `facts` say what was chosen."""
        self.services.remark(op, "passed", message, about)

    def missed(self, op: ir.Operation, message: str, **about: Unpack[About]) -> None:
        """Remark that something better was not tried on `op`; `reasons` say why."""
        self.services.remark(op, "missed", message, about)

    def failed(self, op: ir.Operation, message: str, **about: Unpack[About]) -> None:
        """Remark that something was tried on `op` and did not work; `reasons` say why."""
        self.services.remark(op, "failed", message, about)

    def observed(self, op: ir.Operation, message: str, **about: Unpack[About]) -> None:
        """Remark what is known of `op`: a remark of kind "analysis"."""
        self.services.remark(op, "analysis", message, about)

    def error(self, op: ir.Operation, message: str, *, hint: str | None = None) -> None:
        """Report an error at `op` and go on, to find what else is wrong: a soft failure.

        The run fails as soon as the pass is done with its operation.
        """
        self.services.error(error_at(op, message, hint=hint))

    @property
    def is_watched(self) -> bool:
        """Whether anybody would answer `permits`."""
        return self.services.is_watched

    def permits(self, action: str, tag: str, op: ir.Operation) -> bool:
        """Whether whoever watches the run lets a step of a pass happen, e.g. one rewrite."""
        return self.services.permits(action, tag, op)

    def scope(self, name: str) -> AbstractContextManager[Any]:
        """Time a named part of a pass: `with cx.scope("unroll"): ...`."""
        return self.services.scope(name)

    def scheduler(self, name: str) -> Any:
        """A scheduler instance by name (see `tile_core.sched`)."""
        return self.services.scheduler(name)

    def schedule_part(self, name: str) -> Any:
        """A gate, cost or arm of plugins by name."""
        return self.services.schedule_part(name)

    def machine_model(self, name: str) -> tuple[str, str]:
        """Where a machine model for schedulers is, and its TOML text."""
        return self.services.machine_model(name)

    def layout_strategy(self, name: str) -> Any:
        """A layout strategy instance by name."""
        return self.services.layout_strategy(name)

    def patterns(self, pass_name: str) -> list[Any]:
        """The rule sets that plugins add to the conversion pass `pass_name`."""
        return self.services.patterns(pass_name)


def invalidated(name: str) -> str:
    """The specification's message about an analysis that a pass in between did not preserve."""
    return f"cleanup pass invalidated {name}; rerun constraint generation or remove the pass"


def error_at(
    op: ir.Operation | ir.OpView, message: str, *, hint: str | None = None
) -> CompileError:
    """A `CompileError` in MLIR's wording, at the source location of `op`."""
    from tile_core.locations import source_location

    operation = op.operation
    return CompileError(
        f"'{operation.name}' op {message}", where=source_location(operation.location), hint=hint
    )
