"""The launch record of a kernel: how many warps and blocks run it.

`tileas-plan-cta` says over how many blocks of a cluster it has cut tiles,
`convert-tileaa-to-tileas` writes the record, and everything behind it reads that.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_core.target import Target

#: Attribute of a kernel: how it is launched.
SPEC = "nv_tileaa.kernel_spec"
#: Attribute of kernels whose tiles are cut: over how many blocks of a cluster (i32).
PLANNED_CTAS = "nv_tileas.num_ctas"


def num_warps(func: ir.Operation) -> int:
    """Warps of a block of this kernel.

    Raises:
        CompileError: the function has no launch record.
    """
    if SPEC not in func.attributes:
        raise error_at(func, "has no kernel_spec; run 'convert-tileaa-to-tileas' before")
    spec = ir.DictAttr(func.attributes[SPEC])
    return ir.IntegerAttr(spec["num_warps"]).value


def num_ctas(func: ir.Operation) -> int:
    """Blocks of a cluster that work on a tile block of this kernel together; 1 if nothing says."""
    if SPEC not in func.attributes:
        return 1
    spec = ir.DictAttr(func.attributes[SPEC])
    return ir.IntegerAttr(spec["num_ctas"]).value if "num_ctas" in spec else 1


def occupancy(func: ir.Operation) -> int:
    """Blocks of a multiprocessor at once that hints ask for; 1 if none does."""
    if SPEC not in func.attributes:
        return 1
    spec = ir.DictAttr(func.attributes[SPEC])
    return max(1, ir.IntegerAttr(spec["occupancy"]).value if "occupancy" in spec else 1)


def registers_of_thread(target: Target, warps: int, blocks: int) -> int:
    """Registers of a thread if `blocks` blocks of `warps` warps are to run at once."""
    threads = warps * target.warp_size * max(1, blocks)
    return min(target.max_registers, target.registers // threads)
