"""Conversions between number formats."""

from __future__ import annotations

import cuda.tile as ct
from unit.tile_cudatile.corpus.cases import DTYPES, array, case, const, each

R = ct.RoundingMode


@ct.kernel
def converted(x, y):
    i = ct.bid(0)
    ct.store(y, (i,), ct.astype(ct.load(x, (i,), (16,)), y.dtype))


@ct.kernel
def converted_by_method(x, y):
    i = ct.bid(0)
    ct.store(y, (i,), ct.load(x, (i,), (16,)).astype(y.dtype))


for target in DTYPES:
    case(f"astype_{target}", converted, each(lambda d, t=target: [array(d), array(t)]))
case("astype_method", converted_by_method, each(lambda d: [array(d), array(ct.float32)]))


def rounded(mode):
    @ct.kernel
    def kernel(x, y):
        i = ct.bid(0)
        ct.store(y, (i,), ct.astype(ct.load(x, (i,), (16,)), y.dtype, rounding_mode=mode))

    return kernel


for mode in R:
    for target in (ct.float16, ct.tfloat32, ct.float8_e8m0fnu, ct.float8_e4m3fn):
        case(
            f"astype_{target}_{mode.value}",
            rounded(mode),
            each(lambda d, t=target: [array(d), array(t)]),
        )


@ct.kernel
def reinterpreted(x, y):
    i = ct.bid(0)
    ct.store(y, (i,), ct.bitcast(ct.load(x, (i,), (16,)), y.dtype))


for target in DTYPES:
    if target != ct.bool_:
        case(f"bitcast_{target}", reinterpreted, each(lambda d, t=target: [array(d), array(t)]))


@ct.kernel
def packed(x, y):
    i = ct.bid(0)
    ct.store(y, (i,), ct.pack_to_bytes(ct.load(x, (i,), (16,))))


@ct.kernel
def unpacked(x, y):
    i = ct.bid(0)
    ct.store(y, (i,), ct.unpack_from_bytes(ct.load(x, (i,), (64,)), y.dtype))


case("pack_to_bytes", packed, each(lambda d: [array(d), array(ct.uint8)]))
case("unpack_from_bytes", unpacked, each(lambda d: [array(ct.uint8), array(d)]))


@ct.kernel
def through_narrow(x, y):
    i = ct.bid(0)
    nibbles = ct.unpack_from_bytes(ct.load(x, (i,), (32,)), ct.float4_e2m1fn)
    wide = nibbles.astype(y.dtype) * 2
    again = ct.astype(wide, ct.float4_e2m1fn)
    ct.store(y, (i,), again.astype(y.dtype))
    ct.store(x, (i,), ct.pack_to_bytes(again))


case(
    "float4",
    through_narrow,
    each(lambda d: [array(ct.uint8), array(d)], (ct.float16, ct.float32, ct.bfloat16)),
)


@ct.kernel
def filled(y, value: ct.Constant):
    ct.store(y, (ct.bid(0),), ct.full((16,), value, dtype=y.dtype))


for label, value in {
    "zero": 0,
    "one": 1,
    "negative": -3,
    "large": 100,
    "real": 0.1,
    "infinite": float("inf"),
    "not_a_number": float("nan"),
    "negative_zero": -0.0,
    "true": True,
}.items():
    case(f"full_{label}", filled, each(lambda d, v=value: [array(d), const(v)]))


@ct.kernel
def from_scalars(y):
    i = ct.bid(0)
    ct.store(y, (i,), ct.zeros((16,), y.dtype) + ct.ones((16,), y.dtype))
    ct.store(y, (i + 1,), ct.broadcast_to(ct.astile(2, dtype=y.dtype), (16,)))
    ct.store(y, (i + 2,), ct.arange(16, dtype=y.dtype))
    ct.store(y, (i + 3,), ct.arange(16, dtype=y.dtype, start=3, step=2))


case("zeros_ones_arange", from_scalars, each(lambda d: [array(d)]))
