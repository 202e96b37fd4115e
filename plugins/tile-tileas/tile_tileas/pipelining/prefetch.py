"""Which loads of a loop may run ahead of it, and copies of what they are computed from."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.linear import LinearLayout, memory_access

from tile_core.dialect import Pure
from tile_core.mlir import ir
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.buffers import ALLOC
from tile_tileas.analysis.tokens import is_weak
from tile_tileas.analysis.views import tiled_view
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.fields import operand_of
from tile_tileas.storage import storage_bits

#: Bytes that one cp.async copies (PTX ISA, "cp.async").
SIZES = (4, 8, 16)
_READS = ("nv_tileas.copy", "nv_tileas.dot", "nv_tileas.extract_slice", "nv_tileas.insert_slice")


@dataclass(frozen=True)
class Prefetch:
    """A load of a loop that goes to a buffer and nowhere else."""

    load: ir.OpView
    copy: ir.OpView
    alloc: ir.OpView
    layout: LinearLayout  # which thread copies what
    slice: tuple[ir.OpView, ...]  # what the load is computed from inside the loop, in order

    @property
    def buffer(self) -> Buffer:
        found = Buffer.of(self.alloc.results[0].type)
        assert found is not None
        return found

    def erase(self) -> None:
        """Remove what the copies into stages have taken the place of."""
        self.copy.operation.erase()
        self.load.operation.erase()
        self.alloc.operation.erase()


def prefetch_of(copy: ir.OpView, loop: ir.OpView) -> Prefetch | str:
    """The load behind a copy to a buffer, or why it cannot run ahead of the loop."""
    block = loop.regions[0].blocks[0]
    load, alloc = copy.operands[0].owner, copy.operands[1].owner
    if isinstance(load, ir.Block) or load.operation.name != "nv_tileas.tiled_load":
        return "the tile is computed, or comes through pointers"
    if isinstance(alloc, ir.Block) or alloc.operation.name != ALLOC:
        return "the buffer is not allocated there"
    problem = _alone(load.opview, copy, block) or _reads_only(alloc.opview, copy, block)
    if problem is not None:
        return problem
    layout = layout_of(load.results[0].type)
    assert layout is not None
    problem = _by_cp_async(load.opview, alloc.opview, layout)
    if problem is not None:
        return problem
    found: dict[ir.Value, ir.OpView] = {}
    for value in load.operands:
        problem = _grow(value, loop, found)
        if problem is not None:
            return problem
    order = [op for op in block.operations if len(op.results) and op.results[0] in found]
    return Prefetch(load.opview, copy, alloc.opview, layout, tuple(order))


def _alone(load: ir.OpView, copy: ir.OpView, block: ir.Block) -> str | None:
    if load.operation.block != block:
        return "the load stands under a branch"
    if not is_weak(load):
        return "the load is ordered"
    if len(list(load.results[0].uses)) != 1:
        return "the tile is used in registers, too"
    if any(True for _ in load.results[1].uses):
        return "other accesses wait for the load"
    if (tiled_view(load.view).padding or "zero") != "zero":
        return "cp.async pads with zeros only"
    return None


def _reads_only(alloc: ir.OpView, copy: ir.OpView, block: ir.Block) -> str | None:
    if alloc.operation.block != block or copy.operation.block != block:
        return "the buffer stands under a branch"
    for use in alloc.results[0].uses:
        user = use.owner.operation
        if user == copy.operation:
            continue
        if user.block != block or user.name not in _READS:
            return f"'{user.name}' works on the buffer"
        if user.name == "nv_tileas.copy" and use.operand_number == 1:
            return "the buffer is filled twice"
    return None


def _by_cp_async(load: ir.OpView, alloc: ir.OpView, layout: LinearLayout) -> str | None:
    """Whether threads' runs are as long as some cp.async, and lie alike on both sides."""
    plan, buffer = AccessPlan.of(load), Buffer.of(alloc.results[0].type)
    if plan is None or not plan.order or buffer is None or buffer.layout is None:
        return "the access has no plan"
    bits = storage_bits(buffer.tile.element_type)
    run = min(plan.vector, layout.registers_contiguous_along(plan.order[0]))
    side = memory_access(buffer.layout, layout, bits, min(run * bits, 8 * max(SIZES)))
    if side.vector * bits // 8 not in SIZES:
        return f"runs of {side.vector * bits // 8} bytes are too short for cp.async"
    for access in side.accesses[0]:
        start = access.registers[0]
        if tuple(access.registers) != tuple(range(start, start + side.vector)):
            return "runs lie differently in global and shared memory"
    return None


def _grow(value: ir.Value, loop: ir.OpView, found: dict[ir.Value, ir.OpView]) -> str | None:
    """Add what `value` is computed from inside the loop to `found`."""
    block = loop.regions[0].blocks[0]
    if isinstance(value.owner, ir.Block):
        if value.owner == block and value != block.arguments[0]:
            return "its place depends on an earlier iteration"
        return None
    op = value.owner.opview if isinstance(value.owner, ir.Operation) else value.owner
    if op.operation.block != block or value in found:
        return None
    if len(op.regions) or not _is_pure(op):
        return f"its place comes from '{op.operation.name}'"
    for result in op.results:
        found[result] = op
    for operand in op.operands:
        problem = _grow(operand, loop, found)
        if problem is not None:
            return problem
    return None


def _is_pure(op: ir.OpView) -> bool:
    name = op.operation.name
    return name.startswith("arith.") or Pure in getattr(type(op), "_traits", ())


def token_of(load: ir.OpView) -> ir.Value | None:
    """The memory token that the load waits for."""
    return operand_of(load, "token")
