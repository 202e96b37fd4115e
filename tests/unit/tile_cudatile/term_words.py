"""Short words for the terms of tests."""

from __future__ import annotations

from tile_cudatile import types as t
from unit.tile_cudatile.integer_terms import Term, make, number, variable

x, y, z = map(variable, ("i0", "i1", "i2"))
b, c, d = map(variable, ("b0", "b1", "b2"))
s, q = variable("s0"), variable("q0")
NSW, NUW = "no_signed_wrap", "no_unsigned_wrap"
LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1


def add(left, right, o: str = "none") -> Term:
    return make("addi", left, right, overflow=o)


def sub(left, right, o: str = "none") -> Term:
    return make("subi", left, right, overflow=o)


def mul(left, right, o: str = "none") -> Term:
    return make("muli", left, right, overflow=o)


def neg(source, o: str = "none") -> Term:
    return make("negi", source, overflow=o)


def land(left, right) -> Term:
    return make("andi", left, right)


def lor(left, right) -> Term:
    return make("ori", left, right)


def xor(left, right) -> Term:
    return make("xori", left, right)


def inv(source) -> Term:
    return xor(source, -1)


def shl(left, right, o: str = "none") -> Term:
    return make("shli", left, right, overflow=o)


def shr(left, right, sign: str = "signed") -> Term:
    return make("shri", left, right, signedness=sign)


def div(left, right, sign: str = "signed", rounding: str = "zero") -> Term:
    return make("divi", left, right, signedness=sign, rounding=rounding)


def rem(left, right, sign: str = "signed") -> Term:
    return make("remi", left, right, signedness=sign)


def low(left, right, sign: str = "signed") -> Term:
    return make("mini", left, right, signedness=sign)


def high(left, right, sign: str = "signed") -> Term:
    return make("maxi", left, right, signedness=sign)


def magnitude(source) -> Term:
    return make("absi", source)


def top(left, right) -> Term:
    return make("mulhii", left, right)


def cmp(predicate: str, left, right, sign: str = "signed") -> Term:
    return make("cmpi", left, right, comparison_predicate=predicate, signedness=sign)


def lt(left, right, sign: str = "signed") -> Term:
    return cmp("less_than", left, right, sign)


def eq(left, right) -> Term:
    return cmp("equal", left, right)


def ne(left, right) -> Term:
    return cmp("not_equal", left, right)


def pick(condition, then, other) -> Term:
    return make("select", condition, then, other)


def ext(source, to: t.Scalar = t.I32, sign: str = "signed") -> Term:
    return make("exti", source, to=to, signedness=sign)


def trunc(source, to: t.Scalar = t.I8, o: str = "none") -> Term:
    return make("trunci", source, to=to, overflow=o)


def n(value: int, element: t.Scalar = t.I32) -> Term:
    return number(value, element)
