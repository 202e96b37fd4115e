"""Bit field and bit counting instructions."""

from __future__ import annotations

import numpy as np

from tile_sim.isa.common import B32, U32, unary
from tile_sim.machine.group import Group
from tile_sim.program.decode import Decode, Exec, instruction
from tile_sim.program.types import TYPES

Array = np.ndarray


def bit_length(a: Array) -> Array:
    """Position of the highest set bit plus one, 0 for 0, as uint32; unsigned operands."""
    total = np.zeros(np.shape(a), np.uint32)
    rest = np.array(a)
    for step in (32, 16, 8, 4, 2, 1):
        if step >= 8 * rest.dtype.itemsize:
            continue
        big = (rest >> rest.dtype.type(step)) != 0
        total += np.where(big, np.uint32(step), np.uint32(0))
        rest = np.where(big, rest >> rest.dtype.type(step), rest)
    return total + (rest != 0)


def reverse_bits(a: Array) -> Array:
    raw = np.ascontiguousarray(a)
    size = raw.dtype.itemsize
    swapped = raw.view(np.uint8).reshape(*raw.shape, size)[..., ::-1]
    return np.ascontiguousarray(_REVERSED[swapped]).view(raw.dtype).reshape(raw.shape)


_REVERSED = np.array([int(f"{i:08b}"[::-1], 2) for i in range(256)], np.uint8)


@instruction("popc", "clz")
def count(cx: Decode) -> Exec:
    type_ = cx.type("b32 b64")
    cx.done(2)
    if cx.ins.op == "popc":
        return unary(cx, U32, type_, lambda a: np.bitwise_count(a).astype(np.uint32))
    bits = np.uint32(type_.bits)
    return unary(cx, U32, type_, lambda a: bits - bit_length(a))


@instruction("brev")
def brev(cx: Decode) -> Exec:
    type_ = cx.type("b32 b64")
    cx.done(2)
    return unary(cx, type_, type_, reverse_bits)


@instruction("bfind")
def bfind(cx: Decode) -> Exec:
    """The most significant non-sign bit, all ones when there is none."""
    shiftamt = cx.flag("shiftamt")
    type_ = cx.type("u32 u64 s32 s64")
    cx.done(2)
    unsigned, top = f"<u{type_.bytes}", np.uint32(type_.bits - 1)

    def fn(a: Array) -> Array:
        magnitude = np.where(a < 0, ~a, a) if type_.kind == "s" else a
        found = bit_length(np.asarray(magnitude).view(unsigned))
        place = found - np.uint32(1)
        if shiftamt:
            place = np.where(found == 0, place, top - place)
        return place

    return unary(cx, U32, type_, fn)


@instruction("bfe")
def bfe(cx: Decode) -> Exec:
    """`len` bits of `a` from `pos`, extended by the field's top bit for signed types."""
    type_ = cx.type("u32 u64 s32 s64")
    cx.done(4)
    slot = cx.slot(0, type_)
    a, b, c = cx.src(1, type_), cx.src(2, U32), cx.src(3, U32)
    bits, unsigned = type_.bits, np.dtype(f"u{type_.bytes}")

    def execute(g: Group) -> None:
        x = a(g)
        pos = (b(g) & np.uint32(0xFF)).astype(np.int64)
        length = (c(g) & np.uint32(0xFF)).astype(np.int64)
        g.put(slot, _extract(x, pos, length, bits, unsigned))

    return execute


def _extract(x: Array, pos: Array, length: Array, bits: int, unsigned: np.dtype) -> Array:
    """Result bit i is source bit pos+i inside field and register, else the sign bit."""
    raw = np.asarray(x).view(unsigned)
    shifted = np.right_shift(raw, np.minimum(pos, bits).astype(unsigned))
    keep = _low_mask(np.minimum(length, np.maximum(bits - pos, 0)), bits, unsigned)
    field = shifted & keep
    if np.asarray(x).dtype.kind == "u":
        return field
    top = np.clip(pos + length - 1, 0, bits - 1).astype(unsigned)
    negative = (((raw >> top) & unsigned.type(1)) == 1) & (length > 0)
    return np.where(negative, field | ~keep, field).view(np.asarray(x).dtype)


def _low_mask(length: Array, bits: int, unsigned: np.dtype) -> Array:
    """The low `length` bits set."""
    ones = ~unsigned.type(0)
    return np.where(
        length >= bits, ones, ~np.left_shift(ones, np.minimum(length, bits).astype(unsigned))
    )


@instruction("bfi")
def bfi(cx: Decode) -> Exec:
    """Insert the low `len` bits of `a` into `b` at `pos`."""
    type_ = cx.type("b32 b64")
    cx.done(5)
    slot = cx.slot(0, type_)
    a, b, c, d = cx.src(1, type_), cx.src(2, type_), cx.src(3, U32), cx.src(4, U32)
    bits, unsigned = type_.bits, type_.dtype

    def execute(g: Group) -> None:
        pos = (c(g) & np.uint32(0xFF)).astype(unsigned)
        length = (d(g) & np.uint32(0xFF)).astype(unsigned)
        one = unsigned.type(1)
        field = np.where(length >= bits, ~unsigned.type(0), (one << length) - one)
        mask = np.where(pos >= bits, unsigned.type(0), field << pos)
        put = np.where(pos >= bits, unsigned.type(0), a(g) << pos)
        g.put(slot, (b(g) & ~mask) | (put & mask))

    return execute


@instruction("bmsk")
def bmsk(cx: Decode) -> Exec:
    """A mask of `b` ones from bit `a`; positions clamp or wrap at 32."""
    mode = cx.one_of("clamp", "wrap")
    cx.type("b32")
    cx.done(3)
    slot, a, b = cx.slot(0, B32), cx.src(1, U32), cx.src(2, U32)

    def execute(g: Group) -> None:
        x, y = a(g).astype(np.uint64), b(g).astype(np.uint64)
        if mode == "wrap":
            x, y = x & np.uint64(31), y & np.uint64(31)
        x, y = np.minimum(x, np.uint64(32)), np.minimum(y, np.uint64(32))
        ones = (np.uint64(1) << y) - np.uint64(1)
        g.put(slot, ((ones << x) & np.uint64(0xFFFFFFFF)).astype(np.uint32))

    return execute


@instruction("szext")
def szext(cx: Decode) -> Exec:
    """Extend the low `b` bits of `a`."""
    mode = cx.one_of("clamp", "wrap")
    type_ = cx.type("u32 s32")
    cx.done(3)
    slot, a, b = cx.slot(0, type_), cx.src(1, type_), cx.src(2, U32)

    def execute(g: Group) -> None:
        n = b(g).astype(np.int64)
        n = n & 31 if mode == "wrap" else np.minimum(n, 32)
        low = a(g).astype(np.int64) & ((np.int64(1) << n) - 1)
        if type_.kind == "s":
            sign = np.where(n > 0, np.int64(1) << np.maximum(n - 1, 0), 0)
            low = (low ^ sign) - sign
        g.put(slot, low.astype(type_.dtype))

    return execute


@instruction("fns")
def fns(cx: Decode) -> Exec:
    """The n-th set bit of a mask, counted from a base, upwards or downwards."""
    cx.type("b32")
    cx.done(4)
    slot, a, b, c = cx.slot(0, B32), cx.src(1, B32), cx.src(2, B32), cx.src(3, TYPES["s32"])

    def execute(g: Group) -> None:
        shape = (len(g.rows), 32)
        found = np.full(shape, 0xFFFFFFFF, np.uint32)
        mask, base, offset = (np.broadcast_to(x(g), shape) for x in (a, b, c))
        for upward in (True, False):
            wanted = np.where(offset == 0, 1, np.abs(offset)).astype(np.int64)
            seen = np.zeros(shape, np.int64)
            side = (offset >= 0) if upward else (offset < 0)
            for i in range(32) if upward else range(31, -1, -1):
                inside = (np.uint32(i) >= base) if upward else (np.uint32(i) <= base)
                exact = (offset != 0) | (np.uint32(i) == base)
                hit = ((mask >> np.uint32(i)) & np.uint32(1)).astype(bool) & inside & exact & side
                seen += hit
                found = np.where(hit & (seen == wanted), np.uint32(i), found)
        g.put(slot, found)

    return execute


_PRMT_MODES = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0,) * 4, (1,) * 4, (2,) * 4, (3,) * 4),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


@instruction("prmt")
def prmt(cx: Decode) -> Exec:
    """Four bytes picked from the eight of two registers."""
    mode = cx.option(*_PRMT_MODES)
    cx.type("b32")
    cx.done(4)
    slot = cx.slot(0, B32)
    a, b, c = (cx.src(i, B32) for i in (1, 2, 3))

    def execute(g: Group) -> None:
        shape = (len(g.rows), 32)
        pair = np.empty((*shape, 2), np.uint32)
        pair[..., 0], pair[..., 1] = a(g), b(g)
        source = pair.view(np.uint8)
        control = np.broadcast_to(c(g), shape)
        if mode is None:
            nibbles = (control[..., None] >> _NIBBLES) & np.uint32(15)
            pick, copy_sign = nibbles & np.uint32(7), nibbles >= 8
        else:
            table = np.array(_PRMT_MODES[mode], np.uint32)
            pick, copy_sign = table[control & np.uint32(3)], np.zeros((*shape, 4), bool)
        picked = np.take_along_axis(source, pick.astype(np.int64), axis=-1)
        signs = np.where(picked & np.uint8(0x80), np.uint8(0xFF), np.uint8(0))
        result = np.ascontiguousarray(np.where(copy_sign, signs, picked))
        g.put(slot, result.view(np.uint32)[..., 0])

    return execute


_NIBBLES = np.array([0, 4, 8, 12], np.uint32)
