"""Floats that LLVM has no type for: 8-bit ones are held as bytes, tf32 as f32.

tf32 is f32 with 10 bits of mantissa (PTX ISA, "Alternate floating-point data formats"). The
conversions here are exact, or round to nearest even; they need no instruction of a certain GPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tile_core.convert import Conversion
from tile_core.diagnostics import CompileError
from tile_core.mlir import ir
from tile_nvptx.passes.tileas.types import count_of, vector_of


@dataclass(frozen=True)
class ByteFloat:
    """An 8-bit float; without infinities, one magnitude alone is NaN."""

    mantissa: int
    bias: int
    infinite: bool

    def decode(self, byte: int) -> float:
        """The number that a byte means."""
        sign = -1.0 if byte & 0x80 else 1.0
        field, fraction = (byte & 0x7F) >> self.mantissa, byte & ((1 << self.mantissa) - 1)
        if self.infinite and field == 0x7F >> self.mantissa:
            return math.nan if fraction else sign * math.inf
        if not self.infinite and byte & 0x7F == 0x7F:
            return math.nan
        scale = 2.0 ** (max(field, 1) - self.bias - self.mantissa)
        return sign * scale * (fraction + ((1 << self.mantissa) if field else 0))

    def encode(self, number: float) -> int:
        """The byte of a number that the format has."""
        for byte in range(256):
            found = self.decode(byte)
            same = found == number and math.copysign(1, found) == math.copysign(1, number)
            if same or (math.isnan(found) and math.isnan(number)):
                return byte
        raise CompileError(f"{number} is no value of an 8-bit float")


BYTE_FLOATS = {"f8E4M3FN": ByteFloat(3, 7, False), "f8E5M2": ByteFloat(2, 15, True)}


def held_attribute(element: ir.Type, held: ir.Type, number: float) -> ir.Attribute:
    """`number` of type `element` as an attribute of the type that it is held as."""
    if str(element) in BYTE_FLOATS:
        return ir.IntegerAttr.get(held, BYTE_FLOATS[str(element)].encode(number))
    return ir.FloatAttr.get(held, number)


class NarrowCasts:
    """Conversions between these floats and LLVM's, on whole fragments or scalars."""

    def __init__(self, cx: Conversion, value: ir.Value) -> None:
        self.cx, self.value = cx, value
        self._count = count_of(value.type) if isinstance(value.type, ir.VectorType) else 0

    def _type(self, element: ir.Type) -> ir.Type:
        return vector_of(self._count, element) if self._count else element

    def _constant(self, element: ir.Type, value: float) -> ir.Value:
        make = ir.IntegerAttr if isinstance(element, ir.IntegerType) else ir.FloatAttr
        scalar = make.get(element, value)
        type_ = self._type(element)
        attr = ir.DenseElementsAttr.get_splat(type_, scalar) if self._count else scalar
        return self.cx.create("arith.constant", [], [type_], {"value": attr}).result

    def _binary(self, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.cx.create(f"arith.{name}", [left, right], [left.type]).result

    def _compare(self, name: str, left: ir.Value, right: ir.Value, predicate: int) -> ir.Value:
        flag = self._type(ir.IntegerType.get_signless(1))
        attr = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
        return self.cx.create(f"arith.{name}", [left, right], [flag], {"predicate": attr}).result

    def _select(self, flag: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
        return self.cx.create("arith.select", [flag, yes, no], [yes.type]).result

    def byte_to_f16(self, kind: str) -> ir.Value:
        """An 8-bit float as f16, which has all of its values.

        The byte's fields are put in the place of f16's; what is left of the difference in bias is
        a factor. f16 has the exponents of f8E5M2, so that is its upper byte.
        """
        i16, f16 = ir.IntegerType.get_signless(16), ir.F16Type.get()
        form = BYTE_FLOATS[kind]
        wide = self.cx.create("arith.extui", [self.value], [self._type(i16)]).result
        if form.bias == 15:
            bits = self._binary("shli", wide, self._constant(i16, 8))
            return self.cx.create("arith.bitcast", [bits], [self._type(f16)]).result
        size = self._binary("andi", wide, self._constant(i16, 0x7F))
        sign = self._binary("andi", wide, self._constant(i16, 0x80))
        size_bits = self._binary("shli", size, self._constant(i16, 10 - form.mantissa))
        sign_bits = self._binary("shli", sign, self._constant(i16, 8))
        bits = self._binary("ori", size_bits, sign_bits)
        small = self.cx.create("arith.bitcast", [bits], [self._type(f16)]).result
        number = self._binary("mulf", small, self._constant(f16, 2.0 ** (15 - form.bias)))
        is_nan = self._compare("cmpi", size, self._constant(i16, 0x7F), 0)
        return self._select(is_nan, self._constant(f16, math.nan), number)

    def f32_to_tf32(self) -> ir.Value:
        """f32 rounded to 10 bits of mantissa, to nearest even; NaN and infinities stay."""
        i32, f32 = ir.IntegerType.get_signless(32), ir.F32Type.get()
        bits = self.cx.create("arith.bitcast", [self.value], [self._type(i32)]).result
        shifted = self._binary("shrui", bits, self._constant(i32, 13))
        odd = self._binary("andi", shifted, self._constant(i32, 1))
        half = self._binary("addi", odd, self._constant(i32, 0xFFF))
        raised = self._binary("addi", bits, half)
        cut = self._binary("andi", raised, self._constant(i32, -0x2000))
        rounded = self.cx.create("arith.bitcast", [cut], [self._type(f32)]).result
        is_nan = self._compare("cmpf", self.value, self.value, 14)  # unordered
        return self._select(is_nan, self._constant(f32, math.nan), rounded)
