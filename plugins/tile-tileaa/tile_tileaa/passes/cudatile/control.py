"""Modules, kernels, loops and branches."""

from __future__ import annotations

from tile_core.convert import KEEP, Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileaa.passes.cudatile.rules import groups, rules


@rules.on("cuda_tile.module")
def module(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """cuda_tile.module @m => gpu.module @m"""
    new = cx.create("gpu.module", attributes={"sym_name": op.attributes["sym_name"]}, regions=1)
    op.regions[0].blocks[0].append_to(new.regions[0])
    cx.convert_region(new.regions[0])
    return []


@rules.on("cuda_tile.entry")
def entry(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """cuda_tile.entry @k => func.func @k {nv_tileaa.kernel}; arguments stay in order"""
    block = op.regions[0].blocks[0]
    inputs = [cx.type(argument.type) for argument in block.arguments]
    attributes: dict[str, ir.Attribute] = {
        "sym_name": op.attributes["sym_name"],
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, [])),
        "nv_tileaa.kernel": ir.UnitAttr.get(),
    }
    if "optimization_hints" in op.attributes:
        attributes["nv_tileaa.optimization_hints"] = op.attributes["optimization_hints"]
    new = cx.create("func.func", attributes=attributes, regions=1)
    block.append_to(new.regions[0])
    cx.convert_region(new.regions[0])
    return []


@rules.on("cuda_tile.return")
def return_(op: ir.OpView, cx: Conversion) -> object:
    """return => func.return"""
    if op.operation.parent.name != "func.func":
        raise error_at(op, "inside a branch is not supported by 'convert-cudatile-to-tileaa'")
    cx.create("func.return")
    op.operation.erase()
    return KEEP


@rules.on("cuda_tile.for")
def for_(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """for => scf.for, its body moved"""
    parts = groups(op)
    operands = [*parts["lowerBound"], *parts["upperBound"], *parts["step"], *parts["initValues"]]
    attributes = {"unsignedCmp": ir.UnitAttr.get()} if "unsignedCmp" in op.attributes else {}
    results = [cx.type(result.type) for result in op.results]
    new = cx.create("scf.for", operands, results, attributes, regions=1)
    op.regions[0].blocks[0].append_to(new.regions[0])
    cx.convert_region(new.regions[0])
    return list(new.results)


@rules.on("cuda_tile.if")
def if_(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """if => scf.if; both branches end in yield"""
    results = [cx.type(result.type) for result in op.results]
    new = cx.create("scf.if", [op.operands[0]], results, regions=2)
    for source, target in zip(op.regions, new.regions, strict=False):
        blocks = list(source.blocks)
        if blocks:
            _check_ends_in_yield(op, blocks[0])
            blocks[0].append_to(target)
            cx.convert_region(target)
    return list(new.results)


def _check_ends_in_yield(op: ir.OpView, block: ir.Block) -> None:
    last = list(block.operations)[-1]
    if last.name != "cuda_tile.yield":
        raise error_at(
            op,
            f"leaves its branch by '{last.name}', which 'convert-cudatile-to-tileaa' "
            "does not support yet",
        )
