"""`mma.sp`: A has half of its elements, and metadata says where they belong.

In each chunk of a row two elements of four are kept (one of two for tf32, two pairs of four pairs
for 4-bit types), each with a 2-bit index (4 bits for tf32). The selector names the threads of a
quad that hold the metadata: with 16- and 32-bit elements a thread holds both rows g and g + 8,
the lower half first, for 16 (tf32: 8) columns; with narrower ones it holds one row for 32 (4-bit:
64) columns, even threads row g and odd ones g + 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tile_sim.isa.common import B32
from tile_sim.isa.mma import (
    Scaling,
    Shape,
    finish,
    gather,
    read_accumulator,
    require_whole,
    scatter,
    sources,
    take_scaling,
    take_shape,
    take_types,
    targets,
)
from tile_sim.isa.warp import aligned_sync, full
from tile_sim.machine.group import Group
from tile_sim.numeric import fragments, sparsity
from tile_sim.numeric.elements import ELEMENTS, Element
from tile_sim.program.decode import Decode, Sync, instruction

Array = np.ndarray
# K of each shape (M 16, N 8) by bits of an element.
_SHAPES = {32: (8, 16), 16: (16, 32), 8: (32, 64), 4: (64, 128)}
# Columns of A that one thread's metadata covers, for one row.
_COVERED = {32: 8, 16: 16, 8: 32, 4: 64}
_NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
_OPERANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "f16": (("f16",), _NARROW),
    "f32": (("f16",), ("bf16",), ("tf32",), _NARROW),
    "s32": (("u8", "s8"), ("u4", "s4")),
}


@dataclass(frozen=True)
class Form:
    """The static part of an `mma.sp`."""

    shape: Shape
    a: Element
    b: Element
    accumulator: str
    saturate: bool
    selector: int
    legal: frozenset[int]
    scaling: Scaling | None = None


def metadata_threads(bits: int, k: int, selector: int) -> list[int]:
    """Threads of a quad with metadata, in the order of the columns (and rows)."""
    blocks = k // _COVERED[bits]
    count = blocks if bits >= 16 else 2 * blocks
    return [selector * count + i for i in range(count)]


@instruction("mma.sp.sync.aligned", "mma.sp::ordered_metadata.sync.aligned")
def mma_sp(cx: Decode) -> Sync:
    legal = sparsity.DISTINCT if cx.ins.mods[0] == "sp" else sparsity.ORDERED
    shape = take_shape(cx)
    cx.one_of("row")
    cx.one_of("col")
    kind = cx.prefixed("kind::")
    if cx.flag("block_scale"):
        return _scaled(cx, shape, kind, legal)
    if kind not in (None, "f8f6f4"):
        cx.fail(f".kind::{kind} needs .block_scale")
    d, a, b, c = take_types(cx)
    saturate = cx.flag("satfinite")
    cx.done(6)
    if d != c or not any(a in types and b in types for types in _OPERANDS.get(d, ())):
        cx.fail(f"cannot multiply .{a} by .{b} into .{d} from .{c}")
    if {a, b} & set(_NARROW[2:]) and kind is None:
        cx.fail("this type needs .kind::f8f6f4")
    form = Form(shape, ELEMENTS[a], ELEMENTS[b], d, saturate, cx.constant(5), legal)
    return _decode(cx, form)


def _scaled(cx: Decode, shape: Shape, kind: str | None, legal: frozenset[int]) -> Sync:
    """With block scales; K is twice that of the dense form, a factor covers twice the elements."""
    scaling = take_scaling(cx, kind, 6, sparse=True)
    if (shape[0], shape[1], shape[2]) != (16, 8, scaling.k):
        cx.fail(f"no sparse shape m{shape[0]}n{shape[1]}k{shape[2]} with .kind::{kind}")
    return _decode(
        cx, Form(shape, scaling.a, scaling.b, "f32", False, cx.constant(5), legal, scaling)
    )


def _check(cx: Decode, form: Form) -> None:
    m, n, k = form.shape
    if (m, n) != (16, 8) or k not in _SHAPES[form.a.bits]:
        cx.fail(f"no sparse shape m{m}n{n}k{k} for .{form.a.name}")
    threads = metadata_threads(form.a.bits, k, form.selector)
    if not form.selector >= 0 or max(threads) > 3:
        cx.fail(f"sparsity selector {form.selector} is too large for this shape")


def _decode(cx: Decode, form: Form) -> Sync:
    _check(cx, form)
    m, n, k = form.shape
    bits = 16 if form.accumulator == "f16" else 32
    order_a, count_a = fragments.a_order(m, k // 2, form.a.bits)
    order_b, count_b = fragments.b_order(k, n, form.b.bits)
    order_c, count_c = fragments.c_order(m, n, bits)
    slots = targets(cx, 0, count_c, bits)
    a = sources(cx, 1, count_a, form.a.bits)
    b = sources(cx, 2, count_b, form.b.bits)
    c = sources(cx, 3, count_c, bits)
    metadata = cx.src(4, B32)

    def execute(g: Group) -> None:
        require_whole(g)
        packed = form.a.decode(gather(g, a, order_a, form.a.bits, m))
        words = full(g, metadata(g))
        codes = metadata_codes(words, form.a.bits, k, form.selector)
        x, kept = sparsity.expand(packed, codes, form.a.bits, form.legal)
        y = form.b.decode(gather(g, b, order_b, form.b.bits, k))
        if form.scaling is not None:
            x, y = form.scaling.apply(g, x, y)
        z = read_accumulator(gather(g, c, order_c, bits, m), form.accumulator)
        total = sparsity.multiply(x, kept, y) + z
        scatter(g, slots, order_c, finish(total, form.accumulator, form.saturate))

    return aligned_sync(execute)


def metadata_codes(words: Array, bits: int, k: int, selector: int) -> Array:
    """The 4 bits of each chunk, `[warps, 16, chunks]`, from the registers `[warps, 32]`."""
    threads = metadata_threads(bits, k, selector)
    count = len(words)
    held = np.ascontiguousarray(words).reshape(count, 8, 4)[:, :, threads]
    nibbles = (held[..., None] >> np.arange(0, 32, 4, dtype=np.uint32)) & np.uint32(15)
    if bits >= 16:
        # [warps, g, thread, (row half, 4 chunks)]: the lower half is row g.
        split = nibbles.reshape(count, 8, len(threads), 2, 4)
        return split.transpose(0, 3, 1, 2, 4).reshape(count, 16, -1)
    # [warps, g, (column block, row half), 8 chunks].
    split = nibbles.reshape(count, 8, -1, 2, 8)
    return split.transpose(0, 3, 1, 2, 4).reshape(count, 16, -1)
