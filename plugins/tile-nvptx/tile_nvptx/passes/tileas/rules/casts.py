"""Conversions between number formats."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.convert import KEEP, Replacement
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.ruleset import rules, text
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.formats import FORMATS
from tile_nvptx.passes.tileas.thread.rounding import narrowed
from tile_nvptx.passes.tileas.thread.small_floats import (
    NEAREST,
    Vectors,
    bit_as_float,
    differs_from_zero,
    exact_f64,
    from_f32,
    nibbles_to_bytes,
    odd_f32,
    to_f32,
    to_tf32,
)
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, vector_of
from tile_nvptx.passes.tileas.thread.whole_bytes import are_bytes, bytes_to_f16

_ARITHMETIC = ("f16", "bf16", "f32", "f64")
_TF32 = "tf32"
#: Bits of whole numbers that f32 has all of.
_EXACT_IN_F32 = 24
_SCALES = ("f8E8M0FNU", "f8E5M3FNU")
#: Formats whose codes are made of those of the narrower one, so many at once.
_BY_CODE, _AT_ONCE = (("f4E2M1FN", "f8E4M3FN"), ("f4E2M1FN", "f8E5M2")), 4


def _on_vectors(cx: Kernel, value: ir.Value, convert: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """`convert` on a fragment, or on a scalar as a fragment of one."""
    if isinstance(value.type, ir.VectorType):
        return convert(value)
    b = Builder(cx)
    return b.extract(convert(b.splat(value, 1)), 0)


def _cast(cx: Kernel, name: str, value: ir.Value, element: ir.Type) -> ir.Value:
    count, before = count_of(value.type), element_of(value.type)
    is_halves = isinstance(before, ir.BF16Type) and isinstance(element, ir.F32Type)
    if is_halves and count % 2 == 0:
        return _halves_of_words(cx, value)
    return cx.create(f"arith.{name}", [value], [vector_of(count, element)]).result


def _halves_of_words(cx: Kernel, value: ir.Value) -> ir.Value:
    """bf16 as f32, whose upper half each is: of a word with two a shift gives one, and a mask the
    other, where `cvt` would first have to move that to a register of its own.
    """
    words = Vectors(cx, count_of(value.type) // 2)
    both = words.b.bitcast(value, vector_of(words.count, words.b.i32))
    low, high = words.op("shli", both, 16), words.op("andi", both, -(1 << 16))
    every = range(words.count)
    pairs = words.b.shuffle(low, [n for at in every for n in (at, words.count + at)], high)
    return words.b.bitcast(pairs, vector_of(2 * words.count, ir.F32Type.get()))


@rules.on("nv_tileaa.fp_to_fp")
def fp_to_fp(op: ir.OpView, cx: Kernel) -> ir.Value:
    """fp_to_fp => one rounding to nearest; formats of a byte saturate"""
    before = _known(op, element_of(cx.before(op.operands[0])))
    after = _known(op, element_of(op.results[0].type))
    mode = text(op, "rounding_mode", NEAREST)
    if _is_exact(before, after):
        mode = NEAREST  # all modes give the same
    if mode not in _modes(after):
        raise error_at(op, f"does not round {before} to {after} in mode '{mode}'")

    def convert(value: ir.Value) -> ir.Value:
        if mode == NEAREST and str(before) in _ARITHMETIC and str(after) in _ARITHMETIC:
            return _arithmetic(cx, value, before, after)
        if (str(before), str(after)) in _BY_CODE and count_of(value.type) % _AT_ONCE == 0:
            return nibbles_to_bytes(cx, value, FORMATS[str(after)])
        return _narrow(cx, _widened(cx, value, before), after, saturate=True, mode=mode)

    return _on_vectors(cx, op.operands[0], convert)


def _is_exact(before: ir.Type, after: ir.Type) -> bool:
    """Whether a wider format holds every number of a narrower one.

    f16 lacks large scales; formats of scales lack signs, and f8E8M0FNU all but powers of two.
    """
    lacks = str(after) in _SCALES or (str(before) in _SCALES and isinstance(after, ir.F16Type))
    return before.width < after.width and not lacks


def _modes(after: ir.Type) -> tuple[str, ...]:
    """The modes in which numbers are rounded to a format."""
    if str(after) == "f8E8M0FNU":
        return ("zero", "positive_inf")
    if str(after) in FORMATS:
        return (NEAREST,)
    if str(after) == _TF32:
        return (NEAREST, "zero", "nearest_away")
    return (NEAREST, "zero", "negative_inf", "positive_inf")


def _known(op: ir.OpView, element: ir.Type) -> ir.Type:
    if str(element) not in (*_ARITHMETIC, *FORMATS, _TF32):
        raise error_at(op, f"to or from {element} is not supported")
    return element


def _arithmetic(cx: Kernel, value: ir.Value, before: ir.Type, after: ir.Type) -> ir.Value:
    """extf or truncf; f16 <-> bf16 through f32, which is exact."""
    if before == after:
        return value
    if before.width == after.width:
        value, before = _cast(cx, "extf", value, ir.F32Type.get()), ir.F32Type.get()
    return _cast(cx, "extf" if before.width < after.width else "truncf", value, after)


def _widened(cx: Kernel, value: ir.Value, before: ir.Type) -> ir.Value:
    """The same numbers in f32, or f64 as they are."""
    if str(before) in FORMATS:
        return to_f32(cx, value, FORMATS[str(before)])
    if str(before) in ("f16", "bf16"):
        return _cast(cx, "extf", value, ir.F32Type.get())
    return value


def as_f64(op: ir.OpView, cx: Kernel, value: ir.Value, before: ir.Type) -> ir.Value:
    """A fragment of `before` as f64, which has all numbers of every format."""
    wide = _widened(cx, value, _known(op, before))
    return _arithmetic(cx, wide, element_of(wide.type), ir.F64Type.get())


def _narrow(
    cx: Kernel, value: ir.Value, after: ir.Type, *, saturate: bool, mode: str = NEAREST
) -> ir.Value:
    """f32 or f64 rounded to `after`, once."""
    kind, wide = str(after), isinstance(element_of(value.type), ir.F64Type)
    exact = after.width >= element_of(value.type).width
    if kind in _ARITHMETIC and (mode == NEAREST or exact):
        return _arithmetic(cx, value, element_of(value.type), after)
    if kind == "f32":
        return narrowed(cx, value, after, mode)
    if wide:
        value = odd_f32(cx, value)
    if kind in _ARITHMETIC:
        return narrowed(cx, value, after, mode)
    if kind == _TF32:
        return to_tf32(cx, value, mode)
    return from_f32(cx, value, FORMATS[kind], saturate=saturate, mode=mode)


@rules.on("arith.sitofp", "arith.uitofp", "nv_tileaa.int_to_fp")
def int_to_fp(op: ir.OpView, cx: Kernel) -> Replacement:
    """sitofp stays for f16, f32 and f64, but for bytes that fill words, to f16; bf16, fp8 and tf32
    are rounded once, from f32 that has the number, or from f64
    """
    before, after = element_of(op.operands[0].type), element_of(op.results[0].type)
    name = op.operation.name
    signed = name == "arith.sitofp" or (
        name == "nv_tileaa.int_to_fp" and text(op, "signedness") == "signed"
    )
    if str(after) in ("f16", "f32", "f64") and str(before) != "i1":
        in_words = isinstance(op.operands[0].type, ir.VectorType) and are_bytes(op.operands[0])
        if in_words and str(after) == "f16":
            return bytes_to_f16(cx, op.operands[0], signed=signed)
        op.results[0].set_type(cx.type(op.results[0].type))
        return KEEP
    _known(op, after)
    return _on_vectors(
        cx, op.operands[0], lambda value: _whole_to_float(cx, value, after, signed=signed)
    )


def _whole_to_float(cx: Kernel, value: ir.Value, after: ir.Type, *, signed: bool) -> ir.Value:
    """Whole numbers (a vector) in a format, rounded once."""
    before, single = element_of(value.type), ir.F32Type.get()
    if str(after) in ("f16", "f32", "f64"):
        return bit_as_float(cx, value, after, signed=signed)
    if before.width == 1:
        return _narrow(cx, bit_as_float(cx, value, single, signed=signed), after, saturate=False)
    if before.width <= _EXACT_IN_F32:
        v = Vectors(cx, count_of(value.type))
        wide = v.cast("sitofp" if signed else "uitofp", value, single)
        return _narrow(cx, wide, after, saturate=False)
    wide = exact_f64(cx, value, signed=signed)
    if str(after) == "bf16":
        return _cast(cx, "truncf", odd_f32(cx, wide), after)
    return _narrow(cx, wide, after, saturate=False)


@rules.on("arith.extsi", "arith.extui", "arith.trunci")
def resize_int(op: ir.OpView, cx: Kernel) -> Replacement:
    """Stay, but for i4: four bits of a byte"""
    name, result = op.operation.name, op.results[0]
    before = element_of(cx.before(op.operands[0]))
    after, new = element_of(result.type), cx.type(result.type)
    if "i4" not in (str(before), str(after)):
        result.set_type(new)
        return KEEP

    def convert(value: ir.Value) -> ir.Value:
        v = Vectors(cx, count_of(value.type))
        if str(before) == "i4" and name == "arith.extsi":
            value = v.op("shrsi", v.op("shli", value, 4), 4)
        if element_of(value.type) != element_of(new):
            value = v.cast(name.removeprefix("arith."), value, element_of(new))
        return v.op("andi", value, 15) if str(after) == "i4" else value

    return _on_vectors(cx, op.operands[0], convert)


@rules.on("nv_tileaa.fp_to_int")
def fp_to_int(op: ir.OpView, cx: Kernel) -> ir.Value:
    """fp_to_int => the intrinsic llvm.fptosi.sat or fptoui.sat: saturates, NaN is 0

    To i1: cmpf une zero. That is what a truth value of a number is; and LLVM's NVPTX back end
    selects the opposite test for fptoui to i1.
    """
    name = "fptoui" if text(op, "signedness") == "unsigned" else "fptosi"
    before = _known(op, element_of(cx.before(op.operands[0])))
    after = element_of(cx.type(op.results[0].type))

    def convert(value: ir.Value) -> ir.Value:
        if after == ir.IntegerType.get_signless(1):
            return differs_from_zero(cx, _widened(cx, value, before))
        if str(before) in FORMATS:
            value = to_f32(cx, value, FORMATS[str(before)])
        result = vector_of(count_of(value.type), after)
        mangled = f"llvm.{name}.sat.{_mangled(result)}.{_mangled(value.type)}"
        return Builder(cx).intrinsic(mangled, [value], result)

    return _on_vectors(cx, op.operands[0], convert)


def _mangled(type_: ir.Type) -> str:
    """A vector type as it stands in the names of overloaded LLVM intrinsics."""
    return f"v{count_of(type_)}{element_of(type_)}"
