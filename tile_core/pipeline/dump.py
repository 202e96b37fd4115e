"""Printing the IR around passes, to a stream or to a directory with one file a pass."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from tile_core.diagnostics import ConfigurationError, nearest
from tile_core.difference import coloured, unified
from tile_core.pipeline.anchors import symbol
from tile_core.pipeline.instrument import Instrumentation
from tile_core.pretty import pretty

if TYPE_CHECKING:
    from tile_core.diagnostics import TileError
    from tile_core.mlir import ir
    from tile_core.pipeline.build import Plan, Step
    from tile_core.pipeline.run import Run

#: Names every pass instead of one.
ALL = "all"


class PrintIR(Instrumentation):
    """Print the IR before and after passes.

    Args:
        before: names of passes, or ("all",).
        after: likewise.
        after_change: print after every pass that changed its anchor.
        after_failure: print after a pass that failed.
        module_scope: print the whole module instead of the anchor.
        debug_info: print locations.
        stream: where to; stderr by default.
        readable: print short locations and names for long types, which `tilec opt` cannot read.
        functions: print only operations of these names, and what holds one of them.
    """

    name = "print-ir"

    def __init__(
        self,
        *,
        before: Iterable[str] = (),
        after: Iterable[str] = (),
        after_change: bool = False,
        after_failure: bool = False,
        module_scope: bool = False,
        debug_info: bool = False,
        stream: TextIO | None = None,
        readable: bool = False,
        functions: Iterable[str] = (),
    ) -> None:
        self._readable = readable
        self._functions = frozenset(functions)
        self._before, self._after = tuple(before), tuple(after)
        self._after_change, self._after_failure = after_change, after_failure
        self._module_scope = module_scope
        self._debug_info = debug_info
        self._stream = stream
        self._digest = b""

    def before_pipeline(self, run: Run) -> None:
        for name in (*self._before, *self._after):
            check_pass_name(name, run.plan)

    def before_pass(self, step: Step, op: ir.Operation, run: Run) -> None:
        if self._after_change:
            self._digest = _digest(op)
        if _named(step, self._before):
            self._print(f"IR Dump Before {step.name}", op)

    def after_pass(self, step: Step, op: ir.Operation, run: Run) -> None:
        changed = self._after_change and _digest(op) != self._digest
        if changed or _named(step, self._after):
            self._print(f"IR Dump After {step.name}", op)

    def after_pass_failed(self, step: Step, op: ir.Operation, run: Run, error: TileError) -> None:
        if self._after_failure or _named(step, self._after):
            self._print(f"IR Dump After {step.name} Failed", op, broken=True)

    def _print(self, title: str, op: ir.Operation, *, broken: bool = False) -> None:
        if self._functions and not _holds(op, self._functions):
            return
        whole = op
        while self._module_scope and whole.parent is not None:
            whole = whole.parent.operation
        debug = self._debug_info or self._readable
        text = whole.get_asm(enable_debug_info=debug, print_generic_op_form=broken)
        text = pretty(text) if self._readable else text
        stream = self._stream or sys.stderr
        stream.write(f"// *** {title} ***\n{text}\n\n")


def _holds(op: ir.Operation, names: frozenset[str]) -> bool:
    """Whether `op` has one of the names, or a symbol directly or indirectly inside of it does."""
    if symbol(op) in names:
        return True
    inside = (
        view.operation for region in op.regions for block in region.blocks
        for view in block.operations if "sym_name" in view.operation.attributes
    )  # fmt: skip
    return any(_holds(inner, names) for inner in inside)


class DiffIR(Instrumentation):
    """Print what each pass changed of the module, as a unified diff of readable IR.

    Args:
        stream: where to; stderr by default.
    """

    name = "diff-ir"

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._before = ""

    def before_pipeline(self, run: Run) -> None:
        self._before = _readable(run)

    def after_step(self, step: Step, run: Run) -> None:
        after = _readable(run)
        text = unified(self._before, after, f"before {step.name}", f"after {step.name}")
        self._before = after
        stream = self._stream or sys.stderr
        shown = coloured(text, click.style) if stream.isatty() else text
        stream.write(shown or f"// {step.name} changed nothing\n")


def _readable(run: Run) -> str:
    # Names of types would be others wherever one is new, and with them every line.
    text = run.module.operation.get_asm(enable_debug_info=True)
    return pretty(text, locations=False, aliases=False)


class DumpDirectory(Instrumentation):
    """Write the module after every pass: `003-tileas-slicing.mlir`, in order of the run.

    Args:
        directory: made if it is not there; files of the same name are overwritten.
        only_changed: leave out passes that changed nothing; their numbers stay free.
    """

    name = "dump-directory"

    def __init__(self, directory: Path, *, only_changed: bool = False) -> None:
        self._directory = directory
        self._only_changed = only_changed
        self._count = 0
        self._digest = b""

    def before_pipeline(self, run: Run) -> None:
        self._write("input", run.module.operation)
        self._digest = _digest(run.module.operation)

    def after_step(self, step: Step, run: Run) -> None:
        self._count += 1
        if self._only_changed:
            before, self._digest = self._digest, _digest(run.module.operation)
            if before == self._digest:
                return
        self._write(step.call.id, run.module.operation)

    def after_pass_failed(self, step: Step, op: ir.Operation, run: Run, error: TileError) -> None:
        self._count += 1
        self._write(f"{step.call.id}-failed", run.module.operation, broken=True)

    def _write(self, name: str, op: ir.Operation, *, broken: bool = False) -> None:
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-")
        path = self._directory / f"{self._count:03d}-{plain}.mlir"
        text = op.get_asm(enable_debug_info=True, print_generic_op_form=broken) + "\n"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"cannot write '{path}': {error.strerror}") from error


def check_pass_name(name: str, plan: Plan) -> None:
    """Raise for a name that is neither "all" nor that of a pass in `plan`."""
    known = {n for step in plan.steps() for n in (step.name, step.call.id, step.qualified)}
    if name != ALL and name not in known:
        close = nearest(name, sorted(known))
        raise ConfigurationError(
            f"pipeline '{plan.name}' has no pass '{name}' to print at",
            hint=f"did you mean '{close}'?" if close else None,
        )


def _named(step: Step, names: tuple[str, ...]) -> bool:
    return ALL in names or not {step.name, step.call.id, step.qualified}.isdisjoint(names)


def _digest(op: ir.Operation) -> bytes:
    text = op.get_asm(print_generic_op_form=True, enable_debug_info=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
