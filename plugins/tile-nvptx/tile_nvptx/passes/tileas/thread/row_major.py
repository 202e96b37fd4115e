"""Tiles in row-major order in shared memory."""

from __future__ import annotations

from tile_cute.linear import LinearLayout

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import element_of


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


def write_row_major(cx: Kernel, stored: ir.Value, layout: LinearLayout, base: ir.Value) -> None:
    """Write a fragment (of storage type) to shared memory, each element by one thread."""
    b, owner = Builder(cx), cx.state.holds_unique(cx, layout)
    if owner is None:
        _write(cx, stored, layout, base)
        return
    branch = cx.create("scf.if", [owner], regions=2)
    with cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
        _write(cx, stored, layout, base)
        b.cx.create("scf.yield")


def _write(cx: Kernel, stored: ir.Value, layout: LinearLayout, base: ir.Value) -> None:
    b, element = Builder(cx), element_of(stored.type)
    copies = layout.free_mask("register")
    indices = flat_indices(cx, layout, layout.shape)
    for register, index in enumerate(indices):
        if not register & copies:
            one = b.shuffle(stored, [register])
            b.store(one, b.offset(base, index, element), element.width // 8)
