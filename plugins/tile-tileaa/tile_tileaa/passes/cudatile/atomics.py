"""Atomic operations through pointers."""

from __future__ import annotations

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_tileaa.passes.cudatile.memory import ordering
from tile_tileaa.passes.cudatile.rules import groups, rules, text


@rules.on("cuda_tile.atomic_rmw_tko")
def atomic_rmw(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """atomic_rmw_tko {mode} => atomic_rmw {rmw_mode}"""
    parts = groups(op)
    return _atomic(
        op,
        cx,
        "nv_tileaa.atomic_rmw",
        [parts["pointers"], parts["arg"], parts["mask"], parts["token"]],
        {"rmw_mode": ir.StringAttr.get(text(op, "mode"))},
    )


@rules.on("cuda_tile.atomic_cas_tko")
def atomic_cas(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """atomic_cas_tko => atomic_cas"""
    parts = groups(op)
    order = ("pointers", "cmp", "val", "mask", "token")
    return _atomic(op, cx, "nv_tileaa.atomic_cas", [parts[name] for name in order], {})


def _atomic(
    op: ir.OpView,
    cx: Conversion,
    name: str,
    operands: list[list[ir.Value]],
    attributes: dict[str, ir.Attribute],
) -> list[ir.Value]:
    sizes = ir.DenseI32ArrayAttr.get([len(group) for group in operands])
    return list(
        cx.create(
            name,
            [value for group in operands for value in group],
            [cx.type(result.type) for result in op.results],
            {**ordering(op), **attributes, "operandSegmentSizes": sizes},
        ).results
    )
