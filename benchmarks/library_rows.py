"""Arguments of library_kernels.py: `speed.py --rows library_rows:ROWS`, and what NumPy makes."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from math import ceil, e, log2, pi

import numpy as np
from speed_rows import Row
from user_rows import Array, Case, Fill, Sized, f32, softmax

LOG2_E = log2(e)


def f64(x: Array) -> Array:
    return x.astype(np.float64)


def channel_moments(fill: Fill, batch: int, channels: int, points: int) -> Case:
    x = fill("f16", batch, channels, points)
    mean, variance = fill("f32", channels), fill("f32", channels)
    written = (mean, lambda: f64(x).mean((0, 2))), (variance, lambda: f64(x).var((0, 2)))
    work = 3.0 * batch * channels * points
    return Case((channels,), (x, mean, variance, 4, 1024), written, work, bits=0)


def largest_of_four(fill: Fill, rows: int, columns: int, channels: int) -> Case:
    x = fill("f16", rows, columns, channels)
    out = fill("f16", rows // 2, columns // 2, channels)

    def expected() -> Array:
        return f32(x).reshape(rows // 2, 2, columns // 2, 2, channels).max((1, 3))

    grid = rows // 2, ceil(columns / 16), ceil(channels / 64)
    return Case(grid, (x, out, 8, 64), ((out, expected),), 1.0 * x.size, bits=0)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm_cell(fill: Fill, m: int, hidden: int, k: int) -> Case:
    x, weights, bias = fill("f16", m, k), fill("f16", 4, k, hidden), fill("f32", 4, hidden)
    cell, state, out = fill("f32", m, hidden), fill("f32", m, hidden), fill("f16", m, hidden)

    def prepare() -> None:
        weights[...] = weights * np.float16(0.1)

    def states() -> Array:
        entry, keep, given, _ = f32(x) @ f32(weights) + bias[:, None]
        return _sigmoid(keep) * cell + _sigmoid(entry) * np.tanh(given)

    def expected() -> Array:
        leave = (f32(x) @ f32(weights[3])) + bias[3]
        return _sigmoid(leave) * np.tanh(states())

    arguments = (x, weights, bias, cell, out, state, 128, 64, 64)
    written = (state, states), (out, expected)
    grid = ceil(m / 128), ceil(hidden / 64)
    return Case(grid, arguments, written, 8.0 * m * hidden * k, prepare=prepare)


def delta_rule(fill: Fill, heads: int, length: int) -> Case:
    depth = 128
    q, k, v = (fill("bf16", heads, length, depth) for _ in range(3))
    rates, out = fill("f32", heads, length), fill("bf16", heads, length, depth)

    def prepare() -> None:
        size = np.sqrt((f32(k) ** 2).sum(2, keepdims=True)) + 1e-6
        k[...] = (f32(k) / size).astype(k.dtype)
        rates[...] = _sigmoid(rates)

    def expected() -> Array:
        found = np.empty(out.shape)
        for head in range(heads):
            state = np.zeros((depth, depth))
            for t in range(length):
                key = f64(k)[head, t]
                state += rates[head, t] * np.outer(key, f64(v)[head, t] - key @ state)
                found[head, t] = f64(q)[head, t] @ state
        return found

    work = 2.0 * heads * length * (4 * 128 * 128 + 12 * 64 * 64)
    return Case(
        (heads,), (q, k, v, rates, out, depth, 64), ((out, expected),), work, prepare=prepare
    )


def norm_gradient(fill: Fill, m: int, n: int) -> Case:
    x, gain, dy, dx = fill("bf16", m, n), fill("bf16", n), fill("bf16", m, n), fill("bf16", m, n)
    rows = 16
    dgain = fill("f32", m // rows, n)

    def unit() -> Array:
        return f32(x) / np.sqrt((f32(x) ** 2).mean(1, keepdims=True) + 1e-5)

    def of_input() -> Array:
        scaled = f32(dy) * f32(gain)
        inverse = 1 / np.sqrt((f32(x) ** 2).mean(1, keepdims=True) + 1e-5)
        return (scaled - unit() * (unit() * scaled).mean(1, keepdims=True)) * inverse

    def of_gain() -> Array:
        return (f32(dy) * unit()).reshape(-1, rows, n).sum(1)

    arguments = (x, gain, dy, dx, dgain, rows, n, 1e-5)
    return Case((m // rows,), arguments, ((dx, of_input), (dgain, of_gain)), 12.0 * m * n, bits=0)


def entropy_gradient(fill: Fill, m: int, n: int) -> Case:
    logits, labels, out = fill("bf16", m, n), fill("i32", m), fill("bf16", m, n)

    def prepare() -> None:
        labels[...] = np.random.default_rng(7).integers(0, n, m)
        logits[...] = logits * 6  # so that some words have most of it

    def expected() -> Array:
        found = softmax(f32(logits) * LOG2_E)
        found[np.arange(m), labels] -= 1
        return found

    arguments = (logits, labels, out, 4096)
    return Case((m,), arguments, ((out, expected),), 8.0 * m * n, bits=0, prepare=prepare)


def cache_write(fill: Fill, tokens: int, heads: int, places: int) -> Case:
    half = 64
    keys = fill("bf16", tokens, heads, 2 * half)
    cosine, sine, slots = fill("f32", tokens, half), fill("f32", tokens, half), fill("i32", tokens)
    cache, scales = fill("i8", places, heads, 2 * half), fill("f32", places, heads)

    def prepare() -> None:
        slots[...] = np.random.default_rng(8).permutation(places)[:tokens]
        cache[...], scales[...] = 0, 0

    def turned() -> Array:
        first, second = f32(keys[:, :, :half]), f32(keys[:, :, half:])
        c, s = cosine[:, None], sine[:, None]
        return np.concatenate([first * c - second * s, second * c + first * s], axis=2)

    def factors() -> Array:
        found = np.zeros_like(scales)
        found[slots] = np.abs(turned()).max(2) / 127
        return found

    def numbers() -> Array:
        found = np.zeros(cache.shape, np.float32)
        found[slots] = np.floor(turned() / factors()[slots][:, :, None] + 0.5)
        return found

    arguments = (keys, cosine, sine, slots, cache, scales, heads, half)
    written = (scales, factors), (cache, numbers)
    return Case((tokens,), arguments, written, 10.0 * keys.size, bits=0, prepare=prepare)


def nibble_vector(fill: Fill, m: int, k: int) -> Case:
    group = 128
    x, weights = fill("f16", k), fill("u8", m, k // 2)
    scales, out = fill("f16", m, k // group), fill("f16", m)

    def expected() -> Array:
        parts = weights.reshape(m, -1, group // 2)
        wide = np.concatenate([parts & 15, parts >> 4], axis=2).astype(np.float32) - 8
        return (wide * f32(scales)[:, :, None]).reshape(m, k) @ f32(x)

    arguments = (x, weights, scales, out, 16, group)
    return Case((ceil(m / 16),), arguments, ((out, expected),), 2.0 * m * k, bits=0)


def top_masses(fill: Fill, rows: int, columns: int) -> Case:
    x, out, count = fill("f32", rows, columns), fill("f32", rows), 50

    def expected() -> Array:
        return np.sort(f64(x), axis=1)[:, -count:].sum(1)

    width = 1 << (columns - 1).bit_length()
    return Case((rows,), (x, out, width, count), ((out, expected),), 64.0 * x.size, bits=0)


def compaction(fill: Fill, n: int) -> Case:
    x, starts, out = fill("f32", n), fill("i32", n // 2048), fill("f32", n)

    def prepare() -> None:
        x[::3] *= -1
        kept = (x.reshape(-1, 2048) > 0).sum(1)
        starts[...] = kept.cumsum() - kept
        out[...] = 0

    def expected() -> Array:
        kept = x[x > 0]
        return np.pad(kept, (0, n - len(kept)))

    return Case(
        (n // 2048,), (x, starts, out, 2048), ((out, expected),), 2.0 * n, bits=0, prepare=prepare
    )


def colours(fill: Fill, m: int, n: int) -> Case:
    image, planes = fill("u8", m, n, 3), [fill("u8", m, n) for _ in range(3)]

    def light() -> Array:
        return f32(image) @ np.array([0.299, 0.587, 0.114], np.float32)

    def difference(share: float, channel: int) -> Array:
        return np.floor(share * (f32(image)[:, :, channel] - light()) + 128.5)

    written = (
        (planes[0], lambda: np.floor(light() + 0.5)),
        (planes[1], partial(difference, 0.564, 2)),
        (planes[2], partial(difference, 0.713, 0)),
    )
    return Case(
        (ceil(m / 16), ceil(n / 128)), (image, *planes, 16, 128), written, 10.0 * m * n, bits=0
    )


def median(fill: Fill, m: int, n: int) -> Case:
    image, out = fill("f16", m, n), fill("f16", m, n)

    def expected() -> Array:
        wide = np.pad(f32(image), 1)
        return np.median([wide[i : m + i, j : n + j] for i in range(3) for j in range(3)], axis=0)

    grid = ceil(m / 16), ceil(n / 128)
    return Case(grid, (image, out, 16, 128), ((out, expected),), 30.0 * m * n, bits=0)


def ragged_means(fill: Fill, sequences: int, mean: int, depth: int) -> Case:
    lengths = np.random.default_rng(9).integers(0, 2 * mean, sequences)
    starts = np.concatenate([[0], lengths.cumsum()]).astype(np.int32)
    values, out = fill("f16", int(starts[-1]), depth), fill("f16", sequences, depth)

    def expected() -> Array:
        return np.stack([f32(values)[a:b].sum(0) / max(b - a, 1) for a, b in pairwise(starts)])

    grid, arguments = (sequences, ceil(depth / 256)), (values, starts, out, 16, 256)
    return Case(grid, arguments, ((out, expected),), 1.0 * values.size, bits=0)


def overlaps(fill: Fill, n: int) -> Case:
    boxes, out, limit = fill("f32", 4, n), fill("u32", n, n // 32), 0.5

    def prepare() -> None:
        boxes[2:] = boxes[:2] + 0.5 + np.abs(boxes[2:])

    def expected() -> Array:
        sides = [f64(boxes[at]) for at in range(4)]
        low = [np.maximum(side[:, None], side) for side in sides[:2]]
        high = [np.minimum(side[:, None], side) for side in sides[2:]]
        common = np.maximum(high[0] - low[0], 0) * np.maximum(high[1] - low[1], 0)
        area = (sides[2] - sides[0]) * (sides[3] - sides[1])
        bits = common > limit * (area[:, None] + area - common)
        weights = np.uint32(1) << np.arange(32, dtype=np.uint32)
        return f32((bits.reshape(n, -1, 32) * weights).sum(2))

    arguments = (boxes, out, limit, 64, 128)
    grid = ceil(n / 64), ceil(n / 128)
    return Case(grid, arguments, ((out, expected),), 15.0 * n * n, bits=0, prepare=prepare)


def newton_schulz(fill: Fill, n: int) -> Case:
    x, out, b, c = fill("bf16", n, n), fill("bf16", n, n), -4.775, 2.0315

    def prepare() -> None:
        x[...] = ((f32(x) + f32(x).T) / 2).astype(x.dtype)

    def expected() -> Array:
        return b * f32(x) + c * f32(x) @ f32(x)

    grid, arguments = (ceil(n / 128), ceil(n / 128)), (x, out, b, c, 128, 64)
    return Case(grid, arguments, ((out, expected),), 2.0 * n**3, prepare=prepare)


def byte_decode(fill: Fill, batch: int, heads: int, length: int) -> Case:
    group, depth = 8, 128
    q = fill("f16", batch, heads, group, depth)
    keys, values = (fill("i8", batch, heads, length, depth) for _ in range(2))
    scales = [fill("f32", batch, heads, length) for _ in range(2)]
    out = fill("f16", batch, heads, group, depth)

    def prepare() -> None:
        scales[0][...] = 0.002 * np.abs(scales[0])
        scales[1][...] = 0.01 * np.abs(scales[1])

    def expected() -> Array:
        key, value = f32(keys) * scales[0][..., None], f32(values) * scales[1][..., None]
        return softmax(LOG2_E * f32(q) @ key.swapaxes(2, 3)) @ value

    arguments = (q, keys, scales[0], values, scales[1], out, group, 128, depth)
    return Case(
        (batch, heads), arguments, ((out, expected),), 4.0 * keys.size * group, prepare=prepare
    )


def grouped_decode(fill: Fill, batch: int, heads: int, length: int) -> Case:
    group, depth = 4, 128
    q, out = (fill("f16", batch, heads, group, depth) for _ in range(2))
    keys, values = (fill("f16", batch, heads, length, depth) for _ in range(2))
    scale = LOG2_E / depth**0.5

    def expected() -> Array:
        return softmax(scale * f32(q) @ f32(keys).swapaxes(2, 3)) @ f32(values)

    arguments, written = (q, keys, values, out, scale, group, 128, depth), ((out, expected),)
    return Case((batch, heads), arguments, written, 4.0 * keys.size * group)


def few_tokens(fill: Fill, m: int, n: int, k: int) -> Case:
    x, weights, out = fill("f16", m, k), fill("f16", k, n), fill("f16", m, n)
    arguments, written = (x, weights, out, 4, 64, 128), ((out, lambda: f32(x) @ f32(weights)),)
    return Case((ceil(n / 64),), arguments, written, 2.0 * m * n * k)


def triangular_product(fill: Fill, m: int, n: int) -> Case:
    a, b, out = fill("f16", m, m), fill("f16", m, n), fill("f16", m, n)

    def expected() -> Array:
        return np.tril(f32(a)) @ f32(b)

    grid, arguments = (ceil(m / 128), ceil(n / 128)), (a, b, out, 128, 64)
    return Case(grid, arguments, ((out, expected),), 1.0 * m * m * n)


def _philox(n: int, seed: int) -> Array:
    x = [np.arange(n, dtype=np.uint64), *(np.zeros(n, np.uint64) for _ in range(3))]
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    for rounds in range(10):
        keys = (seed + rounds * 0x9E3779B9, rounds * 0xBB67AE85)
        first, second = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        left, right = (np.uint64(key & 0xFFFFFFFF) for key in keys)
        x = [
            (second >> half) ^ x[1] ^ left,
            second & low,
            (first >> half) ^ x[3] ^ right,
            first & low,
        ]
    return np.stack(x)


def philox(fill: Fill, n: int) -> Case:
    out, seed = fill("u32", 4, n), 77
    arguments, written = (out, seed, 1024), ((out, lambda: f32(_philox(n, seed))),)
    return Case((ceil(n / 1024),), arguments, written, 60.0 * n, bits=0)


def dropout(fill: Fill, n: int) -> Case:
    x, out, seed, rate = fill("f16", n), fill("f16", n), 77, 0.25

    def expected() -> Array:
        share = (_philox(n, seed)[0] >> np.uint64(8)) / 16777216
        return np.where(share < rate, 0, f32(x) / (1 - rate))

    arguments, written = (x, out, seed, rate, 4096), ((out, expected),)
    return Case((ceil(n / 4096),), arguments, written, 60.0 * n, bits=0)


def binary_product(fill: Fill, m: int, n: int, words: int) -> Case:
    a, b, out = fill("u32", m, words), fill("u32", n, words), fill("u32", m, n)

    def expected() -> Array:
        apart = a[:, None] ^ b
        return f32(np.unpackbits(apart.view(np.uint8), axis=2).sum(2))

    grid, arguments = (ceil(m / 64), ceil(n / 64)), (a, b, out, 64, 64, 4)
    return Case(grid, arguments, ((out, expected),), 12.0 * m * n * words, bits=0)


def channels_last(fill: Fill, batch: int, channels: int, points: int) -> Case:
    x, out = fill("f16", batch, channels, points), fill("f16", batch, points, channels)
    grid = batch, ceil(channels / 64), ceil(points / 64)
    written = ((out, lambda: f32(x).transpose(0, 2, 1)),)
    return Case(grid, (x, out, 64, 64), written, 1.0 * x.size, bits=0)


def depthwise(fill: Fill, batch: int, side: int, channels: int) -> Case:
    x, weights = fill("f16", batch, side, side, channels), fill("f16", 3, 3, channels)
    out = fill("f16", batch, side, side, channels)

    def expected() -> Array:
        wide = np.pad(f32(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
        near = (
            wide[:, i : side + i, j : side + j] * f32(weights[i, j])
            for i in range(3) for j in range(3)
        )  # fmt: skip
        return np.maximum(sum(near), 0)

    grid = batch * side, ceil(side / 16), ceil(channels / 64)
    return Case(grid, (x, weights, out, 16, 64), ((out, expected),), 18.0 * x.size, bits=0)


def best_word(fill: Fill, m: int, n: int) -> Case:
    logits, word, score = fill("bf16", m, n), fill("i32", m), fill("f32", m)
    written = (word, lambda: f32(f32(logits).argmax(1))), (score, lambda: f32(logits).max(1))
    return Case((m,), (logits, word, score, 4096), written, 2.0 * m * n, bits=0)


def fourier(fill: Fill, count: int) -> Case:
    side = 64
    real, imaginary = (fill("f32", count, side, side) for _ in range(2))
    found = [fill("f32", count, side, side) for _ in range(2)]
    tables = [fill("f32", side, side) for _ in range(4)]

    def prepare() -> None:
        both = np.outer(np.arange(side), np.arange(side))
        for at, divisor in ((0, side), (2, side * side)):
            tables[at][...] = np.cos(2 * pi * both / divisor)
            tables[at + 1][...] = np.sin(2 * pi * both / divisor)

    def expected() -> Array:
        given = (f64(real) + 1j * f64(imaginary)).reshape(count, -1)
        return np.fft.fft(given, axis=1).reshape(count, side, side)

    written = (found[0], lambda: np.real(expected())), (found[1], lambda: np.imag(expected()))
    arguments = (real, imaginary, *tables, *found, side)
    return Case((count,), arguments, written, 16.0 * count * side**3, bits=32, prepare=prepare)


def checksums(fill: Fill, rows: int, length: int) -> Case:
    data, out = fill("u8", rows, length), fill("u64", rows)

    def expected() -> Array:
        state = np.full(rows, 0xCBF29CE484222325, np.uint64)
        for at in range(length):
            state = (state ^ data[:, at]) * np.uint64(0x100000001B3)
        return f32(state)

    arguments = (data, out, 256, length)
    return Case((ceil(rows / 256),), arguments, ((out, expected),), 2.0 * data.size, bits=0)


def probe(fill: Fill, keys_of: int, size: int) -> Case:
    keys, found = fill("i32", keys_of), fill("i32", keys_of)
    table, values = fill("i32", size), fill("i32", size)

    def prepare() -> None:
        draw = np.random.default_rng(10)
        table[...], values[...] = -1, draw.integers(0, 1000, size)
        held = draw.permutation(4 * size)[: size // 2].astype(np.int32)
        for key in held if size <= 1 << 12 else ():
            slot = (int(key) * 0x9E3779B1 & 0xFFFFFFFF) >> 8 & (size - 1)
            while table[slot] != -1:
                slot = (slot + 1) & (size - 1)
            table[slot] = key
        keys[...] = draw.integers(0, 4 * size, keys_of)

    def expected() -> Array:
        held = {int(key): int(value) for key, value in zip(table, values, strict=True)}
        return np.array([held.get(int(key), -1) for key in keys], np.float32)

    arguments = (keys, table, values, found, 256)
    return Case(
        (ceil(keys_of / 256),), arguments, ((found, expected),), 1.0 * keys_of, bits=0,
        prepare=prepare,
    )  # fmt: skip


def chained_sums(fill: Fill, n: int) -> Case:
    x, out, tile = fill("i32", n), fill("i32", n), 4096
    carry, ready = fill("i32", n // tile), fill("i32", n // tile)

    def prepare() -> None:
        ready[...] = 0

    written = ((out, lambda: f32(x.cumsum())),)
    return Case(
        (n // tile,), (x, out, carry, ready, tile), written, 1.0 * n, bits=0, prepare=prepare
    )


_sized = partial(Sized, module="library_kernels", prepared=True)
CASES = (
    _sized(channel_moments, (256, 512, 784), (10, 6, 1500), within=1e-4),
    _sized(largest_of_four, (16384, 112, 64), (4, 36, 72), within=1e-6),
    _sized(lstm_cell, (4096, 2048, 2048), (200, 128, 200)),
    _sized(delta_rule, (64, 4096), (2, 256), within=0.03),
    _sized(norm_gradient, (32768, 4096), (32, 512)),
    _sized(entropy_gradient, (8192, 32000), (3, 9000), within=0.005),
    _sized(cache_write, (16384, 8, 65536), (20, 8, 50), within=0.01),
    _sized(nibble_vector, (16384, 8192), (40, 512)),
    _sized(top_masses, (16384, 4096), (3, 1500), within=1e-5),
    _sized(compaction, (1 << 26,), (1 << 13,), within=1e-6),
    _sized(colours, (8192, 8192), (40, 300), within=0.005),
    _sized(median, (8192, 8192), (40, 300), within=1e-6),
    _sized(ragged_means, (4096, 128, 1024), (10, 30, 300)),
    _sized(overlaps, (8192,), (256,), within=1e-6),
    _sized(newton_schulz, (4096,), (328,)),
    _sized(byte_decode, (64, 8, 4096), (2, 2, 384)),
    _sized(grouped_decode, (64, 8, 4096), (2, 2, 384)),
    _sized(few_tokens, (3, 16384, 8192), (3, 200, 300)),
    _sized(triangular_product, (8192, 4096), (384, 200)),
    _sized(philox, (1 << 24,), (3000,), within=1e-6),
    _sized(dropout, (1 << 26,), (9000,)),
    _sized(binary_product, (4096, 4096, 128), (100, 80, 8), within=1e-6),
    _sized(channels_last, (64, 512, 784), (2, 100, 200), within=1e-6),
    _sized(depthwise, (32, 112, 192), (2, 20, 72)),
    _sized(best_word, (8192, 128000), (3, 9000), within=1e-6),
    _sized(fourier, (16384,), (2,)),
    _sized(checksums, (1 << 20, 128), (300, 40), within=1e-6),
    _sized(probe, (1 << 24, 1 << 20), (600, 1 << 10), within=1e-6),
    _sized(chained_sums, (1 << 24,), (1 << 14,), within=1e-6),
)
ROWS: tuple[Row, ...] = tuple(one.row() for one in CASES)
