"""convert-cute-and-cute-nvgpu-to-llvm."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_core.walk import children
from tile_nvptx.passes.cute import (  # noqa: F401
    copies,
    device_maps,
    instructions,
    layouts,
    matrices,
    memory,
    parameters,
    printing,
    products,
    tensor_maps,
    tensor_memory,
    warpgroup,
)
from tile_nvptx.passes.cute.in_flight import check_sums_in_flight
from tile_nvptx.passes.cute.tensors import State, convert_type, rules
from tile_nvptx.passes.tileas.device.helpers import Helpers


@dataclass(frozen=True)
class ConvertCute(Pass):
    """Convert kernels written with cute: layouts become arithmetic, views addresses, loads and
    stores accesses of memory; copies, tiled or not, become vectors, `cp.async`, `ldmatrix`,
    `stmatrix` and copies by tensor maps, products `mma.sync`, `mma.sp`,
    `wgmma` and `tcgen05.mma`; atoms are what is bound to them.

    What a layout leaves open (`?`) goes with the tensor, as numbers of 64 bits; what threads
    copy and multiply has to be static. Swizzles of shared memory act on addresses, so that its
    tensors can be cut; those of global memory cannot. A tensor map is a parameter of 128
    bytes, or made by a warp in global memory.
    What has no rule yet is an error at the operation. MLIR's `convert-scf-to-cf` and
    `convert-to-llvm`, and `nvptx-legalize-kernel`, lower the rest.
    """

    name = "convert-cute-and-cute-nvgpu-to-llvm"
    anchor = "gpu.module"
    dependent_dialects = ("arith", "llvm", "vector")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        ruleset = rules.joined(cx.services.patterns(self.name))
        state = State(Helpers(op), op)
        for func in children(op):
            if func.name != "func.func":
                continue
            check_sums_in_flight(func)
            state.own_maps = device_maps.own_maps_of(func)
            placed = parameters.place_parameters(func)
            Conversion(ruleset, convert_type, ("cute", "cute_nvgpu"), cx, state).run(func)
            parameters.attach(func, placed)
            types = [argument.type for argument in func.regions[0].blocks[0].arguments]
            old = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value)
            kind = ir.FunctionType.get(types, [convert_type(result) for result in old.results])
            func.attributes["function_type"] = ir.TypeAttr.get(kind)
