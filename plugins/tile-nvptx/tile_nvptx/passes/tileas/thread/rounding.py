"""f32 and f64 rounded to narrower formats towards zero, downwards or upwards."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.vectors import map_asm
from tile_nvptx.passes.tileas.thread.small_floats import Vectors
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, vector_of

_SUFFIX = {"zero": "rz", "negative_inf": "rm", "positive_inf": "rp"}
_NE, _SLT, _SGE = 1, 2, 5  # arith.CmpIPredicate
_UNO = 14  # arith.CmpFPredicate


def narrowed(cx: Kernel, value: ir.Value, kind: ir.Type, mode: str) -> ir.Value:
    """A vector of f32 as f16 or bf16, or of f64 as f32, rounded in `mode`.

    f16 and f32 have instructions (PTX ISA, "cvt"). bf16 is the upper half of f32, and one more
    where the lower half counts.
    """
    if isinstance(kind, ir.F16Type | ir.F32Type):
        source, count = str(element_of(value.type)), count_of(value.type)
        asm = f"cvt.{_SUFFIX[mode]}.{kind}.{source} $0, $1;"
        name, body = map_asm(f"cvt_{_SUFFIX[mode]}_{kind}", asm, source, str(kind), count)
        return cx.state.helpers.call(cx, name, body, [value], vector_of(count, kind)).result
    v = Vectors(cx, count_of(value.type))
    bits = v.bits(value)
    upper = v.op("shrui", bits, 16)
    if mode != "zero":
        zero = v.number(0, v.b.i32)
        lost = v.compare("cmpi", _NE, v.op("andi", bits, 0xFFFF), zero)
        outwards = v.compare("cmpi", _SLT if mode == "negative_inf" else _SGE, bits, zero)
        up = v.cast("extui", v.b.binary("andi", lost, outwards), v.b.i32)
        upper = v.op("addi", upper, up)
    nan = v.compare("cmpf", _UNO, value, value)
    half = v.cast("trunci", v.select(nan, v.number(0x7FFF, v.b.i32), upper), _i16())
    return v.b.bitcast(half, vector_of(v.count, kind))


def _i16() -> ir.Type:
    return ir.IntegerType.get_signless(16)
