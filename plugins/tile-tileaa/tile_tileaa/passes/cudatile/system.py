"""Memory that a block allocates, dependences between grids, fences."""

from __future__ import annotations

from tile_cudatile.dialect import pointee, tile_element

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_tileaa.dialect import ptr
from tile_tileaa.passes.cudatile.rules import rules

#: cuda_tile operation -> nv_tileaa operation; a token goes in, one comes out
_ORDERED = {
    "cuda_tile.gdc_launch_dependents_tko": "nv_tileaa.gdc_launch_dependents",
    "cuda_tile.gdc_wait_tko": "nv_tileaa.gdc_wait",
    "cuda_tile.memory_fence_alias_tko": "nv_tileaa.fence_alias",
}


@rules.on(*_ORDERED)
def ordered(op: ir.OpView, cx: Conversion) -> ir.Value:
    """gdc_wait_tko(token) => gdc_wait(token), and so on"""
    name = _ORDERED[op.operation.name]
    return cx.create(name, list(op.operands), [cx.type(op.results[0].type)]).result


@rules.on("cuda_tile.alloca")
def alloca(op: ir.OpView, cx: Conversion) -> ir.Value:
    """alloca => alloca, and free at the end of its block"""
    type_ = op.results[0].type
    width = pointee(tile_element(type_)).width
    count = ir.IntegerAttr(op.attributes["num_elem"]).value
    i8, i64 = (ir.IntegerType.get_signless(bits) for bits in (8, 64))
    attributes = {
        "size": ir.IntegerAttr.get(i64, -(-count * _stored_bits(width) // 8)),
        "alignment": op.attributes["alignment"],
    }
    made = cx.create("nv_tileaa.alloca", [], [cx.type(type_), ptr(i8)], attributes)
    block = op.operation.block
    with cx.at(ir.InsertionPoint(block.operations[len(block.operations) - 1])):
        cx.create("nv_tileaa.free", [made.results[1]])
    return made.results[0]


def _stored_bits(width: int) -> int:
    """Bits of an element in memory: i1 takes a byte, tf32 (19 bits) four, f4E2M1FN half of one."""
    return width if width == 4 else max(8, 1 << (width - 1).bit_length())
