"""Results of operations with regions."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.rewrite import Rewriter, is_used
from tile_tileaa.canonical.registry import attributes_of, rules


@rules.on("nv_tileaa.pragma", "nv_tileaa.pragma_mixed")
def unused_results_of_pragma(op: ir.OpView, cx: Rewriter) -> list[ir.Value | None] | None:
    """pragma without the results that nobody uses; the others keep their order"""
    used = [is_used(result) for result in op.results]
    if all(used):
        return None
    types = [result.type for result, keep in zip(op.results, used, strict=True) if keep]
    new = cx.create(op.name, list(op.operands), types, attributes_of(op), regions=1)
    block = op.regions[0].blocks[0]
    block.append_to(new.regions[0])
    end = list(block.operations)[-1].operation
    kept = [value for value, keep in zip(end.operands, used, strict=True) if keep]
    ir.Operation.create(
        "nv_tileaa.yield", operands=kept, loc=end.location, ip=ir.InsertionPoint(end)
    )
    end.erase()
    results = iter(new.results)
    return [next(results) if keep else None for keep in used]
