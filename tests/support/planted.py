"""A plugin whose passes are wrong on purpose, for fuzzing, shrinking and bisection to find."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from support.tiles import registry as plain_registry
from tile_core.diagnostics import CompileError
from tile_core.hookspecs import Lazy, hookimpl
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_core.registry import Registry

TILE_SPEC_VERSION = 1


def _inside(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for view in list(block.operations):
                yield view.operation
                yield from _inside(view.operation)


def _swap(op: ir.Operation, name: str) -> None:
    for inner in _inside(op):
        if inner.name == name:
            left, right = inner.operands
            inner.operands[0], inner.operands[1] = right, left


@dataclass(frozen=True)
class SwapSubi(Pass):
    """a - b => b - a, which is wrong"""

    name = "planted-swap-subi"
    anchor = "func.func"

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        _swap(op, "arith.subi")


@dataclass(frozen=True)
class SwapEarly(Pass):
    """cuda_tile.subi a, b => cuda_tile.subi b, a, which is wrong"""

    name = "planted-swap-early"
    dependent_dialects = ("cuda_tile",)

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        _swap(op, "cuda_tile.subi")


@dataclass(frozen=True)
class Harmless(Pass):
    """Changes nothing"""

    name = "planted-harmless"
    anchor = "func.func"

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        del op, cx


@dataclass(frozen=True)
class Refuse(Pass):
    """Fails"""

    name = "planted-refuse"
    anchor = "func.func"

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        raise CompileError("planted refusal")


@dataclass(frozen=True)
class Break(Pass):
    """Leaves IR that is not valid"""

    name = "planted-break"
    anchor = "func.func"

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for inner in _inside(op):
            if inner.name == "arith.subi":
                inner.results[0].set_type(ir.IndexType.get(op.context))


@dataclass(frozen=True)
class Crash(Pass):
    """Ends the process, where there is a subtraction"""

    name = "planted-crash"
    anchor = "func.func"

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if any(inner.name == "arith.subi" for inner in _inside(op)):
            os.kill(os.getpid(), signal.SIGKILL)


PASSES = (SwapSubi, SwapEarly, Harmless, Refuse, Break, Crash)


@hookimpl
def tile_passes() -> Iterable[Lazy]:
    """The passes above."""
    return tuple(Lazy(cls.name, f"support.planted:{cls.__name__}") for cls in PASSES)


def registry() -> Registry:
    """All plugins of the project, and this one."""
    return plain_registry(planted=sys.modules[__name__])
