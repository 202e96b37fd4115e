"""Constants, shapes, and the program's place in its grid."""

from __future__ import annotations

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_tileaa.passes.cudatile.rules import i32, rules


@rules.on("cuda_tile.constant")
def constant(op: ir.OpView, cx: Conversion) -> ir.Value:
    """constant => arith.constant, dense for tiles, a scalar for rank 0"""
    result = cx.type(op.results[0].type)
    value = ir.DenseElementsAttr(op.attributes["value"])
    if not isinstance(result, ir.RankedTensorType):
        attr: ir.Attribute = value.get_splat_value()
    elif value.is_splat:
        attr = ir.DenseElementsAttr.get_splat(result, value.get_splat_value())
    else:
        attr = value
    return cx.create("arith.constant", [], [result], {"value": attr}).result


@rules.on("cuda_tile.iota")
def iota(op: ir.OpView, cx: Conversion) -> ir.Value:
    """iota => make_range"""
    return cx.create("nv_tileaa.make_range", [], [cx.type(op.results[0].type)]).result


@rules.on("cuda_tile.broadcast")
def broadcast(op: ir.OpView, cx: Conversion) -> ir.Value:
    """broadcast => broadcast; of rank 0 there is none"""
    return cx.create("nv_tileaa.broadcast", [op.operands[0]], [cx.type(op.results[0].type)]).result


@rules.on("cuda_tile.reshape")
def reshape(op: ir.OpView, cx: Conversion) -> ir.Value:
    """reshape => view; from rank 0: splat; to rank 0: extract"""
    source, result = op.operands[0], cx.type(op.results[0].type)
    from_tile = isinstance(source.type, ir.RankedTensorType)
    to_tile = isinstance(result, ir.RankedTensorType)
    if not from_tile and not to_tile:
        return source
    name = "view" if from_tile and to_tile else "splat" if to_tile else "extract"
    return cx.create(f"nv_tileaa.{name}", [source], [result]).result


@rules.on("cuda_tile.permute")
def permute(op: ir.OpView, cx: Conversion) -> ir.Value:
    """permute => permute"""
    axes = {"permutation": op.attributes["permutation"]}
    return cx.create(
        "nv_tileaa.permute", [op.operands[0]], [cx.type(op.results[0].type)], axes
    ).result


@rules.on("cuda_tile.cat")
def cat(op: ir.OpView, cx: Conversion) -> ir.Value:
    """cat {dim} => cat {axis}"""
    axis = {"axis": i32(ir.IntegerAttr(op.attributes["dim"]).value)}
    return cx.create("nv_tileaa.cat", list(op.operands), [cx.type(op.results[0].type)], axis).result


@rules.on("cuda_tile.extract")
def extract(op: ir.OpView, cx: Conversion) -> ir.Value:
    """extract => extract_slice; the whole tile: itself"""
    source, result = op.operands[0], cx.type(op.results[0].type)
    if source.type == result:
        return source
    return cx.create("nv_tileaa.extract_slice", list(op.operands), [result]).result


@rules.on("cuda_tile.insert")
def insert(op: ir.OpView, cx: Conversion) -> ir.Value:
    """insert => insert_slice; the whole tile: the source"""
    source, result = op.operands[0], cx.type(op.results[0].type)
    if source.type == result:
        return source
    return cx.create("nv_tileaa.insert_slice", list(op.operands), [result]).result


@rules.on("cuda_tile.get_tile_block_id", "cuda_tile.get_num_tile_blocks")
def grid(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """get_tile_block_id => get_program_id per axis; get_num_tile_blocks => get_num_programs"""
    name = "get_program_id" if op.name.endswith("block_id") else "get_num_programs"
    return [
        cx.create(
            f"nv_tileaa.{name}", [], [cx.type(op.results[axis].type)], {"axis": i32(axis)}
        ).result
        for axis in range(3)
    ]


@rules.on("cuda_tile.assume")
def assume(op: ir.OpView, cx: Conversion) -> ir.Value:
    """assume => assume, the predicate carried as it is"""
    return cx.create(
        "nv_tileaa.assume",
        [op.operands[0]],
        [cx.type(op.results[0].type)],
        {"predicate": op.attributes["predicate"]},
    ).result
