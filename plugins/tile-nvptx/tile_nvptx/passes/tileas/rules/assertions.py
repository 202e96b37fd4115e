"""Assertions: a line for each element that is false, and a trap.

The line goes where the program's own prints go, as `tileiras` has it: file and line, coordinates of
the tile block and of the element, the message.
"""

from __future__ import annotations

from tile_cute.linear import LinearLayout
from tile_tileas.dialect import layout_of

from tile_core.diagnostics import SourceLocation
from tile_core.locations import source_location
from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.printing import print_values
from tile_nvptx.passes.tileas.ruleset import rules, text
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel

_BLOCK = tuple(f"nvvm.read.ptx.sreg.ctaid.{axis}" for axis in "xyz")


@rules.on("nv_tileaa.assert")
def assert_(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """assert => vprintf for elements that are false, each by one thread; then a trap"""
    layout = layout_of(cx.before(op.operands[0]))
    speaks = cx.state.holds_unique(cx, layout) if layout is not None else _first_thread(cx)
    failed = _failed(cx, op.operands[0])
    # A thread with copies must not end the kernel before the one that speaks for them has spoken.
    with _when(cx, failed if speaks is None else Builder(cx).binary("andi", failed, speaks)):
        for register in _own_registers(layout):
            _report(op, cx, layout, register)
        cx.create("llvm.intr.trap")
        cx.create("scf.yield")
    return []


def _failed(cx: Kernel, holds: ir.Value) -> ir.Value:
    """i1: an element of the thread is false."""
    b = Builder(cx)
    while isinstance(holds.type, ir.VectorType):
        count = holds.type.shape[0]
        if count == 1:
            holds = b.extract(holds, 0)
            break
        low, high = b.shuffle(holds, range(count // 2)), b.shuffle(holds, range(count // 2, count))
        holds = b.binary("andi", low, high)
    return b.compare(0, holds, b.constant(0, b.i1))


def _when(cx: Kernel, condition: ir.Value):
    """The insertion point in a new `scf.if`."""
    branch = cx.create("scf.if", [condition], regions=2)
    return cx.at(ir.InsertionPoint(branch.regions[0].blocks.append()))


def _own_registers(layout: LinearLayout | None) -> list[int]:
    """Registers whose elements no other register of the thread holds."""
    if layout is None:
        return [0]
    copies = layout.free_mask("register")
    return [at for at in range(layout.elements_per_thread) if not at & copies]


def _report(op: ir.OpView, cx: Kernel, layout: LinearLayout | None, register: int) -> None:
    """Print the line of one element, if it is false."""
    b, holds = Builder(cx), op.operands[0]
    if isinstance(holds.type, ir.VectorType):
        holds = b.extract(holds, register)
    with _when(cx, b.compare(0, holds, b.constant(0, b.i1))):
        block = [cx.create(name, [], [b.i32]).result for name in _BLOCK]
        place = [] if layout is None else _place(cx, layout, register)
        values = [*block, *place]
        name, body = print_values(tuple(str(value.type) for value in values))
        line = cx.state.helpers.text(cx, _format(op, len(place)))
        cx.state.helpers.call(cx, name, body, [line, *values], None)
        cx.create("scf.yield")


def _first_thread(cx: Kernel) -> ir.Value:
    b = Builder(cx)
    return b.compare(0, cx.state.thread_index(cx), b.constant(0))


def _place(cx: Kernel, layout: LinearLayout, register: int) -> list[ir.Value]:
    """The coordinates of a register's element."""
    b, found = Builder(cx), []
    for axis, own in enumerate(layout.coords("register")[register]):
        thread = cx.state.coordinate(cx, layout, axis)
        found.append(b.constant(own) if thread is None else b.with_constant("xori", thread, own))
    return found


def _format(op: ir.OpView, rank: int) -> str:
    where = source_location(op.location) or SourceLocation("<unknown>")
    message = text(op, "message").replace("%", "%%") or "assertion failed"
    file, position = where.file.replace("%", "%%"), ", ".join(["%d"] * rank)
    return f"{file}:{where.line}: tile block: [%d, %d, %d], position: [{position}]: {message}\n"
