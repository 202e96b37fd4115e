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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, get_type_hints

from tile_core.diagnostics import CompileError, ConfigurationError, nearest

if TYPE_CHECKING:
    from tile_core.mlir import ir
    from tile_core.target import Target

T = TypeVar("T")

#: `preserves` of a pass that changes nothing an analysis could see.
ALL_ANALYSES = ("*",)


def option(
    default: T,
    help: str,  # noqa: A002 - the word every option parser uses
    *,
    choices: tuple[T, ...] = (),
    check: Callable[[T], str | None] | None = None,
) -> T:
    """A field of a pass that is one of its options.

    Args:
        default: the value when a pipeline says nothing; its type is the option's type.
        help: one line for `tilec pipeline show --help-passes` and the pass reference.
        choices: the only legal values, if any.
        check: returns what is wrong with a value, or None.
    """
    return field(default=default, metadata={"help": help, "choices": choices, "check": check})


@dataclass(frozen=True)
class Pass:
    """A transformation or check of one anchor operation."""

    name: ClassVar[str] = ""
    anchor: ClassVar[str] = "builtin.module"
    #: Dialects the pass creates operations of; loaded before it runs.
    dependent_dialects: ClassVar[tuple[str, ...]] = ()
    #: Names of analyses that stay valid; everything else is dropped after the pass.
    preserves: ClassVar[tuple[str, ...]] = ()
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
        return {f.name.replace("_", "-"): f for f in dataclasses.fields(cls)}

    @classmethod
    def configured(cls, values: Mapping[str, Any]) -> Pass:
        """The pass with `values` (names with dashes) over its defaults, validated.

        Raises:
            ConfigurationError: unknown option, wrong type, or a value that is not allowed.
        """
        known = cls.options()
        fields: dict[str, Any] = {}
        for key, value in values.items():
            if key not in known:
                close = nearest(key, list(known))
                raise ConfigurationError(
                    f"pass '{cls.name}' has no option '{key}'",
                    hint=f"did you mean '{close}'?" if close else None,
                    notes=(f"its options: {', '.join(known) or 'none'}",),
                )
            fields[known[key].name] = _checked(cls, key, known[key], value)
        return cls(**fields)


def _checked(cls: type[Pass], key: str, spec: dataclasses.Field[Any], value: Any) -> Any:
    kind = get_type_hints(cls)[spec.name]
    wanted = {bool: "a boolean", int: "an integer", str: "a string", float: "a number"}
    # bool is an int in Python, but `num-stages = true` is a mistake.
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        fits, value = True, float(value)
    problem = None if fits else f"expects {wanted.get(kind, kind)}, but got {value!r}"
    choices = spec.metadata.get("choices") or ()
    if problem is None and choices and value not in choices:
        close = nearest(str(value), [str(c) for c in choices])
        problem = f"must be one of {', '.join(map(str, choices))}, but got {value!r}" + (
            f" (did you mean '{close}'?)" if close else ""
        )
    check = spec.metadata.get("check")
    if problem is None and check is not None:
        problem = check(value)
    if problem:
        raise ConfigurationError(f"option '{key}' of pass '{cls.name}' {problem}")
    return value


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

    def count(self, statistic: str, amount: int) -> None: ...

    def remark(self, op: ir.Operation, kind: str, message: str) -> None: ...

    def scheduler(self, name: str) -> Any: ...

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

    def count(self, statistic: str, amount: int = 1) -> None:
        """Raise a declared statistic of the running pass."""
        self.services.count(statistic, amount)

    def missed(self, op: ir.Operation, message: str) -> None:
        """Remark that something was not done to `op`, and why."""
        self.services.remark(op, "missed", message)

    def passed(self, op: ir.Operation, message: str) -> None:
        """Remark that something was done to `op`."""
        self.services.remark(op, "passed", message)

    def scheduler(self, name: str) -> Any:
        """A scheduler instance by name (see `tile_core.sched`)."""
        return self.services.scheduler(name)

    def layout_strategy(self, name: str) -> Any:
        """A layout strategy instance by name."""
        return self.services.layout_strategy(name)


def error_at(
    op: ir.Operation | ir.OpView, message: str, *, hint: str | None = None
) -> CompileError:
    """A `CompileError` in MLIR's wording, at the source location of `op`."""
    from tile_core.locations import source_location

    operation = op.operation
    return CompileError(
        f"'{operation.name}' op {message}", where=source_location(operation.location), hint=hint
    )
