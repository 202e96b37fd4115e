"""`wmma.load`, `wmma.store`, `wmma.mma`: fragments whose layout the ISA leaves open.

Ours: the elements of a matrix, row by row, go to the lanes word by word; where the ISA gives a
fragment more words than the matrix needs, they repeat.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tile_sim.isa.address import Addresses, address
from tile_sim.isa.common import B32, B64, U32
from tile_sim.isa.mma import Shape, finish, multiply, require_whole, take_shape
from tile_sim.isa.warp import aligned_sync, full
from tile_sim.machine.access import load, store
from tile_sim.machine.group import Group
from tile_sim.numeric import elements
from tile_sim.numeric.elements import ELEMENTS, Element
from tile_sim.program.decode import Decode, Getter, Sync, instruction

Array = np.ndarray


class Matrix(NamedTuple):
    """A matrix in memory: `order` is row or col, elements of `element`."""

    rows: int
    columns: int
    element: Element
    order: str


_EXTENT = {"a": (0, 2), "b": (2, 1), "c": (0, 1), "d": (0, 1)}


def _matrix(cx: Decode, operand: str, shape: Shape, order: str) -> Matrix:
    element = ELEMENTS[cx.one_of(*ELEMENTS)]
    rows, columns = (shape[i] for i in _EXTENT[operand])
    return Matrix(rows, columns, element, order)


def _offsets(m: Matrix, stride: Array) -> Array:
    """Byte (for narrow types, nibble or bit) offsets of the elements, `[warps, rows * columns]`."""
    row, column = np.divmod(np.arange(m.rows * m.columns), m.columns)
    lead, other = (row, column) if m.order == "row" else (column, row)
    return lead[None, :] * stride[:, None] + other[None, :]


def _memory(cx: Decode, which: int) -> tuple[str, Addresses]:
    space = "shared" if cx.option("shared", "shared::cta") else "generic"
    if cx.flag("global"):
        space = "global"
    return address(cx, which, space)


def _stride(cx: Decode, which: int, m: Matrix) -> Getter:
    """Elements between rows (columns); dense where it is not given."""
    if which < len(cx.operands):
        return cx.src(which, U32)
    dense = m.columns if m.order == "row" else m.rows
    return lambda g: np.full((1, 1), dense, np.uint32)


def _first_lane(g: Group, value: Array) -> Array:
    return full(g, value)[:, 0].astype(np.int64)


@instruction("wmma.load")
def wmma_load(cx: Decode) -> Sync:
    operand = cx.one_of("a", "b", "c")
    cx.flag("sync")
    cx.flag("aligned")
    order = cx.one_of("row", "col")
    shape = take_shape(cx)
    where, compute = _memory(cx, 1)
    m = _matrix(cx, operand, shape, order)
    cx.done((2, 3))
    stride = _stride(cx, 2, m)
    bits = m.element.bits
    slots = [cx.slot(item, B64 if bits == 64 else B32) for item in cx.vector(0)]

    def execute(g: Group) -> None:
        require_whole(g)
        base = compute(g).reshape(len(g.rows), 32)[:, :1].astype(np.int64)
        offsets = _offsets(m, _first_lane(g, stride(g)))
        raw = _load_elements(g, where, base, offsets, bits)
        words = _pack(raw, bits).reshape(len(g.rows), -1, 32)
        for i, slot in enumerate(slots):
            g.put(slot, words[:, i % words.shape[1]])

    return aligned_sync(execute)


def _load_elements(g: Group, where: str, base: Array, offsets: Array, bits: int) -> Array:
    dtype = np.dtype(f"<u{max(bits, 8) // 8}")
    per = max(8 // bits, 1)
    at = base + offsets // per * dtype.itemsize
    out = np.empty(at.shape, dtype)
    for first in range(0, at.shape[1], 32):
        part = np.ascontiguousarray(at[:, first : first + 32]).astype(np.uint64)
        out[:, first : first + 32] = load(g, where, part.reshape(-1), dtype, 1)[0].reshape(-1, 32)
    if bits >= 8:
        return out
    return (out >> ((offsets % per) * bits).astype(np.uint8)) & np.uint8((1 << bits) - 1)


def _pack(raw: Array, bits: int) -> Array:
    """Elements to words, `[warps, words]`."""
    if bits >= 8:
        return np.ascontiguousarray(raw).view("<u8" if bits == 64 else "<u4")
    if bits == 4:
        pairs = raw.reshape(len(raw), -1, 2)
        return np.ascontiguousarray(pairs[..., 0] | pairs[..., 1] << np.uint8(4)).view("<u4")
    return np.packbits(raw, axis=1, bitorder="little").view("<u4")


def _read(g: Group, gets: list[Getter], m: Matrix) -> Array:
    """Registers to the matrix, binary64."""
    bits = m.element.bits
    size = m.rows * m.columns * bits // (64 if bits == 64 else 32) // 32
    words = np.stack([full(g, get(g)) for get in gets[:size]], axis=1)
    raw = elements.unpack(np.ascontiguousarray(words).reshape(len(g.rows), -1), bits)
    return m.element.decode(raw).reshape(len(g.rows), m.rows, m.columns)


def _write(g: Group, slots: list[int], values: Array) -> None:
    width = "<u8" if values.dtype.itemsize == 8 else "<u4"
    words = np.ascontiguousarray(values.reshape(len(g.rows), -1)).view(width)
    words = words.reshape(len(g.rows), -1, 32)
    for i, slot in enumerate(slots):
        g.put(slot, words[:, i % words.shape[1]])


@instruction("wmma.mma")
def wmma_mma(cx: Decode) -> Sync:
    bit_op = cx.option("xor", "and")
    cx.flag("popc")
    cx.flag("sync")
    cx.flag("aligned")
    orders = cx.one_of("row", "col"), cx.one_of("row", "col")
    shape = take_shape(cx)
    saturate = cx.flag("satfinite")
    names = [mod for mod in cx.mods if mod in ELEMENTS]
    for name in names:
        cx.mods.remove(name)
    if len(names) == 2:
        names = [names[0], "f16", "f16", names[1]]
    if len(names) != 4:
        cx.fail("needs the types of D, A, B and C, or of D and C")
    cx.option("rn", "rz")
    cx.done(4)
    d, a, b, c = names
    ma = Matrix(shape[0], shape[2], ELEMENTS[a], orders[0])
    mb = Matrix(shape[2], shape[1], ELEMENTS[b], orders[1])
    mc = Matrix(shape[0], shape[1], ELEMENTS[c], "row")
    word = B64 if d == "f64" else B32
    slots = [cx.slot(item, word) for item in cx.vector(0)]
    sources = [[cx.src(item, word) for item in cx.vector(i)] for i in (1, 2, 3)]

    def execute(g: Group) -> None:
        require_whole(g)
        x, y, z = (_read(g, s, m) for s, m in zip(sources, (ma, mb, mc), strict=True))
        _write(g, slots, finish(multiply(x, y, bit_op) + z, d, saturate))

    return aligned_sync(execute)


@instruction("wmma.store.d")
def wmma_store(cx: Decode) -> Sync:
    cx.flag("sync")
    cx.flag("aligned")
    order = cx.one_of("row", "col")
    shape = take_shape(cx)
    where, compute = _memory(cx, 0)
    m = _matrix(cx, "d", shape, order)
    cx.done((2, 3))
    stride = _stride(cx, 2, m)
    bits = m.element.bits
    sources = [cx.src(item, B64 if bits == 64 else B32) for item in cx.vector(1)]
    dtype = np.dtype(f"<u{bits // 8}")

    def execute(g: Group) -> None:
        require_whole(g)
        base = compute(g).reshape(len(g.rows), 32)[:, :1].astype(np.int64)
        at = base + _offsets(m, _first_lane(g, stride(g))) * dtype.itemsize
        words = np.stack([full(g, get(g)) for get in sources], axis=1)
        raw = np.ascontiguousarray(words).reshape(len(g.rows), -1).view(dtype)
        for first in range(0, at.shape[1], 32):
            part = np.ascontiguousarray(at[:, first : first + 32]).astype(np.uint64)
            values = np.ascontiguousarray(raw[:, first : first + 32]).reshape(-1)
            store(g, where, part.reshape(-1), dtype, [values])

    return aligned_sync(execute)
