"""Meeting points of a block's threads."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel


@rules.on("nv_tileas.sync")
def sync(op: ir.OpView, cx: Kernel) -> None:
    """sync => bar.sync of the whole block"""
    Builder(cx).barrier()
