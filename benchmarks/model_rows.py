"""Arguments of model_kernels.py: `speed.py --rows model_rows:ROWS`, and what NumPy makes."""

from __future__ import annotations

from functools import partial
from math import ceil

import ml_dtypes
import numpy as np
from speed_rows import Row
from user_rows import Array, Case, Fill, Sized, f32, scale_of, softmax


def _by_largest(x: Array, block: int) -> tuple[Array, Array]:
    """x in blocks of a row, and the largest size in each."""
    parts = f32(x).reshape(len(x), -1, block)
    return parts, np.abs(parts).max(2)


def mx_quantise(fill: Fill, m: int, k: int) -> Case:
    x, out, scales = fill("f16", m, k), fill("e4m3", m, k), fill("e8m0", m, k // 32)

    def factors() -> Array:
        return np.exp2(np.ceil(np.log2(np.maximum(_by_largest(x, 32)[1], 1e-20) / 448)))

    def expected() -> Array:
        return (_by_largest(x, 32)[0] / factors()[:, :, None]).reshape(m, k)

    arguments = (x, out, scales, 16, 256)
    written = (scales, factors), (out, expected)
    return Case((ceil(m / 16), ceil(k / 256)), arguments, written, 3.0 * m * k)


def nv_quantise(fill: Fill, m: int, k: int) -> Case:
    x, out, scales = fill("f16", m, k), fill("u8", m, k // 2), fill("e4m3", m, k // 16)

    def factors() -> Array:
        return f32(np.maximum(_by_largest(x, 16)[1] / 6, 0.015625).astype(scales.dtype))

    def packed() -> Array:
        small = (_by_largest(x, 16)[0] / factors()[:, :, None]).astype(ml_dtypes.float4_e2m1fn)
        codes = small.reshape(m, k // 2, 2).view(np.uint8) & 15
        return f32(codes[:, :, 0] | codes[:, :, 1] << 4)

    arguments, written = (x, out, scales, 16, 256), ((scales, factors), (out, packed))
    return Case((ceil(m / 16), ceil(k / 256)), arguments, written, 3.0 * m * k)


def mx_experts(fill: Fill, experts: int, m: int, n: int, k: int) -> Case:
    a, b = fill("e4m3", experts, m, k), fill("e4m3", experts, n, k)
    scales = [fill("e8m0", experts, rows, k // 32) for rows in (m, n)]
    out = fill("bf16", experts, m, n)

    def prepare() -> None:
        draw = np.random.default_rng(3)
        for held in scales:
            powers = np.exp2(draw.integers(-2, 3, held.shape)).astype(np.float32)
            held[...] = powers.astype(held.dtype)

    def expected() -> Array:
        pairs = zip((a, b), scales, strict=True)
        left, right = (f32(x) * np.repeat(f32(held), 32, axis=2) for x, held in pairs)
        return left @ right.swapaxes(1, 2)

    return Case(
        (ceil(m / 128), ceil(n / 256), experts), (a, scales[0], b, scales[1], out, 128, 256, 128),
        ((out, expected),), 2.0 * experts * m * n * k, bits=8, prepare=prepare,
    )  # fmt: skip


def float8_norm(fill: Fill, m: int, n: int) -> Case:
    x, gain = fill("bf16", m, n), fill("bf16", n)
    out, scales = fill("e4m3", m, n), fill("f32", m)

    def normed() -> Array:
        return f32(x) / np.sqrt((f32(x) ** 2).mean(1, keepdims=True) + 1e-5) * f32(gain)

    def factors() -> Array:
        return np.abs(normed()).max(1) / 448

    arguments = (x, gain, out, scales, 1e-5, 1 << (n - 1).bit_length())
    written = (scales, factors), (out, lambda: normed() / factors()[:, None])
    return Case((m,), arguments, written, 5.0 * m * n)


def float8_layer(fill: Fill, m: int, n: int, k: int) -> Case:
    x, weights, bias = fill("e4m3", m, k), fill("e4m3", n, k), fill("bf16", n)
    rows, columns, out = fill("f32", m), fill("f32", n), fill("bf16", m, n)

    def expected() -> Array:
        total = (f32(x) @ f32(weights).T) * rows[:, None] * columns + f32(bias)
        return 0.5 * total * (1 + np.tanh(np.sqrt(2 / np.pi) * (total + 0.044715 * total**3)))

    arguments = (x, weights, rows, columns, bias, out, 128, 256, 128)
    grid = (ceil(m / 128) * ceil(n / 256),)
    return Case(grid, arguments, ((out, expected),), 2.0 * m * n * k, bits=8)


def causal_convolution(fill: Fill, batch: int, channels: int, length: int) -> Case:
    x, weights = fill("bf16", batch, channels, length), fill("bf16", channels, 4)
    out = fill("bf16", batch, channels, length)

    def expected() -> Array:
        padded = np.pad(f32(x), ((0, 0), (0, 0), (3, 0)))
        taps = (f32(weights)[:, at, None] * padded[:, :, at : at + length] for at in range(4))
        total = sum(taps, np.float32(0))
        return total / (1 + np.exp(-total))

    return Case(
        (batch, ceil(channels / 8), ceil(length / 512)), (x, weights, out, 8, 512),
        ((out, expected),), 8.0 * batch * channels * length,
    )  # fmt: skip


def selective_scan(fill: Fill, batch: int, length: int, channels: int) -> Case:
    states = 16
    x, delta = (fill("bf16", batch, length, channels) for _ in range(2))
    into, outof = (fill("bf16", batch, length, states) for _ in range(2))
    rates, out = fill("f32", channels, states), fill("bf16", batch, length, channels)

    def prepare() -> None:
        delta[...], rates[...] = np.abs(delta), -np.abs(rates)

    def expected() -> Array:
        state = np.zeros((batch, channels, states), np.float32)
        found = np.zeros((batch, length, channels), np.float32)
        for t in range(length):
            step = f32(delta)[:, t, :, None]
            added = step * f32(x)[:, t, :, None] * f32(into)[:, t, None]
            state = state * np.exp(step * rates) + added
            found[:, t] = (state * f32(outof)[:, t, None]).sum(2)
        return found

    return Case(
        (batch, ceil(channels / 64)), (x, delta, rates, into, outof, out, 64, states),
        ((out, expected),), 6.0 * batch * length * channels * states, prepare=prepare,
    )  # fmt: skip


def hashed(x: Array) -> Array:
    """`model_kernels.uniform` of u32."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    x = (x ^ (x >> np.uint32(16))) >> np.uint32(8)
    return f32(x) * np.float32(1 / 16777216)


def _uniform(m: int, n: int, seed: int) -> Array:
    return hashed(np.arange(m * n, dtype=np.uint32).reshape(m, n) + np.uint32(seed))


def sampling(fill: Fill, m: int, n: int) -> Case:
    logits, chosen = fill("f16", m, n), fill("i32", m)

    def expected() -> Array:
        noise = _uniform(m, n, 7) + np.float32(2e-8)
        return f32((f32(logits) - np.log(-np.log(noise))).argmax(1))

    return Case((m,), (logits, chosen, 7, 2048), ((chosen, expected),), 10.0 * m * n)


def softcap_attention(fill: Fill, heads: int, length: int, window: int) -> Case:
    depth, group, cap = 128, 4, 30.0
    q, out = (fill("bf16", heads, length, depth) for _ in range(2))
    k, v = (fill("bf16", heads // group, length, depth) for _ in range(2))
    sinks = fill("f32", heads)

    def expected() -> Array:
        keys, values = (np.repeat(f32(x), group, axis=0) for x in (k, v))
        scores = cap * np.tanh(f32(q) @ keys.swapaxes(1, 2) * scale_of(depth) / cap)
        lag = np.arange(length)[:, None] - np.arange(length)
        scores = np.where((lag >= 0) & (lag < window), scores, -1e30)
        others = np.broadcast_to(sinks[:, None, None], (heads, length, 1))
        both = np.concatenate([scores, others], axis=2) / np.log(2)
        return softmax(both)[:, :, :-1] @ values

    arguments = (q, k, v, sinks, out, scale_of(depth), cap, window, group, depth, 128, 128)
    flops = 4.0 * heads * length * min(length / 2, window) * depth
    return Case((length // 128, heads), arguments, ((out, expected),), flops)


def sigmoid_attention(fill: Fill, heads: int, length: int) -> Case:
    depth = 128
    q, k, v, out = (fill("f16", heads, length, depth) for _ in range(4))
    bias = fill("f32", heads)

    def expected() -> Array:
        scores = f32(q) @ f32(k).swapaxes(1, 2) * scale_of(depth) + bias[:, None, None]
        return 1 / (1 + np.exp(-scores)) @ f32(v)

    arguments = (q, k, v, bias, out, scale_of(depth), depth, 128, 128)
    flops = 4.0 * heads * length * length * depth
    return Case((length // 128, heads), arguments, ((out, expected),), flops)


def column_sums(fill: Fill, m: int, n: int) -> Case:
    x, out = fill("bf16", m, n), fill("f32", n)

    def prepare() -> None:
        out[...] = 0

    grid, arguments = (ceil(m / 256), ceil(n / 256)), (x, out, 16, 256, 16)
    return Case(grid, arguments, ((out, lambda: f32(x).sum(0)),), 1.0 * m * n, prepare=prepare)


def heads_first(fill: Fill, batch: int, length: int, heads: int) -> Case:
    depth = 128
    x, out = fill("bf16", batch, length, heads, depth), fill("bf16", batch, heads, length, depth)
    grid, arguments = (batch, ceil(length / 16), ceil(heads / 4)), (x, out, 16, depth, 4)
    return Case(grid, arguments, ((out, lambda: f32(x).transpose(0, 2, 1, 3)),), 0.0)


def silu_gradient(fill: Fill, n: int) -> Case:
    gate, up, dy, dgate, dup = (fill("bf16", n) for _ in range(5))

    def parts() -> tuple[Array, Array]:
        share = 1 / (1 + np.exp(-f32(gate)))
        return f32(dy) * share, f32(gate) * (1 - share)

    def of_gate() -> Array:
        given, rest = parts()
        return given * f32(up) * (1 + rest)

    written = (dgate, of_gate), (dup, lambda: parts()[0] * f32(gate))
    return Case((ceil(n / 2048),), (gate, up, dy, dgate, dup, 2048), written, 10.0 * n)


def dropped_norm(fill: Fill, m: int, n: int) -> Case:
    x, residual, out, summed = (fill("bf16", m, n) for _ in range(4))
    gain = fill("bf16", n)

    def total() -> Array:
        return np.where(_uniform(m, n, 5) < np.float32(0.9), f32(x) / 0.9, 0) + f32(residual)

    def expected() -> Array:
        found = total()
        spread = np.sqrt(found.var(1, keepdims=True) + 1e-5)
        return (found - found.mean(1, keepdims=True)) / spread * f32(gain)

    arguments = (x, residual, gain, out, summed, 0.9, 5, 1e-5, n)
    return Case((m,), arguments, ((summed, total), (out, expected)), 10.0 * m * n)


def split_decode(fill: Fill, batch: int, groups: int, splits: int, length: int) -> Case:
    heads, depth, tn = 16, 128, 128
    q, sums = fill("bf16", batch, groups, heads, depth), fill("f32", batch, groups, splits, heads)
    k, v = (fill("bf16", batch, groups, length, depth) for _ in range(2))
    out, part = fill("f32", batch, groups, splits, heads, depth), length // splits

    def scores() -> Array:
        found = f32(q) @ f32(k).swapaxes(2, 3) * scale_of(depth)
        return found.reshape(batch, groups, heads, splits, part).transpose(0, 1, 3, 2, 4)

    def expected() -> Array:
        return softmax(scores()) @ f32(v).reshape(batch, groups, splits, part, depth)

    def logarithms() -> Array:
        found = scores()
        most = found.max(-1, keepdims=True)
        return (most + np.log2(np.exp2(found - most).sum(-1, keepdims=True)))[..., 0]

    return Case(
        (batch, groups, splits),
        (q, k, v, out, sums, scale_of(depth), depth, heads, tn, part // tn),
        ((out, expected), (sums, logarithms)), 4.0 * batch * groups * heads * length * depth,
    )  # fmt: skip


def small_products(fill: Fill, count: int, n: int) -> Case:
    a, b, out = (fill("f32", count, n, n) for _ in range(3))
    return Case((count,), (a, b, out, n), ((out, lambda: a @ b),), 2.0 * count * n**3, bits=32)


def block_sparse(fill: Fill, rows: int, k: int, n: int) -> Case:
    """A quarter of the blocks of each row."""
    tm, tn, tk = 128, 128, 64
    high, wide = rows // tm, k // tk
    each, draw = max(1, wide // 4), np.random.default_rng(4)
    starts = (np.arange(high + 1) * each).astype(np.int32)
    chosen = [np.sort(draw.permutation(wide)[:each]) for _ in range(high)]
    columns_of = np.concatenate(chosen).astype(np.int32)
    a, b, out = fill("f16", high * each, tm, tk), fill("f16", k, n), fill("f16", rows, n)

    def expected() -> Array:
        parts = f32(b).reshape(wide, tk, n)[columns_of]
        return (f32(a) @ parts).reshape(high, each, tm, n).sum(1).reshape(rows, n)

    return Case(
        (high, ceil(n / tn)), (a, b, starts, columns_of, out, tm, tn, tk), ((out, expected),),
        2.0 * high * each * tm * tk * n,
    )  # fmt: skip


_sized = partial(Sized, module="model_kernels")
CASES = (
    _sized(
        mx_quantise, (16384, 4096), (32, 512), 100, within=0.05, prepared=True
    ),  # e4m3 has 4 bits
    _sized(
        nv_quantise, (16384, 4096), (32, 512), 100, within=0.001, prepared=True
    ),  # two codes in a byte
    _sized(mx_experts, (8, 2048, 2048, 2048), (2, 200, 256, 256), 100),
    _sized(float8_norm, (16384, 4096), (4, 1000), 89, within=0.05, prepared=True),
    _sized(float8_layer, (4096, 4096, 4096), (200, 264, 256), 89),
    _sized(causal_convolution, (8, 4096, 4096), (2, 16, 600)),
    _sized(selective_scan, (8, 2048, 4096), (2, 20, 128)),
    _sized(sampling, (1024, 128256), (4, 5000)),
    _sized(softcap_attention, (32, 4096, 1024), (4, 384, 200)),
    _sized(sigmoid_attention, (16, 4096), (2, 384)),
    _sized(column_sums, (65536, 4096), (512, 512)),
    _sized(heads_first, (8, 4096, 32), (2, 40, 8)),
    _sized(silu_gradient, (1 << 25,), (4096,)),
    _sized(dropped_norm, (16384, 4096), (4, 1024)),
    _sized(split_decode, (16, 8, 4, 8192), (1, 2, 2, 512)),
    _sized(small_products, (65536, 64), (3, 64)),
    _sized(block_sparse, (8192, 8192, 4096), (256, 512, 200)),
)
ROWS: tuple[Row, ...] = tuple(one.row() for one in CASES)
