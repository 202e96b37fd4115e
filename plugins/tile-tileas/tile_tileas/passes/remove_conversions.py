"""tileas-remove-layout-conversions: conversions that need not happen.

convert_layout(x : L) : L                      => x
convert_layout(convert_layout(x))              => convert_layout(x)
convert_layout(f(a, ..)), f used once, cheap   => f(convert_layout(a), ..)   if a is narrower
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.dialect import distributed, layout_of
from tile_tileas.tile_graph import is_tile, kind_of

_CONVERT = "nv_tileas.convert_layout"


def _conversions(region: ir.Region) -> Iterator[ir.OpView]:
    for block in region.blocks:
        for op in list(block.operations):
            if op.operation.name == _CONVERT:
                yield op
            for inner in op.regions:
                yield from _conversions(inner)


@dataclass(frozen=True)
class RemoveLayoutConversions(Pass):
    """Remove conversions that change nothing, follow one another, or move cheaper things."""

    name = "tileas-remove-layout-conversions"
    anchor = "func.func"
    statistics = {"removed": "conversions that disappeared", "narrowed": "conversions made smaller"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for conversion in list(_conversions(op.regions[0])):
            source = _origin(conversion.operands[0])
            if source != conversion.operands[0]:
                conversion.operands[0] = source
                cx.count("removed")
            if source.type == conversion.results[0].type:
                conversion.results[0].replace_all_uses_with(source)
                conversion.operation.erase()
                cx.count("removed")
            elif _narrow(conversion):
                cx.count("narrowed")
        _erase_unused(op.regions[0])


def _origin(value: ir.Value) -> ir.Value:
    """The value before a chain of conversions."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name == _CONVERT:
        value = value.owner.operands[0]
    return value


def _narrow(conversion: ir.OpView) -> bool:
    """convert_layout(cast(a)) => cast(convert_layout(a)), where `a` has fewer bits."""
    value = conversion.operands[0]
    maker = value.owner
    if isinstance(maker, ir.Block) or kind_of(maker) != "same" or len(list(value.uses)) != 1:
        return False
    operands = [operand for operand in maker.operands if is_tile(operand)]
    if len(operands) != 1 or len(maker.results) != 1 or maker.operation.name.startswith("scf."):
        return False
    width = getattr(operands[0].type.element_type, "width", 64)
    if width >= getattr(value.type.element_type, "width", 64):
        return False
    layout = layout_of(conversion.results[0].type)
    assert layout is not None
    moved = ir.Operation.create(
        _CONVERT,
        results=[distributed(operands[0].type, layout)],
        operands=[operands[0]],
        loc=conversion.location,
        ip=ir.InsertionPoint(conversion),
    )
    clone = maker.operation.clone(ip=ir.InsertionPoint(conversion))
    for at, operand in enumerate(clone.operands):
        if operand == operands[0]:
            clone.operands[at] = moved.result
    clone.results[0].set_type(conversion.results[0].type)
    conversion.results[0].replace_all_uses_with(clone.results[0])
    conversion.operation.erase()
    return True


def _erase_unused(region: ir.Region) -> None:
    for conversion in reversed(list(_conversions(region))):
        if not any(True for _ in conversion.results[0].uses):
            conversion.operation.erase()
