"""What a kernel's optimisation hints, or else its module, ask for."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.passes import error_at

#: Names of hints: blocks of a cluster, blocks of a multiprocessor at once, warps of a block.
CTAS, OCCUPANCY, WARPS = "num_cta_in_cga", "occupancy", "num_worker_warps_per_cta"
#: Attributes of a gpu.module: what is asked for where no hint is.
MODULE_WARPS, MODULE_CTAS = "tt.num_warps", "tt.num_ctas"
_HINTS = "nv_tileaa.optimization_hints"
#: Warps that the hint may ask for; as its definition says, others mean the nearest of them.
_LEAST_WARPS, _MOST_WARPS = 4, 8


def hints_of(func: ir.Operation, target: str) -> dict[str, int]:
    """Integer hints for `target`, else those under `default`."""
    if _HINTS not in func.attributes:
        return {}
    hints = ir.DictAttr(func.attributes[_HINTS])
    found: dict[str, int] = {}
    for key in ("default", target):
        if key in hints:
            for entry in ir.DictAttr(hints[key]):
                if isinstance(entry.attr, ir.IntegerAttr):
                    found[entry.name] = entry.attr.value
    return found


def asked_warps(func: ir.Operation, target: str) -> int:
    """Warps of a block that the hint for `target` asks for, else the module; 0 if neither does."""
    hints = hints_of(func, target)
    if WARPS in hints:
        return min(_MOST_WARPS, max(_LEAST_WARPS, hints[WARPS]))
    return _of_module(func, MODULE_WARPS, 0)


def asked_ctas(func: ir.Operation, target: str) -> int:
    """Blocks of a cluster that the hint for `target` asks for, else the module; 0 leaves it to the
    compiler.

    Raises:
        CompileError: it is no power of two.
    """
    asked = hints_of(func, target).get(CTAS, _of_module(func, MODULE_CTAS, 1))
    if asked < 0 or asked & (asked - 1):
        raise error_at(func, f"asks for a cluster of {asked} blocks, which is no power of two")
    return asked


def _of_module(func: ir.Operation, name: str, otherwise: int) -> int:
    module = {} if func.parent is None else func.parent.attributes
    return ir.IntegerAttr(module[name]).value if name in module else otherwise
