"""Atomic operations: each element by one thread, its result passed to all that hold a copy.

An order of several elements of a thread is made once, by fences around atomics that have none: a
release is a fence and what is written behind it, an acquire what is read and a fence behind that
(PTX ISA, "Release and Acquire Patterns"). ptxas puts fences around each atomic that has an order.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_cute.linear import LinearLayout
from tile_tileas.access import AccessPlan, adds_vectors
from tile_tileas.dialect import layout_of

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.device.loops import bf16_add_text
from tile_nvptx.passes.tileas.device.memory import add_text, atomic_text
from tile_nvptx.passes.tileas.ruleset import rules, text
from tile_nvptx.passes.tileas.thread.access import expect_leader, qualifiers
from tile_nvptx.passes.tileas.thread.build import Builder, token
from tile_nvptx.passes.tileas.thread.instruction import bare_instruction
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, vector_of

# rmw_mode -> PTX operation and the letter of its type (PTX ISA, "atom")
_OPERATIONS = {
    "and": ("and", "b"),
    "or": ("or", "b"),
    "xor": ("xor", "b"),
    "add": ("add", "u"),
    "addf": ("add", "f"),
    "max": ("max", "s"),
    "min": ("min", "s"),
    "umax": ("max", "u"),
    "umin": ("min", "u"),
    "xchg": ("exch", "b"),
}
_HALF_ADD = {"f16": "add.noftz.f16", "bf16": "add.noftz.bf16"}
_BF16_ADD_SINCE = 90


def rmw_instruction(op: ir.OpView, element: ir.Type) -> str:
    """`add.f32`, `max.s64`, ...: what stands behind `atom.sem.scope.global`."""
    mode = text(op, "rmw_mode")
    if mode not in _OPERATIONS:
        raise error_at(op, f"has no instruction for mode '{mode}'")
    name, letter = _OPERATIONS[mode]
    if mode == "addf" and str(element) in _HALF_ADD:
        return _HALF_ADD[str(element)]
    return f"{name}.{letter}{element.width}"


@rules.on("nv_tileas.atomic_rmw")
def atomic_rmw(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """atomic_rmw => atom per element; bf16 sums by compare-and-swap where there is none"""
    instruction = rmw_instruction(op, element_of(op.value.type))
    emulated = instruction == _HALF_ADD["bf16"] and cx.target.sm < _BF16_ADD_SINCE
    make = bf16_add_text if emulated else atomic_text
    width = _width(op, cx)
    if width > 1:
        _add_vectors(op, cx, width)
        unused = cx.create("llvm.mlir.poison", [], [cx.type(op.results[0].type)]).result
        return [unused, token(cx)]
    return [_atomic(op, cx, instruction, [op.value], make), token(cx)]


@rules.on("nv_tileas.atomic_cas")
def atomic_cas(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """atomic_cas => atom.cas per element, on bits"""
    width = element_of(op.value.type).width
    return [_atomic(op, cx, f"cas.b{width}", [op.cmp, op.value]), token(cx)]


def _width(op: ir.OpView, cx: Kernel) -> int:
    """Elements that one instruction adds to neighbours in memory: as planned, whoever planned it,
    and as a thread has them.
    """
    plan, layout = AccessPlan.of(op), layout_of(op.result.type)
    if plan is None or layout is None or not adds_vectors(op, cx.target):
        return 1
    return min(plan.vector, layout.registers_contiguous_along(plan.order[0]))


def _add_vectors(op: ir.OpView, cx: Kernel, width: int) -> None:
    """red of `width` elements at a time"""
    _remark_scope(op, cx)
    b, mask = Builder(cx), op.mask
    owner = acting_thread(op, cx, layout_of(op.result.type))
    bits, element = bits_of(cx, op.value), str(element_of(op.value.type))

    def add(order: str) -> None:
        name, body = add_text(element, width, order)
        for register in range(0, count_of(bits.type), width):
            flags = [owner] if owner is not None else []
            flags += [b.extract(mask, register)] if mask is not None else []
            flag = b.all_of(flags) or b.constant(1, b.i1)
            part = b.shuffle(bits, range(register, register + width))
            operands = [b.extract(op.base, register), part, flag]
            cx.state.helpers.call(cx, name, body, operands, None)

    _in_order(op, cx, add)


def _remark_scope(op: ir.OpView, cx: Kernel) -> None:
    if qualifiers(op).endswith(".cta"):
        # All memory here is global, which other blocks can reach (PTX ISA, "Scope").
        cx.cx.missed(
            op.operation, "is atomic within its own block alone: other blocks race with it"
        )


def _in_order(op: ir.OpView, cx: Kernel, act: Callable[[str], None]) -> None:
    """What `act` does by atomics of the order that it is given, and fences for the operation's."""
    _, order, scope = (qualifiers(op) or ".relaxed.gpu").split(".")
    if order in ("release", "acq_rel"):
        bare_instruction(cx, f"fence.acq_rel.{scope}")
    act(f".relaxed.{scope}")
    if order in ("acquire", "acq_rel"):
        bare_instruction(cx, f"fence.acq_rel.{scope}")


def _atomic(
    op: ir.OpView,
    cx: Kernel,
    instruction: str,
    values: list[ir.Value],
    make: Callable[[str, str, int, int], tuple[str, str]] = atomic_text,
) -> ir.Value:
    _remark_scope(op, cx)
    b = Builder(cx)
    layout = layout_of(op.result.type)
    owner = acting_thread(op, cx, layout)
    fragments = [bits_of(cx, value) for value in values]
    element = element_of(fragments[0].type)
    found: list[ir.Value] = []

    def act(order: str) -> None:
        name, body = make(instruction, order, element.width, len(values))
        for register in range(count_of(fragments[0].type)):
            pointer, mask = element_at(b, op.base, register), op.mask
            flags = [owner] if owner is not None else []
            flags += [element_at(b, mask, register)] if mask is not None else []
            flag = b.all_of(flags) or b.constant(1, b.i1)
            operands = [pointer, *(b.extract(f, register) for f in fragments), flag]
            old = cx.state.helpers.call(cx, name, body, operands, element).result
            found.append(b.splat(old, 1))

    if count_of(fragments[0].type) > 1:
        _in_order(op, cx, act)
    else:
        act(qualifiers(op))
    old = b.concat(found)
    result = cx.type(op.result.type)
    if isinstance(result, ir.VectorType):
        return b.bitcast(old, result)
    return b.extract(b.bitcast(old, vector_of(1, result)), 0)


def acting_thread(op: ir.OpView, cx: Kernel, layout: LinearLayout | None) -> ir.Value | None:
    """i1: this thread acts for its elements; None if every thread does."""
    copies = layout is None or layout.free_mask("lane") or layout.free_mask("warp")
    if copies and any(True for _ in op.results[0].uses):
        expect_leader(op)
    if layout is None:
        b = Builder(cx)
        return b.compare(0, cx.state.thread_index(cx), b.constant(0))
    if layout.free_mask("register"):
        raise error_at(op, f"cannot act on layout {layout}, in which threads hold copies")
    return cx.state.holds_unique(cx, layout)


def bits_of(cx: Kernel, value: ir.Value) -> ir.Value:
    """A fragment as integers; of a scalar one of a single element."""
    b = Builder(cx)
    vector = value if isinstance(value.type, ir.VectorType) else b.splat(value, 1)
    width = element_of(vector.type).width
    return b.bitcast(vector, vector_of(count_of(vector.type), ir.IntegerType.get_signless(width)))


def element_at(b: Builder, value: ir.Value, register: int) -> ir.Value:
    """An element of a fragment; a scalar as it is."""
    return b.extract(value, register) if isinstance(value.type, ir.VectorType) else value
