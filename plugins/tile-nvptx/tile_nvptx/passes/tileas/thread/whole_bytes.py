"""Whole numbers of a byte as f16, and shifts of bytes, four of a word at a time.

Conversions to f16 are slow: a multiprocessor makes few at once. From 1024 on the last bit of f16
counts ones: a byte there makes a number that is larger by the byte's, and so exact. Signed bytes
are first moved up by 128.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.small_floats import Vectors
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, vector_of

_IN_WORD, _BYTE, _ONES, _HALF_RANGE = 4, 8, 0x01010101, 128
#: Two f16 whose last bits count ones, and selectors of `prmt` (PTX ISA, "prmt") that put two bytes
#: of another word there.
_WHOLE, _BITS, _SELECTORS = 1024.0, 0x64006400, (0x5150, 0x5352)


def are_bytes(value: ir.Value) -> bool:
    """Whether a vector has bytes that fill words."""
    element = element_of(value.type)
    is_byte = isinstance(element, ir.IntegerType) and element.width == _BYTE
    return is_byte and count_of(value.type) % _IN_WORD == 0


def bytes_to_f16(cx: Kernel, value: ir.Value, *, signed: bool) -> ir.Value:
    """Bytes (a vector of i8) as f16."""
    b, words = Builder(cx), as_words(cx, value)
    if signed:
        words = Vectors(cx, count_of(words.type)).op("xori", words, _signed(_HALF_RANGE * _ONES))
    pairs = [
        b.intrinsic(
            "llvm.nvvm.prmt",
            [b.extract(words, at), b.constant(_BITS), b.constant(selector)],
            b.i32,
        )
        for at in range(count_of(words.type))
        for selector in _SELECTORS
    ]
    v = Vectors(cx, count_of(value.type))
    large = b.bitcast(b.vector(pairs), vector_of(v.count, ir.F16Type.get()))
    return v.op("subf", large, _WHOLE + _HALF_RANGE * signed)


def as_words(cx: Kernel, value: ir.Value) -> ir.Value:
    """Bytes as words of four."""
    b = Builder(cx)
    return b.bitcast(value, vector_of(count_of(value.type) // _IN_WORD, b.i32))


def shifted_bytes(cx: Kernel, value: ir.Value, by: int, *, up: bool) -> ir.Value:
    """Bytes shifted up, or down with zeros in place of what they lose: words, without the bits
    that came from a neighbour.
    """
    words = as_words(cx, value)
    v = Vectors(cx, count_of(words.type))
    kept = 0xFF << by & 0xFF if up else 0xFF >> by
    moved = v.op("shli" if up else "shrui", words, by)
    return v.b.bitcast(v.op("andi", moved, _signed(kept * _ONES)), value.type)


def _signed(word: int) -> int:
    """A word as the i32 with those bits."""
    return word - (1 << 32) if word >> 31 else word
