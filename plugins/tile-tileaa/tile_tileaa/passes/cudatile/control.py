"""Modules, kernels, loops and branches."""

from __future__ import annotations

from tile_core.convert import KEEP, Conversion, Replacement
from tile_core.mlir import ir
from tile_tileaa.passes.cudatile.early_exit import (
    CONTINUE,
    RETURN,
    RETURNS,
    EarlyExits,
    Leave,
    has_early_exit,
)
from tile_tileaa.passes.cudatile.rules import groups, i32, rules


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
    if has_early_exit(block):
        EarlyExits(cx, Leave()).block(block, [])
        with cx.at(ir.InsertionPoint(block)):
            cx.create("func.return")
    block.append_to(new.regions[0])
    cx.convert_region(new.regions[0])
    return []


@rules.on("cuda_tile.return")
def return_(op: ir.OpView, cx: Conversion) -> Replacement:
    """return => func.return"""
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
    block = op.regions[0].blocks[0]
    if has_early_exit(block):
        carried = tuple(result.type for result in op.results)
        left = EarlyExits(cx, Leave(continued=carried)).block(block, [])
        with cx.at(ir.InsertionPoint(block)):
            cx.create("scf.yield", left[1:])
    block.append_to(new.regions[0])
    cx.convert_region(new.regions[0])
    return list(new.results)


@rules.on("cuda_tile.loop")
def loop(op: ir.OpView, cx: Conversion) -> Replacement:
    """loop => scf.while that goes on until its body breaks; the results travel along"""
    block = op.regions[0].blocks[0]
    carried = tuple(argument.type for argument in block.arguments)
    found = tuple(result.type for result in op.results)
    i1 = ir.IntegerType.get_signless(1)
    go = cx.create("arith.constant", [], [i1], {"value": ir.BoolAttr.get(True)}).result
    nothing = [cx.create("ub.poison", [], [cx.type(type_)]).result for type_ in found]
    state = [cx.type(type_) for type_ in (*carried, *found)]
    new = cx.create("scf.while", [*op.operands, go, *nothing], state, regions=2)
    _while_condition(cx, new.regions[0], state[: len(carried)], i1, state[len(carried) :])
    returns = RETURNS in op.attributes
    left = EarlyExits(cx, Leave(carried, found[:-1] if returns else found)).block(block, [])
    with cx.at(ir.InsertionPoint(block)):
        again = _ended_by(cx, left[0], CONTINUE)
        returned = [_ended_by(cx, left[0], RETURN)] if returns else []
        values = left[1 : 1 + len(carried)], left[1 + len(carried) :]
        cx.create("scf.yield", [*values[0], again, *values[1], *returned])
    for type_ in found:
        block.add_argument(type_, op.location)
    block.append_to(new.regions[1])
    cx.convert_region(new.regions[1])
    return list(new.results)[len(carried) :]


def _ended_by(cx: Conversion, found: ir.Value, code: int) -> ir.Value:
    """i1: whether control left a block as `code` says."""
    equal = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}
    wanted = cx.create("arith.constant", [], [found.type], {"value": i32(code)}).result
    return cx.create("arith.cmpi", [found, wanted], [ir.IntegerType.get_signless(1)], equal).result


def _while_condition(
    cx: Conversion,
    region: ir.Region,
    carried: list[ir.Type],
    i1: ir.Type,
    found: list[ir.Type],
) -> None:
    """The first region of the loop: go on with what is carried, if the flag says so."""
    types = [*carried, i1, *found]
    block = region.blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
    arguments = list(block.arguments)
    flag = arguments.pop(len(carried))
    with cx.at(ir.InsertionPoint(block)):
        cx.create("scf.condition", [flag, *arguments])


@rules.on("cuda_tile.if")
def if_(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """if => scf.if; branches that leave early have been structured by what holds them"""
    results = [cx.type(result.type) for result in op.results]
    new = cx.create("scf.if", [op.operands[0]], results, regions=2)
    for source, target in zip(op.regions, new.regions, strict=False):
        blocks = list(source.blocks)
        if blocks:
            blocks[0].append_to(target)
            cx.convert_region(target)
    return list(new.results)
