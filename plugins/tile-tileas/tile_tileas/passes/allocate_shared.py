"""tileas-allocate-shared: where in shared memory each operation keeps its scratch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at, option
from tile_tileas.dot_stage import choose_staging
from tile_tileas.scratch import scratch_bytes

ALIGNMENT = 128  # bytes; one row of banks, so that plans count conflicts right


def _operations(region: ir.Region) -> Iterator[ir.OpView]:
    for block in region.blocks:
        for op in block.operations:
            yield op
            if not op.name.startswith(("nv_tileas.reduce", "nv_tileas.scan")):
                for inner in op.regions:
                    yield from _operations(inner)


@dataclass(frozen=True)
class AllocateShared(Pass):
    """Give scratch its place in shared memory: side by side while it is cheap, then reused.

    How the operands of a product lie there is chosen here, too: attribute `staging`.
    """

    name = "tileas-allocate-shared"
    anchor = "func.func"
    statistics = {"bytes": "shared memory of the kernel"}

    # Separate places save barriers; beyond this they would cost occupancy.
    separate_bytes: int = option(32768, "bytes up to which scratch is not reused")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        i32 = ir.IntegerType.get_signless(32)
        top = total = 0
        for inner in _operations(op.regions[0]):
            if inner.name == "nv_tileas.dot":
                staging = choose_staging(inner, cx.target.chip)
                inner.attributes["staging"] = staging.attribute()
                size = staging.bytes
            else:
                size = scratch_bytes(inner)
            if not size:
                continue
            size = -(-size // ALIGNMENT) * ALIGNMENT
            if top and top + size > self.separate_bytes:
                top = 0
            inner.attributes["shared_offset"] = ir.IntegerAttr.get(i32, top)
            inner.attributes["shared_bytes"] = ir.IntegerAttr.get(i32, size)
            top += size
            total = max(total, top)
            if total > cx.target.max_shared:
                raise error_at(
                    inner,
                    f"uses too much shared data (0x{total:x} bytes, "
                    f"0x{cx.target.max_shared:x} max)",
                )
        op.attributes["nv_tileas.shared_bytes"] = ir.IntegerAttr.get(i32, total)
        cx.count("bytes", total)
