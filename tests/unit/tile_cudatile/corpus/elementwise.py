"""Operations on single elements, with all their modes."""

# Kernels are compiled from their sources; the operation comes from the enclosing function.

from __future__ import annotations

import cuda.tile as ct
from unit.tile_cudatile.corpus.cases import REALS, alike, array, case, each

R = ct.RoundingMode


def unary(function, **modes):
    mode = modes.get("rounding_mode")

    @ct.kernel
    def kernel(x, y):
        i = ct.bid(0)
        ct.store(y, (i,), function(ct.load(x, (i,), (16,))))

    @ct.kernel
    def rounded(x, y):
        i = ct.bid(0)
        ct.store(y, (i,), function(ct.load(x, (i,), (16,)), rounding_mode=mode))

    @ct.kernel
    def flushed(x, y):
        i = ct.bid(0)
        ct.store(y, (i,), function(ct.load(x, (i,), (16,)), flush_to_zero=True))

    @ct.kernel
    def both(x, y):
        i = ct.bid(0)
        t = ct.load(x, (i,), (16,))
        ct.store(y, (i,), function(t, rounding_mode=mode, flush_to_zero=True))

    return _pick(modes, kernel, rounded, flushed, both)


def binary(function, **modes):
    mode = modes.get("rounding_mode")

    @ct.kernel
    def kernel(x, y, z):
        i = ct.bid(0)
        ct.store(z, (i,), function(ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,))))

    @ct.kernel
    def rounded(x, y, z):
        i = ct.bid(0)
        a, b = ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,))
        ct.store(z, (i,), function(a, b, rounding_mode=mode))

    @ct.kernel
    def flushed(x, y, z):
        i = ct.bid(0)
        a, b = ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,))
        ct.store(z, (i,), function(a, b, flush_to_zero=True))

    @ct.kernel
    def both(x, y, z):
        i = ct.bid(0)
        a, b = ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,))
        c = function(a, b, rounding_mode=mode, flush_to_zero=True)
        ct.store(z, (i,), c)

    return _pick(modes, kernel, rounded, flushed, both)


def _pick(modes, plain, rounded, flushed, both):
    if "flush_to_zero" in modes:
        return both if "rounding_mode" in modes else flushed
    return rounded if "rounding_mode" in modes else plain


def choosing(function, nan, flush):
    @ct.kernel
    def kernel(x, y, z):
        i = ct.bid(0)
        a, b = ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,))
        ct.store(z, (i,), function(a, b, propagate_nan=nan, flush_to_zero=flush))

    return kernel


UNARY = {
    "abs": ct.abs,
    "negative": ct.negative,
    "bitwise_not": ct.bitwise_not,
    "ceil": ct.ceil,
    "floor": ct.floor,
    "sin": ct.sin,
    "cos": ct.cos,
    "tan": ct.tan,
    "sinh": ct.sinh,
    "cosh": ct.cosh,
    "tanh": ct.tanh,
    "exp": ct.exp,
    "exp2": ct.exp2,
    "log": ct.log,
    "log2": ct.log2,
    "sqrt": ct.sqrt,
    "rsqrt": ct.rsqrt,
}
for name, function in UNARY.items():
    case(name, unary(function), each(alike(2)))
case("isnan", unary(ct.isnan), each(lambda d: [array(d), array(ct.bool_)]))

BINARY = {
    "add": ct.add,
    "sub": ct.sub,
    "mul": ct.mul,
    "floordiv": ct.floordiv,
    "mod": ct.mod,
    "pow": ct.pow,
    "atan2": ct.atan2,
    "cdiv": ct.cdiv,
    "minimum": ct.minimum,
    "maximum": ct.maximum,
    "bitwise_and": ct.bitwise_and,
    "bitwise_or": ct.bitwise_or,
    "bitwise_xor": ct.bitwise_xor,
    "bitwise_lshift": ct.bitwise_lshift,
    "bitwise_rshift": ct.bitwise_rshift,
}
for name, function in BINARY.items():
    case(name, binary(function), each(alike(3)))
case("truediv", binary(ct.truediv), each(alike(3)))
case(
    "truediv_of_integers",
    binary(ct.truediv),
    each(lambda d: [array(d), array(d), array(ct.float32)]),
)
COMPARISONS = {
    "equal": ct.equal,
    "not_equal": ct.not_equal,
    "less": ct.less,
    "less_equal": ct.less_equal,
    "greater": ct.greater,
    "greater_equal": ct.greater_equal,
}
for name, function in COMPARISONS.items():
    case(name, binary(function), each(lambda d: [array(d), array(d), array(ct.bool_)]))

for mode in R:
    for flush in (False, True):
        given = {"rounding_mode": mode, **({"flush_to_zero": True} if flush else {})}
        tail = f"{mode.value}{'_flushed' if flush else ''}"
        if mode in (R.RN, R.RZ, R.RM, R.RP):
            case(f"add_{tail}", binary(ct.add, **given), each(alike(3), REALS))
            case(f"sub_{tail}", binary(ct.sub, **given), each(alike(3), REALS))
            case(f"mul_{tail}", binary(ct.mul, **given), each(alike(3), REALS))
        if mode not in (R.RA, R.RZI):
            case(f"truediv_{tail}", binary(ct.truediv, **given), each(alike(3), REALS))
        if mode not in (R.RA, R.RZI, R.FULL):
            case(f"sqrt_{tail}", unary(ct.sqrt, **given), each(alike(2), REALS))
    if mode in (R.FULL, R.APPROX):
        case(f"exp_{mode.value}", unary(ct.exp, rounding_mode=mode), each(alike(2), REALS))
        case(f"tanh_{mode.value}", unary(ct.tanh, rounding_mode=mode), each(alike(2), REALS))
case("exp2_flushed", unary(ct.exp2, flush_to_zero=True), each(alike(2), REALS))
case("rsqrt_flushed", unary(ct.rsqrt, flush_to_zero=True), each(alike(2), REALS))
for nan in (False, True):
    for flush in (False, True):
        tail = f"{'_nan' if nan else ''}{'_flushed' if flush else ''}"
        if tail:
            case(f"minimum{tail}", choosing(ct.minimum, nan, flush), each(alike(3), REALS))
            case(f"maximum{tail}", choosing(ct.maximum, nan, flush), each(alike(3), REALS))


@ct.kernel
def divided(x, y, q, r):
    i = ct.bid(0)
    quotient, rest = ct.divmod(ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,)))
    ct.store(q, (i,), quotient)
    ct.store(r, (i,), rest)


case("divmod", divided, each(alike(4)))


@ct.kernel
def chosen(c, x, y, z):
    i = ct.bid(0)
    a, b = ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,))
    ct.store(z, (i,), ct.where(ct.load(c, (i,), (16,)), a, b))


case("where", chosen, each(lambda d: [array(ct.bool_), array(d), array(d), array(d)]))


@ct.kernel
def operators(x, y, z):
    i = ct.bid(0)
    a, b = ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,))
    c = -a + b - a * b // (b + 1) % 7
    c = 3 - c + 2 * c + (5 // (c + 9)) % 11
    ct.store(z, (i,), c)


@ct.kernel
def bit_operators(x, y, z):
    i = ct.bid(0)
    a, b = ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,))
    ct.store(z, (i,), (~a & b | a ^ b) ^ 1 | 2 & a)


@ct.kernel
def shift_operators(x, y, z):
    i = ct.bid(0)
    a, b = ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,))
    ct.store(z, (i,), (a << 2) >> 1 << b >> 3)


@ct.kernel
def real_operators(x, y, z):
    i = ct.bid(0)
    a, b = ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,))
    ct.store(z, (i,), a / b + 1.5 / a - a**2.0 + 2.0**b)


@ct.kernel
def comparison_operators(x, y, z):
    i = ct.bid(0)
    a, b = ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,))
    ct.store(z, (i,), ((a < b) & (a <= 1)) | ((b > a) ^ (a >= b)) | (a == b) | (b != a))


case("operators", operators, each(alike(3)))
case("bit_operators", bit_operators, each(alike(3)))
case("shift_operators", shift_operators, each(alike(3)))
case("real_operators", real_operators, each(alike(3)))
case("comparison_operators", comparison_operators, each(lambda d: [*alike(2)(d), array(ct.bool_)]))


@ct.kernel
def fused(x, y, z):
    i = ct.bid(0)
    a, b = ct.load(x, (i,), (16,)), ct.load(y, (i,), (16,))
    c = a * b + a
    ct.store(z, (i,), c * a - b)


case("fused", fused, each(alike(3)))
