"""convert-cudatile-to-tileaa: the first step away from the input language."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_tileaa.passes.cudatile import arith, control, memory, shape
from tile_tileaa.passes.cudatile.rules import rules
from tile_tileaa.passes.cudatile.types import convert_type

__all__ = ["ConvertCudaTileToTileAA", "arith", "control", "memory", "shape"]

I32 = 32


@dataclass(frozen=True)
class ConvertCudaTileToTileAA(Pass):
    """Convert cuda_tile to nv_tileaa, arith, math and scf, a gpu.module of kernels."""

    name = "convert-cudatile-to-tileaa"
    anchor = "builtin.module"
    dependent_dialects = ("nv_tileaa",)

    num_warps: int = option(
        0, "warps of a thread block; 0: chosen for each kernel", choices=(0, 1, 2, 4, 8, 16)
    )
    num_ctas: int = option(
        1,
        "thread blocks of a cluster that share a tile block; 0: chosen for each kernel",
        choices=(0, 1, 2, 4, 8, 16),
    )
    ftz: bool = option(False, "f32 operations run as if each said flush_to_zero, if they can")
    approx: bool = option(
        False,
        "f32 divisions and square roots that round to nearest even take the rounding modes full "
        "and approx",
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        ruleset = rules.joined(cx.services.patterns(self.name))
        Conversion(ruleset, convert_type, ["cuda_tile"], cx, self).run(op)
        i32 = ir.IntegerType.get_signless(I32)
        for module in op.regions[0].blocks[0].operations:
            if module.name != "gpu.module":
                continue
            module.attributes["nv_tileaa.compute_capability"] = ir.IntegerAttr.get(
                i32, cx.target.sm
            )
            module.attributes["nv_tileaa.target_spec"] = ir.StringAttr.get(cx.target.name)
            module.attributes["tt.num_warps"] = ir.IntegerAttr.get(i32, self.num_warps)
            module.attributes["tt.num_ctas"] = ir.IntegerAttr.get(i32, self.num_ctas)
