"""Views of multicast memory: their accesses go through pointers, masked outside of the tensor."""

from __future__ import annotations

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_tileaa.passes.cudatile.gather import ViewAddresses, padding
from tile_tileaa.passes.cudatile.memory import ordering
from tile_tileaa.passes.cudatile.rules import groups, rules, text


@rules.on("cuda_tile.multimem_load_reduce_view_tko")
def load_reduce(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """multimem_load_reduce_view_tko => multimem {load_reduce}, padding outside of the tensor"""
    result = cx.type(op.results[0].type)
    found, token, inside = _access(op, cx, "load_reduce", None, result)
    other = padding(op, cx, groups(op)["view"][0], result)
    return [cx.create("arith.select", [inside, found, other], [result]).result, token]


@rules.on("cuda_tile.multimem_reduce_view_tko", "cuda_tile.multimem_store_view_tko")
def update(op: ir.OpView, cx: Conversion) -> ir.Value:
    """multimem_store_view_tko => multimem {store}; its result is unused"""
    action = "store" if "store" in op.operation.name else "reduce"
    value = groups(op)["tile"][0]
    return _access(op, cx, action, value, value.type)[1]


def _access(
    op: ir.OpView, cx: Conversion, action: str, value: ir.Value | None, result: ir.Type
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """What was found, the token, and which elements lie inside the tensor."""
    parts = groups(op)
    token, values = parts["token"], [] if value is None else [value]
    where = ViewAddresses(op, cx, parts["view"][0]).of(parts["index"])
    made = cx.create(
        "nv_tileaa.multimem",
        [where.pointers, *values, where.inside, *token],
        [result, cx.type(op.results[-1].type)],
        {
            **ordering(op),
            "action": ir.StringAttr.get(action),
            "reduction": ir.StringAttr.get(text(op, "reduction", "add")),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(values), 1, len(token)]),
        },
    )
    return made.results[0], made.results[1], where.inside
