"""Operations whose operands are constants.

What is undefined (division by zero, a broken promise about overflow) or not specified (a shift by
the width or more) stays as it is: what it means is for others to say.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_cudatile.transforms.simplify.expressions import (
    Expr,
    Space,
    as_number,
    claims,
    element_type,
    fits,
    is_integer,
    known,
    signed,
)
from tile_cudatile.transforms.simplify.registry import simplifies

_WRAPPING: dict[str, Callable[..., int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "negi": lambda a: -a,
}
_BITWISE: dict[str, Callable[[int, int], int]] = {
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
}
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less_than": lambda a, b: a < b,
    "less_than_or_equal": lambda a, b: a <= b,
    "greater_than": lambda a, b: a > b,
    "greater_than_or_equal": lambda a, b: a >= b,
}


def _read(expr: Expr, signedness: object) -> list[int] | None:
    found = [as_number(o, signedness) for o in expr.operands]
    return None if None in found else found  # type: ignore[return-value]


@simplifies("addi", "subi", "muli", "negi")
def wrapping_of_constants(space: Space, expr: Expr) -> Expr | None:
    """c1 + c2, c1 - c2, c1 * c2, -c: computed modulo the width."""
    for reading, claimed in zip(("signed", "unsigned"), claims(expr), strict=True):
        numbers = _read(expr, reading)
        if numbers is None:
            return None
        if claimed and not fits(_WRAPPING[expr.name](*numbers), expr.width, reading):
            return None
    numbers = _read(expr, "unsigned")
    assert numbers is not None
    return space.number(expr, _WRAPPING[expr.name](*numbers))


@simplifies("absi", "andi", "ori", "xori", "mulhii", "maxi", "mini")
def total_of_constants(space: Space, expr: Expr) -> Expr | None:
    """Operations that are defined for all numbers."""
    reading = expr.attrs[0] if expr.attrs else "signed" if expr.name == "absi" else "unsigned"
    numbers = _read(expr, reading)
    if numbers is None:
        return None
    if expr.name == "absi":
        return space.number(expr, abs(numbers[0]))
    if expr.name == "mulhii":
        return space.number(expr, numbers[0] * numbers[1] >> expr.width)
    if expr.name in _BITWISE:
        return space.number(expr, _BITWISE[expr.name](*numbers))
    return space.number(expr, max(numbers) if expr.name == "maxi" else min(numbers))


@simplifies("shli", "shri")
def shift_of_constants(space: Space, expr: Expr) -> Expr | None:
    """A shift by less than the width."""
    value, amount = known(expr.operands[0]), known(expr.operands[1])
    if value is None or amount is None or amount >= expr.width:
        return None
    if expr.name == "shri":
        number = signed(value, expr.width) if expr.attrs[0] == "signed" else value
        return space.number(expr, number >> amount)
    for reading, claimed in zip(("signed", "unsigned"), claims(expr), strict=True):
        number = signed(value, expr.width) if reading == "signed" else value
        if claimed and not fits(number << amount, expr.width, reading):
            return None
    return space.number(expr, value << amount)


def _divided(a: int, b: int, rounding: object) -> int:
    down = a // b
    if rounding == "negative_inf" or down * b == a:
        return down
    return down + 1 if rounding == "positive_inf" or (a < 0) != (b < 0) else down


@simplifies("divi", "remi")
def division_of_constants(space: Space, expr: Expr) -> Expr | None:
    """Not by zero, and not the smallest number by -1."""
    numbers = _read(expr, expr.attrs[0])
    if numbers is None or numbers[1] == 0:
        return None
    a, b = numbers
    rounding = expr.attrs[1] if expr.name == "divi" else "zero"
    quotient = _divided(a, b, rounding)
    if not fits(quotient, expr.width, expr.attrs[0]):
        return None
    return space.number(expr, quotient if expr.name == "divi" else a - quotient * b)


@simplifies("cmpi")
def comparison_of_constants(space: Space, expr: Expr) -> Expr | None:
    """Known comparisons."""
    predicate, signedness = expr.attrs
    numbers = _read(expr, signedness)
    if numbers is None:
        return None
    return space.number(expr, int(COMPARE[str(predicate)](*numbers)))


@simplifies("exti")
def extension_of_constant(space: Space, expr: Expr) -> Expr | None:
    """By signedness; i1's true is -1 or 1."""
    number = as_number(expr.operands[0], expr.attrs[0])
    return space.number(expr, number) if number is not None and is_integer(expr.type) else None


@simplifies("trunci")
def truncation_of_constant(space: Space, expr: Expr) -> Expr | None:
    """The low bits, if nothing was promised that does not hold."""
    bits = known(expr.operands[0])
    if bits is None or not is_integer(expr.type):
        return None
    for reading, claimed in zip(("signed", "unsigned"), claims(expr), strict=True):
        number = signed(bits, expr.operands[0].width) if reading == "signed" else bits
        if claimed and not fits(number, expr.width, reading):
            return None
    return space.number(expr, bits)


@simplifies("reshape", "broadcast", "permute")
def moved_constant(space: Space, expr: Expr) -> Expr | None:
    """Elements that are alike, wherever they go; of floats too."""
    (source,) = expr.operands
    if source.bits is None:
        return None
    assert element_type(source.type) == element_type(expr.type)
    return space.constant(expr.type, source.bits)
