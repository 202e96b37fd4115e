"""Quotients and reciprocals of several f32 numbers, as MLIR text (see `helpers`).

`div.rn.f32` is a reciprocal, two steps that refine it, three for the quotient, a test and a branch
to a subroutine, in front of which threads of a warp are gathered: ptxas puts nothing else in
between. Here one test is made for all of them, and elements that share a divisor share the
reciprocal.
"""

from __future__ import annotations

#: Exponents between which nothing on the way to a quotient leaves f32's normal numbers. Of
#: numerators from 2**-90 on and divisors up to 2**34, quotients are 2**-124 or more, and remainders
#: a - d * q, of which no bit lies below 2**-149, are exact. Quotients are up to 2**124, and so are
#: reciprocals of divisors from 2**-124 on. Of a divisor from 2**-34 on, numerators up to 2**90 have
#: such quotients: that is looked at where it is shared, which takes an instruction less.
NUMERATORS, DIVISORS, QUOTIENTS = 90, 34, 124
#: The same of reciprocals: numbers in 2**-125 .. 2**125.
RECIPROCALS = 125
_BIAS, _MANTISSA = 127, 23


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
    vector, words = _floats(count), _words(count)
    held, bits, s = ("f32", "i32", "s") if shared else (vector, words, "")
    most_of, most, low = ("a", NUMERATORS, -DIVISORS) if shared else ("q", QUOTIENTS, -QUOTIENTS)
    text = f"""
llvm.func internal @{name}(%a: {vector}, %d: {held}) -> {vector} attributes {{always_inline}} {{
  %least = llvm.mlir.constant({(_bits(-NUMERATORS) << 1) - 1} : i32) : i32
  %most = llvm.mlir.constant({_signed(_bits(most) << 1)} : i32) : i32
{_reciprocal("y", 0 if shared else count)}
  %z = llvm.fneg %y : {held}
{"".join(_splat(one, count) for one in "dyz" if shared)}
  %negative = llvm.fneg %a : {vector}
  %q = llvm.fmul %a, %y{s} : {vector}
  %over = llvm.intr.fma(%d{s}, %q, %negative) : ({vector}, {vector}, {vector}) -> {vector}
  %quick = llvm.intr.fma(%over, %z{s}, %q) : ({vector}, {vector}, {vector}) -> {vector}
{_twice("a", count)}
{"" if shared else _twice("q", count)}
  %less = llvm.sub %a_twice, %a_by : {words}
  %smallest = "llvm.intr.vector.reduce.umin"(%less) : ({words}) -> i32
  %largest = "llvm.intr.vector.reduce.umax"(%{most_of}_twice) : ({words}) -> i32
  %not_small = llvm.icmp "uge" %smallest, %least : i32
  %not_large = llvm.icmp "ult" %largest, %most : i32
  %divisor = llvm.bitcast %d : {held} to {bits}
{_within("divisor", 0 if shared else count, _bits(low), _bits(DIVISORS))}
  %both = llvm.and %not_small, %not_large : i1
  %all = llvm.and %both, %within : i1
{_end("%all", "%a", f"%d{s}", count)}
}}"""
    return name, text


def reciprocals(count: int) -> tuple[str, str]:
    """Name and text of `(vector<count x f32> d) -> vector`: 1 / d, rounded to nearest even.

    One step of Newton on what `rcp.approx` gives: the instructions that ptxas makes of
    `rcp.rn.f32`, which rests on `rcp.approx` being right where one step is not enough (2 - 2**-23,
    and 31 others if that were a unit too large). All are divided one by one where one of them lies
    beyond the bounds.
    """
    name, vector = f"__tile_reciprocals_v{count}", _floats(count)
    low, high = (_bits(sign * RECIPROCALS) << 1 for sign in (-1, 1))
    text = f"""
llvm.func internal @{name}(%d: {vector}) -> {vector} attributes {{always_inline}} {{
{_reciprocal("quick", count)}
{_twice("d", count)}
{_within("d_twice", count, low, high)}
{_end("%within", "%one", "%d", count)}
}}"""
    return name, text


def _reciprocal(name: str, count: int) -> str:
    """`%<name>`, what one step of Newton makes of `rcp.approx` of `%d`, and `%one` of its type,
    which is f32 where `count` is 0.
    """
    type_, one = (_floats(count), "dense<1.0>") if count else ("f32", "1.0")
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
    vector, lines = _floats(count), [f"  %r_0 = llvm.mlir.poison : {_floats(count)}"]
    for at in range(count):
        result = "%r" if at + 1 == count else f"%r_{at + 1}"
        lines += [
            f"  %i{at} = llvm.mlir.constant({at} : i32) : i32",
            f"  %d{at} = llvm.extractelement %d[%i{at} : i32] : {vector}",
            f"  %n{at} = nvvm.rcp.approx.ftz.f %d{at} : f32",
            f"  {result} = llvm.insertelement %n{at}, %r_{at}[%i{at} : i32] : {vector}",
        ]
    return "\n".join(lines)


def _splat(name: str, count: int) -> str:
    """`%<name>s`, a vector that holds `%<name>` everywhere."""
    vector = _floats(count)
    return f"""  %{name}0 = llvm.mlir.poison : {vector}
  %{name}i = llvm.mlir.constant(0 : i32) : i32
  %{name}1 = llvm.insertelement %{name}, %{name}0[%{name}i : i32] : {vector}
  %{name}s = llvm.shufflevector %{name}1, %{name}0 {[0] * count} : {vector}
"""


def _twice(name: str, count: int) -> str:
    """`%<name>_twice`, the bits of `%<name>` without those of signs."""
    words = _words(count)
    return f"""  %{name}_bits = llvm.bitcast %{name} : {_floats(count)} to {words}
  %{name}_by = llvm.mlir.constant(dense<1> : {words}) : {words}
  %{name}_twice = llvm.shl %{name}_bits, %{name}_by : {words}"""


def _within(name: str, count: int, low: int, high: int) -> str:
    """`%within`, whether the word, or all words, of `%<name>` are in low .. high."""
    words, held = (_words(count), f"dense<{low}>") if count else ("i32", str(low))
    highest = "%above"
    lines = [
        f"  %low = llvm.mlir.constant({held} : {words}) : {words}",
        f"  %range = llvm.mlir.constant({_signed(high - low)} : i32) : i32",
        f"  %above = llvm.sub %{name}, %low : {words}",
    ]
    if count:
        highest = "%highest"
        lines.append(f'  %highest = "llvm.intr.vector.reduce.umax"(%above) : ({words}) -> i32')
    return "\n".join([*lines, f'  %within = llvm.icmp "ult" {highest}, %range : i32'])


def _end(flag: str, a: str, d: str, count: int) -> str:
    """The end of a function: `%quick` where `flag` says so, and quotients one by one if not."""
    vector = _floats(count)
    return f"""  llvm.cond_br {flag} weights([1000, 1]), ^done(%quick : {vector}), ^each
^each:
  %exact = llvm.fdiv {a}, {d} : {vector}
  llvm.br ^done(%exact : {vector})
^done(%result: {vector}):
  llvm.return %result : {vector}"""


def _floats(count: int) -> str:
    return f"vector<{count}xf32>"


def _words(count: int) -> str:
    return f"vector<{count}xi32>"


def _signed(bits: int) -> int:
    """A word as MLIR reads numbers of 32 bits."""
    return bits - (1 << 32) if bits >> 31 else bits


def _bits(exponent: int) -> int:
    """The bits of 2**exponent as f32."""
    return (exponent + _BIAS) << _MANTISSA
