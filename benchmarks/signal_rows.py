"""Arguments of signal_kernels.py: `speed.py --rows signal_rows:ROWS`, and what NumPy makes."""

from __future__ import annotations

from functools import partial
from math import ceil, e, log2

import numpy as np
from speed_rows import Row
from user_rows import Array, Case, Fill, Sized, f32, scale_of, softmax


def _around(x: Array, reach: int, value: float = 0) -> Array:
    """x with `reach` rows and columns more on each side, in its last two axes."""
    sides = [(0, 0)] * (x.ndim - 2) + [(reach, reach)] * 2
    return np.pad(x, sides, constant_values=value)


def convolution(fill: Fill, batch: int, side: int, inner: int, outer: int) -> Case:
    x, weights = fill("f16", batch, side, side, inner), fill("f16", 9, inner, outer)
    out = fill("f16", batch, side, side, outer)

    def prepare() -> None:
        weights[...] = weights * np.float16(0.1)

    def expected() -> Array:
        wide = np.pad(f32(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
        near = (
            wide[:, t // 3 : side + t // 3, t % 3 : side + t % 3] @ f32(weights[t])
            for t in range(9)
        )
        return np.maximum(sum(near), 0)

    grid = batch * side, ceil(side / 64), ceil(outer / 128)
    work = 18.0 * x.size * outer
    return Case(grid, (x, weights, out, 64, 64, 128), ((out, expected),), work, bits=16,
                prepare=prepare)  # fmt: skip


def impulse_response(fill: Fill, length: int) -> Case:
    x, taps, out = fill("f32", length), fill("f32", 32), fill("f32", length)

    def expected() -> Array:
        return np.convolve(x.astype(np.float64), taps.astype(np.float64))[:length]

    return Case((ceil(length / 2048),), (x, taps, out, 32, 2048), ((out, expected),),
                64.0 * length, bits=0)  # fmt: skip


def edges(fill: Fill, m: int, n: int) -> Case:
    image, out = fill("u8", m, n), fill("u8", m, n)

    def expected() -> Array:
        wide = _around(image.astype(np.int32), 1)
        near = {(a, b): wide[1 + a : m + 1 + a, 1 + b : n + 1 + b] for a in (-1, 0, 1)
                for b in (-1, 0, 1)}  # fmt: skip
        across = sum(near[a, b] * (b * (2 - a * a)) for a, b in near)
        down = sum(near[a, b] * (a * (2 - b * b)) for a, b in near)
        return np.floor(np.minimum(np.sqrt(f32(across * across + down * down)), 255))

    return Case((ceil(m / 16), ceil(n / 128)), (image, out, 16, 128), ((out, expected),),
                40.0 * m * n, bits=0)  # fmt: skip


def bilateral(fill: Fill, m: int, n: int) -> Case:
    image, out = fill("f16", m, n), fill("f16", m, n)
    close, alike = -0.125 * log2(e), -0.5 * log2(e)

    def expected() -> Array:
        wide, own, total, weights = _around(f32(image), 2), f32(image), 0, 0
        for i in range(5):
            for j in range(5):
                near = wide[i : m + i, j : n + j]
                apart = ((i - 2) ** 2 + (j - 2) ** 2) * close
                weight = np.exp2(apart + (near - own) ** 2 * alike)
                total, weights = total + weight * near, weights + weight
        return total / weights

    return Case((ceil(m / 16), ceil(n / 128)), (image, out, close, alike, 16, 128),
                ((out, expected),), 200.0 * m * n, bits=0)  # fmt: skip


def life(fill: Fill, m: int, n: int) -> Case:
    cells, out = fill("i8", m, n), fill("i8", m, n)

    def prepare() -> None:
        cells[...] = cells & 1

    def expected() -> Array:
        wide = _around(cells.astype(np.int32), 1)
        around = sum(wide[i : m + i, j : n + j] for i in range(3) for j in range(3))
        return f32((around == 3) | ((around == 4) & (cells == 1)))

    return Case((ceil(m / 16), ceil(n / 128)), (cells, out, 16, 128), ((out, expected),),
                12.0 * m * n, bits=0, prepare=prepare)  # fmt: skip


def wave(fill: Fill, m: int, n: int) -> Case:
    now, before, weights, out = (
        fill("f32", m, n),
        fill("f32", m, n),
        fill("f32", 5),
        fill("f32", m, n),
    )

    def expected() -> Array:
        wide = _around(now, 4)
        bent = 2 * now * weights[0]
        for d in range(1, 5):
            for a, b in ((-d, 0), (d, 0), (0, -d), (0, d)):
                bent = bent + wide[4 + a : m + 4 + a, 4 + b : n + 4 + b] * weights[d]
        return 2 * now - before + np.float32(0.1) * bent

    return Case((ceil(m / 16), ceil(n / 128)), (now, before, weights, out, 0.1, 16, 128),
                ((out, expected),), 30.0 * m * n, bits=0)  # fmt: skip


def largest_of_nine(fill: Fill, planes: int, side: int) -> Case:
    x, out = fill("f16", planes, side, side), fill("f16", planes, side // 2, side // 2)

    def expected() -> Array:
        wide = _around(f32(x), 1, -65504)
        parts = (wide[:, i : side + i : 2, j : side + j : 2] for i in range(3) for j in range(3))
        return np.maximum.reduce(list(parts))

    grid = ceil(side / 2 / 8), ceil(side / 2 / 64), planes
    return Case(grid, (x, out, 8, 64), ((out, expected),), 9.0 * out.size, bits=0)


def twice_as_large(fill: Fill, m: int, n: int) -> Case:
    x, out = fill("f16", m, n), fill("f16", 2 * m, 2 * n)

    def along(count: int) -> tuple[Array, Array, Array]:
        at = np.arange(2 * count)
        first = np.maximum(at - 1, 0) // 2
        share = np.where(at % 2 == 0, 0.75, 0.25) * (at != 0)
        return first, np.minimum(first + 1, count - 1), share.astype(np.float32)

    def expected() -> Array:
        above, below, down = along(m)
        left, right, across = along(n)
        given = f32(x)
        upper, lower = (
            given[rows][:, left] + across * (given[rows][:, right] - given[rows][:, left])
            for rows in (above, below)
        )
        return upper + down[:, None] * (lower - upper)

    return Case((ceil(m / 8), ceil(n / 64)), (x, out, 16, 128), ((out, expected),), 8.0 * out.size,
                bits=0)  # fmt: skip


def window_attention(fill: Fill, side: int, heads: int) -> Case:
    depth, window = 32, 8
    q, k, v, out = (fill("f16", side, side, heads * depth) for _ in range(4))
    scale = scale_of(depth)

    def windows(x: Array) -> Array:
        parts = f32(x).reshape(side // window, window, side // window, window, heads, depth)
        return parts.transpose(0, 2, 4, 1, 3, 5).reshape(-1, window * window, depth)

    def expected() -> Array:
        found = softmax(windows(q) @ windows(k).transpose(0, 2, 1) * scale) @ windows(v)
        found = found.reshape(side // window, side // window, heads, window, window, depth)
        return found.transpose(0, 3, 1, 4, 2, 5).reshape(side, side, -1)

    grid = side // window, side // window, heads
    work = 4.0 * window * window * q.size
    return Case(grid, (q, k, v, out, scale, window, depth), ((out, expected),), work)


def centroids(fill: Fill, count: int, centres: int) -> Case:
    points, middles = fill("f16", count, 64), fill("f16", centres, 64)
    lengths, which = fill("f32", centres), fill("i32", count)

    def prepare() -> None:
        lengths[...] = (f32(middles) ** 2).sum(1) / 2

    def expected() -> Array:
        return f32((f32(points) @ f32(middles).T - lengths).argmax(1))

    return Case((ceil(count / 128),), (points, middles, lengths, which, 128, 128, 64),
                ((which, expected),), 128.0 * count * centres, prepare=prepare)  # fmt: skip


def dilated(fill: Fill, batch: int, length: int, channels: int) -> Case:
    x, weights = fill("bf16", batch, length, channels), fill("bf16", 7, channels)
    out = fill("bf16", batch, length, channels)

    def expected() -> Array:
        wide = np.pad(f32(x), ((0, 0), (6, 6), (0, 0)))
        total = sum(wide[:, 2 * t : length + 2 * t] * f32(weights[t]) for t in range(7))
        return total / (1 + np.exp(-total))

    grid = batch, ceil(length / 32), ceil(channels / 64)
    return Case(grid, (x, weights, out, 32, 64), ((out, expected),), 14.0 * x.size, bits=0)


def spectrogram(fill: Fill, frames: int) -> Case:
    size, hop, bands = 512, 160, 256
    signal, waves = fill("f16", frames * hop + size), fill("f16", 2, size, bands)
    out = fill("f32", frames, bands)

    def expected() -> Array:
        given = np.stack([f32(signal[hop * f : hop * f + size]) for f in range(frames)])
        return (given @ f32(waves[0])) ** 2 + (given @ f32(waves[1])) ** 2

    grid = ceil(frames / 64), bands // 128
    work = 4.0 * frames * size * bands
    return Case(grid, (signal, waves, out, hop, 64, 64, 128), ((out, expected),), work)


_sized = partial(Sized, module="signal_kernels", prepared=True)
CASES = (
    _sized(convolution, (32, 64, 256, 256), (1, 7, 72, 136)),
    _sized(impulse_response, (1 << 26,), (5000,), within=1e-4),
    _sized(edges, (8192, 8192), (40, 300), within=0.01),
    _sized(bilateral, (8192, 8192), (40, 300), within=0.005),
    _sized(life, (16384, 16384), (40, 300), within=1e-6),
    _sized(wave, (8192, 8192), (40, 300), within=1e-4),
    _sized(largest_of_nine, (2048, 112), (3, 36), within=1e-6),
    _sized(twice_as_large, (4096, 4096), (40, 300), within=0.002),
    _sized(window_attention, (512, 8), (24, 2)),
    _sized(centroids, (1 << 20, 1024), (200, 384), within=1e-6),
    _sized(dilated, (16, 4096, 1024), (2, 100, 136)),
    _sized(spectrogram, (65536,), (100,)),
)
ROWS: tuple[Row, ...] = tuple(one.row() for one in CASES)
