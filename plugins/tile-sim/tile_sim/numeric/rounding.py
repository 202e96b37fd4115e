"""Correctly rounded add, multiply and fused multiply-add in every rounding mode.

The exact result of a binary32 operation is held as a binary64 sum and its error; rounding the sum
to odd (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
rounding to odd", 2008) keeps what a second rounding needs.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

Array = np.ndarray
MODES = ("rn", "rz", "rm", "rp")
_SPLIT = np.float64(134217729.0)  # 2**27 + 1, Dekker's splitter


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Rounded sum and its exact error (0 where the sum is not finite)."""
    s = a + b
    back = s - a
    error = (a - (s - back)) + (b - back)
    return s, np.where(np.isfinite(s), error, 0.0)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Rounded product and its exact error, for magnitudes far from over- and underflow."""
    p = a * b
    t = _SPLIT * a
    ah = t - (t - a)
    al = a - ah
    t = _SPLIT * b
    bh = t - (t - b)
    bl = b - bh
    error = ((ah * bh - p) + ah * bl + al * bh) + al * bl
    return p, np.where(np.isfinite(p) & np.isfinite(error), error, 0.0)


def to_odd(s: Array, error: Array) -> Array:
    """`s + error` rounded to odd, given `s` its rounding to nearest."""
    bits = np.asarray(s, np.float64).view(np.int64)
    even = (bits & 1) == 0
    outward = np.signbit(error) == np.signbit(s)
    step = np.where(even & (error != 0) & np.isfinite(s), np.where(outward, 1, -1), 0)
    return (bits + step).view(np.float64)


def narrow(x: Array, mode: str) -> Array:
    """binary64 (exact, or rounded to odd) to binary32."""
    r = np.asarray(x, np.float64).astype(np.float32)
    if mode == "rn":
        return r
    wide = r.astype(np.float64)
    return _step(r, wide < x, wide > x, mode)


def _step(r: Array, below: Array, above: Array, mode: str) -> Array:
    """Move a nearest rounding that went below or above the exact value to the directed one."""
    down = np.nextafter(r, r.dtype.type(-np.inf))
    up = np.nextafter(r, r.dtype.type(np.inf))
    if mode == "rm":
        return np.where(above, down, r)
    if mode == "rp":
        return np.where(below, up, r)
    # Towards zero. A nearest rounding never crosses zero, so the sign of r decides.
    shrink = np.where(np.signbit(r), below, above)
    return np.where(shrink, np.where(np.signbit(r), up, down), r)


def _zero_sum(s: Array, a: Array, b: Array, mode: str) -> Array:
    """Exact cancellation gives -0 when rounding down, except for +0 + +0.

    What is rounded to zero although it is more, as tiny products are, keeps its sign.
    """
    if mode != "rm":
        return s
    both_plus = (a == 0) & (b == 0) & ~np.signbit(a) & ~np.signbit(b)
    return np.where((s == 0) & (a + b == 0) & ~both_plus, s.dtype.type(-0.0), s)


def add(a: Array, b: Array, mode: str) -> Array:
    """`a + b` for binary32 or binary64 arrays."""
    if mode == "rn":
        return a + b
    if a.dtype == np.float32:
        x, y = a.astype(np.float64), b.astype(np.float64)
        s, error = two_sum(x, y)
        return _zero_sum(narrow(to_odd(s, error), mode), a, b, mode)
    s, error = two_sum(a, b)
    finite = np.isfinite(a) & np.isfinite(b)
    below, above = error > 0, error < 0
    over = finite & np.isinf(s)
    below, above = below | (over & (s < 0)), above | (over & (s > 0))
    return _zero_sum(_step(s, below, above, mode), a, b, mode)


def multiply(a: Array, b: Array, mode: str) -> Array:
    """`a * b` for binary32 or binary64 arrays."""
    if mode == "rn":
        return a * b
    if a.dtype == np.float32:
        return narrow(a.astype(np.float64) * b.astype(np.float64), mode)
    product = fma(a, b, np.full(np.broadcast_shapes(a.shape, b.shape), -0.0), mode)
    return np.where((a == 0) | (b == 0), a * b, product)


def divide(a: Array, b: Array, mode: str) -> Array:
    """`a / b`; directed modes by the sign of the exact remainder."""
    q = a / b
    if mode == "rn":
        return q
    finite = np.isfinite(q) & np.isfinite(a) & np.isfinite(b)
    over = np.isinf(q) & np.isfinite(a) & (b != 0)
    if a.dtype == np.float32:
        rest = a.astype(np.float64) - q.astype(np.float64) * b.astype(np.float64)
    else:
        rest = fma(-q, b, a, "rn")
    rest = np.where(finite, rest * np.sign(b).astype(rest.dtype), 0)
    if a.dtype == np.float64:
        small = finite & (a != 0) & ((np.abs(a) < _TINY) | (np.abs(q) < _TINY))
        rest = _exactly(rest, small, _rest_of_quotient, a, b, q)
    below, above = rest > 0, rest < 0
    return _step(q, below | (over & (q < 0)), above | (over & (q > 0)), mode)


def _rest_of_quotient(a: float, b: float, q: float) -> Fraction:
    return Fraction(a) / Fraction(b) - Fraction(q)


def square_root(a: Array, mode: str) -> Array:
    """Square root in every mode."""
    r = np.sqrt(a)
    if mode == "rn":
        return r
    if a.dtype == np.float32:
        rest = a.astype(np.float64) - r.astype(np.float64) ** 2
    else:
        rest = fma(-r, r, a, "rn")
    rest = np.where(np.isfinite(rest), rest, 0)
    if a.dtype == np.float64:
        small = (a > 0) & (a < _TINY)
        rest = _exactly(rest, small, lambda x, y: Fraction(x) - Fraction(y) ** 2, a, r)
    return _step(r, rest > 0, rest < 0, mode)


#: Below this, the remainder of a binary64 quotient or root may underflow.
_TINY = 1e-270


def _exactly(rest: Array, where: Array, remainder: Callable[..., Fraction], *xs: Array) -> Array:
    """The signs of remainders, by rational arithmetic in some places."""
    if not where.any():
        return rest
    rest = np.array(rest)
    xs = tuple(np.broadcast_to(x, rest.shape) for x in xs)
    for i in zip(*np.nonzero(where), strict=True):
        exact = remainder(*(float(x[i]) for x in xs))
        rest[i] = (exact > 0) - (exact < 0)
    return rest


# --- fused multiply-add -------------------------------------------------------------------------

_TIE = np.uint64(0x10000000)
_TAIL = np.uint64(0x1FFFFFFF)
_SMALL = np.float32(2.0**-126)


def fma(a: Array, b: Array, c: Array, mode: str) -> Array:
    """`a * b + c` rounded once."""
    return _fma32(a, b, c, mode) if np.asarray(a).dtype == np.float32 else _fma64(a, b, c, mode)


def _fma32(a: Array, b: Array, c: Array, mode: str) -> Array:
    """The product is exact in binary64. The sum is too, or is rounded once more on the way to
    binary32: that goes wrong only where the first rounding lands on a tie of the second."""
    p = np.multiply(a, b, dtype=np.float64)
    s = p + c
    if mode != "rn":
        exact = to_odd(*two_sum(p, np.asarray(c, np.float64)))
        return _zero_sum(narrow(exact, mode), p, np.asarray(c, np.float64), mode)
    r = s.astype(np.float32)
    tie = (s.view(np.uint64) & _TAIL) == _TIE
    tie |= (np.abs(r) <= _SMALL) & (s != 0)
    if tie.any():
        where = np.nonzero(tie)
        shape = r.shape
        pp = np.broadcast_to(p, shape)[where]
        cc = np.broadcast_to(np.asarray(c, np.float64), shape)[where]
        r[where] = to_odd(*two_sum(pp, cc)).astype(np.float32)
    return r


def sticky_fma(a: Array, b: Array, c: Array) -> Array:
    """`a * b + c` of values with at most 26 significant bits, in binary64 rounded to odd."""
    return to_odd(*two_sum(a * b, c))


def _fma64(a: Array, b: Array, c: Array, mode: str) -> Array:
    shape = np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c))
    a, b, c = (np.broadcast_to(np.asarray(x, np.float64), shape) for x in (a, b, c))
    uh, ul = two_product(a, b)
    th, tl = two_sum(c, ul)
    vh, vl = two_sum(uh, th)
    z = to_odd(*two_sum(tl, vl))
    s, error = two_sum(vh, z)
    result = s if mode == "rn" else _zero_sum(_step(s, error > 0, error < 0, mode), uh, c, mode)
    # A product that is too large is still finite, and nothing beside an infinity.
    plain = np.where(np.isfinite(a) & np.isfinite(b) & np.isinf(c), c, a * b + c)
    result = np.where(np.isfinite(plain) & np.isfinite(s), result, plain)
    zero = (uh == 0) & ((a == 0) | (b == 0))
    result = np.where(zero, _zero_sum(plain, uh, c, mode), result)
    hard = _hard(a, b, c, uh, plain) & ~zero
    if hard.any():
        result = result.copy()
        for i in zip(*np.nonzero(hard), strict=True):
            result[i] = _exact_fma(float(a[i]), float(b[i]), float(c[i]), mode)
    return result


def _hard(a: Array, b: Array, c: Array, p: Array, s: Array) -> Array:
    """Finite operands close enough to over- or underflow for the error terms to be inexact."""
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    big = (np.abs(a) > 1e290) | (np.abs(b) > 1e290) | (np.abs(c) > 1e290) | (np.abs(p) > 1e290)
    small = np.abs(p) < 1e-270
    return finite & (big | small | ~np.isfinite(s))


def _exact_fma(a: float, b: float, c: float, mode: str) -> float:
    """By rational arithmetic."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        total, product, addend = (np.array(x) for x in (a * b + c, a * b, c))
        return float(_zero_sum(total, product, addend, mode))
    try:
        near = float(exact)
    except OverflowError:
        near = float("inf") if exact > 0 else float("-inf")
    if mode == "rn":
        return near
    below = near == float("-inf") or (near != float("inf") and Fraction(near) < exact)
    above = near == float("inf") or (near != float("-inf") and Fraction(near) > exact)
    return float(_step(np.array(near), np.array(below), np.array(above), mode))


# --- flushing, NaN ------------------------------------------------------------------------------


def flush(x: Array) -> Array:
    """Subnormal binary32 values to zero of the same sign (`.ftz`)."""
    tiny = np.abs(x) < _SMALL
    return np.where(tiny, np.copysign(np.float32(0), x), x)


_NAN = {
    2: np.array(0x7FFF, np.uint16).view(np.float16)[()],
    4: np.array(0x7FFFFFFF, np.uint32).view(np.float32)[()],
}


def canonical(x: Array) -> Array:
    """Every NaN as the canonical one (binary16 and binary32; binary64 keeps what it has)."""
    bad = x != x
    if x.dtype.itemsize == 8 or not bad.any():
        return x
    return np.where(bad, _NAN[x.dtype.itemsize], x)
