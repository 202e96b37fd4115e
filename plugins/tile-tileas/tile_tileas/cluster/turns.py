"""One block makes the parts of its tiles one after the other, where there are no others to help.

for turn in 0 .. parts:
    what a block of a cluster of that rank would do
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import dropwhile

from tile_core.insertion import Before
from tile_core.mlir import ir
from tile_tileas.cluster.cutting import Cutting

#: Operations without tiles or memory accesses, which are done once, before all turns.
_BEFORE = (
    "arith.", "nv_tileaa.make_memref", "nv_tileaa.block_tile", "nv_tileaa.assume", "nv_tileaa.get_",
)  # fmt: skip


def make_in_turns(func: ir.Operation, axes: Mapping[ir.Value, int], parts: int) -> int:
    """Cut the tiles in `axes`, and repeat what is made of them; how many loads are left whole, and
    are made in each turn.
    """
    block = func.regions[0].blocks[0]
    at = Before(block.operations[0])
    placeholder = at.create(
        "arith.constant", [], [at.i32], {"value": ir.IntegerAttr.get(at.i32, 0)}
    )
    turn = placeholder.result
    whole = Cutting(func, axes, parts, multicast=False, rank=turn).run()
    *body, end = list(block.operations)
    repeated = list(dropwhile(lambda op: not _is_repeated(op, turn), body))
    at = Before(repeated[0])
    bounds = [at.constant(number) for number in (0, parts, 1)]
    inner = at.create("scf.for", bounds, regions=1).regions[0].blocks.append(at.i32)
    for op in repeated:
        op.operation.detach_from_parent()
        with op.location:
            ir.InsertionPoint(inner).insert(op)
    with end.location:
        ir.Operation.create("scf.yield", ip=ir.InsertionPoint(inner))
    turn.replace_all_uses_with(inner.arguments[0])
    placeholder.erase()
    return whole


def _is_repeated(op: ir.OpView, turn: ir.Value) -> bool:
    return turn in op.operands or not op.operation.name.startswith(_BEFORE)
