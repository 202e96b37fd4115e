"""Formats without arithmetic of their own, on fragments: those of a byte or less (codes in i8),
and tf32 (as f32).

Every number of these formats is one of f32, and every rounding to them starts from f32: nearest
even, in integer arithmetic, so that all targets give the same bits. Targets with `cvt` for pairs
of fp8 numbers (PTX ISA, "cvt", sm_89), or for tf32 (sm_90), use that. A number of f64 is first
rounded to odd in f32, after which the second rounding is exact (Boldo and Melquiond 2008).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.vectors import map_asm, pack_fp8
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.formats import FORMATS, SmallFloat
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, vector_of

_HARDWARE_SINCE, _TF32_SINCE = 89, 90
_ULT, _UGT, _NE, _EQ = 6, 8, 1, 0  # arith.CmpIPredicate
_OGT, _OLT, _UNE, _UNO = 2, 4, 13, 14  # arith.CmpFPredicate
NEAREST = "nearest_even"


class Vectors:
    """Arithmetic of vectors with constants."""

    def __init__(self, cx: Kernel, count: int) -> None:
        self.cx, self.b, self.count = cx, Builder(cx), count

    def number(self, value: int | float, element: ir.Type) -> ir.Value:
        """A constant vector."""
        type_ = vector_of(self.count, element)
        scalar = (
            ir.FloatAttr.get(element, float(value))
            if not isinstance(element, ir.IntegerType)
            else ir.IntegerAttr.get(element, int(value))
        )
        attr = ir.DenseElementsAttr.get_splat(type_, scalar)
        return self.cx.create("arith.constant", [], [type_], {"value": attr}).result

    def op(self, name: str, left: ir.Value, right: ir.Value | int | float) -> ir.Value:
        """`arith.<name>` of a vector and a vector or number."""
        if not isinstance(right, ir.Value):
            right = self.number(right, element_of(left.type))
        return self.b.binary(name, left, right)

    def compare(self, name: str, predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
        """`arith.<name>`: a vector of i1."""
        attr = {"predicate": ir.IntegerAttr.get(self.b.i64, predicate)}
        flags = vector_of(self.count, self.b.i1)
        return self.cx.create(f"arith.{name}", [left, right], [flags], attr).result

    def above(self, left: ir.Value, bound: int) -> ir.Value:
        """left > bound, unsigned."""
        return self.compare("cmpi", _UGT, left, self.number(bound, element_of(left.type)))

    def select(self, flag: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
        """`arith.select`."""
        return self.cx.create("arith.select", [flag, yes, no], [yes.type]).result

    def cast(self, name: str, value: ir.Value, element: ir.Type) -> ir.Value:
        """`arith.<name>` to vectors of `element`."""
        type_ = vector_of(self.count, element)
        return self.cx.create(f"arith.{name}", [value], [type_]).result

    def bits(self, value: ir.Value) -> ir.Value:
        """The bits of f32 as i32."""
        return self.b.bitcast(value, vector_of(self.count, self.b.i32))

    def floats(self, value: ir.Value) -> ir.Value:
        """i32 as the f32 with those bits."""
        return self.b.bitcast(value, vector_of(self.count, ir.F32Type.get()))


def to_f32(cx: Kernel, codes: ir.Value, kind: SmallFloat) -> ir.Value:
    """Codes (vector of i8) as f32: exponent and mantissa in place, then scaled exactly."""
    v = Vectors(cx, count_of(codes.type))
    wide = v.cast("extui", codes, v.b.i32)
    if kind.is_power:
        return _power_to_f32(v, wide)
    rest = v.op("andi", wide, kind.magnitude_mask)
    scaled = v.floats(v.op("shli", rest, 23 - kind.mantissa))
    magnitude = v.bits(v.op("mulf", scaled, 2.0 ** (127 - kind.bias)))
    if kind.has_infinity:
        infinite = v.number(0x7F800000, v.b.i32)
        magnitude = v.select(v.above(rest, kind.largest), infinite, magnitude)
    if kind.nan is not None:
        quiet = v.number(0x7FC00000, v.b.i32)
        limit = kind.overflow if kind.has_infinity else kind.largest
        magnitude = v.select(v.above(rest, limit), quiet, magnitude)
    if kind.sign:
        sign = v.op("shli", v.op("andi", wide, kind.sign), 32 - kind.width)
        magnitude = v.op("ori", magnitude, sign)
    return v.floats(magnitude)


#: Codes that a word holds, and a word with a one in each.
_IN_WORD, _ONES = 4, 0x01010101


def nibbles_to_bytes(cx: Kernel, codes: ir.Value, after: SmallFloat) -> ir.Value:
    """Codes of f4E2M1FN (vector of i8, a multiple of four) as those of a format of eight bits that
    has all its numbers, four at a time.
    """
    before = FORMATS["f4E2M1FN"]
    v = Vectors(cx, count_of(codes.type) // _IN_WORD)
    words = v.b.bitcast(codes, vector_of(v.count, v.b.i32))
    rest = v.op("andi", words, before.magnitude_mask * _ONES)
    exponent = (after.bias - before.bias << after.mantissa) * _ONES
    normal = v.op("addi", v.op("shli", rest, after.mantissa - before.mantissa), exponent)
    # Of the two numbers below, one is zero, and the other is normal in the wider format.
    half = after.encode(before.decode(1))
    tiny = v.op("muli", v.op("andi", rest, _ONES), half)
    is_normal = v.op("andi", v.op("shrui", v.op("addi", rest, 6 * _ONES), 3), _ONES)
    chosen = v.op("andi", v.op("xori", tiny, normal), v.op("muli", is_normal, 0xFF))
    sign = v.op("shli", v.op("andi", words, before.sign * _ONES), after.width - before.width)
    return v.b.bitcast(v.op("ori", v.op("xori", tiny, chosen), sign), codes.type)


def _power_to_f32(v: Vectors, wide: ir.Value) -> ir.Value:
    """f8E8M0FNU: the code is the exponent; the smallest power is subnormal in f32."""
    bits = v.op("shli", wide, 23)
    least = v.compare("cmpi", _EQ, wide, v.number(0, v.b.i32))
    bits = v.select(least, v.number(0x00400000, v.b.i32), bits)
    return v.floats(v.select(v.above(wide, 254), v.number(0x7FC00000, v.b.i32), bits))


def from_f32(
    cx: Kernel, value: ir.Value, kind: SmallFloat, *, saturate: bool, mode: str = NEAREST
) -> ir.Value:
    """f32 as codes; what is too large is the largest number, or overflows.

    `mode` is for f8E8M0FNU, "zero" or "positive_inf"; all others round to nearest even.
    """
    if kind.is_power:
        return _to_power(cx, value, mode)
    if saturate and kind.ptx and cx.target.sm >= _HARDWARE_SINCE:
        name, body = pack_fp8(kind.ptx, count_of(value.type))
        result = vector_of(count_of(value.type), ir.IntegerType.get_signless(8))
        return cx.state.helpers.call(cx, name, body, [value], result).result
    return _round(cx, value, kind, saturate=saturate)


def _round(cx: Kernel, value: ir.Value, kind: SmallFloat, *, saturate: bool) -> ir.Value:
    v = Vectors(cx, count_of(value.type))
    bits = v.bits(value)
    magnitude = v.op("andi", bits, 0x7FFFFFFF)
    drop = 23 - kind.mantissa
    # Normal numbers: the bits that go away round the rest, carries run into the exponent.
    odd = v.op("andi", v.op("shrui", magnitude, drop), 1)
    rounded = v.op("addi", v.op("addi", magnitude, odd), (1 << drop - 1) - 1)
    normal = v.op("subi", v.op("shrui", rounded, drop), (127 - kind.bias) << kind.mantissa)
    # Subnormal ones: adding a number whose last place is theirs rounds in hardware.
    place = 1 - kind.bias - kind.mantissa
    magic = 2.0 ** (23 + place)
    summed = v.bits(v.op("addf", v.floats(magnitude), magic))
    tiny = v.op("subi", summed, (127 + 23 + place) << 23)
    smallest_normal = v.number((127 + 1 - kind.bias) << 23, v.b.i32)
    code = v.select(v.compare("cmpi", _ULT, magnitude, smallest_normal), tiny, normal)
    beyond = v.number(kind.largest if saturate else kind.overflow, v.b.i32)
    # Infinity and NaN lie above every number, in their bits as well.
    too_large = v.above(rounded, ((kind.largest >> kind.mantissa) + 127 - kind.bias << 23)
                        + ((kind.largest & (1 << kind.mantissa) - 1) + 1 << drop) - 1)  # fmt: skip
    code = v.select(too_large, beyond, code)
    return v.cast("trunci", _with_sign(v, value, code, kind), v.b.i8)


def _with_sign(v: Vectors, value: ir.Value, code: ir.Value, kind: SmallFloat) -> ir.Value:
    """The code of a magnitude with the sign of `value`, or what stands for no number."""
    unordered = v.compare("cmpf", _UNO, value, value)
    none = v.number(kind.largest if kind.nan is None else kind.nan, v.b.i32)
    if kind.sign:
        sign = v.op("shrui", v.op("andi", v.bits(value), -0x80000000), 32 - kind.width)
        return v.select(unordered, none, v.op("ori", code, sign))
    negative = v.compare("cmpf", _OLT, value, v.number(0.0, ir.F32Type.get()))
    return v.select(negative, none, v.select(unordered, none, code))


def _to_power(cx: Kernel, value: ir.Value, mode: str) -> ir.Value:
    """f32 as f8E8M0FNU, towards zero or up; numbers below the smallest power are that power."""
    v = Vectors(cx, count_of(value.type))
    magnitude = v.op("andi", v.bits(value), 0x7FFFFFFF)
    if mode == "positive_inf":
        magnitude = v.op("addi", magnitude, 0x7FFFFF)
        # What is at most 2**-127 stays below; other subnormal numbers become 2**-126.
        low = v.compare("cmpi", _ULT, magnitude, v.number(0x00C00000, v.b.i32))
        magnitude = v.select(low, v.number(0, v.b.i32), magnitude)
    code = v.op("minui", v.op("shrui", magnitude, 23), 254)
    return v.cast("trunci", _with_sign(v, value, code, FORMATS["f8E8M0FNU"]), v.b.i8)


def to_tf32(cx: Kernel, value: ir.Value, mode: str = NEAREST) -> ir.Value:
    """f32 rounded at 10 bits of mantissa, in f32: to nearest, even or away, or towards zero.

    Nothing says that the lower bits of what `cvt` gives are zero (PTX ISA, "cvt").
    """
    v = Vectors(cx, count_of(value.type))
    if mode == NEAREST and cx.target.sm >= _TF32_SINCE:
        name, body = map_asm("cvt_rn_tf32", "cvt.rn.tf32.f32 $0, $1;", "f32", "i32", v.count)
        words = cx.state.helpers.call(cx, name, body, [value], vector_of(v.count, v.b.i32)).result
        return v.floats(v.op("andi", words, -0x2000))
    bits = v.bits(value)
    if mode == NEAREST:
        odd = v.op("andi", v.op("shrui", bits, 13), 1)
        bits = v.op("addi", v.op("addi", bits, odd), 0xFFF)
    elif mode == "nearest_away":
        bits = v.op("addi", bits, 0x1000)
    cut = v.op("andi", bits, -0x2000)
    nan = v.compare("cmpf", _UNO, value, value)
    return v.floats(v.select(nan, v.number(0x7FFFE000, v.b.i32), cut))


def odd_f32(cx: Kernel, value: ir.Value) -> ir.Value:
    """f64 rounded to odd in f32: towards zero, the last bit set if anything was lost."""
    v = Vectors(cx, count_of(value.type))
    near = v.cast("truncf", value, ir.F32Type.get())
    back = v.cast("extf", near, ir.F64Type.get())
    size, limit = (cx.create("math.absf", [x], [x.type]).result for x in (back, value))
    over = v.cast("extui", v.compare("cmpf", _OGT, size, limit), v.b.i32)
    lost = v.cast("extui", v.compare("cmpf", _UNE, back, value), v.b.i32)
    return v.floats(v.op("ori", v.op("subi", v.bits(near), over), lost))


def exact_f64(cx: Kernel, value: ir.Value, *, signed: bool) -> ir.Value:
    """Integers as f64 that round to any narrower format as the integers do.

    64 bits do not fit: the low ones of large numbers are gathered in one that does.
    """
    v = Vectors(cx, count_of(value.type))
    if element_of(value.type).width == 1:
        return bit_as_float(cx, value, ir.F64Type.get(), signed=signed)
    if element_of(value.type).width == 64:
        low = v.op("andi", value, 0xFFF)
        none = v.compare("cmpi", _EQ, low, v.number(0, v.b.i64))
        sticky = v.op("ori", v.op("andi", value, -0x1000), 0x800)
        gathered = v.select(none, value, sticky)
        size = cx.create("math.absi", [value], [value.type]).result if signed else value
        value = v.select(v.above(size, (1 << 52) - 1), gathered, value)
    return v.cast("sitofp" if signed else "uitofp", value, ir.F64Type.get())


def differs_from_zero(cx: Kernel, value: ir.Value) -> ir.Value:
    """i1: whether a number is anything but zero; NaN is."""
    v = Vectors(cx, count_of(value.type))
    return v.compare("cmpf", _UNE, value, v.number(0.0, element_of(value.type)))


def bit_as_float(cx: Kernel, value: ir.Value, element: ir.Type, *, signed: bool) -> ir.Value:
    """-1 or 1, and 0: LLVM's NVPTX back end converts i1 to bf16 as if it were unsigned."""
    v = Vectors(cx, count_of(value.type))
    return v.select(value, v.number(-1.0 if signed else 1.0, element), v.number(0.0, element))


def float_values(literal: str, element: str) -> Iterable[float]:
    """The numbers of a printed `dense<..>`, in row-major order."""
    size = {"f16": 2, "bf16": 2, "tf32": 3}.get(element, 1)  # of a dense constant, in bytes
    return [
        _from_bits(number, element) if isinstance(number, int) else _from_text(number, element)
        for number in _numbers(literal, size)
    ]


def nibbles(literal: str) -> Iterable[int]:
    """The bits of a printed `dense<..>` of i4, in row-major order, in the low half of bytes."""
    return [int(number) & 15 for number in _numbers(literal, 1)]


def _numbers(literal: str, size: int) -> Iterable[int | str]:
    """What a printed `dense<..>` holds: numbers as text, or the bits of `size` bytes."""
    text = literal.removeprefix("dense<").rsplit(">", 1)[0]
    if text.startswith('"0x'):
        raw = bytes.fromhex(text[3:-1])
        words = [raw[at : at + size] for at in range(0, len(raw), size)]
        return [int.from_bytes(word, "little") for word in words]
    tokens = text.replace("[", " ").replace("]", " ").replace(",", " ").split()
    return [int(token, 16) if token.startswith("0x") else token for token in tokens]


def _from_text(number: str, element: str) -> float:
    """MLIR prints no more digits than name the number among those of its type."""
    if element != "tf32":  # the others are held as what they are, which rounds
        return float(number)
    (bits,) = struct.unpack("<I", struct.pack("<f", float(number)))
    return _from_bits(bits + 0xFFF + (bits >> 13 & 1) >> 13, element)


def _from_bits(bits: int, element: str) -> float:
    if element in FORMATS:
        return FORMATS[element].decode(bits)
    if element == "f16":
        return struct.unpack("<e", bits.to_bytes(2, "little"))[0]
    shift = {"bf16": 16, "tf32": 13}[element]
    return struct.unpack("<f", (bits << shift).to_bytes(4, "little"))[0]
