"""Mathematical functions to many digits, with what C's annex F says of special values."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

from unit.tile_cudatile.exact_floats import INF, NAN, NOT_A_NUMBER, Number, of, signed

_DIGITS = 80
#: Beyond it e**x is infinite or zero in every format.
_BEYOND = 12000


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


@cache
def pi(digits: int) -> Decimal:
    """By Machin's formula."""
    with localcontext() as context:
        context.prec = digits + 10

        def inverse_tangent(n: int) -> Decimal:
            term = total = Decimal(1) / n
            k = 1
            while abs(term) > Decimal(10) ** -(digits + 8):
                term = -term / (n * n)
                k += 2
                total += term / k
            return total

        return 4 * (4 * inverse_tangent(5) - inverse_tangent(239))


def _sine_cosine(value: Fraction) -> tuple[Decimal, Decimal]:
    digits = _DIGITS + max(0, (value.numerator.bit_length() - value.denominator.bit_length()) // 3)
    with localcontext() as context:
        context.prec = digits
        x = _decimal(value)
        x -= (x / (2 * pi(digits))).to_integral_value() * 2 * pi(digits)
        context.prec = _DIGITS + 10
        sine, cosine, term, k = x, Decimal(1), Decimal(1), 0
        sine = Decimal(0)
        cosine = Decimal(0)
        while k < 8 or abs(term) > Decimal(10) ** -(_DIGITS + 400 if abs(x) < 1 else _DIGITS + 8):
            if k % 2:
                sine += -term if k % 4 == 3 else term
            else:
                cosine += -term if k % 4 == 2 else term
            k += 1
            term = term * x / k
            if term == 0 or k > 400:
                break
        return sine, cosine


def _arc_tangent(x: Decimal) -> Decimal:
    """Of a positive number."""
    if x > 1:
        return pi(_DIGITS) / 2 - _arc_tangent(1 / x)
    halvings = 0
    while x > Decimal("0.05"):
        x = x / (1 + (1 + x * x).sqrt())
        halvings += 1
    total, power, k = x, x, 1
    while abs(power) > abs(total) * Decimal(10) ** -_DIGITS:
        power = -power * x * x
        k += 2
        total += power / k
    return total * 2**halvings


def _result(value: Decimal) -> Number:
    return of(Fraction(value))


def _exponential(value: Fraction) -> Number:
    if abs(value) > _BEYOND:
        return (False, INF) if value > 0 else (False, Fraction(0))
    return _result(_decimal(value).exp())


def _exp(x: Number) -> Number:
    if x[1] == INF:
        return (False, Fraction(0)) if x[0] else x
    return _exponential(signed(x))


def _exp2(x: Number) -> Number:
    if x[1] == INF:
        return (False, Fraction(0)) if x[0] else x
    value = signed(x)
    if abs(value) > _BEYOND:
        return _exponential(value)
    return _result((_decimal(value) * Decimal(2).ln()).exp())


def _logarithm(base: int | None) -> Callable[[Number], Number]:
    def log(x: Number) -> Number:
        if x[1] == 0:
            return True, INF
        if x[0]:
            return NOT_A_NUMBER
        if x[1] == INF:
            return x
        found = _decimal(signed(x)).ln()
        return _result(found / Decimal(base).ln() if base else found)

    return log


def _circular(which: str) -> Callable[[Number], Number]:
    def function(x: Number) -> Number:
        if x[1] == INF:
            return NOT_A_NUMBER
        if x[1] == 0:
            return (False, Fraction(1)) if which == "cos" else x
        sine, cosine = _sine_cosine(signed(x))
        return _result({"sin": sine, "cos": cosine, "tan": sine / cosine}[which])

    return function


def _hyperbolic(which: str) -> Callable[[Number], Number]:
    def function(x: Number) -> Number:
        negative = x[0] and which != "cosh"
        if x[1] == 0:
            return (False, Fraction(1)) if which == "cosh" else x
        if x[1] == INF or x[1] > _BEYOND:  # type: ignore[operator]
            return negative, Fraction(1) if which == "tanh" else INF
        with localcontext() as context:
            # Differences of neighbours of 1 lose as many digits as the argument has zeros.
            zeros = x[1].denominator.bit_length() - x[1].numerator.bit_length()  # type: ignore
            context.prec = _DIGITS + max(0, zeros) // 3
            up = _decimal(x[1]).exp()  # type: ignore[arg-type]
            down = 1 / up
            found = {"sinh": (up - down) / 2, "cosh": (up + down) / 2}.get(which)
            if found is None:
                found = (up - down) / (up + down)
            return negative, abs(Fraction(found))

    return function


def _reciprocal_root(x: Number) -> Number:
    if x[1] == 0:
        return x[0], INF
    if x[0]:
        return NOT_A_NUMBER
    return (False, Fraction(0)) if x[1] == INF else _result(1 / _decimal(signed(x)).sqrt())


def _is_odd(y: Number) -> bool:
    return y[1] != INF and signed(y).denominator == 1 and signed(y).numerator % 2 == 1


def power(x: Number, y: Number) -> Number:
    """C's `pow`."""
    one = (False, Fraction(1))
    if y[1] == 0 or x == one:
        return one
    if NAN in (x[1], y[1]):
        return NOT_A_NUMBER
    negative = x[0] and _is_odd(y)
    if x[1] == 1 and y[1] == INF:
        return one
    if INF in (x[1], y[1]) or x[1] == 0:
        small = x[1] != INF and x[1] < 1  # type: ignore[operator]
        return negative, Fraction(0) if small != y[0] else INF
    if x[0] and signed(y).denominator != 1:
        return NOT_A_NUMBER
    exponent = _decimal(signed(y)) * _decimal(x[1]).ln()  # type: ignore[arg-type]
    if abs(exponent) > _BEYOND:
        return negative, INF if exponent > 0 else Fraction(0)
    return negative, Fraction(exponent.exp())


def _angle(x: Number, y: Number) -> Number:
    """The angle of x / y, by the signs of both."""
    if NAN in (x[1], y[1]):
        return NOT_A_NUMBER
    half = pi(_DIGITS)
    if x[1] == INF and y[1] == INF:
        found = half * 3 / 4 if y[0] else half / 4
    elif x[1] == INF or (y[1] == 0 and x[1] != 0):
        found = half / 2
    elif y[1] == INF or x[1] == 0:
        found = half if y[0] else Decimal(0)
    else:
        found = _arc_tangent(_decimal(x[1] / y[1]))  # type: ignore[operator]
        found = half - found if y[0] else found
    return x[0], Fraction(found)


_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "exp": _exp,
    "exp2": _exp2,
    "log": _logarithm(None),
    "log2": _logarithm(2),
    **{name: _circular(name) for name in ("sin", "cos", "tan")},
    **{name: _hyperbolic(name) for name in ("sinh", "cosh", "tanh")},
    "rsqrt": _reciprocal_root,
    "fpowf": power,
    "fpowi": power,
    "atan2": _angle,
}


def function(name: str, *operands: Number) -> Number:
    """The value to `_DIGITS` digits."""
    if name not in ("fpowf", "fpowi", "atan2") and operands[0][1] == NAN:
        return NOT_A_NUMBER
    with localcontext() as context:
        context.prec = _DIGITS
        return _FUNCTIONS[name](*operands)


NAMES = frozenset(_FUNCTIONS)
