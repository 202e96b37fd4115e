"""What keeps undefined behaviour out of random programs.

| operation | undefined or left open | guard |
|---|---|---|
| shli, shri | amounts of the width or more | the amount is masked |
| divi, remi | zero divisors; the smallest number by -1 | the divisor is made positive |
| divf approx | 0 or NaN for divisors above 2**126 (PTX ISA, div) | the divisor is limited |
| ftoi | NaN, numbers out of range | limited, or replaced where formats do not compare |
| bitcast, pack | which NaN a result is | NaNs are replaced |
| ftof | NaN, or negative numbers, in formats that have none | replaced |
| addi, subi, ... | overflow that a flag rules out | flags are added where they hold (`facts`) |
| assume, inbounds | what is not so | added where it holds (`facts`) |
| reductions | the order | bodies are associative, and commutative (`laws`) |
| atomic addf of f32 | subnormals, which `atom.add.f32` flushes (PTX ISA, atom) | whole numbers |
| memory | races, accesses outside | each block writes its own, in the order of tokens |

Results that the language only approximates are kept apart (`approximate`).
"""

from __future__ import annotations

from collections.abc import Callable

from tile_cudatile.evaluator.formats import FLOATS
from tile_cudatile.ops.constraints import BASE_FLOATS
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import (
    F4E2M1FN,
    F32,
    I1,
    Scalar,
    Tile,
)

from tile_fuzz.generator.maker import Maker, element, tile

#: Functions whose last bits are the implementation's.
FUNCTIONS = frozenset({
    "atan2", "cos", "cosh", "exp", "exp2", "fpowf", "fpowi", "log", "log2", "rsqrt", "sin", "sinh",
    "tan", "tanh",
})  # fmt: skip


def approximate(op: Op) -> bool:
    """Whether the language leaves the last bits of the result open."""
    return op.name in FUNCTIONS or op.attrs.get("rounding_mode") in ("approx", "full")


# --- types for which an operation is not defined --------------------------------------------------


def _one_bit_signed(op: Op) -> bool:
    """-1 is the smallest number of i1, so that -1 / -1 overflows, and there is no other divisor."""
    return element(op.operands[1]) == I1 and op.attrs["signedness"] == "signed"  # type: ignore[arg-type]


UNDEFINED: dict[str, tuple[Callable[[Op], bool], ...]] = {
    "divi": (_one_bit_signed,),
    "remi": (_one_bit_signed,),
}


# --- operands -------------------------------------------------------------------------------------


def _amount(maker: Maker, op: Op, operands: list[Value]) -> list[Value]:
    type_ = tile(operands[1])
    width = element(operands[1]).width
    mask = maker.constant(type_, width - 1)
    return [operands[0], maker.emit("andi", [operands[1], mask], type_)]


def _divisor(maker: Maker, op: Op, operands: list[Value]) -> list[Value]:
    """Neither zero nor -1: a positive number, or an even negative one."""
    type_, kind = tile(operands[1]), element(operands[1])

    def bits(name: str, value: Value, mask: int) -> Value:
        return maker.emit(name, [value, maker.constant(type_, mask)], type_)

    lowest = -1 << (kind.width - 1)
    if op.attrs["signedness"] == "signed" and maker.chance(0.5):
        return [operands[0], bits("andi", bits("ori", operands[1], lowest), -2)]
    divisor = bits("ori", operands[1], 1)
    if op.attrs["signedness"] == "signed":
        divisor = bits("andi", divisor, -lowest - 1)
    return [operands[0], divisor]


def ordered(maker: Maker, value: Value) -> Value:
    """The value with 0 in place of NaN."""
    type_ = tile(value)
    kind = element(value)
    if not kind.is_float or not FLOATS[kind].has_nan:
        return value
    if kind not in BASE_FLOATS:
        return _ordered_narrow(maker, value)
    good = maker.emit(
        "cmpf", [value, value], Tile(type_.shape, I1),
        comparison_predicate="equal", comparison_ordering="ordered",
    )  # fmt: skip
    return maker.emit("select", [good, value, maker.constant(type_, 0)], type_)


def _ordered_narrow(maker: Maker, value: Value) -> Value:
    """Formats that do not compare are compared as f32, which holds all their numbers."""
    type_ = tile(value)
    wide = maker.emit("ftof", [value], Tile(type_.shape, F32), rounding_mode="nearest_even")
    good = maker.emit(
        "cmpf", [wide, wide], Tile(type_.shape, I1),
        comparison_predicate="equal", comparison_ordering="ordered",
    )  # fmt: skip
    return maker.emit("select", [good, value, maker.constant(type_, 1)], type_)


def _no_nan(maker: Maker, op: Op, operands: list[Value]) -> list[Value]:
    return [ordered(maker, operands[0])]


def _in_range(maker: Maker, op: Op, operands: list[Value]) -> list[Value]:
    """Numbers strictly inside of the range of the integer type."""
    source, kind = operands[0], element(op.results[0])
    is_signed = op.attrs["signedness"] == "signed"
    if element(source) == F4E2M1FN and not is_signed:  # which no operation chooses among
        wide = Tile(tile(source).shape, F32)
        source = maker.emit("ftof", [source], wide, rounding_mode="nearest_even")
    type_ = tile(source)
    bits = kind.width - is_signed
    high = _below(element(source), float(1 << bits))
    low = -high if is_signed and bits else 0.0
    if element(source) not in BASE_FLOATS:
        # A truth value says whether a number is anything but zero; four bits are small numbers.
        fits = kind == I1 or element(source) == F4E2M1FN
        return [source if fits else _chosen(maker, source, low, high)]
    for name, bound in (("maxf", low), ("minf", high)):
        source = maker.emit(name, [source, maker.constant(type_, bound)], type_)
    return [source]


def _chosen(maker: Maker, source: Value, low: float, high: float) -> Value:
    """Numbers of formats that do not compare, from `low` to `high`; 1 for others."""
    type_, wide = tile(source), Tile(tile(source).shape, F32)
    truth = Tile(type_.shape, I1)
    number = maker.emit("ftof", [source], wide, rounding_mode="nearest_even")
    inside = [
        maker.emit(
            "cmpf", [number, maker.constant(wide, bound)], truth,
            comparison_predicate=predicate, comparison_ordering="ordered",
        )
        for predicate, bound in (("greater_than_or_equal", low), ("less_than_or_equal", high))
    ]  # fmt: skip
    good = maker.emit("andi", inside, truth)
    return maker.emit("select", [good, source, maker.constant(type_, 1)], type_)


def _below(kind: Scalar, limit: float) -> float:
    """The largest number of a format that is less than a power of two."""
    spec = FLOATS[kind]
    return min(spec.largest, limit * (1 - 2.0**-spec.precision))


def _to_format(maker: Maker, op: Op, operands: list[Value]) -> list[Value]:
    """NaN and signs only where the target has them."""
    source, target = operands[0], FLOATS[element(op.results[0])]
    if not target.has_nan:
        source = ordered(maker, source)
    if not target.signed and FLOATS[element(source)].signed:
        source = _positive(maker, source)
    return [source]


def _positive(maker: Maker, source: Value) -> Value:
    """The magnitude; of formats that have no operation for it, a constant instead."""
    type_ = tile(source)
    if element(source) not in BASE_FLOATS:
        return maker.constant(type_, 1)
    source = ordered(maker, source)
    return maker.emit("absf", [source], type_)


_MOST_APPROXIMATE = 2.0**126


def _near_divisor(maker: Maker, op: Op, operands: list[Value]) -> list[Value]:
    if op.attrs["rounding_mode"] != "approx":
        return operands
    divisor, type_ = operands[1], tile(operands[1])
    for name, bound in (("maxf", -_MOST_APPROXIMATE), ("minf", _MOST_APPROXIMATE)):
        divisor = maker.emit(name, [divisor, maker.constant(type_, bound)], type_)
    return [operands[0], divisor]


GUARDS: dict[str, Callable[[Maker, Op, list[Value]], list[Value]]] = {
    "shli": _amount,
    "shri": _amount,
    "divf": _near_divisor,
    "divi": _divisor,
    "remi": _divisor,
    "ftoi": _in_range,
    "ftof": _to_format,
    "bitcast": _no_nan,
    "pack": _no_nan,
}
