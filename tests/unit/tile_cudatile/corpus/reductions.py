"""Reductions and scans."""

from __future__ import annotations

import cuda.tile as ct
from unit.tile_cudatile.corpus.cases import REALS, array, case, each

R = ct.RoundingMode


def reduced(function):
    @ct.kernel
    def kernel(x, y):
        i = ct.bid(0)
        t = ct.load(x, (i, 0), (4, 8))
        ct.store(y, (i, 0), function(t, axis=1, keepdims=True))
        ct.store(y, (0, i), ct.reshape(function(t, axis=0), (1, 8)))
        ct.store(y, (i, i), ct.reshape(function(t), (1, 1)))

    return kernel


def scanned(function):
    @ct.kernel
    def kernel(x, y):
        i = ct.bid(0)
        t = ct.load(x, (i, 0), (4, 8))
        ct.store(y, (i, 0), function(t, axis=1))
        ct.store(y, (0, i), function(t, axis=0, reverse=True))

    return kernel


def rounded_reduction(function, mode, flush):
    @ct.kernel
    def kernel(x, y):
        i = ct.bid(0)
        t = ct.load(x, (i, 0), (4, 8))
        s = function(t, axis=1, keepdims=True, rounding_mode=mode, flush_to_zero=flush)
        ct.store(y, (i, 0), s)

    return kernel


def rounded_scan(function, mode, flush):
    @ct.kernel
    def kernel(x, y):
        i = ct.bid(0)
        t = ct.load(x, (i, 0), (4, 8))
        ct.store(y, (i, 0), function(t, axis=1, rounding_mode=mode, flush_to_zero=flush))

    return kernel


def extreme(function, nan, flush):
    @ct.kernel
    def kernel(x, y):
        i = ct.bid(0)
        t = ct.load(x, (i, 0), (4, 8))
        s = function(t, axis=1, keepdims=True, propagate_nan=nan, flush_to_zero=flush)
        ct.store(y, (i, 0), s)

    return kernel


def position(function, nan):
    @ct.kernel
    def kernel(x, y):
        i = ct.bid(0)
        t = ct.load(x, (i, 0), (4, 8))
        ct.store(y, (i, 0), function(t, axis=1, keepdims=True, propagate_nan=nan))
        ct.store(y, (0, i), ct.reshape(function(t, axis=None, propagate_nan=nan), (1, 1)))

    return kernel


def pairs(dtype):
    return [array(dtype, 2), array(dtype, 2)]


def located(dtype):
    return [array(dtype, 2), array(ct.int32, 2)]


for name, function in {"sum": ct.sum, "prod": ct.prod, "max": ct.max, "min": ct.min}.items():
    case(name, reduced(function), each(pairs))
for name, function in {"cumsum": ct.cumsum, "cumprod": ct.cumprod}.items():
    case(name, scanned(function), each(pairs))
for name, function in {"argmax": ct.argmax, "argmin": ct.argmin}.items():
    case(name, position(function, False), each(located))
    case(f"{name}_nan", position(function, True), each(located))
for mode in (R.RN, R.RZ, R.RM, R.RP):
    for flush in (False, True):
        tail = f"{mode.value}{'_flushed' if flush else ''}"
        case(f"sum_{tail}", rounded_reduction(ct.sum, mode, flush), each(pairs, REALS))
        case(f"prod_{tail}", rounded_reduction(ct.prod, mode, flush), each(pairs, REALS))
        case(f"cumsum_{tail}", rounded_scan(ct.cumsum, mode, flush), each(pairs, REALS))
        case(f"cumprod_{tail}", rounded_scan(ct.cumprod, mode, flush), each(pairs, REALS))
for name, function in {"max": ct.max, "min": ct.min}.items():
    for nan, flush in ((True, False), (False, True), (True, True)):
        tail = f"{'_nan' if nan else ''}{'_flushed' if flush else ''}"
        case(f"{name}{tail}", extreme(function, nan, flush), each(pairs, REALS))


@ct.kernel
def reduced_by_own(x, y):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (4, 8))

    def farther(a, b):
        return ct.where(a > b, a + 1, b)

    ct.store(y, (i, 0), ct.reduce(t, 1, farther, 0, keepdims=True))


@ct.kernel
def reduced_in_pairs(x, y):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (4, 8))

    def both(a, c, b, d):
        return a + b, ct.maximum(c, d)

    total, most = ct.reduce((t, t), 1, both, (0, 1))
    ct.store(y, (i, 0), ct.expand_dims(total, 1))
    ct.store(y, (i, 1), ct.expand_dims(most, 1))


@ct.kernel
def scanned_by_own(x, y):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (4, 8))

    def larger(a, b):
        return ct.maximum(a, b)

    ct.store(y, (i, 0), ct.scan(t, 1, larger, 0))
    ct.store(y, (0, i), ct.scan(t, 0, larger, 0, reverse=True))


@ct.kernel
def scanned_in_pairs(x, y):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (4, 8))

    def both(a, c, b, d):
        return a + b, ct.minimum(c, d)

    total, least = ct.scan((t, t), 1, both, (0, 1))
    ct.store(y, (i, 0), total)
    ct.store(y, (i, 1), least)


case("reduce", reduced_by_own, each(pairs))
case("reduce_pairs", reduced_in_pairs, each(pairs))
case("scan", scanned_by_own, each(pairs))
case("scan_pairs", scanned_in_pairs, each(pairs))
