"""Arguments of product_kernels.py: `speed.py --rows product_rows:ROWS`, and what NumPy makes."""

from __future__ import annotations

from functools import partial
from math import ceil

import numpy as np
from speed_rows import Row
from user_rows import Array, Case, Fill, Sized, f32


def laid_out(fill: Fill, m: int, n: int, k: int, turned_a: int, turned_b: int) -> Case:
    a = fill("f16", k, m) if turned_a else fill("f16", m, k)
    b = fill("f16", n, k) if turned_b else fill("f16", k, n)
    out = fill("f16", m, n)

    def expected() -> Array:
        return f32(a.T if turned_a else a) @ f32(b.T if turned_b else b)

    arguments = (a, b, out, bool(turned_a), bool(turned_b), 128, 256, 64)
    return Case((ceil(m / 128), ceil(n / 256)), arguments, ((out, expected),), 2.0 * m * n * k)


def narrow_sum(fill: Fill, m: int, n: int, k: int) -> Case:
    a, b, out = fill("f16", m, k), fill("f16", k, n), fill("f16", m, n)
    return Case((ceil(m / 128), ceil(n / 256)), (a, b, out, 128, 256, 64),
                ((out, lambda: f32(a) @ f32(b)),), 2.0 * m * n * k)  # fmt: skip


def gram(fill: Fill, n: int, k: int) -> Case:
    x, out = fill("bf16", n, k), fill("f32", n, n)
    blocks = ceil(n / 128)
    return Case((blocks, blocks), (x, out, 128, 64),
                ((out, lambda: f32(x) @ f32(x).T),), 1.0 * n * (n + 128) * k)  # fmt: skip


def blended(fill: Fill, m: int, n: int, k: int) -> Case:
    a, b, c = fill("f16", m, k), fill("f16", k, n), fill("f32", m, n)
    old = np.zeros((0,), np.float32)

    def prepare() -> None:
        nonlocal old
        old = c.copy()

    arguments = (a, b, c, 0.5, -2.0, 128, 256, 64)
    return Case((ceil(m / 128), ceil(n / 256)), arguments,
                ((c, lambda: 0.5 * (f32(a) @ f32(b)) - 2 * old),), 2.0 * m * n * k,
                prepare=prepare)  # fmt: skip


def stream_k(fill: Fill, m: int, n: int, k: int, blocks: int) -> Case:
    a, b, out = fill("f16", m, k), fill("f16", k, n), fill("f32", m, n)

    def prepare() -> None:
        out[...] = 0

    columns, steps = n // 128, k // 64
    arguments = (a, b, out, blocks, columns, steps, m // 128 * columns, 128, 128, 64)
    return Case((blocks,), arguments, ((out, lambda: f32(a) @ f32(b)),), 2.0 * m * n * k,
                prepare=prepare)  # fmt: skip


def squared_relu(fill: Fill, m: int, n: int, k: int) -> Case:
    x, weights, out = fill("bf16", m, k), fill("bf16", k, n), fill("bf16", m, n)

    def expected() -> Array:
        given = np.maximum(x, x.dtype.type(0))
        return f32(given * given) @ f32(weights)

    return Case((ceil(m / 128), ceil(n / 256)), (x, weights, out, 128, 256, 64),
                ((out, expected),), 2.0 * m * n * k)  # fmt: skip


def assigned(fill: Fill, rows: int, depth: int) -> Case:
    x, centres, out = fill("f16", rows, depth), fill("f16", 256, depth), fill("f16", rows, 256)

    def expected() -> Array:
        total = f32(x) @ f32(centres).T
        powers = np.exp(total - total.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return Case((ceil(rows / 128),), (x, centres, out, 128, 256, 64), ((out, expected),),
                512.0 * rows * depth)  # fmt: skip


def both_kept(fill: Fill, m: int, n: int, k: int) -> Case:
    a, b, out, turned = (fill("f16", *s) for s in ((m, k), (k, n), (m, n), (n, m)))

    def expected() -> Array:
        return f32(a) @ f32(b)

    return Case((ceil(m / 128), ceil(n / 128)), (a, b, out, turned, 128, 128, 64),
                ((out, expected), (turned, lambda: expected().T)), 2.0 * m * n * k)  # fmt: skip


def offset_bytes(fill: Fill, m: int, n: int, k: int) -> Case:
    a, b, scale, out = fill("i8", m, k), fill("i8", k, n), fill("f32", n), fill("f16", m, n)

    def prepare() -> None:
        scale[...] = 1 / 4096

    def expected() -> Array:
        return (f32(a) - 3) @ (f32(b) + 5) * scale

    return Case((ceil(m / 128), ceil(n / 128)), (a, b, scale, out, 3, -5, 128, 128, 128),
                ((out, expected),), 2.0 * m * n * k, bits=8, prepare=prepare)  # fmt: skip


def bias_gradient(fill: Fill, m: int, n: int, k: int) -> Case:
    dy, x, out, bias = fill("bf16", k, m), fill("bf16", k, n), fill("f32", m, n), fill("f32", m)
    written = ((out, lambda: f32(dy).T @ f32(x)), (bias, lambda: f32(dy).sum(axis=0)))
    return Case((ceil(m / 128), ceil(n / 128)), (dy, x, out, bias, 128, 128, 64), written,
                2.0 * m * n * k)  # fmt: skip


def normed_first(fill: Fill, m: int, n: int, k: int) -> Case:
    x, weights, out = fill("bf16", m, k), fill("bf16", k, n), fill("bf16", m, n)

    def expected() -> Array:
        wide = f32(x)
        mean, variance = wide.mean(axis=1, keepdims=True), wide.var(axis=1, keepdims=True)
        left = ((wide - mean) / np.sqrt(variance + 1e-5)).astype(x.dtype)
        return f32(left) @ f32(weights)

    return Case((ceil(m / 128), ceil(n / 128)), (x, weights, out, 1e-5, 128, 128, 64),
                ((out, expected),), 2.0 * m * n * k)  # fmt: skip


def scaled_first(fill: Fill, m: int, n: int, k: int) -> Case:
    x, weights, out = fill("bf16", m, k), fill("bf16", k, n), fill("bf16", m, n)

    def expected() -> Array:
        return f32(x) @ f32(weights) / (abs(f32(x)).max(axis=1, keepdims=True) + 1e-6)

    return Case((ceil(m / 128), ceil(n / 128)), (x, weights, out, 128, 128, 64),
                ((out, expected),), 2.0 * m * n * k)  # fmt: skip


_sized = partial(Sized, module="product_kernels")
CASES = (
    _sized(laid_out, (4096, 4096, 4096, 0, 1), (136, 264, 200, 0, 1)),
    _sized(laid_out, (4096, 4096, 4096, 1, 0), (136, 264, 200, 1, 0)),
    _sized(laid_out, (4096, 4096, 4096, 1, 1), (136, 264, 200, 1, 1)),
    _sized(laid_out, (4095, 4095, 4095, 0, 0), (135, 263, 201, 0, 0)),
    _sized(laid_out, (16384, 16384, 64, 0, 1), (136, 264, 64, 0, 1)),
    _sized(narrow_sum, (4096, 4096, 4096), (136, 264, 200)),
    _sized(gram, (8192, 2048), (256, 200)),
    _sized(blended, (4096, 4096, 4096), (136, 264, 200)),
    _sized(stream_k, (3072, 1920, 4096, 148), (256, 256, 256, 3), prepared=True),
    _sized(squared_relu, (4096, 4096, 4096), (136, 264, 200)),
    _sized(assigned, (131072, 256), (200, 200)),
    _sized(both_kept, (4096, 4096, 4096), (136, 264, 200)),
    _sized(offset_bytes, (4096, 4096, 4096), (136, 272, 256)),
    _sized(bias_gradient, (4096, 4096, 4096), (136, 264, 200)),
    _sized(normed_first, (4096, 4096, 4096), (136, 264, 192)),
    _sized(scaled_first, (4096, 4096, 4096), (136, 264, 192)),
)
ROWS: tuple[Row, ...] = tuple(one.row() for one in CASES)
