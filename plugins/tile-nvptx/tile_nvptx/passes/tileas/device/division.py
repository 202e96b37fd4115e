"""Quotients by one divisor: its reciprocal is found once, as MLIR text (see `helpers`).

`div.rn.f32` is a reciprocal, two steps that refine it, three for the quotient, a test and a branch.
Elements that share a divisor share the reciprocal, and one test is made for all of them.
"""

from __future__ import annotations

#: Exponents between which nothing on the way to a quotient leaves f32's normal numbers: divisors d
#: in 2**-24 .. 2**24 and numerators a in 2**-100 .. 2**100 have quotients in 2**-124 .. 2**124, and
#: remainders a - d * q, of which no bit lies below 2**-149, are exact.
DIVISORS, NUMERATORS = 24, 100
_BIAS, _MANTISSA = 127, 23


def quotients(count: int) -> tuple[str, str]:
    """Name and text of `(vector<count x f32> a, f32 d) -> vector`: a / d, rounded to nearest even.

    The reciprocal y of d is within half a unit in its last place and a little, so that
    q + (a - d q) y is the quotient rounded, where q is a y (Markstein, "Computation of elementary
    functions on the IBM RISC System/6000 processor", 1990). One pair of mantissas is an exception
    of that theorem: a power of two divided by 2 - 2**-23 is right only where `rcp.approx` gives
    that divisor's reciprocal rounded. It is what ptxas makes of `div.rn.f32`, which relies on the
    same. Products of -y and d q - a give zeros the sign that they have to have. Where a
    numerator lies beyond those bounds and is not zero, or the divisor does or is negative, all are
    divided one by one.
    """
    name, vector, words = (
        f"__tile_quotients_v{count}",
        f"vector<{count}xf32>",
        f"vector<{count}xi32>",
    )
    low, high = (_bits(sign * DIVISORS) for sign in (-1, 1))
    least, most = (_bits(sign * NUMERATORS) << 1 for sign in (-1, 1))
    text = f"""
llvm.func internal @{name}(%a: {vector}, %d: f32) -> {vector} attributes {{always_inline}} {{
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %ones = llvm.mlir.constant(dense<1> : {words}) : {words}
  %low = llvm.mlir.constant({low} : i32) : i32
  %range = llvm.mlir.constant({high - low} : i32) : i32
  %least = llvm.mlir.constant({least - 1} : i32) : i32
  %most = llvm.mlir.constant({most - (1 << 32)} : i32) : i32
  %minus = llvm.fneg %d : f32
  %r = nvvm.rcp.approx.ftz.f %d : f32
  %e = llvm.intr.fma(%minus, %r, %one) : (f32, f32, f32) -> f32
  %y = llvm.intr.fma(%r, %e, %r) : (f32, f32, f32) -> f32
  %z = llvm.fneg %y : f32
{_splat("d", count)}
{_splat("y", count)}
{_splat("z", count)}
  %negative = llvm.fneg %a : {vector}
  %q = llvm.fmul %a, %ys : {vector}
  %over = llvm.intr.fma(%ds, %q, %negative) : ({vector}, {vector}, {vector}) -> {vector}
  %quick = llvm.intr.fma(%over, %zs, %q) : ({vector}, {vector}, {vector}) -> {vector}
  %bits = llvm.bitcast %a : {vector} to {words}
  %twice = llvm.shl %bits, %ones : {words}
  %less = llvm.sub %twice, %ones : {words}
  %smallest = "llvm.intr.vector.reduce.umin"(%less) : ({words}) -> i32
  %largest = "llvm.intr.vector.reduce.umax"(%twice) : ({words}) -> i32
  %not_small = llvm.icmp "uge" %smallest, %least : i32
  %not_large = llvm.icmp "ult" %largest, %most : i32
  %divisor = llvm.bitcast %d : f32 to i32
  %beyond = llvm.sub %divisor, %low : i32
  %plain = llvm.icmp "ult" %beyond, %range : i32
  %both = llvm.and %not_small, %not_large : i1
  %all = llvm.and %both, %plain : i1
  llvm.cond_br %all weights([1000, 1]), ^done(%quick : {vector}), ^each
^each:
  %exact = llvm.fdiv %a, %ds : {vector}
  llvm.br ^done(%exact : {vector})
^done(%result: {vector}):
  llvm.return %result : {vector}
}}"""
    return name, text


def _bits(exponent: int) -> int:
    """The bits of 2**exponent as f32."""
    return (exponent + _BIAS) << _MANTISSA


def _splat(name: str, count: int) -> str:
    """`%<name>s`, a vector that holds `%<name>` everywhere."""
    vector = f"vector<{count}xf32>"
    return f"""  %{name}0 = llvm.mlir.poison : {vector}
  %{name}i = llvm.mlir.constant(0 : i32) : i32
  %{name}1 = llvm.insertelement %{name}, %{name}0[%{name}i : i32] : {vector}
  %{name}s = llvm.shufflevector %{name}1, %{name}0 {[0] * count} : {vector}"""
