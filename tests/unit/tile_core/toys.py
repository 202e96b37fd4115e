"""A toy plugin: passes, an emitter, a front end; enough to exercise the framework."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from tile_core.diagnostics import CompileError, InputError
from tile_core.emit import EmitContext
from tile_core.frontend import FrontendContext
from tile_core.hookspecs import Lazy, LazyEmitter, LazyFrontend, LazyPatterns, hookimpl
from tile_core.mlir import ir
from tile_core.passes import ALL_ANALYSES, Pass, PassContext, error_at, option
from tile_core.pipeline.instrument import Instrumentation
from tile_core.sched import LoopGraph, MachineModel, Schedule

TILE_SPEC_VERSION = 1


def integer(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


@dataclass(frozen=True)
class Mark(Pass):
    """Put an attribute on functions."""

    name = "toy-mark"
    anchor = "func.func"
    statistics = {"marked": "functions that got the attribute"}
    value: int = option(1, "what to write")
    key: str = option("mark", "where to write it", choices=("mark", "sign"))

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        op.attributes[self.key] = integer(self.value)
        cx.count("marked")
        cx.missed(op, "marked only once")


@dataclass(frozen=True)
class Look(Pass):
    """Ask for an analysis twice, and change nothing."""

    name = "toy-look"
    anchor = "func.func"
    preserves = ALL_ANALYSES

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        first = cx.analysis(CountOps, op)
        assert cx.analysis(CountOps, op) is first


class CountOps:
    """How many operations are directly inside."""

    name: ClassVar[str] = "CountOps"
    made: ClassVar[list[str]] = []

    def __init__(self, op: ir.Operation, cx: PassContext) -> None:
        self.count = sum(1 for region in op.regions for block in region for _ in block.operations)
        self.made.append(op.name)


@dataclass(frozen=True)
class Fail(Pass):
    """Fail in one of several ways."""

    name = "toy-fail"
    anchor = "func.func"
    how: str = option("error", "how to fail")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        op.attributes["touched"] = ir.UnitAttr.get()
        if self.how == "error":
            raise error_at(op, "cannot be done", hint="try something else")
        if self.how == "bug":
            raise ZeroDivisionError("a mistake\nin a pass")
        if self.how == "emit":
            op.location.emit_error("reported, not raised")
        if self.how == "invalid":
            op.regions[0].blocks[0].operations[-1].operation.erase()


@dataclass(frozen=True)
class FailOn(Pass):
    """Fail on functions of a name."""

    name = "toy-fail-on"
    anchor = "func.func"
    only: str = option("", "the name; empty: every function")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        called = op.attributes["sym_name"].value
        if called == self.only or not self.only:
            raise error_at(op, f"is called {called}")


@dataclass(frozen=True)
class Complain(Pass):
    """Report every operation, and go on."""

    name = "toy-complain"
    anchor = "func.func"

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for inner in op.regions[0].blocks[0].operations:
            cx.error(inner, "is not liked")


@dataclass(frozen=True)
class Publish(Pass):
    """Publish something."""

    name = "toy-publish"
    anchor = "func.func"
    publishes = ("Plan",)

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        cx.publish("Plan", op, {"plan": op.attributes["sym_name"].value})


@dataclass(frozen=True)
class Require(Pass):
    """Use what was published."""

    name = "toy-require"
    anchor = "func.func"
    requires = ("Plan",)

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        op.attributes["plan"] = ir.StringAttr.get(cx.published("Plan", op)["plan"])


@dataclass(frozen=True)
class Accept(Pass):
    """Use what was published, if anything was."""

    name = "toy-accept"
    anchor = "func.func"
    accepts = ("Plan",)

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        plan = cx.accepted("Plan", op)
        op.attributes["plan"] = ir.StringAttr.get(plan["plan"] if plan else "none")


@dataclass(frozen=True)
class Module(Pass):
    """Do nothing to a module."""

    name = "toy-module"

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        with cx.scope("thinking"):
            pass


@dataclass(frozen=True)
class TextEmitter:
    """Prints the module."""

    name: ClassVar[str] = "toy-text"
    consumes: ClassVar[str] = "mlir"
    produces: ClassVar[str] = "text"
    prefix: str = option("", "written first")

    def emit(self, source: Any, cx: EmitContext) -> str:
        return f"{self.prefix}{cx.target.name}\n{source}"


class BytesEmitter:
    """Makes bytes of text."""

    name: ClassVar[str] = "toy-bytes"
    consumes: ClassVar[str] = "text"
    produces: ClassVar[str] = "bytes"

    def emit(self, source: Any, cx: EmitContext) -> bytes:
        if "refuse" in source:
            raise CompileError("the tool refuses")
        return source.encode()


def read(data: bytes, cx: FrontendContext) -> ir.Module:
    """`TOY` and a number: that many functions."""
    try:
        count = int(data[3:])
    except ValueError as error:
        raise InputError("not a number", where=cx.name) from error
    if count > 9:
        raise IndexError("too many\nfor this reader")
    bodies = "".join(f"func.func @f{i}() {{ return }}\n" for i in range(count))
    return ir.Module.parse(f"gpu.module @k {{ {bodies} }}")


class Backwards:
    """The last operation first: never right for a chain."""

    name = "toy-backwards"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule:
        count = len(loop.ops)
        return Schedule(tuple(range(count, 0, -1)), count + 1)


class Recorder(Instrumentation):
    """Writes down which hooks are called."""

    name = "toy-recorder"
    log: ClassVar[list[str]] = []

    def __init__(self, label: str = "") -> None:
        self.label = label

    def before_pipeline(self, run) -> None:
        self.log.append(f"{self.label}before-pipeline")

    def after_pipeline(self, run) -> None:
        self.log.append(f"{self.label}after-pipeline")

    def pipeline_failed(self, run, error) -> None:
        self.log.append(f"{self.label}pipeline-failed")

    def before_pass(self, step, op, run) -> None:
        self.log.append(f"{self.label}before {step.name}")

    def after_pass(self, step, op, run) -> None:
        self.log.append(f"{self.label}after {step.name}")

    def after_pass_failed(self, step, op, run, error) -> None:
        self.log.append(f"{self.label}failed {step.name}")

    def before_analysis(self, name, op, run) -> None:
        self.log.append(f"{self.label}before {name}")

    def after_analysis(self, name, op, run) -> None:
        self.log.append(f"{self.label}after {name}")


@hookimpl
def tile_passes() -> Iterable[Lazy]:
    for known in (Mark, Look, Fail, FailOn, Complain, Publish, Require, Accept, Module):
        yield Lazy(known.name, f"tile_core_toys:{known.__name__}", known.description())


@hookimpl
def tile_emitters() -> Iterable[LazyEmitter]:
    for known in (TextEmitter, BytesEmitter):
        target = f"tile_core_toys:{known.__name__}"
        yield LazyEmitter(known.name, target, consumes=known.consumes, produces=known.produces)


@hookimpl
def tile_frontends() -> Iterable[LazyFrontend]:
    return [LazyFrontend("toy", "tile_core_toys:read", "counted functions", magic=b"TOY")]


@hookimpl
def tile_schedulers() -> Iterable[Lazy]:
    return [Lazy("toy-backwards", "tile_core_toys:Backwards")]


@hookimpl
def tile_patterns() -> Iterable[LazyPatterns]:
    return [LazyPatterns("toy-rules", "tile_core_toys:TILE_SPEC_VERSION", extends="toy-mark")]


@hookimpl
def tile_instrumentations() -> Iterable[Lazy]:
    return [Lazy("toy-recorder", "tile_core_toys:Recorder")]
