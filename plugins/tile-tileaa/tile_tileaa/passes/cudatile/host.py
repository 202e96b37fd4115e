"""Globals, assertions and printing."""

from __future__ import annotations

from tile_core.convert import Conversion
from tile_core.dialect import runs_of_types
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileaa.dialect.folds import SLOTS
from tile_tileaa.passes.cudatile.rules import expect_bytes, groups, rules


@rules.on("cuda_tile.global")
def global_(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """global => global"""
    expect_bytes(op, ir.DenseElementsAttr(op.attributes["value"]).type.element_type)
    names = ("sym_name", "value", "alignment", "symbol_visibility")
    attributes = {name: op.attributes[name] for name in names if name in op.attributes}
    attributes.setdefault("symbol_visibility", ir.StringAttr.get("public"))
    cx.create("nv_tileaa.global", [], [], attributes)
    return []


@rules.on("cuda_tile.get_global")
def get_global(op: ir.OpView, cx: Conversion) -> ir.Value:
    """get_global => get_global"""
    symbol = {"symbol": op.attributes["name"]}
    return cx.create("nv_tileaa.get_global", [], [cx.type(op.results[0].type)], symbol).result


@rules.on("cuda_tile.assert")
def assert_(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """assert => assert"""
    message = {"message": op.attributes["message"]}
    cx.create("nv_tileaa.assert", [op.operands[0]], [], message)
    return []


@rules.on("cuda_tile.print_tko")
def print_(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """print_tko {str} => print {format}"""
    parts = groups(op)
    args, token = parts["args"], parts["token"]
    sizes = runs_of_types([arg.type for arg in args], SLOTS)
    if sizes is None:
        raise error_at(op, f"prints more than {SLOTS} runs of operands of one type")
    token_type = cx.type(op.results[0].type)
    return list(
        cx.create(
            "nv_tileaa.print",
            [*args, *token],
            [token_type],
            {
                "format": op.attributes["str"],
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([*sizes, len(token)]),
            },
        ).results
    )
