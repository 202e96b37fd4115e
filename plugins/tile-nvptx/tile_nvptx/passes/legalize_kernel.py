"""nvptx-legalize-kernel: launch attributes of kernels, internal linkage for everything else."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_core.walk import children
from tile_nvptx.emit.map_notes import ATTRIBUTE as RECIPES

_LOWERED = ("nv_tileaa.", "nv_tileas.", "tt.")


@dataclass(frozen=True)
class LegalizeKernel(Pass):
    """Turn `nv_tileaa.kernel` and its launch record into NVVM's kernel attributes."""

    name = "nvptx-legalize-kernel"
    anchor = "gpu.module"

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for func in children(op):
            if func.name != "llvm.func":
                continue
            if "nv_tileaa.kernel" in func.attributes:
                _legalize(func, cx)
            elif len(func.regions[0].blocks) and "nvvm.kernel" not in func.attributes:
                # Nobody outside calls it, so that it may go once it is inlined.
                func.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        _drop_lowered(op)


def _legalize(func: ir.Operation, cx: PassContext) -> None:
    attributes = func.attributes
    if "nv_tileaa.kernel_spec" not in attributes:
        raise error_at(func, "has no kernel_spec; run 'convert-tileaa-to-tileas' before")
    spec = ir.DictAttr(attributes["nv_tileaa.kernel_spec"])
    threads = cx.target.warp_size * ir.IntegerAttr(spec["num_warps"]).value
    i32 = ir.IntegerType.get_signless(32)
    attributes["nvvm.kernel"] = ir.UnitAttr.get()
    attributes["nvvm.reqntid"] = ir.DenseI32ArrayAttr.get([threads])
    blocks = ir.IntegerAttr(spec["occupancy"]).value if "occupancy" in spec else 1
    attributes["nvvm.minctasm"] = ir.IntegerAttr.get(i32, blocks)
    ctas = ir.IntegerAttr(spec["num_ctas"]).value if "num_ctas" in spec else 1
    if ctas > 1:
        # A launch counts tile blocks, each of which is a cluster.
        attributes["nvvm.cluster_dim"] = ir.DenseI32ArrayAttr.get([ctas, 1, 1])
        attributes["nvvm.blocksareclusters"] = ir.UnitAttr.get()
    _keep_parameters_in_place(func)
    _drop_lowered(func)


def _keep_parameters_in_place(func: ir.Operation) -> None:
    """Parameters that are passed by value are only read: their address is the parameter's own."""
    if "arg_attrs" not in func.attributes:
        return
    kept = [
        {item.name: item.attr for item in ir.DictAttr(found)}
        for found in ir.ArrayAttr(func.attributes["arg_attrs"])
    ]
    for argument in kept:
        if "llvm.byval" in argument:
            argument["nvvm.grid_constant"] = ir.UnitAttr.get()
    func.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(item) for item in kept])


def _drop_lowered(op: ir.Operation) -> None:
    """Attributes that earlier stages left and that are lowered by now: all but the recipes of
    tensor maps, which go on to the cubin.
    """
    for name in list(op.attributes):
        if name.startswith(_LOWERED) and name != RECIPES:
            del op.attributes[name]
