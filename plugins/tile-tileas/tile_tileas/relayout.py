"""The same operation with its tiles in another layout."""

from __future__ import annotations

from tile_cute.linear import LinearLayout, permute_dims, project_dims, reshape

from tile_core.mlir import ir
from tile_tileas.analysis.axis import shape_of
from tile_tileas.dialect import distributed
from tile_tileas.layouts import inverse_permutation
from tile_tileas.tile_graph import kind_of


def constant_in(value: ir.Attribute, type_: ir.Type) -> ir.Attribute:
    """The same dense constant as a value of `type_`, which differs in its layout only."""
    dense = ir.DenseElementsAttr(value)
    if dense.is_splat:
        return ir.DenseElementsAttr.get_splat(type_, dense.get_splat_value())
    # The text is exact for every element type; only the type behind it changes.
    literal = str(value).split(" : tensor<", 1)[0]
    return ir.Attribute.parse(f"{literal} : {type_}")


def clone_in(op: ir.OpView | ir.Operation, type_: ir.Type, ip: ir.InsertionPoint) -> ir.Operation:
    """A copy of an operation of one result, whose type becomes `type_`; operands as they are."""
    clone = op.operation.clone(ip=ip).operation
    clone.results[0].set_type(type_)
    if clone.name == "arith.constant":
        clone.attributes["value"] = constant_in(clone.attributes["value"], type_)
    return clone


def converted(value: ir.Value, layout: LinearLayout, op: ir.OpView | ir.Operation) -> ir.Value:
    """`value` in `layout`, by a conversion before `op` and at its location."""
    return ir.Operation.create(
        "nv_tileas.convert_layout",
        results=[distributed(value.type, layout)],
        operands=[value],
        loc=op.location,
        ip=ir.InsertionPoint(op),
    ).result


def converted_behind(value: ir.Value, type_: ir.Type, op: ir.OpView | ir.Operation) -> None:
    """Let all that uses `value` have it as `type_`, by a conversion behind `op`, which gives it."""
    made = ir.Operation.create(
        "nv_tileas.convert_layout",
        results=[type_],
        operands=[value],
        loc=op.location,
        ip=ir.InsertionPoint.after(op),
    )
    value.replace_all_uses_except(made.result, made)


def operand_layout(
    op: ir.OpView | ir.Operation, operand: ir.Value, result: LinearLayout
) -> LinearLayout | None:
    """The layout of tile `operand` that makes `op` yield `result`; None if none does so surely."""
    kind = kind_of(op)
    if kind == "same":
        return result
    if kind == "view":
        return reshape(result, shape_of(operand))
    if kind == "broadcast":
        return project_dims(result, shape_of(operand))
    if kind == "permute":
        axes = tuple(ir.DenseI32ArrayAttr(op.attributes["permutation"]))
        return permute_dims(result, inverse_permutation(axes))
    return None
