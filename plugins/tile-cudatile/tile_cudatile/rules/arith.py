"""Rules of arithmetic, conversions and matrix products."""

from __future__ import annotations

from collections.abc import Iterator

from tile_cudatile.rules.registry import number_of, rule, tile_of
from tile_cudatile.rules.words import dims, quote, quote_all
from tile_cudatile.tree import Op
from tile_cudatile.types import (
    BF16,
    F4E2M1FN,
    F8E4M3FN,
    F8E5M2,
    F8E5M3FNU,
    F8E8M0FNU,
    F16,
    F32,
    F64,
    TF32,
    Scalar,
    Tile,
)

IEEE = ("nearest_even", "zero", "negative_inf", "positive_inf")
_MODES = {
    **dict.fromkeys(("addf", "subf", "mulf", "fma"), IEEE),
    "divf": (*IEEE, "approx", "full"),
    "sqrt": (*IEEE, "approx"),
    "exp": ("approx", "full"),
    "tanh": ("approx", "full"),
    "divi": ("zero", "negative_inf", "positive_inf"),
}


@rule(*_MODES)
def rounding(op: Op) -> Iterator[str]:
    """The rounding modes that an operation has."""
    name = "rounding" if op.name == "divi" else "rounding_mode"
    if op.attrs[name] not in _MODES[op.name]:
        listed = ", ".join(_MODES[op.name])
        yield f"invalid rounding mode specified, expect one of [{listed}]"


@rule("addf", "subf", "mulf", "fma", "divf", "sqrt", "exp2", "rsqrt", "maxf", "minf", "exp", "tanh")
def single_only(op: Op) -> Iterator[str]:
    """Modifiers that only f32 has."""
    element = number_of(op, "result")
    if element == F32:
        return
    text = "{} modifier only supported for f32 data type, but got: " + quote(element)
    if op.attrs.get("flush_to_zero"):
        yield text.format("flush_to_zero")
    mode = op.attrs.get("rounding_mode")
    if mode == "approx" or (mode == "full" and op.name == "divf"):
        yield text.format(mode)


@rule("divi")
def floor_is_signed(op: Op) -> Iterator[str]:
    """Unsigned division has no rounding down of its own."""
    if op.attrs["rounding"] == "negative_inf" and op.attrs["signedness"] == "unsigned":
        yield "rounding mode 'negative_inf' is not allowed with 'unsigned' flag"


@rule("negi")
def negation_is_signed(op: Op) -> Iterator[str]:
    """Negation reads signed numbers."""
    if op.attrs["overflow"] == "no_unsigned_wrap":
        yield "'no_unsigned_wrap' overflow flag is not supported"


@rule("exti")
def wider(op: Op) -> Iterator[str]:
    """An extension widens."""
    if number_of(op, "to").width <= number_of(op, "from").width:
        yield "extending to smaller or identical integer"


@rule("trunci")
def narrower(op: Op) -> Iterator[str]:
    """A truncation narrows."""
    if number_of(op, "to").width >= number_of(op, "from").width:
        yield "truncating to larger or identical integer"


#: Significant bits, exponent of the smallest normal number, exponent of the largest number.
_RANGES: dict[Scalar, tuple[int, int, int]] = {
    F16: (11, -14, 15),
    BF16: (8, -126, 127),
    F32: (24, -126, 127),
    TF32: (11, -126, 127),
    F64: (53, -1022, 1023),
    F8E4M3FN: (4, -6, 8),
    F8E5M2: (3, -14, 15),
    F8E8M0FNU: (1, -127, 127),
    F4E2M1FN: (2, 0, 2),
    F8E5M3FNU: (4, -14, 16),
}
_STANDARD = (F16, BF16, F32, TF32, F64)


def is_widening(source: Scalar, target: Scalar) -> bool:
    """Whether the target holds every number of the source as a normal number."""
    (sp, slow, shigh), (tp, tlow, thigh) = _RANGES[source], _RANGES[target]
    return tp >= sp and tlow <= slow and thigh >= shigh


def _conversion_modes(source: Scalar, target: Scalar) -> tuple[tuple[str, ...], str]:
    """The rounding modes of a conversion and what is said about others."""
    if target == F8E8M0FNU:
        return ("zero", "positive_inf"), (
            " for conversion to f8E8M0FNU. Only 'zero' and 'positive_inf' are supported"
        )
    if target not in _STANDARD:
        return ("nearest_even",), (
            " for conversion to low-precision type. Only 'nearest_even' is supported"
        )
    if (source, target) == (F32, TF32):
        return ("nearest_even", "zero", "nearest_away"), (
            " for conversion from f32 to tf32. Only 'nearest_even', 'zero', and 'nearest_away' "
            "are supported"
        )
    if (source, target) == (F64, F32):
        return IEEE, (
            " for conversion from f64 to f32. Only 'nearest_even', 'zero', 'negative_inf', and "
            "'positive_inf' are supported"
        )
    if is_widening(source, target):
        return (*IEEE, "nearest_away"), (
            " for widening conversion. Only IEEE float rounding modes are supported: "
            "'nearest_even', 'zero', 'negative_inf', 'positive_inf', 'nearest_away'"
        )
    return ("nearest_even", "zero"), (
        ". Only 'nearest_even' and 'zero' are supported for narrowing conversions to standard types"
    )


@rule("ftof")
def float_conversion(op: Op) -> Iterator[str]:
    """Formats must differ; the rounding modes depend on both."""
    source, target = number_of(op, "from"), number_of(op, "to")
    if tile_of(op, "from") == tile_of(op, "to"):
        yield "converting tiles must not be a no-op"
        return
    modes, text = _conversion_modes(source, target)
    if op.attrs["rounding_mode"] not in modes:
        yield f"invalid rounding mode specified{text}"


@rule("itof")
def integer_to_float(op: Op) -> Iterator[str]:
    """To nearest only, and not to powers of two."""
    if number_of(op, "to") == F8E8M0FNU:
        yield (
            "integer to f8E8M0FNU conversion is not supported, please first convert to another "
            "float type"
        )
    if op.attrs["rounding_mode"] != "nearest_even":
        yield "invalid rounding mode specified. Only 'nearest_even' is supported"


@rule("ftoi")
def float_to_integer(op: Op) -> Iterator[str]:
    """Towards zero only."""
    if op.attrs["rounding_mode"] != "nearest_int_to_zero":
        yield "invalid rounding mode specified. Only 'nearest_int_to_zero' is supported"


@rule("bitcast")
def equal_width(op: Op) -> Iterator[str]:
    """The bits must fit."""
    source, result = number_of(op, "source"), number_of(op, "result")
    if source.width != result.width:
        yield (
            f"types must be equal width, cannot convert {quote(tile_of(op, 'source'))} of width "
            f"{source.width} to type {quote(tile_of(op, 'result'))} of width {result.width}"
        )


@rule("pack", "unpack")
def packing(op: Op) -> Iterator[str]:
    """Rank-1 tiles of whole bytes and of one size."""
    source, result = tile_of(op, "source"), tile_of(op, "result")
    if len(source.shape) != 1:
        yield "expects source and result to be rank-1 tiles"
        return
    if number_of(op, "source").width == number_of(op, "result").width:
        yield "expects source and result to have different element type widths"
    sizes = [_bits(source), _bits(result)]
    for name, size in zip(("source", "result"), sizes, strict=True):
        if size % 8:
            yield f"expects {name} tile to be byte-aligned"
    if sizes[0] != sizes[1]:
        yield (
            "expects source and result to have the same size in bytes, but got source tile size "
            f"{sizes[0] // 8} bytes and result tile size {sizes[1] // 8} bytes"
        )


def _bits(tile: Tile) -> int:
    element = tile.element
    assert isinstance(element, Scalar)
    return tile.shape[0] * (32 if element == TF32 else element.width)


def _dim_error(a: str, i: int, x: tuple[int, ...], b: str, j: int, y: tuple[int, ...]) -> str:
    return (
        f"shape error: dim {i} of {a} ({x[i]}) and dim {j} of {b} ({y[j]}) must match, but got "
        f"{a} shape ({dims(x)}) and {b} shape ({dims(y)})"
    )


@rule("mmaf", "mmai", "mmaf_scaled")
def product_shapes(op: Op) -> Iterator[str]:
    """[B]MxK times [B]KxN plus [B]MxN."""
    lhs, rhs, acc = (tile_of(op, n).shape for n in ("lhs", "rhs", "acc"))
    if len(lhs) not in (2, 3):
        yield "operands must be 2D or 3D tiles"
        return
    batched = len(lhs) - 2
    if batched:
        for name, other in (("rhs", rhs), ("acc", acc)):
            if lhs[0] != other[0]:
                yield _dim_error("lhs", 0, lhs, name, 0, other)
    row, col = batched, batched + 1
    if lhs[col] != rhs[row]:
        yield " " + _dim_error("lhs", col, lhs, "rhs", row, rhs)
    if lhs[row] != acc[row]:
        yield " " + _dim_error("lhs", row, lhs, "acc", row, acc)
    if rhs[col] != acc[col]:
        yield " " + _dim_error("rhs", col, rhs, "acc", col, acc)


_PRODUCTS = {
    F8E4M3FN: (F16, F32),
    F8E5M2: (F16, F32),
    F16: (F16, F32),
    BF16: (F32,),
    TF32: (F32,),
    F32: (F32,),
    F64: (F64,),
}


@rule("mmaf")
def product_types(op: Op) -> Iterator[str]:
    """Which accumulators go with which inputs."""
    source, target = number_of(op, "lhs"), number_of(op, "acc")
    allowed = _PRODUCTS.get(source, ())
    if target not in allowed:
        yield (
            f"unsupported combination of element types. Input type {quote(source)} expects "
            f"accumulator/result type to be one of {{{quote_all(allowed)}}}, but got "
            f"{quote(target)}"
        )


@rule("mmaf_scaled")
def scales(op: Op) -> Iterator[str]:
    """The scales' shapes and types."""
    lhs, rhs = tile_of(op, "lhs").shape, tile_of(op, "rhs").shape
    left, right = tile_of(op, "lhs_scale").shape, tile_of(op, "rhs_scale").shape
    batched = len(lhs) - 2
    row, col = batched, batched + 1
    if batched:
        for name, x, y in (("lhs", lhs, left), ("rhs", rhs, right)):
            if x[0] != y[0]:
                yield _dim_error(name, 0, x, f"{name}_scale", 0, y)
    if lhs[row] != left[row]:
        yield _dim_error("lhs", row, lhs, "lhs_scale", row, left)
    if rhs[col] != right[col]:
        yield _dim_error("rhs", col, rhs, "rhs_scale", col, right)
    if left[col] != right[row]:
        yield _dim_error("lhs_scale", col, left, "rhs_scale", row, right)
    yield from _scale_types(op)
    if lhs[col] % left[col]:
        yield (
            f"shape error: dim {col} of lhs_scale ({left[col]}) must be a divisor of dim {col} of "
            f"lhs ({lhs[col]}), but got lhs_scale shape ({dims(left)}) and lhs shape ({dims(lhs)})"
        )
    yield from _block_size(op, lhs[col] // left[col])


def _scale_types(op: Op) -> Iterator[str]:
    scale, source = number_of(op, "lhs_scale"), number_of(op, "lhs")
    # Scales that are powers of two go with all operands that there are.
    if scale in (F8E4M3FN, F8E5M3FNU) and source != F4E2M1FN:
        yield (
            f"unsupported combination of element types. Scale type {quote(scale)} expects lhs and "
            f"rhs element types to be {quote(F4E2M1FN)}, but got {quote(source)}"
        )


def _block_size(op: Op, size: int) -> Iterator[str]:
    scale, source = number_of(op, "lhs_scale"), number_of(op, "lhs")
    needed, what = (32,), "f8 element type"
    if source == F4E2M1FN:
        needed = (16,) if scale == F8E4M3FN else (16, 32)
        what = f"f4E2M1FN element type with {scale} scales"
    if size not in needed:
        yield (
            f"shape error: {what} requires block scale factor of lhs_scale and rhs_scale to be "
            f"{' or '.join(map(str, needed))}, but got {size}"
        )
