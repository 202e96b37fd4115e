"""Quotients and reciprocals of several f32 numbers, as MLIR text (see `helpers`).

`div.rn.f32` is a reciprocal, two steps that refine it, three for the quotient, a test and a branch
to a subroutine. Here one test is made for all of them (see `together`), and elements that share a
divisor share the reciprocal.
"""

from __future__ import annotations

from tile_nvptx.passes.tileas.device.together import (
    bits_of,
    each,
    ending,
    f32s,
    i32s,
    signed,
    twice,
    within,
)

#: Exponents between which nothing on the way to a quotient leaves f32's normal numbers. Of
#: numerators from 2**-90 on and divisors up to 2**34, quotients are 2**-124 or more, and remainders
#: a - d * q, of which no bit lies below 2**-149, are exact. Quotients are up to 2**124, and so are
#: reciprocals of divisors from 2**-124 on. Of a divisor from 2**-34 on, numerators up to 2**90 have
#: such quotients: that is looked at where it is shared, which takes an instruction less.
NUMERATORS, DIVISORS, QUOTIENTS = 90, 34, 124
#: The same of reciprocals: numbers in 2**-125 .. 2**125.
RECIPROCALS = 125


def quotients(count: int, *, shared: bool) -> tuple[str, str]:
    """Name and text of `(vector<count x f32> a, d) -> vector`: a / d, rounded to nearest even; d is
    f32, `shared`, or a vector.

    The reciprocal y of d is within half a unit in its last place and a little, so that
    q + (a - d q) y is the quotient rounded, where q is a y (Markstein, "Computation of elementary
    functions on the IBM RISC System/6000 processor", 1990). One pair of mantissas is an exception
    of that theorem: a power of two divided by 2 - 2**-23 is right only where `rcp.approx` gives
    that divisor's reciprocal rounded. It is what ptxas makes of `div.rn.f32`, which relies on the
    same. Products of -y and d q - a give zeros the sign that they have to have. Where a
    numerator lies beyond those bounds and is not zero, or a quotient or a divisor does, or that is
    negative, all are divided one by one.
    """
    name = f"__tile_quotients_by_{'one' if shared else 'each'}_v{count}"
    vector, words = f32s(count), i32s(count)
    held, bits, s = ("f32", "i32", "s") if shared else (vector, words, "")
    most_of, most, low = ("a", NUMERATORS, -DIVISORS) if shared else ("q", QUOTIENTS, -QUOTIENTS)
    text = f"""
llvm.func internal @{name}(%a: {vector}, %d: {held}) -> {vector} attributes {{always_inline}} {{
  %least = llvm.mlir.constant({(bits_of(-NUMERATORS) << 1) - 1} : i32) : i32
  %most = llvm.mlir.constant({signed(bits_of(most) << 1)} : i32) : i32
{_reciprocal("y", 0 if shared else count)}
  %z = llvm.fneg %y : {held}
{"".join(_splat(one, count) for one in "dyz" if shared)}
  %negative = llvm.fneg %a : {vector}
  %q = llvm.fmul %a, %y{s} : {vector}
  %over = llvm.intr.fma(%d{s}, %q, %negative) : ({vector}, {vector}, {vector}) -> {vector}
  %quick = llvm.intr.fma(%over, %z{s}, %q) : ({vector}, {vector}, {vector}) -> {vector}
{twice("a", count)}
{"" if shared else twice("q", count)}
  %less = llvm.sub %a_twice, %a_by : {words}
  %smallest = "llvm.intr.vector.reduce.umin"(%less) : ({words}) -> i32
  %largest = "llvm.intr.vector.reduce.umax"(%{most_of}_twice) : ({words}) -> i32
  %not_small = llvm.icmp "uge" %smallest, %least : i32
  %not_large = llvm.icmp "ult" %largest, %most : i32
  %divisor = llvm.bitcast %d : {held} to {bits}
{within("divisor", 0 if shared else count, bits_of(low), bits_of(DIVISORS))}
  %both = llvm.and %not_small, %not_large : i1
  %all = llvm.and %both, %within : i1
{ending("%all", [], [_divided("%a", f"%d{s}", count)], count)}
}}"""
    return name, text


def reciprocals(count: int) -> tuple[str, str]:
    """Name and text of `(vector<count x f32> d) -> vector`: 1 / d, rounded to nearest even.

    One step of Newton on what `rcp.approx` gives: the instructions that ptxas makes of
    `rcp.rn.f32`, which rests on `rcp.approx` being right where one step is not enough (2 - 2**-23,
    and 31 others if that were a unit too large). All are divided one by one where one of them lies
    beyond the bounds.
    """
    name, vector = f"__tile_reciprocals_v{count}", f32s(count)
    low, high = (bits_of(sign * RECIPROCALS) << 1 for sign in (-1, 1))
    text = f"""
llvm.func internal @{name}(%d: {vector}) -> {vector} attributes {{always_inline}} {{
{_reciprocal("quick", count)}
{twice("d", count)}
{within("d_twice", count, low, high)}
{ending("%within", [], [_divided("%one", "%d", count)], count)}
}}"""
    return name, text


def _divided(a: str, d: str, count: int) -> str:
    return f"  %exact = llvm.fdiv {a}, {d} : {f32s(count)}"


def _reciprocal(name: str, count: int) -> str:
    """`%<name>`, what one step of Newton makes of `rcp.approx` of `%d`, and `%one` of its type,
    which is f32 where `count` is 0.
    """
    type_, one = (f32s(count), "dense<1.0>") if count else ("f32", "1.0")
    three = f"({type_}, {type_}, {type_}) -> {type_}"
    return f"""  %one = llvm.mlir.constant({one} : {type_}) : {type_}
  %minus = llvm.fneg %d : {type_}
{_approximate(count)}
  %e = llvm.intr.fma(%minus, %r, %one) : {three}
  %{name} = llvm.intr.fma(%r, %e, %r) : {three}"""


def _approximate(count: int) -> str:
    """`%r`, `rcp.approx` of `%d`."""
    if not count:
        return "  %r = nvvm.rcp.approx.ftz.f %d : f32"
    return each("d", "r", count, "nvvm.rcp.approx.ftz.f %x : f32")


def _splat(name: str, count: int) -> str:
    """`%<name>s`, a vector that holds `%<name>` everywhere."""
    vector = f32s(count)
    return f"""  %{name}0 = llvm.mlir.poison : {vector}
  %{name}i = llvm.mlir.constant(0 : i32) : i32
  %{name}1 = llvm.insertelement %{name}, %{name}0[%{name}i : i32] : {vector}
  %{name}s = llvm.shufflevector %{name}1, %{name}0 {[0] * count} : {vector}
"""
