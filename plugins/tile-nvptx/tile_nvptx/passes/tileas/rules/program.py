"""The program's place in its grid, views of memory, and tokens."""

from __future__ import annotations

from tile_tileas.analysis.views import view_of_memref

from tile_core.convert import KEEP, Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel

_AXES = "xyz"


@rules.on("nv_tileaa.get_program_id", "nv_tileaa.get_num_programs")
def program(op: ir.OpView, cx: Kernel) -> ir.Value:
    """get_program_id => ctaid, get_num_programs => nctaid; of clusters where they share work"""
    of = "cluster" if cx.state.num_ctas > 1 else "cta"
    register = f"{of}id" if op.name.endswith("program_id") else f"n{of}id"
    axis = _AXES[ir.IntegerAttr(op.attributes["axis"]).value]
    i32 = ir.IntegerType.get_signless(32)
    return cx.create(f"nvvm.read.ptx.sreg.{register}.{axis}", [], [i32]).result


@rules.on("nv_tileaa.create_mem_token", "nv_tileaa.join_mem_token")
def token(op: ir.OpView, cx: Kernel) -> ir.Value:
    """A token => a constant; barriers have been inserted where it orders threads"""
    return Builder(cx).constant(0)


@rules.on("nv_tileaa.make_memref", "nv_tileaa.block_tile")
def view(op: ir.OpView, cx: Kernel) -> Replacement:
    """Views are read where they are used, and erased when the function is done"""
    cx.state.views.append(op)
    return KEEP


@rules.on("nv_tileaa.get_dim_size")
def get_dim_size(op: ir.OpView, cx: Kernel) -> ir.Value:
    """get_dim_size => the size that make_memref was given"""
    size = view_of_memref(op.operands[0].owner).sizes[ir.IntegerAttr(op.attributes["dim"]).value]
    type_, b = op.results[0].type, Builder(cx)
    if isinstance(size, int):
        return b.constant(size, type_)
    if size.type.width > type_.width:
        return cx.create("arith.trunci", [size], [type_]).result
    return b.widen(size, type_)
