"""Why an access is narrower than the target allows: the facts that `plan_tiled` lacked."""

from __future__ import annotations

from dataclasses import dataclass

from tile_tileaa.dialect.types import pointee_of

from tile_core.mlir import ir
from tile_tileas.access import AccessPlan
from tile_tileas.analysis import axis_info as facts
from tile_tileas.analysis.axis import AxisAnalysis, element_bytes, shape_of
from tile_tileas.analysis.views import tiled_view

_KNOW = "state what is known, as by `ct.assume_div_by` or aligned rows"
_ORDER = "load along the axis that is contiguous in memory (`order=`), and permute the tile"
_TRANSPOSE = "let neighbouring elements of the tile have neighbouring addresses, or use a view"


@dataclass(frozen=True)
class Narrowness:
    """The reasons, and what would change the first of them; no reasons: as wide as can be."""

    reasons: tuple[str, ...] = ()
    hint: str = ""


def narrowness_of_tiled(
    view: ir.Value, plan: AccessPlan, known: AxisAnalysis, max_bits: int
) -> Narrowness:
    """Why the tile of a view is not read `max_bits` at a time."""
    record = tiled_view(view)
    memref = record.memref
    steps = [memref.strides[dim] for dim in record.dim_map]
    size, fast = element_bytes(memref.element), plan.order[0]
    wanted = min(max_bits // 8, record.tile[fast] * size)
    if plan.vector * size >= wanted:
        return Narrowness()
    if steps[fast] != 1:
        stride = steps[fast] if isinstance(steps[fast], int) else "not known"
        reason = f"contiguity: no axis of the tile has stride 1 (axis {fast}: {stride})"
        return Narrowness((reason,), _ORDER)
    found = [("the base address", known[memref.base].scalar)]
    found += [("where tiles begin", record.steps[fast] * size)]
    found += [
        (f"the stride of axis {axis}", _divisor(step, known) * size)
        for axis, step in enumerate(steps)
        if axis != fast
    ]
    reasons = tuple(
        f"alignment: {what} is only known to be a multiple of {have} byte{'s' * (have != 1)}"
        for what, have in found
        if have % wanted
    )
    return Narrowness(reasons, _KNOW)


def narrowness_of_pointers(
    op: ir.OpView, plan: AccessPlan, known: AxisAnalysis, max_bits: int
) -> Narrowness:
    """Why a tile of pointers is not read `max_bits` at a time."""
    shape, element = shape_of(op.base), pointee_of(op.base.type)
    if not shape or element is None:
        return Narrowness()
    info, size, fast = known[op.base], element_bytes(element), plan.order[0]
    wanted = min(max_bits // 8, shape[fast] * size)
    if plan.vector * size >= wanted:
        return Narrowness()
    if info.contiguity[fast] * size < wanted:
        many = info.contiguity[fast]
        run = "no two neighbours" if many == 1 else f"only runs of {many} elements"
        return Narrowness((f"contiguity: {run} are known to lie side by side",), _TRANSPOSE)
    if info.divisibility[fast] % wanted:
        have = info.divisibility[fast]
        reason = f"alignment: pointers are only known to be multiples of {have} bytes"
        return Narrowness((reason,), _KNOW)
    same = known[op.mask].constancy[fast] if op.mask is not None else 0
    return Narrowness(
        (f"mask: only known to be the same for {same} neighbours",),
        "let the mask end at a multiple of the vector",
    )


def _divisor(value: int | ir.Value, known: AxisAnalysis) -> int:
    return facts.pow2_divisor(value) if isinstance(value, int) else known[value].scalar
