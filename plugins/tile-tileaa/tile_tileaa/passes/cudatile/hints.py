"""Optimization hints of loads and stores, those for the target alone (Tile IR, "Optimization
hints").
"""

from __future__ import annotations

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_tileaa.dialect.hints import ALLOW_TMA, HINTS, LATENCY, hint_problem
from tile_tileaa.passes.cudatile.rules import i32

_ALL_TARGETS = "default"


def hints(op: ir.OpView, cx: Conversion) -> dict[str, ir.Attribute]:
    """`hints`: what the program advises for the target, over what it advises for all of them.

    A value that means nothing is left out, with a remark; so is a hint that loads and stores do
    not have.
    """
    if "optimization_hints" not in op.attributes:
        return {}
    given = ir.DictAttr(op.attributes["optimization_hints"])
    found: dict[str, ir.Attribute] = {}
    for target in (_ALL_TARGETS, cx.target.name):
        if target in given:
            for entry in ir.DictAttr(given[target]):
                found.update(_known(op, cx, entry.name, entry.attr))
    return {HINTS: ir.DictAttr.get(found)} if found else {}


def _known(op: ir.OpView, cx: Conversion, name: str, value: ir.Attribute) -> dict:
    is_flag = isinstance(value, ir.BoolAttr)
    if name == LATENCY and isinstance(value, ir.IntegerAttr) and not is_flag:
        hint: ir.Attribute = i32(value.value)
    elif name == ALLOW_TMA and is_flag:
        hint = value
    else:
        hint = ir.UnitAttr.get()
    problem = hint_problem(name, hint)
    if problem is None:
        return {name: hint}
    cx.cx.missed(op.operation, f"the hint {name} = {value} is ignored: {problem}")
    return {}
