"""`ldmatrix`, `stmatrix`, `movmatrix`: 8x8 matrices between shared memory and fragments."""

from __future__ import annotations

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.address import address
from tile_sim.isa.common import B32
from tile_sim.isa.warp import aligned_sync, full
from tile_sim.machine.access import load, store
from tile_sim.machine.group import LANES, Group
from tile_sim.program.decode import Decode, Sync, instruction

Array = np.ndarray
_U4, _U2, _U1 = np.dtype("<u4"), np.dtype("<u2"), np.dtype("u1")


_G, _T, _B = LANES[:, None] // 4, LANES[:, None] % 4, np.arange(4)[None, :]
# A 16x8 matrix of bytes, stored transposed: byte b of thread (g, t) goes to row 2t + b % 2,
# column g + 8 * (b / 2).
_COLUMN16 = _G + 8 * (_B // 2)
_ROW8 = 2 * _T + _B % 2


def _row_addresses(g: Group, where: Array, rows: int) -> Array:
    """The addresses that lanes 0 .. rows-1 give, `[warps, rows]`."""
    if g.mask is not None:
        raise SimError("divergent", "a matrix instruction needs all 32 threads of the warp")
    return where.reshape(len(g.rows), 32)[:, :rows]


def _read_rows(g: Group, space: str, where: Array, words: int) -> Array:
    """`words` 32-bit words at each address, `[warps, rows, words]`."""
    if (where & np.uint64(15)).any() and words == 4:
        raise SimError("misaligned", "a matrix row has to be 16-byte aligned")
    rows = where.shape[1]
    # As many lanes as a warp has read at a time: the address checks take whole groups.
    padded = np.concatenate([where, np.repeat(where[:, :1], 32 - rows, axis=1)], axis=1)
    values = load(g, space, padded.reshape(-1), _U4, words)
    stacked = np.stack(values, axis=-1).reshape(len(where), 32, words)
    return stacked[:, :rows]


@instruction("ldmatrix.sync.aligned")
def ldmatrix(cx: Decode) -> Sync:
    shape = cx.one_of("m8n8", "m16n16", "m8n16")
    count = int(cx.one_of("x1", "x2", "x4")[1:])
    trans = cx.flag("trans")
    space = "shared" if cx.option("shared", "shared::cta") else "generic"
    unpack = cx.option("b8x16.b6x16_p32", "b6x16_p32", "b4x16_p64")
    cx.flag("b8x16")
    if not cx.flag("b8" if shape == "m16n16" and not unpack else "b16"):
        cx.flag("b8")
    cx.done(2)
    where, compute = address(cx, 1, space)
    items = cx.vector(0)
    registers = count * (2 if shape == "m16n16" else 1)
    if len(items) != registers:
        cx.fail(f"needs {registers} registers")
    slots = [cx.slot(item, B32) for item in items]
    if shape != "m8n8":
        return aligned_sync(
            _narrow_matrices(where, compute, slots, shape, count, unpack, cx, trans)
        )

    def execute(g: Group) -> None:
        rows = _read_rows(g, where, _row_addresses(g, compute(g), 8 * count), 4)
        for k, slot in enumerate(slots):
            matrix = np.ascontiguousarray(rows[:, 8 * k : 8 * k + 8])
            if trans:
                square = matrix.view(_U2)
                matrix = np.ascontiguousarray(square.transpose(0, 2, 1)).view(_U4)
            g.put(slot, matrix.reshape(len(g.rows), 32))

    return aligned_sync(execute)


def _narrow_matrices(where, compute, slots, shape, count, unpack, cx, trans):
    """Matrices of bytes: m16n16 (always transposed) and m8n16 (from 6 or 4 bits)."""
    if (shape == "m16n16") != trans:
        cx.fail("m16n16 is only loaded transposed, m8n16 never")
    if shape == "m8n16" and not unpack:
        cx.fail("m8n16 needs a .b8x16 format")
    lines = 16 if shape == "m16n16" else 8

    def execute(g: Group) -> None:
        words = {None: 4, "b4x16_p64": 2}.get(unpack, 3)
        rows = _row_addresses(g, compute(g), lines * count)
        raw = _read_rows(g, where, rows, 4 if unpack is None else words)
        data = _expand(raw, unpack)
        for k in range(count):
            matrix = data[:, lines * k : lines * (k + 1)]
            if shape == "m16n16":
                turned = matrix.transpose(0, 2, 1)
                for h in range(2):
                    part = np.ascontiguousarray(turned[:, 8 * h : 8 * h + 8])
                    g.put(slots[2 * k + h], part.view(_U4).reshape(len(g.rows), 32))
            else:
                part = np.ascontiguousarray(matrix).view(_U4)
                g.put(slots[k], part.reshape(len(g.rows), 32))

    return execute


def _expand(raw: Array, unpack: str | None) -> Array:
    """16 elements of a row, a byte each, in its low bits."""
    data = np.ascontiguousarray(raw).view(_U1)
    if unpack is None:
        return data
    if unpack == "b4x16_p64":
        low, high = data & 15, data >> 4
        return np.stack([low, high], axis=-1).reshape(*data.shape[:2], 16)
    bits = np.unpackbits(data[..., :12], axis=-1, bitorder="little")
    sixes = bits.reshape(*data.shape[:2], 16, 6)
    return (sixes << np.arange(6, dtype=np.uint8)).sum(axis=-1, dtype=np.uint8)


@instruction("stmatrix.sync.aligned")
def stmatrix(cx: Decode) -> Sync:
    shape = cx.one_of("m8n8", "m16n8")
    count = int(cx.one_of("x1", "x2", "x4")[1:])
    trans = cx.flag("trans")
    space = "shared" if cx.option("shared", "shared::cta") else "generic"
    if not cx.flag("b16" if shape == "m8n8" else "b8"):
        cx.fail("m8n8 stores .b16, m16n8 stores .b8")
    cx.done(2)
    where, compute = address(cx, 0, space)
    items = cx.vector(1)
    if len(items) != count:
        cx.fail(f"needs {count} registers")
    gets = [cx.src(item, B32) for item in items]
    if shape == "m16n8" and not trans:
        cx.fail("m16n8 is only stored transposed")

    def execute(g: Group) -> None:
        rows = _row_addresses(g, compute(g), 8 * count)
        for k, get in enumerate(gets):
            fragment = np.ascontiguousarray(full(g, get(g)))
            matrix = fragment.reshape(len(g.rows), 8, 4)
            if shape == "m16n8":
                square = np.empty((len(g.rows), 8, 16), np.uint8)
                square[:, _ROW8, _COLUMN16] = fragment.view(_U1).reshape(-1, 32, 4)
                matrix = square.view(_U4)
            elif trans:
                square = matrix.view(_U2).transpose(0, 2, 1)
                matrix = np.ascontiguousarray(square).view(_U4)
            _write_rows(g, where, rows[:, 8 * k : 8 * k + 8], matrix)

    return aligned_sync(execute)


def _write_rows(g: Group, space: str, where: Array, matrix: Array) -> None:
    """Rows of 32-bit words to their addresses: the first lanes of each warp write."""
    rows, words = matrix.shape[1], matrix.shape[2]
    if (where & np.uint64(4 * words - 1)).any():
        raise SimError("misaligned", f"a matrix row has to be {4 * words}-byte aligned")
    mask = np.broadcast_to(rows > LANES, (len(g.rows), 32))
    writers = g.masked(np.ascontiguousarray(mask))
    values = [np.ascontiguousarray(matrix[:, :, i]).reshape(-1) for i in range(words)]
    store(writers, space, np.ascontiguousarray(where).reshape(-1), _U4, values)


@instruction("movmatrix.sync.aligned.m8n8.trans")
def movmatrix(cx: Decode) -> Sync:
    cx.type("b16")
    cx.done(2)
    slot, a = cx.slot(0, B32), cx.src(1, B32)

    def execute(g: Group) -> None:
        matrix = np.ascontiguousarray(full(g, a(g))).view(_U2).reshape(len(g.rows), 8, 8)
        turned = np.ascontiguousarray(matrix.transpose(0, 2, 1)).view(_U4)
        g.put(slot, turned.reshape(len(g.rows), 32))

    return aligned_sync(execute)
