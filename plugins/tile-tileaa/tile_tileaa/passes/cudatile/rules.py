"""What the rule files share: the rule set, operand groups, attribute shorthands."""

from __future__ import annotations

from tile_cudatile.dialect import operand_groups as groups

from tile_core.convert import Conversion, RuleSet
from tile_core.mlir import ir
from tile_core.passes import error_at

__all__ = ["constant", "element", "expect_bytes", "groups", "i32", "rules", "text"]

#: Families of operations that few programs have, and the modules with their rules. What most
#: programs have, the pass imports.
FAMILIES = {
    "atomics": ("cuda_tile.atomic_rmw_tko", "cuda_tile.atomic_cas_tko"),
    "dot": ("cuda_tile.mmaf", "cuda_tile.mmaf_scaled", "cuda_tile.mmai"),
    "folds": ("cuda_tile.reduce", "cuda_tile.scan", "cuda_tile.yield", "cuda_tile.continue"),
    "host": ("cuda_tile.global", "cuda_tile.get_global", "cuda_tile.assert", "cuda_tile.print_tko"),
    "multimem": (
        "cuda_tile.multimem_load_reduce_view_tko", "cuda_tile.multimem_reduce_view_tko",
        "cuda_tile.multimem_store_view_tko",
    ),
    "pack": ("cuda_tile.pack", "cuda_tile.unpack"),
    "system": (
        "cuda_tile.gdc_launch_dependents_tko", "cuda_tile.gdc_wait_tko",
        "cuda_tile.memory_fence_alias_tko", "cuda_tile.alloca",
    ),
}  # fmt: skip

rules = RuleSet(
    "convert-cudatile-to-tileaa",
    {f"{__package__}.{module}": ops for module, ops in FAMILIES.items()},
)


def text(op: ir.OpView, name: str, default: str = "") -> str:
    """The string attribute `name`, or `default`."""
    attributes = op.attributes
    return ir.StringAttr(attributes[name]).value if name in attributes else default


def i32(value: int) -> ir.IntegerAttr:
    """A 32-bit integer attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def element(type_: ir.Type) -> ir.Type:
    """The element type of a tile, or the scalar type itself."""
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_


def expect_bytes(op: ir.OpView, kind: ir.Type) -> None:
    """Raise an error for elements in memory that are smaller than a byte and share it."""
    if str(kind) == "f4E2M1FN":
        raise error_at(
            op,
            f"works on elements of type {kind} in memory, which is not supported",
            hint="access the bytes as i8, and use cuda_tile.unpack and cuda_tile.pack",
        )


def constant(cx: Conversion, type_: ir.Type, value: int | float) -> ir.Value:
    """`arith.constant` of `type_`, the same number everywhere."""
    kind = element(type_)
    scalar = (
        ir.IntegerAttr.get(kind, value)
        if isinstance(kind, ir.IntegerType)
        else ir.FloatAttr.get(kind, float(value))
    )
    is_tile = isinstance(type_, ir.RankedTensorType)
    attr = ir.DenseElementsAttr.get_splat(type_, scalar) if is_tile else scalar
    return cx.create("arith.constant", [], [type_], {"value": attr}).result
