"""Arguments of user_kernels.py: rows for `speed.py --rows user_rows:ROWS`, and what NumPy makes.

A case is a function of sizes that asks for its arrays by name of the type and shape: zeros for a
time, random numbers for a comparison (tests/unit/tile_time/test_user_kernels.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, log, sqrt
from typing import Any

import numpy as np
from speed_rows import Launch, Row, zeros

Array = np.ndarray
#: Of a type and a shape.
Fill = Callable[..., Array]


@dataclass(frozen=True)
class Case:
    """A launch, and each array that it writes with a function of what it should be, in f32.

    Those functions read the other arrays, so they come before the launch, and behind `prepare`,
    which makes of arbitrary numbers what the kernel takes. `flops` and `bytes` are those of the
    problem, `bits` those of a tensor core's operands.
    """

    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    written: tuple[tuple[Array, Callable[[], Array]], ...]
    flops: float
    bits: int = 16
    prepare: Callable[[], None] = lambda: None

    @property
    def bytes(self) -> float:
        arrays = [a for a in self.arguments if isinstance(a, np.ndarray)]
        return float(sum(a.nbytes for a in arrays))


def f32(x: Array) -> Array:
    return x.astype(np.float32)


def gated_layer(fill: Fill, m: int, n: int, k: int) -> Case:
    x, bias, out = fill("f16", m, k), fill("f16", n), fill("f16", m, n)
    gate_weights, up_weights = fill("f16", k, n), fill("f16", k, n)

    def expected() -> Array:
        gate = f32(x) @ f32(gate_weights) + f32(bias)
        half = 0.5 * gate * (1 + np.tanh(0.7978845608 * (gate + 0.044715 * gate**3)))
        return half * (f32(x) @ f32(up_weights))

    arguments = (x, gate_weights, up_weights, bias, out, 128, 128, 64)
    return Case((ceil(m / 128), ceil(n / 128)), arguments, ((out, expected),), 4.0 * m * n * k)


def byte_weights(fill: Fill, m: int, n: int, k: int) -> Case:
    x, weights, scale, out = fill("f16", m, k), fill("i8", k, n), fill("f32", n), fill("f16", m, n)
    return Case(
        (ceil(m / 128) * ceil(n / 128),), (x, weights, scale, out, 128, 128, 64),
        ((out, lambda: f32(x) @ f32(weights) * scale),), 2.0 * m * n * k,
    )  # fmt: skip


def nibble_weights(fill: Fill, m: int, n: int, k: int) -> Case:
    group, tk = 128, 128
    x, weights = fill("f16", m, k), fill("u8", k // 2, n)
    scale, out = fill("f16", k // group, n), fill("f16", m, n)

    def expected() -> Array:
        packed = weights.reshape(k // tk, tk // 2, n)
        both = np.concatenate([packed & 15, packed >> 4], axis=1).reshape(k, n)
        return f32(x) @ ((f32(both) - 8) * np.repeat(f32(scale), group, axis=0))

    arguments = (x, weights, scale, out, 128, 128, tk, group)
    return Case(
        (ceil(m / 128) * ceil(n / 128),), arguments, ((out, expected),), 2.0 * m * n * k
    )  # fmt: skip


def block_scaled_floats(fill: Fill, m: int, n: int, k: int) -> Case:
    a, b = fill("e4m3", m, k), fill("e4m3", n, k)
    scales = fill("f32", m, k // 128), fill("f32", n // 128, k // 128)
    out = fill("bf16", m, n)

    def expected() -> Array:
        left = f32(a) * np.repeat(scales[0], 128, axis=1)
        right = f32(b) * np.repeat(np.repeat(scales[1], 128, axis=0), 128, axis=1)
        return left @ right.T

    arguments = (a, scales[0], b, scales[1], out, 128, 128, 128)
    return Case(
        (ceil(m / 128) * (n // 128),), arguments, ((out, expected),), 2.0 * m * n * k, bits=8
    )  # fmt: skip


def quantised_product(fill: Fill, m: int, n: int, k: int) -> Case:
    a, b, out = fill("i8", m, k), fill("i8", n, k), fill("bf16", m, n)
    scales = fill("f32", m), fill("f32", n)
    return Case(
        (ceil(m / 128) * ceil(n / 128),), (a, b, *scales, out, 128, 128, 128),
        ((out, lambda: (f32(a) @ f32(b).T) * scales[0][:, None] * scales[1]),),
        2.0 * m * n * k, bits=8,
    )  # fmt: skip


def weight_gradient(fill: Fill, m: int, n: int, k: int) -> Case:
    x, dy, out = fill("bf16", k, m), fill("bf16", k, n), fill("f32", m, n)
    return Case(
        (ceil(m / 128) * ceil(n / 256),), (x, dy, out, 128, 256, 64),
        ((out, lambda: f32(x).T @ f32(dy)),), 2.0 * m * n * k,
    )  # fmt: skip


def residual_layer(fill: Fill, m: int, n: int, k: int) -> Case:
    x, weights, bias = fill("bf16", m, k), fill("bf16", k, n), fill("bf16", n)
    residual, out = fill("bf16", m, n), fill("bf16", m, n)
    return Case(
        (ceil(m / 128) * ceil(n / 256),), (x, weights, bias, residual, out, 128, 256, 64),
        ((out, lambda: np.maximum(f32(x) @ f32(weights) + f32(bias), 0) + f32(residual)),),
        2.0 * m * n * k,
    )  # fmt: skip


def low_rank_layer(fill: Fill, m: int, n: int, k: int) -> Case:
    rank = 16
    x, weights, out = fill("f16", m, k), fill("f16", k, n), fill("f16", m, n)
    down, up = fill("f16", k, rank), fill("f16", rank, n)
    return Case(
        (ceil(m / 128) * ceil(n / 128),), (x, weights, down, up, out, 0.5, 128, 128, 64, rank),
        ((out, lambda: f32(x) @ f32(weights) + 0.5 * (f32(x) @ f32(down)) @ f32(up)),),
        2.0 * m * n * k,
    )  # fmt: skip


def convolution(fill: Fill, height: int, width: int, channels: int, filters: int) -> Case:
    x, weights = fill("f16", height * width, channels), fill("f16", 9, channels, filters)
    out = fill("f16", height * width, filters)

    def expected() -> Array:
        padded = np.pad(f32(x).reshape(height, width, channels), ((1, 1), (1, 1), (0, 0)))
        taps = [(t, padded[t // 3 :][:height, t % 3 :][:, :width]) for t in range(9)]
        return sum(p.reshape(-1, channels) @ f32(weights[t]) for t, p in taps)  # type: ignore[return-value]

    return Case(
        (ceil(height * width / 128), ceil(filters / 128)),
        (x, weights, out, height, width, 128, 128, 64), ((out, expected),),
        18.0 * height * width * channels * filters,
    )  # fmt: skip


def softmax(scores: Array) -> Array:
    """Of powers of two."""
    powers = np.exp2(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def scale_of(depth: int) -> float:
    return 1 / sqrt(depth) / log(2)


def biased_attention(fill: Fill, heads: int, length: int, depth: int = 128) -> Case:
    q, k, v, out = (fill("f16", heads, length, depth) for _ in range(4))
    bias = fill("f16", length, length)
    scale = scale_of(depth)
    return Case(
        (ceil(length / 128), heads), (q, k, v, bias, out, scale, depth, 128, 128),
        ((out, lambda: softmax(f32(q) @ f32(k).swapaxes(1, 2) * scale + f32(bias)) @ f32(v)),),
        4.0 * heads * length * length * depth,
    )  # fmt: skip


def latent_attention(fill: Fill, heads: int, length: int) -> Case:
    depth, turned = 128, 64
    q, k, v, out = (fill("f16", heads, length, depth) for _ in range(4))
    turned_q, turned_k = fill("f16", heads, length, turned), fill("f16", length, turned)
    scale = scale_of(depth + turned)

    def expected() -> Array:
        scores = f32(q) @ f32(k).swapaxes(1, 2) + f32(turned_q) @ f32(turned_k).T
        return softmax(scores * scale) @ f32(v)

    arguments = (q, k, v, turned_q, turned_k, out, scale, depth, turned, 128, 128)
    return Case(
        (ceil(length / 128), heads), arguments, ((out, expected),),
        heads * length * length * (4.0 * depth + 2.0 * turned),
    )  # fmt: skip


def window_attention(fill: Fill, heads: int, length: int, window: int) -> Case:
    depth = 128
    q, k, v, out = (fill("bf16", heads, length, depth) for _ in range(4))
    sums = fill("f32", heads, length)
    scale = scale_of(depth)

    def scores() -> Array:
        lag = np.arange(length)[:, None] - np.arange(length)
        seen = (lag >= 0) & (lag < window)
        return np.where(seen, f32(q) @ f32(k).swapaxes(1, 2) * scale, -1e30)

    def logarithms() -> Array:
        s = scores()
        top = s.max(axis=-1)
        return top + np.log2(np.exp2(s - top[..., None]).sum(axis=-1))

    return Case(
        (ceil(length / 128), heads), (q, k, v, out, sums, scale, window, depth, 128, 128),
        ((out, lambda: softmax(scores()) @ f32(v)), (sums, logarithms)),
        4.0 * heads * length * window * depth,
    )  # fmt: skip


def _gradients(q: Array, k: Array, v: Array, d: Array, scale: float) -> tuple[Array, ...]:
    """The sums' logarithms, delta, and the gradients of q, k and v."""
    scores = f32(q) @ f32(k).swapaxes(1, 2) * scale
    top = scores.max(axis=-1)
    sums = top + np.log2(np.exp2(scores - top[..., None]).sum(axis=-1))
    weights = softmax(scores)
    of_weights = f32(d) @ f32(v).swapaxes(1, 2)
    delta = (weights * of_weights).sum(axis=-1)
    of_scores = weights * (of_weights - delta[..., None]) * (scale * log(2))
    turned = of_scores.swapaxes(1, 2)
    return sums, delta, of_scores @ f32(k), turned @ f32(q), weights.swapaxes(1, 2) @ f32(d)


def _backward(fill: Fill, heads: int, length: int, depth: int) -> tuple[Any, ...]:
    """q, k, v, the gradient of the result, the sums' logarithms, delta, and all that is right."""
    q, k, v, d = (fill("f16", heads, length, depth) for _ in range(4))
    sums, delta = fill("f32", heads, length), fill("f32", heads, length)
    return q, k, v, d, sums, delta, lambda: _gradients(q, k, v, d, scale_of(depth))


def _sums_and_delta(arrays: Sequence[Array], right: Callable[[], tuple[Array, ...]]) -> None:
    """What the forward kernel leaves to the backward one."""
    arrays[-2][:], arrays[-1][:] = right()[:2]


def attention_gradient_of_keys(fill: Fill, heads: int, length: int, depth: int = 128) -> Case:
    tm, tn = (64, 128)
    *arrays, right = _backward(fill, heads, length, depth)
    dk, dv = fill("f16", heads, length, depth), fill("f16", heads, length, depth)
    return Case(
        (ceil(length / tn), heads), (*arrays, dk, dv, scale_of(depth), depth, tm, tn),
        ((dk, lambda: right()[3]), (dv, lambda: right()[4])), 8.0 * heads * length * length * depth,
        prepare=partial(_sums_and_delta, arrays, right),
    )  # fmt: skip


def attention_gradient_of_queries(fill: Fill, heads: int, length: int, depth: int = 128) -> Case:
    tm, tn = (128, 64)
    *arrays, right = _backward(fill, heads, length, depth)
    dq = fill("f16", heads, length, depth)
    return Case(
        (ceil(length / tm), heads), (*arrays, dq, scale_of(depth), depth, tm, tn),
        ((dq, lambda: right()[2]),), 6.0 * heads * length * length * depth,
        prepare=partial(_sums_and_delta, arrays, right),
    )  # fmt: skip


def float8_attention(fill: Fill, heads: int, length: int) -> Case:
    depth = 128
    q, k = fill("e4m3", heads, length, depth), fill("e4m3", heads, length, depth)
    v, out = fill("e4m3", heads, depth, length), fill("f16", heads, length, depth)
    scale = scale_of(depth)

    def expected() -> Array:
        weights = softmax(f32(q) @ f32(k).swapaxes(1, 2) * scale)
        return weights @ f32(v).swapaxes(1, 2)

    return Case(
        (ceil(length / 128), heads), (q, k, v, out, scale, depth, 128, 128), ((out, expected),),
        4.0 * heads * length * length * depth, bits=8,
    )  # fmt: skip


def retention(fill: Fill, heads: int, length: int) -> Case:
    depth, chunk = 128, 64
    q, k, v, out = (fill("bf16", heads, length, depth) for _ in range(4))
    decay = fill("f32", heads)

    def prepare() -> None:
        decay[:] = -1 / 32

    def expected() -> Array:
        lag = np.arange(length)[:, None] - np.arange(length)
        mask = np.where(lag >= 0, np.exp2(decay[:, None, None] * np.maximum(lag, 0)), 0)
        return (f32(q) @ f32(k).swapaxes(1, 2) * mask) @ f32(v)

    return Case(
        (heads,), (q, k, v, out, decay, depth, chunk), ((out, expected),),
        heads * length * (4.0 * chunk * depth + 4.0 * depth * depth), prepare=prepare,
    )  # fmt: skip


def rotary(fill: Fill, length: int, heads: int) -> Case:
    half, rows = 64, 64
    x, out = fill("bf16", length, heads, 2 * half), fill("bf16", length, heads, 2 * half)
    cosine, sine = fill("f32", length, half), fill("f32", length, half)

    def expected() -> Array:
        one, two = f32(x)[..., :half], f32(x)[..., half:]
        c, s = cosine[:, None], sine[:, None]
        return np.concatenate([one * c - two * s, two * c + one * s], axis=-1)

    return Case(
        (ceil(length / rows), heads), (x, cosine, sine, out, rows, half), ((out, expected),),
        6.0 * x.size, bits=0,
    )  # fmt: skip


def adam(fill: Fill, count: int) -> Case:
    weights, gradient, first, second = (fill(t, count) for t in ("f32", "bf16", "f32", "f32"))

    def prepare() -> None:
        np.abs(second, out=second)

    def mean() -> Array:
        return 0.9 * first + 0.1 * f32(gradient)

    def square() -> Array:
        return 0.999 * second + 0.001 * f32(gradient) ** 2

    def stepped() -> Array:
        return weights - 0.1 * mean() / (np.sqrt(square() * 1.5) + 1e-8)

    return Case(
        (ceil(count / 1024),), (weights, gradient, first, second, 0.1, 1.5, 1024),
        ((weights, stepped), (first, mean), (second, square)), 12.0 * count, bits=0,
        prepare=prepare,
    )  # fmt: skip


def running_sums(fill: Fill, rows: int, columns: int) -> Case:
    x, out = fill("f32", rows, columns), fill("f32", rows, columns)
    return Case(
        (ceil(rows / 8),), (x, out, 8, 512), ((out, lambda: np.cumsum(x, axis=1)),), x.size, bits=0
    )  # fmt: skip


def routing(fill: Fill, tokens: int, experts: int, top: int) -> Case:
    logits = fill("f32", tokens, experts)
    weights, chosen = fill("f32", tokens, top), fill("i32", tokens, top)

    def shares() -> Array:
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def order() -> Array:
        return np.argsort(-logits, axis=1, kind="stable")[:, :top]

    return Case(
        (ceil(tokens / 16),), (logits, weights, chosen, experts, top, 16),
        ((weights, lambda: np.take_along_axis(shares(), order(), axis=1)), (chosen, order)),
        (5.0 + 3 * top) * logits.size, bits=0,
    )  # fmt: skip


def embedding(fill: Fill, tokens: int, words: int, columns: int) -> Case:
    table, out = fill("f16", words, columns), fill("f16", tokens, columns)
    token = (np.arange(tokens, dtype=np.int32) * 7919) % words
    return Case(
        (ceil(tokens / 8), ceil(columns / 512)), (token, table, out, 8, 512),
        ((out, lambda: f32(table[token])),), 0.0, bits=0,
    )  # fmt: skip


def group_norm(fill: Fill, images: int, groups: int, channels: int, positions: int) -> Case:
    x, out = (fill("f16", images, groups * channels, positions) for _ in range(2))
    gain, bias = fill("f32", groups * channels), fill("f32", groups * channels)

    def expected() -> Array:
        parts = f32(x).reshape(images, groups, -1)
        mean = parts.mean(axis=-1, keepdims=True)
        scaled = (parts - mean) / np.sqrt(parts.var(axis=-1, keepdims=True) + 1e-5)
        return scaled.reshape(x.shape) * gain[:, None] + bias[:, None]

    return Case(
        (images, groups), (x, gain, bias, out, 1e-5, channels, 512), ((out, expected),),
        8.0 * x.size, bits=0,
    )  # fmt: skip


def fused_layers(fill: Fill, m: int, inner: int, depth: int) -> Case:
    x, out = fill("f16", m, depth), fill("f16", m, depth)
    first, second = fill("f16", depth, inner), fill("f16", inner, depth)

    def expected() -> Array:
        return f32(np.maximum(f32(x) @ f32(first), 0).astype(np.float16)) @ f32(second)

    return Case(
        (ceil(m / 128),), (x, first, second, out, depth, 128, 128), ((out, expected),),
        4.0 * m * inner * depth,
    )  # fmt: skip


def paged_attention(fill: Fill, batch: int, groups: int, length: int) -> Case:
    """Pages of each sequence lie in another order; the last five keys are missing."""
    depth, heads, page = 128, 16, 64
    each, there = ceil(length / page), length - 5
    q, out = fill("bf16", batch, groups, heads, depth), fill("bf16", batch, groups, heads, depth)
    k, v = (fill("bf16", batch * each, groups, page, depth) for _ in range(2))
    table = np.arange(batch * each, dtype=np.int32)[::-1].copy().reshape(batch, each)
    lengths = np.full(batch, there, np.int32)

    def of(pages: Array) -> Array:
        """(batch, groups, length, depth)"""
        found = f32(pages)[table].swapaxes(1, 2)
        return found.reshape(batch, groups, each * page, depth)[:, :, :there]

    def expected() -> Array:
        return softmax(f32(q) @ of(k).swapaxes(2, 3) * scale_of(depth)) @ of(v)

    arguments = (q, k, v, table, lengths, out, scale_of(depth), depth, heads, page)
    return Case(
        (batch, groups), arguments, ((out, expected),),
        4.0 * batch * groups * heads * length * depth, bits=0,
    )  # fmt: skip


def linear_entropy(fill: Fill, m: int, n: int, k: int) -> Case:
    x, weights, losses = fill("bf16", m, k), fill("bf16", n, k), fill("f32", m)
    target = (np.arange(m, dtype=np.int32) * 13) % n

    def expected() -> Array:
        scores = f32(x) @ f32(weights).T
        top = scores.max(axis=1, keepdims=True)
        sums = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
        return sums - scores[np.arange(m), target]

    return Case(
        (ceil(m / 128),), (x, weights, target, losses, 128, 256, 64), ((losses, expected),),
        2.0 * m * n * k,
    )  # fmt: skip


def sparse_attention(fill: Fill, heads: int, length: int) -> Case:
    """Every other tile, and those on the diagonal."""
    depth, tiles = 128, ceil(length / 128)
    q, k, v, out = (fill("f16", heads, length, depth) for _ in range(4))
    number = np.arange(tiles)
    chosen = ((number[:, None] + number) % 2 == 0).astype(np.int32)

    def expected() -> Array:
        seen = np.kron(chosen, np.ones((128, 128)))[:length, :length] > 0
        scores = f32(q) @ f32(k).swapaxes(1, 2) * scale_of(depth)
        return softmax(np.where(seen, scores, -1e30)) @ f32(v)

    return Case(
        (tiles, heads), (q, k, v, chosen, out, scale_of(depth), depth, 128, 128),
        ((out, expected),), 2.0 * heads * length * length * depth,
    )  # fmt: skip


@dataclass(frozen=True)
class Sized:
    """A case with the sizes that are timed, and those that are compared with NumPy, of whose
    largest number results are to be `within` so much.

    `prepared` are those whose times depend on numbers, as what is gathered or branches: they have
    ones, and what their case prepares, and not zeros.
    """

    case: Callable[..., Case]
    timed: tuple[int, ...]
    compared: tuple[int, ...]
    capability: int = 80
    within: float = 0.01
    module: str = "user_kernels"
    prepared: bool = False

    @property
    def kernel(self) -> str:
        """Its kernel in its module."""
        return self.case.__name__

    @property
    def name(self) -> str:
        return self.kernel.replace("_", " ")

    def row(self) -> Row:
        def launch(_: int) -> Launch:
            made = self.case(_ones if self.prepared else zeros, *self.timed)
            if self.prepared:
                made.prepare()
            x, y, z = (*made.grid, 1, 1)[:3]
            return Launch((x, y, z), made.arguments)

        # Asked of arrays that take no memory, since tables are made of all rows.
        asked = self.case(_shapes, *self.timed)
        return Row(
            f"{self.name} {'x'.join(map(str, self.timed))}", f"{self.module}:{self.kernel}",
            launch, asked.flops, asked.bytes, asked.bits, capability=self.capability,
        )  # fmt: skip


def _ones(kind: str, *shape: int) -> Array:
    found = zeros(kind, *shape)
    if not np.issubdtype(found.dtype, np.integer):
        found[...] = 1
    return found


def _shapes(kind: str, *shape: int) -> Array:
    return np.broadcast_to(zeros(kind, 1), shape)


CASES = (
    Sized(gated_layer, (4096, 4096, 4096), (300, 200, 328)),
    Sized(byte_weights, (4096, 4096, 4096), (300, 272, 320)),
    Sized(nibble_weights, (4096, 4096, 4096), (192, 256, 256)),
    Sized(block_scaled_floats, (4096, 4096, 4096), (192, 256, 384), 89),
    Sized(quantised_product, (4096, 4096, 4096), (200, 256, 272)),
    Sized(weight_gradient, (4096, 4096, 4096), (256, 264, 200)),
    Sized(residual_layer, (4096, 4096, 4096), (200, 264, 200)),
    Sized(low_rank_layer, (4096, 4096, 4096), (200, 264, 200)),
    Sized(convolution, (128, 128, 256, 256), (12, 20, 64, 136)),
    Sized(biased_attention, (16, 4096), (2, 384)),
    Sized(latent_attention, (16, 4096), (2, 384)),
    Sized(window_attention, (32, 8192, 1024), (2, 512, 200)),
    Sized(attention_gradient_of_keys, (16, 4096), (2, 256)),
    Sized(attention_gradient_of_queries, (16, 4096), (2, 256)),
    Sized(float8_attention, (32, 4096), (2, 384), 89, within=0.05),  # weights have 3 bits
    Sized(fused_layers, (8192, 4096, 128), (200, 384, 128)),
    Sized(paged_attention, (32, 8, 4096), (2, 2, 320)),
    Sized(linear_entropy, (4096, 4096, 2048), (128, 500, 200)),
    Sized(sparse_attention, (16, 4096), (2, 512)),
    Sized(retention, (512, 2048), (2, 256)),
    Sized(rotary, (16384, 32), (128, 3)),
    Sized(adam, (1 << 25,), (4096,)),
    Sized(running_sums, (8192, 8192), (16, 1300)),
    Sized(routing, (65536, 128, 8), (32, 64, 4)),
    Sized(embedding, (16384, 128000, 4096), (32, 50, 1024)),
    Sized(group_norm, (16, 32, 16, 4096), (2, 2, 16, 1300)),
)
ROWS: tuple[Row, ...] = tuple(one.row() for one in CASES)
