"""Matrix products."""

from __future__ import annotations

import cuda.tile as ct
from unit.tile_cudatile.corpus.cases import DTYPES, array, case, each

ACCUMULATORS = (ct.float16, ct.float32, ct.float64, ct.int32)


@ct.kernel
def accumulated(x, y, z):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((16, 16), z.dtype)
    for k in range(ct.num_tiles(x, axis=1, shape=(16, 32))):
        acc = ct.mma(ct.load(x, (i, k), (16, 32)), ct.load(y, (k, j), (32, 16)), acc)
    ct.store(z, (i, j), acc)


@ct.kernel
def batched(x, y, z):
    i = ct.bid(0)
    a, b = ct.load(x, (i, 0, 0), (2, 16, 32)), ct.load(y, (i, 0, 0), (2, 32, 16))
    ct.store(z, (i, 0, 0), ct.mma(a, b, ct.load(z, (i, 0, 0), (2, 16, 16))))


@ct.kernel
def quick(x, y, z):
    i, j = ct.bid(0), ct.bid(1)
    a, b = ct.load(x, (i, 0), (16, 32)), ct.load(y, (0, j), (32, 16))
    ct.store(z, (i, j), ct.mma(a, b, ct.zeros((16, 16), z.dtype), use_fast_acc=True))


@ct.kernel
def multiplied(x, y, z):
    i, j = ct.bid(0), ct.bid(1)
    a, b = ct.load(x, (i, 0), (16, 32)), ct.load(y, (0, j), (32, 16))
    ct.store(z, (i, j), ct.matmul(a, b).astype(z.dtype))
    ct.store(z, (j, i), (a @ b).astype(z.dtype))


for acc in ACCUMULATORS:

    def matrices(d, acc=acc):
        return [array(d, 2), array(d, 2), array(acc, 2)]

    case(f"mma_{acc}", accumulated, each(matrices))
    case(
        f"mma_{acc}_batched",
        batched,
        each(lambda d, a=acc: [array(d, 3), array(d, 3), array(a, 3)]),
    )
    if acc in (ct.float16, ct.float32):
        case(f"mma_{acc}_fast", quick, each(matrices, (ct.float8_e4m3fn, ct.float8_e5m2)))
case(
    "mma_mixed_signs",
    accumulated,
    [
        ("int8_uint8", [array(ct.int8, 2), array(ct.uint8, 2), array(ct.int32, 2)]),
        ("uint8_int8", [array(ct.uint8, 2), array(ct.int8, 2), array(ct.int32, 2)]),
    ],
)
case("matmul", multiplied, each(lambda d: [array(d, 2)] * 3))


def scaled(block):
    @ct.kernel
    def kernel(x, xs, y, ys, z):
        i, j = ct.bid(0), ct.bid(1)
        a, b = ct.load(x, (i, 0), (16, 64)), ct.load(y, (0, j), (64, 16))
        s = ct.load(xs, (i, 0), (16, 64 // block))
        t = ct.load(ys, (0, j), (64 // block, 16))
        ct.store(z, (i, j), ct.mma_scaled(a, s, b, t, ct.zeros((16, 16), ct.float32)))

    return kernel


def scaled_float4(block):
    @ct.kernel
    def kernel(x, xs, y, ys, z):
        i, j = ct.bid(0), ct.bid(1)
        a = ct.unpack_from_bytes(ct.load(x, (i,), (512,)), ct.float4_e2m1fn).reshape((16, 64))
        b = ct.unpack_from_bytes(ct.load(y, (j,), (512,)), ct.float4_e2m1fn).reshape((64, 16))
        s = ct.load(xs, (i, 0), (16, 64 // block))
        t = ct.load(ys, (0, j), (64 // block, 16))
        ct.store(z, (i, j), ct.mma_scaled(a, s, b, t, ct.zeros((16, 16), ct.float32)))

    return kernel


def scaled_matrices(matrix, scale):
    return [matrix, array(scale, 2), matrix, array(scale, 2), array(ct.float32, 2)]


SCALES = {16: (ct.float8_e8m0fnu, ct.float8_e4m3fn, ct.float8_e5m3fnu)}
SCALES[32] = (ct.float8_e8m0fnu, ct.float8_e5m3fnu)
for block, scales in SCALES.items():
    for scale in scales:
        case(
            f"mma_scaled_{block}_{scale}",
            scaled(block),
            each(
                lambda d, s=scale: scaled_matrices(array(d, 2), s),
                tuple(d for d in DTYPES if d.bitwidth <= 8),
            ),
        )
        case(
            f"mma_scaled_float4_{block}_{scale}",
            scaled_float4(block),
            [("float4", scaled_matrices(array(ct.uint8), scale))],
        )
