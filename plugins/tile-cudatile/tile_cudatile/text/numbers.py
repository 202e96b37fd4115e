"""Numbers and strings as MLIR writes them."""

from __future__ import annotations

from fractions import Fraction

from tile_core.deferred_numpy import np
from tile_cudatile.attrs import Dense, Float, element_count
from tile_cudatile.types import I1, Scalar, Tile

_HEX_ABOVE = 100  # elements of a constant that is not a splat
_SIX = 6


class Layout:
    """How the bits of a floating-point format are laid out."""

    def __init__(
        self,
        exponent: int,
        mantissa: int,
        bias: int,
        *,
        signed: bool = True,
        ends: str = "ieee",
        subnormal: bool = True,
    ) -> None:
        self.exponent, self.mantissa, self.bias = exponent, mantissa, bias
        self.signed, self.ends, self.subnormal = signed, ends, subnormal

    @property
    def precision(self) -> int:
        """Significant bits."""
        return self.mantissa + 1

    def value(self, bits: int) -> Fraction | None:
        """The number; None for infinities and NaN."""
        mantissa = bits & ((1 << self.mantissa) - 1)
        exponent = bits >> self.mantissa & ((1 << self.exponent) - 1)
        top = exponent == (1 << self.exponent) - 1
        all_ones = mantissa == (1 << self.mantissa) - 1
        if top and (self.ends == "ieee" or (self.ends == "nan" and all_ones)):
            return None
        if exponent == 0 and self.subnormal:
            number = Fraction(mantissa) * Fraction(2) ** (1 - self.bias - self.mantissa)
        else:
            significand = mantissa | 1 << self.mantissa
            number = Fraction(significand) * Fraction(2) ** (exponent - self.bias - self.mantissa)
        return -number if self.negative(bits) else number

    def negative(self, bits: int) -> bool:
        """Whether the sign bit is set."""
        return self.signed and bool(bits >> (self.exponent + self.mantissa) & 1)

    def nearest(self, value: Fraction) -> int | None:
        """The pattern of a non-negative number rounded to nearest even; None if too large."""
        low, high = 0, (1 << (self.exponent + self.mantissa)) - 1
        last = high
        while low < high:  # the last finite pattern whose number is not above
            middle = (low + high + 1) // 2
            number = self.value(middle)
            if number is not None and number <= value:
                low = middle
            else:
                high = middle - 1
        below, above = self.value(low), self.value(low + 1) if low < last else None
        assert below is not None
        if above is None:
            return low if value == below else None
        if value - below == above - value:
            return low if low % 2 == 0 else low + 1
        return low if value - below < above - value else low + 1


LAYOUTS: dict[str, Layout] = {
    "f16": Layout(5, 10, 15),
    "bf16": Layout(8, 7, 127),
    "f32": Layout(8, 23, 127),
    "tf32": Layout(8, 10, 127),
    "f64": Layout(11, 52, 1023),
    "f8E4M3FN": Layout(4, 3, 7, ends="nan"),
    "f8E5M2": Layout(5, 2, 15),
    "f8E8M0FNU": Layout(8, 0, 127, signed=False, ends="nan", subnormal=False),
    "f4E2M1FN": Layout(2, 1, 1, ends="finite"),
    "fnv8E5M3FNU": Layout(5, 3, 15, signed=False, ends="nan"),
}


def float_text(bits: int, element: Scalar) -> str:
    """A floating-point literal: six digits if they say it all, else more, else the bits."""
    layout = LAYOUTS[element.name]
    value = layout.value(bits)
    if value is not None:
        sign = "-" if layout.negative(bits) else ""
        magnitude = abs(value)
        text = _scientific(magnitude, _SIX)
        if _reads_back(text, bits, layout):
            return sign + text
        text = _shortest(magnitude, 2 + layout.precision * 59 // 196)
        if "." in text:
            return sign + text
    return f"0x{bits:X}"


def _reads_back(text: str, bits: int, layout: Layout) -> bool:
    magnitude = (1 << (layout.exponent + layout.mantissa)) - 1
    return layout.nearest(Fraction(text)) == bits & magnitude


def _digits(value: Fraction, count: int) -> tuple[str, int]:
    """Up to `count` decimal digits and the exponent of the first.

    As LLVM's APFloat has it: the exact number is cut to about `count` digits, which are then
    rounded half up.
    """
    if value == 0:
        return "0", 0
    # An odd number times a power of two, times a power of five for each halving.
    twos = value.denominator.bit_length() - 1
    number, exponent = value.numerator * 5**twos, -twos
    bits = number.bit_length() - (count * 196 + 58) // 59
    cut = max(bits, 0) * 59 // 196
    number, exponent = number // 10**cut, exponent + cut
    digits = str(number)
    exponent += len(digits) - 1
    if len(digits) > count:
        rounded = str(int(digits[:count]) + (digits[count] >= "5"))
        exponent += len(rounded) - count
        digits = rounded
    return digits.rstrip("0") or "0", exponent


def _scientific(value: Fraction, precision: int) -> str:
    digits, exponent = _digits(value, precision)
    fraction = digits[1:].ljust(precision, "0")
    return f"{digits[0]}.{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _shortest(value: Fraction, precision: int) -> str:
    digits, first = _digits(value, precision)
    last = first - len(digits) + 1  # exponent of the last digit
    if last >= 0:
        if last > 3 or len(digits) + last > precision:
            return _upper(digits, first)
        return digits + "0" * last
    if first >= 0:
        return f"{digits[: first + 1]}.{digits[first + 1 :]}"
    if -first > 3:
        return _upper(digits, first)
    return f"0.{'0' * (-first - 1)}{digits}"


def _upper(digits: str, exponent: int) -> str:
    sign = "-" if exponent < 0 else "+"
    return f"{digits[0]}.{digits[1:] or '0'}E{sign}{abs(exponent)}"


def scalar_text(value: Float) -> str:
    """A typed floating-point number without its type."""
    return float_text(value.bits, value.type)


def dense_text(value: Dense) -> str:
    """What stands between the element type and the tile type of a constant."""
    element = value.type.element
    assert isinstance(element, Scalar)
    if value.is_splat:
        return _element_texts(value.data, element, 1)[0]
    count = element_count(value.type.shape)
    if element == I1:
        return _booleans_text(value, count)
    if count > _HEX_ABOVE:
        return f'"0x{value.data.hex().upper()}"'
    return _nested(_element_texts(value.data, element, count), value.type.shape)


def _booleans_text(value: Dense, count: int) -> str:
    """Equal elements always count as a splat; in hexadecimal each takes a byte."""
    texts = _element_texts(value.data, I1, count)
    if len(set(texts)) == 1:
        return texts[0]
    if count > _HEX_ABOVE:
        return f'"0x{"".join("01" if t == "true" else "00" for t in texts)}"'
    return _nested(texts, value.type.shape)


def _element_texts(data: bytes, element: Scalar, count: int) -> list[str]:
    if element == I1:
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:count]
        return ["true" if bit else "false" for bit in bits]
    patterns = element_bits(data, element)
    if element.is_float:
        return [float_text(p, element) for p in patterns]
    half = 1 << (element.width - 1)
    return [str(p - 2 * half if p >= half else p) for p in patterns]


def element_bits(data: bytes, element: Scalar) -> list[int]:
    """The patterns of the elements of a constant that is not of i1."""
    size = (element.width + 7) // 8
    mask = (1 << element.width) - 1
    return [int.from_bytes(data[i : i + size], "little") & mask for i in range(0, len(data), size)]


def _nested(texts: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return texts[0]
    if len(shape) == 1:
        return f"[{', '.join(texts)}]"
    size = len(texts) // shape[0]
    rows = (_nested(texts[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0]))
    return f"[{', '.join(rows)}]"


def constant_name(value: Dense) -> str:
    """The name that a constant's result gets."""
    tile: Tile = value.type
    element = tile.element
    assert isinstance(element, Scalar)
    if element == I1:
        return _boolean_name(value)
    suffix = f"_{element}"
    patterns = element_bits(value.data, element)
    if not value.is_splat and len(set(patterns)) != 1:
        return f"cst{suffix}"
    if not element.is_float:
        return f"cst_{_element_texts(value.data, element, 1)[0]}{suffix}"
    number = LAYOUTS[element.name].value(patterns[0])
    if number is None:
        return f"cst_NaN{suffix}" if _is_nan(patterns[0], element) else f"cst{suffix}"
    whole = number.denominator == 1 and 0 <= number < 1 << 64
    if whole and not _negative_zero(patterns[0], element):
        return f"cst_{number.numerator}{suffix}"
    return f"cst{suffix}"


def _negative_zero(bits: int, element: Scalar) -> bool:
    layout = LAYOUTS[element.name]
    return layout.value(bits) == 0 and layout.negative(bits)


def _is_nan(bits: int, element: Scalar) -> bool:
    layout = LAYOUTS[element.name]
    return layout.ends != "ieee" or bool(bits & ((1 << layout.mantissa) - 1))


def _boolean_name(value: Dense) -> str:
    texts = set(_element_texts(value.data, I1, element_count(value.type.shape)))
    if value.is_splat:
        texts = {"true" if value.data[0] & 1 else "false"}
    return texts.pop() if len(texts) == 1 else "cst_i1"


def quoted(text: str) -> str:
    """A string literal with MLIR's escapes."""
    out: list[str] = []
    for byte in text.encode("utf-8", "surrogateescape"):
        if byte == 0x5C:
            out.append("\\\\")
        elif 32 <= byte < 127 and byte != 0x22:
            out.append(chr(byte))
        else:
            out.append(f"\\{byte:02X}")
    return f'"{"".join(out)}"'
