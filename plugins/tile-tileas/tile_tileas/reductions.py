"""How a reduction folds: registers, lanes, and warps that meet in shared memory. No MLIR here."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.linear import LinearLayout, slice_dim


@dataclass(frozen=True)
class ReductionPlan:
    """How a reduction folds: registers first, then lanes, then warps through shared memory.

    `lane_bits` and `warp_bits` are the bits of those indices that run along the axis.
    """

    source: LinearLayout
    result: LinearLayout
    lane_bits: tuple[int, ...]
    warp_bits: tuple[int, ...]

    @property
    def partials(self) -> int:
        """Warps that hold a part of each result."""
        return 1 << len(self.warp_bits)


def plan_reduction(source: LinearLayout, axis: int) -> ReductionPlan | None:
    """The plan, or None if lanes or warps run along the axis and another one at once."""
    bits: dict[str, tuple[int, ...]] = {}
    for space in ("lane", "warp"):
        bases, free = source.bases[space], source.free_mask(space)
        along = []
        for bit, basis in enumerate(bases):
            mixed = any(value for dim, value in enumerate(basis) if dim != axis)
            if basis[axis] and (mixed or free >> bit & 1):
                return None
            if basis[axis]:
                along.append(bit)
        bits[space] = tuple(along)
    if any(
        b[axis] and any(v for d, v in enumerate(b) if d != axis) for b in source.bases["register"]
    ):
        return None
    return ReductionPlan(source, slice_dim(source, axis), bits["lane"], bits["warp"])
