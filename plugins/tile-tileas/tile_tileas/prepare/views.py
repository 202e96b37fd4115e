"""Stage 1, decomposeTiledLoadStoreView: accesses take direct views of what lies behind them.

A view that stands in a loop, but is of memory outside of it, moves to that memory, so that every
iteration's accesses share one; the same view twice becomes one; a view of a view of a buffer
becomes one of the buffer itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.mlir import ir

_TILED = "nv_tileaa.block_tile"
_REINTERPRET = "nv_tileas.buffer_reinterpret"


def decompose_views(func: ir.Operation) -> int:
    """Make views direct; how many changed."""
    changed = 0
    for op in list(_named(func, _REINTERPRET)):
        source = op.operands[0].owner
        if not isinstance(source, ir.Block) and source.name == _REINTERPRET:
            op.operands[0] = source.operands[0]
            changed += 1
        if op.operands[0].type == op.results[0].type:
            op.results[0].replace_all_uses_with(op.operands[0])
        _erase_unused(source)
        _erase_unused(op)
    known: dict[ir.Value, list[ir.OpView]] = {}
    for op in list(_named(func, _TILED)):
        changed += _at_its_memory(op, known.setdefault(op.operands[0], []))
    return changed


def _at_its_memory(view: ir.OpView, others: list[ir.OpView]) -> int:
    """Use an equal view of the same memory, or move this one to where the memory is made.

    `others` come earlier in the program, in the block of the memory: they dominate.
    """
    for other in others:
        same_type = other.results[0].type == view.results[0].type
        if same_type and dict(_attributes(other)) == dict(_attributes(view)):
            view.results[0].replace_all_uses_with(other.results[0])
            view.operation.erase()
            return 1
    others.append(view)
    memory = view.operands[0].owner
    if isinstance(memory, ir.Block) or memory.operation.block == view.operation.block:
        return 0
    view.operation.move_after(memory.operation)
    return 1


def _attributes(op: ir.OpView) -> list[tuple[str, str]]:
    return [(name, str(op.attributes[name])) for name in op.attributes]


def _named(op: ir.Operation | ir.OpView, name: str) -> Iterator[ir.OpView]:
    """Every operation called `name` inside of `op`, in program order."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == name:
                    yield inner
                yield from _named(inner, name)


def _erase_unused(op: ir.OpView | ir.Operation | ir.Block) -> None:
    if isinstance(op, ir.Block) or op.operation.name != _REINTERPRET:
        return
    if not any(True for _ in op.operation.results[0].uses):
        op.operation.erase()
