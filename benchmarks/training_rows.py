"""Arguments of training_kernels.py: `speed.py --rows training_rows:ROWS`, and what NumPy makes."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from math import ceil, e, log2, sqrt

import numpy as np
from speed_rows import Row
from user_rows import Array, Case, Fill, Sized, f32

_SLOPE = 0.7978845608


def norm_layer(fill: Fill, m: int, n: int, k: int) -> Case:
    x, gain = fill("bf16", m, k), fill("f32", k)
    weights, out = fill("bf16", k, n), fill("bf16", m, n)

    def expected() -> Array:
        scaled = f32((f32(x) * gain).astype(x.dtype))
        mean = (f32(x) ** 2).mean(axis=1, keepdims=True)
        return scaled @ f32(weights) / np.sqrt(mean + 1e-5)

    grid = ceil(m / 128), ceil(n / 128)
    arguments = (x, gain, weights, out, 1e-5, 128, 128, 64)
    return Case(grid, arguments, ((out, expected),), 2.0 * m * n * k)


def gelu_gradient(fill: Fill, m: int, n: int, k: int) -> Case:
    dy, weights = fill("bf16", m, k), fill("bf16", n, k)
    before, out = fill("bf16", m, n), fill("bf16", m, n)

    def expected() -> Array:
        x = f32(before)
        inner = np.tanh(_SLOPE * (x + 0.044715 * x**3))
        outer = 0.5 * x * (1 - inner**2) * _SLOPE * (1 + 0.134145 * x * x)
        return (f32(dy) @ f32(weights).T) * (0.5 * (1 + inner) + outer)

    grid = ceil(m / 128), ceil(n / 256)
    arguments = (dy, weights, before, out, 128, 256, 64)
    return Case(grid, arguments, ((out, expected),), 2.0 * m * n * k)


def attention_gradients(fill: Fill, heads: int, length: int) -> Case:
    depth = 64
    q, k, v, dy, dk, dv = (fill("bf16", heads, length, depth) for _ in range(6))
    dq = fill("f32", heads, length, depth)
    sums, delta = (fill("f32", heads, length) for _ in range(2))
    scale = log2(e) / sqrt(depth)

    def prepare() -> None:
        dq[...] = 0
        sums[...] = log2(length)

    def weights() -> Array:
        return np.exp2(f32(q) @ f32(k).swapaxes(1, 2) * scale - sums[..., None])

    def slopes() -> Array:
        return weights() * (f32(dy) @ f32(v).swapaxes(1, 2) - delta[..., None])

    written = (
        (dv, lambda: weights().swapaxes(1, 2) @ f32(dy)),
        (dk, lambda: slopes().swapaxes(1, 2) @ f32(q)),
        (dq, lambda: slopes() @ f32(k)),
    )
    arguments = (q, k, v, dy, sums, delta, dq, dk, dv, scale, depth, 64, 128)
    work = 10.0 * heads * length * length * depth
    return Case((ceil(length / 128), heads), arguments, written, work, prepare=prepare)


def contrast(fill: Fill, m: int, n: int) -> Case:
    depth, scale = 128, 10.0
    x, y = fill("f16", m, depth), fill("f16", n, depth)
    sums, own = fill("f32", m), fill("f32", m)

    def prepare() -> None:
        for one in (x, y):
            wide = f32(one)
            length = np.sqrt((wide**2).sum(axis=1, keepdims=True))
            one[...] = (wide / (length + np.float32(1e-6))).astype(one.dtype)

    def like() -> Array:
        return f32(x) @ f32(y).T * scale

    written = (
        (sums, lambda: np.log(np.exp(like() - scale).sum(axis=1))),
        (own, lambda: np.diagonal(like()).copy()),
    )
    arguments = (x, y, sums, own, scale, 128, 128, depth)
    return Case((ceil(m / 128),), arguments, written, 2.0 * m * n * depth, prepare=prepare)


def byte_adam(fill: Fill, count: int) -> Case:
    tile = 2048
    weights, gradient = fill("f32", count), fill("bf16", count)
    first, second = fill("u8", count), fill("u8", count)
    scales, table = [fill("f32", count // tile) for _ in range(2)], fill("f32", 256)

    def prepare() -> None:
        share = np.linspace(-1, 1, 256)
        table[...] = np.sign(share) * share**2
        second[...] = np.maximum(second, 1)
        for one in scales:
            one[...] = np.abs(one) + np.float32(0.1)

    def expected() -> Array:
        own = [np.repeat(one, tile) for one in scales]
        one = 0.9 * table[first] * own[0] + 0.1 * f32(gradient)
        two = 0.99 * f32(second) / 255 * own[1] + 0.01 * f32(gradient) ** 2
        return weights - 0.01 * one / (np.sqrt(two) + 1e-8)

    arguments = (weights, gradient, first, second, *scales, table, 0.01, tile)
    return Case((count // tile,), arguments, ((weights, expected),), 20.0 * count, bits=0,
                prepare=prepare)  # fmt: skip


def packed_nibbles(fill: Fill, m: int, n: int) -> Case:
    x, out, scales = fill("f16", m, n), fill("u8", m, n // 2), fill("f32", m, n // 128)

    def most() -> Array:
        return np.abs(f32(x).reshape(m, n // 128, 128)).max(axis=2)

    def expected() -> Array:
        share = f32(x).reshape(m, n // 128, 128) / most()[..., None] * 7
        codes = (np.floor(share + np.float32(0.5)) + 8).astype(np.int64).reshape(m, n // 2, 2)
        return f32(codes[..., 0] | codes[..., 1] << 4)

    written = (scales, lambda: most() / 7), (out, expected)
    return Case((m // 32, n // 128), (x, out, scales, 32, 128), written, 6.0 * x.size, bits=0)


def both_ways(fill: Fill, m: int, n: int) -> Case:
    x, lying, turned = fill("bf16", m, n), fill("e4m3", m, n), fill("e4m3", n, m)

    def expected() -> Array:
        return f32((f32(x) * np.float32(2)).astype(lying.dtype))

    written = (lying, expected), (turned, lambda: expected().T)
    return Case((m // 64, n // 64), (x, lying, turned, 64, 2.0), written, 1.0 * x.size, bits=0)


def factored(fill: Fill, m: int, n: int) -> Case:
    gradient, rows, columns = fill("bf16", m, n), fill("f32", m), fill("f32", n)

    def prepare() -> None:
        rows[...], columns[...] = 0, 0

    written = (
        (rows, lambda: (f32(gradient) ** 2).sum(axis=1)),
        (columns, lambda: (f32(gradient) ** 2).sum(axis=0)),
    )
    return Case((m // 64, n // 128), (gradient, rows, columns, 64, 128), written,
                3.0 * gradient.size, bits=0, prepare=prepare)  # fmt: skip


def sampled_products(fill: Fill, count: int, nodes: int) -> Case:
    a, b = fill("f16", nodes, 128), fill("f16", nodes, 128)
    rows, columns, out = fill("i32", count), fill("i32", count), fill("f32", count)

    def prepare() -> None:
        draw = np.random.default_rng(5)
        rows[...] = np.sort(draw.integers(0, nodes, count))
        columns[...] = draw.integers(0, nodes, count)

    def expected() -> Array:
        return (f32(a)[rows] * f32(b)[columns]).sum(axis=1)

    return Case((ceil(count / 64),), (a, b, rows, columns, out, 64, 128), ((out, expected),),
                256.0 * count, bits=0, prepare=prepare)  # fmt: skip


def edge_softmax(fill: Fill, nodes: int, degree: int) -> Case:
    counts = [degree + (i * 7) % degree for i in range(nodes)]
    scores, out = (fill("f32", sum(counts), 8) for _ in range(2))
    starts = fill("i32", nodes + 1)

    def prepare() -> None:
        starts[...] = np.cumsum([0, *counts])

    def expected() -> Array:
        powers = [np.exp(scores[a:b] - scores[a:b].max(axis=0)) for a, b in pairwise(starts)]
        return np.concatenate([one / one.sum(axis=0) for one in powers])

    return Case((nodes,), (scores, starts, out, 32), ((out, expected),), 8.0 * scores.size,
                bits=0, prepare=prepare)  # fmt: skip


_sized = partial(Sized, module="training_kernels", prepared=True)
CASES = (
    _sized(norm_layer, (4096, 4096, 4096), (200, 136, 192)),
    _sized(gelu_gradient, (4096, 8192, 2048), (200, 264, 192)),
    _sized(attention_gradients, (16, 4096), (2, 256)),
    _sized(contrast, (32768, 8192), (256, 300)),
    _sized(byte_adam, (1 << 26,), (4096,), within=1e-4),
    _sized(packed_nibbles, (8192, 8192), (64, 256)),
    _sized(both_ways, (8192, 8192), (128, 192)),
    _sized(factored, (8192, 8192), (128, 256)),
    _sized(sampled_products, (1 << 20, 32768), (100, 40)),
    _sized(edge_softmax, (65536, 24), (20, 24), within=1e-5),
)
ROWS: tuple[Row, ...] = tuple(one.row() for one in CASES)
