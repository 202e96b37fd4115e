"""Reductions and scans, and what ends regions."""

from __future__ import annotations

from tile_core.convert import KEEP, Conversion, Replacement
from tile_core.dialect import runs_of_types
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileaa.dialect.folds import SLOTS, is_mixed
from tile_tileaa.passes.cudatile.rules import i32, rules


@rules.on("cuda_tile.reduce", "cuda_tile.scan")
def fold(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """reduce {dim} => reduce {axis}; the region moves along. Operands of several types: _mixed"""
    name = op.operation.name.replace("cuda_tile", "nv_tileaa")
    results = [cx.type(result.type) for result in op.results]
    elements = [operand.type.element_type for operand in op.operands]
    attributes = {
        "axis": i32(ir.IntegerAttr(op.attributes["dim"]).value),
        "identities": op.attributes["identities"],
    }
    if name.endswith("scan"):
        attributes["reverse"] = op.attributes["reverse"]
    if is_mixed(elements):
        name += "_mixed"
        attributes["operandSegmentSizes"] = _sizes(op, elements)
        attributes["resultSegmentSizes"] = _sizes(op, results)
    new = cx.create(name, list(op.operands), results, attributes, regions=1)
    op.regions[0].blocks[0].append_to(new.regions[0])
    cx.convert_region(new.regions[0])
    return list(new.results)


def _sizes(op: ir.OpView, types: list[ir.Type]) -> ir.Attribute:
    found = runs_of_types(types, SLOTS)
    if found is None:
        raise error_at(
            op,
            f"has more than {SLOTS} runs of operands of one type; "
            "order them so that those of one type are neighbours",
        )
    return ir.DenseI32ArrayAttr.get(found)


@rules.on("cuda_tile.yield", "cuda_tile.continue")
def terminator(op: ir.OpView, cx: Conversion) -> Replacement:
    """yield => scf.yield in scf operations, nv_tileaa.yield or yield_mixed in folds"""
    parent = op.operation.parent
    in_scf = parent is not None and parent.name.startswith("scf.")
    types = [operand.type for operand in op.operands]
    if in_scf or not is_mixed(types):
        cx.create("scf.yield" if in_scf else "nv_tileaa.yield", list(op.operands))
    else:
        sizes = {"operandSegmentSizes": _sizes(op, types)}
        cx.create("nv_tileaa.yield_mixed", list(op.operands), attributes=sizes)
    op.operation.erase()
    return KEEP
