"""load and store through tiles of pointers, and through single pointers."""

from __future__ import annotations

from collections.abc import Set

from tile_cute.linear import LinearLayout
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.constants import is_zero, splat_bytes
from tile_tileas.dialect.fields import operand_of, operands_of
from tile_tileas.strategies.coalescing import accessed

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.access import VectorAccess, manner, reader
from tile_nvptx.passes.tileas.thread.build import Builder, token
from tile_nvptx.passes.tileas.thread.state import Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import element_of, storage_type


@rules.on("nv_tileas.load")
def load(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """load => a vector load per run of neighbours; masked-off elements read `other`"""
    type_ = cx.type(op.result.type)
    if isinstance(type_, ir.VectorType):
        return [_load_tile(op, cx, type_), token(cx)]
    return [_load_scalar(op, cx, type_), token(cx)]


def _load_scalar(op: ir.OpView, cx: Kernel, type_: ir.Type) -> ir.Value:
    """Every thread reads the one element, or one thread for all."""
    b, stored, first = Builder(cx), storage_type(type_), reader(op, cx, None)
    conditions = [flag for flag in (first, op.mask) if flag is not None]
    value = VectorAccess(cx, stored, 1, manner(op)).load(op.base, b.all_of(conditions))
    scalar = b.extract(b.from_storage(value, type_), 0)
    if op.other is None or op.mask is None:
        return scalar
    return cx.create("arith.select", [op.mask, scalar, op.other], [type_]).result


@rules.on("nv_tileas.load_rest")
def load_rest(op: ir.OpView, cx: Kernel) -> ir.Value:
    """load_rest => a load of the registers without a source; those of given tiles are taken"""
    b, given = Builder(cx), operands_of(op, "given")
    sources, registers = (
        list(ir.DenseI32ArrayAttr(op.attributes[name])) for name in ("sources", "registers")
    )
    missing = {register for register, source in enumerate(sources) if source < 0}
    loaded = _load_tile(op, cx, cx.type(op.result.type), missing)
    return b.vector(
        [
            b.extract(loaded, at) if source < 0 else b.extract(given[source], register)
            for at, (source, register) in enumerate(zip(sources, registers, strict=True))
        ]
    )


def _load_tile(
    op: ir.OpView, cx: Kernel, type_: ir.Type, wanted: Set[int] | None = None
) -> ir.Value:
    """The elements of a thread; with `wanted`, of registers that are not among them anything."""
    b, base = Builder(cx), op.base
    mask, other = operand_of(op, "mask"), operand_of(op, "other")
    layout = tile_layout(cx, op.result)
    element = element_of(type_)
    width, places = _width(op, layout), _places(op, layout)
    access = VectorAccess(cx, storage_type(element), width, manner(op))
    owner, parts, flags = reader(op, cx, layout), [], []
    padding = None if other is None or owner is not None else splat_bytes(other)
    for register in range(0, layout.elements_per_thread, width):
        if wanted is not None and wanted.isdisjoint(range(register, register + width)):
            parts.append(cx.create("llvm.mlir.poison", [], [access.type]).result)
            flags += [b.constant(1, b.i1)] * width
            continue
        conditions = [owner] if owner is not None else []
        if mask is not None:  # of the whole vector, as the plan says
            conditions.append(b.extract(mask, register))
            flags += [conditions[-1]] * width
        first, behind = places[register]
        address, flag = b.extract(base, first), b.all_of(conditions)
        parts.append(access.load(address, flag, behind, padding or b""))
    value = b.from_storage(b.concat(parts), element)
    if padding is not None or other is None or mask is None or is_zero(other):
        return value
    return cx.create("arith.select", [b.vector(flags), value, other], [type_]).result


def _width(op: ir.OpView, layout: LinearLayout) -> int:
    """Elements per access: what the plan allows and the layout keeps together."""
    plan = AccessPlan.of(op)
    if plan is None or not plan.order:
        return 1
    return accessed(layout, plan.order[0], plan.vector)


def _places(op: ir.OpView, layout: LinearLayout) -> list[tuple[int, int]]:
    """Of each register one whose address it follows from, and by how many elements it lies behind
    (see `AccessPlan.run`).
    """
    plan = AccessPlan.of(op)
    count = layout.elements_per_thread
    if plan is None or plan.run == 1:
        return [(register, 0) for register in range(count)]
    steps = _steps_inside(layout, plan.order[0], plan.run)
    found = []
    for register in range(count):
        inside = [bit for bit in steps if register >> bit & 1]
        first = register - sum(1 << bit for bit in inside)
        found.append((first, sum(steps[bit] for bit in inside)))
    return found


def _steps_inside(layout: LinearLayout, axis: int, run: int) -> dict[int, int]:
    """By bits of the number of a register how far it goes along the axis, within aligned groups of
    `run` elements, where it alone does, and goes nowhere else.
    """
    axes = [basis[axis] for bases in layout.bases.values() for basis in bases]
    found = {}
    for bit, basis in enumerate(layout.bases["register"]):
        step = basis[axis]
        alone = step.bit_count() == 1 and sum(bool(other & step) for other in axes) == 1
        if alone and step < run and sum(map(bool, basis)) == 1:
            found[bit] = step
    return found


@rules.on("nv_tileas.store")
def store(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """store => a vector store per run of neighbours, each element by one thread"""
    b = Builder(cx)
    value = op.value
    if isinstance(value.type, ir.VectorType):
        _store_tile(op, cx)
        return [token(cx)]
    first = b.compare(0, cx.state.thread_index(cx), b.constant(0))
    condition = b.all_of([first] + ([op.mask] if op.mask is not None else []))
    stored = b.to_storage(b.splat(value, 1))
    VectorAccess(cx, storage_type(value.type), 1, manner(op)).store(stored, op.base, condition)
    return [token(cx)]


def _store_tile(op: ir.OpView, cx: Kernel) -> None:
    b, base, mask, value = Builder(cx), op.base, op.mask, op.value
    layout = tile_layout(cx, op.operands[1])
    width, places = _width(op, layout), _places(op, layout)
    access = VectorAccess(cx, storage_type(element_of(value.type)), width, manner(op))
    stored = b.to_storage(value)
    owner = cx.state.holds_unique(cx, layout)
    copies = layout.free_mask("register")
    for register in range(0, layout.elements_per_thread, width):
        if register & copies:
            continue
        conditions = [owner] if owner is not None else []
        conditions += [b.extract(mask, register)] if mask is not None else []
        part = b.shuffle(stored, range(register, register + width))
        first, behind = places[register]
        access.store(part, b.extract(base, first), b.all_of(conditions), behind)
