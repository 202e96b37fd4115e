"""Tiles in row-major order in shared memory."""

from __future__ import annotations

from tile_cute.linear import LinearLayout

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel


def flat_indices(cx: Kernel, layout: LinearLayout, shape: tuple[int, ...]) -> list[ir.Value]:
    """Per register the row-major index, in a tile of `shape`, of its element, i32."""
    b = Builder(cx)
    steps = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        steps[axis] = steps[axis + 1] * shape[axis + 1]

    def flat(coords: tuple[int, ...]) -> int:
        return sum(c * step for c, step in zip(coords, steps, strict=True))

    bits = (*layout.bases["lane"], *layout.bases["warp"])
    thread = cx.state.linear(cx, tuple(flat(basis) for basis in bits))
    found = []
    for coords in layout.coords("register"):
        own = flat(coords)
        found.append(b.constant(own) if thread is None else b.with_constant("xori", thread, own))
    return found
