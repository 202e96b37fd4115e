"""What a tile block asks of the system: memory of its own, other grids, fences of aliases."""

# pyright: reportGeneralTypeIssues=false

from typing import Any

from tile_core.dialect import Operand, OperationSpec, ReadsAndWrites, Result, declare
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA


def _size(op: ir.OpView) -> str | None:
    size, alignment = op.size.value, op.alignment.value
    if size < 0:
        return f"expects a size of at least 0 bytes, but got {size}"
    if alignment <= 0 or alignment & (alignment - 1):
        return f"expects an alignment that is a power of two, but got {alignment}"
    return None


_ORDERED: dict[str, Any] = {"token": Operand[Any] | None, "result_token": Result[Any]}

SPECS = (
    OperationSpec(
        "alloca",
        {
            "result": Result[Any],
            "block": Result[Any],
            "size": ir.IntegerAttr,
            "alignment": ir.IntegerAttr,
        },
        "New memory of `size` bytes at a multiple of `alignment`, or a trap if there is none. It "
        "is visible to every tile block that learns the address, and lasts until it is freed. "
        "`block` is what `free` takes.",
        (ReadsAndWrites,),
        (_size,),
    ),
    OperationSpec(
        "free",
        {"block": Operand[Any]},
        "The end of what `alloca` has given; no access to it comes after this.",
        (ReadsAndWrites,),
    ),
    OperationSpec(
        "gdc_launch_dependents",
        _ORDERED,
        "Grids that wait for this one may be launched once every tile block has come here.",
        (ReadsAndWrites,),
    ),
    OperationSpec(
        "gdc_wait",
        _ORDERED,
        "Goes on when the grids that this one depends on are over and their memory is visible.",
        (ReadsAndWrites,),
    ),
    OperationSpec(
        "fence_alias",
        {"token": Operand[Any], "result_token": Result[Any]},
        "Orders accesses to one place of memory under different addresses.",
        (ReadsAndWrites,),
    ),
)

for _spec in SPECS:
    declare(NvTileAA, _spec, module=__name__)
