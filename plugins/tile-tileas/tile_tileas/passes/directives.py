"""What a program tells its compilers: texts for whoever compiles it, for ptxas, for optimisers."""

from __future__ import annotations

from tile_tileaa.dialect.extended import ENTER, LEAVE

from tile_core.convert import KEEP, Conversion, Replacement
from tile_core.mlir import ir
from tile_tileas.passes.ruleset import rules


@rules.on("nv_tileaa.message")
def message(op: ir.OpView, cx: Conversion) -> None:
    """message => a remark with its text, and the types of its values"""
    types = ", ".join(str(value.type) for value in op.operands)
    cx.cx.observed(op.operation, ir.StringAttr(op.text).value + (types and f" ({types})"))


@rules.on("nv_tileaa.optimization_barrier")
def optimization_barrier(op: ir.OpView, cx: Conversion) -> Replacement:
    """optimization_barrier(x, y) => one of each value: layouts of different tiles differ"""
    if len(op.operands) == 1:
        return KEEP
    name = op.operation.name
    return [cx.create(name, [value], [value.type]).result for value in op.operands]


@rules.on("nv_tileaa.pragma", "nv_tileaa.pragma_mixed")
def pragma(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """pragma => its directives where it begins, what its region does, its directives at the end"""
    body = op.regions[0].blocks[0]
    for argument, value in zip(body.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(value)
    _tell(op, ENTER, cx)
    *inside, end = body.operations
    for inner in inside:
        inner.operation.move_before(op.operation)
        cx.convert_op(inner)
    _tell(op, LEAVE, cx)
    return list(end.operands)


def _tell(op: ir.OpView, name: str, cx: Conversion) -> None:
    texts = op.attributes[name] if name in op.attributes else ir.ArrayAttr.get([])
    if len(ir.ArrayAttr(texts)):
        cx.create("nv_tileas.pragma", [], [], {"directives": texts})
