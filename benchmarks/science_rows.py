"""Arguments of science_kernels.py: `speed.py --rows science_rows:ROWS`, and what NumPy makes."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from math import ceil, log2, pi

import numpy as np
from model_rows import hashed
from speed_rows import Row
from user_rows import Array, Case, Fill, Sized, f32


def f64(x: Array) -> Array:
    return x.astype(np.float64)


def double_product(fill: Fill, m: int, n: int, k: int) -> Case:
    a, b, out = fill("f64", m, k), fill("f64", k, n), fill("f64", m, n)
    grid, arguments = (ceil(m / 64), ceil(n / 64)), (a, b, out, 64, 64, 16)
    return Case(grid, arguments, ((out, lambda: a @ b),), 2.0 * m * n * k, bits=64)


def complex_product(fill: Fill, m: int, n: int, k: int) -> Case:
    a, b = [fill("f16", m, k) for _ in range(2)], [fill("f16", k, n) for _ in range(2)]
    out = [fill("f32", m, n) for _ in range(2)]

    def expected() -> Array:
        return (f32(a[0]) + 1j * f32(a[1])) @ (f32(b[0]) + 1j * f32(b[1]))

    written = (out[0], lambda: np.real(expected())), (out[1], lambda: np.imag(expected()))
    arguments = (*a, *b, *out, 128, 128, 64)
    return Case((ceil(m / 128), ceil(n / 128)), arguments, written, 8.0 * m * n * k)


def bodies(fill: Fill, n: int) -> Case:
    places, mass = [fill("f32", n) for _ in range(3)], fill("f32", n)
    forces = [fill("f32", n) for _ in range(3)]

    def expected(axis: int) -> Array:
        apart = [f64(x)[None, :] - f64(x)[:, None] for x in places]
        pull = f64(mass) / (sum(far**2 for far in apart) + 1e-4) ** 1.5
        return (pull * apart[axis]).sum(1)

    written = tuple((out, partial(expected, axis)) for axis, out in enumerate(forces))
    return Case((n // 64,), (*places, mass, *forces, 64, 64), written, 20.0 * n * n, bits=0)


def jacobi(fill: Fill, m: int, n: int) -> Case:
    x, source, out = (fill("f32", m, n) for _ in range(3))

    def expected() -> Array:
        wide = np.pad(x, 1)
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        return (around - source) / 4

    grid, arguments = (ceil(m / 16), ceil(n / 128)), (x, source, out, 16, 128)
    return Case(grid, arguments, ((out, expected),), 5.0 * m * n, bits=0)


def heat(fill: Fill, n: int) -> Case:
    x, out = fill("f32", n, n, n), fill("f32", n, n, n)

    def expected() -> Array:
        wide, inner = np.pad(x, 1), slice(1, -1)
        around = np.zeros_like(x)
        for ends in (slice(None, -2), slice(2, None)):
            around += wide[ends, inner, inner] + wide[inner, ends, inner] + wide[inner, inner, ends]
        return x + np.float32(0.1) * (around - 6 * x)

    grid, arguments = (ceil(n / 4), ceil(n / 8), ceil(n / 64)), (x, out, 0.1, 4, 8, 64)
    return Case(grid, arguments, ((out, expected),), 8.0 * n**3, bits=0)


def _normal(x: Array) -> Array:
    t = 1 / (1 + 0.2316419 * np.abs(x))
    tail = (((1.330274429 * t - 1.821255978) * t + 1.781477937) * t - 0.356563782) * t + 0.31938153
    tail = tail * t * 0.3989422804 * np.exp(-0.5 * x * x)
    return np.where(x > 0, 1 - tail, tail)


def options(fill: Fill, n: int) -> Case:
    price, strike, years, call, put = (fill("f32", n) for _ in range(5))
    rate, spread = 0.02, 0.3

    def prepare() -> None:
        price[...], strike[...] = 10 + np.abs(price), 10 + np.abs(strike)
        years[...] = 0.25 + np.abs(years)

    def of_calls() -> Array:
        now, then, time = f64(price), f64(strike), f64(years)
        wide = spread * np.sqrt(time)
        first = (np.log(now / then) + (rate + spread**2 / 2) * time) / wide
        return now * _normal(first) - then * np.exp(-rate * time) * _normal(first - wide)

    def of_puts() -> Array:
        return of_calls() + f64(strike) * np.exp(-rate * f64(years)) - f64(price)

    arguments = (price, strike, years, call, put, rate, spread, 1024)
    written = (call, of_calls), (put, of_puts)
    return Case((ceil(n / 1024),), arguments, written, 60.0 * n, bits=0, prepare=prepare)


def simulation(fill: Fill, blocks: int, steps: int) -> Case:
    out, tile, drift, spread, strike = fill("f32", blocks), 1024, 0.001, 0.02, 0.9

    def expected() -> Array:
        place = np.arange(blocks * tile * steps, dtype=np.uint32).reshape(-1, steps) * 2 + 11
        radius = np.sqrt(-2 * np.log(hashed(place) + 1e-7))
        moves = drift + spread * radius * np.cos(2 * pi * hashed(place + 1))
        gain = np.exp(moves.cumsum(1)).mean(1) - strike
        return np.maximum(gain, 0).reshape(blocks, tile).sum(1)

    arguments = (out, 11, steps, drift, spread, strike, tile)
    return Case((blocks,), arguments, ((out, expected),), 60.0 * blocks * tile * steps, bits=0)


def mandelbrot(fill: Fill, m: int, n: int, steps: int) -> Case:
    out, pitch = fill("i32", m, n), 2.0**-5

    def expected() -> Array:
        at_x = np.float32(-2) + np.float32(pitch) * np.arange(n, dtype=np.float32)[None]
        at_y = np.float32(-1) + np.float32(pitch) * np.arange(m, dtype=np.float32)[:, None]
        at_x, at_y = np.broadcast_arrays(at_x, at_y)
        x, y, count = at_x, at_y, np.zeros((m, n), np.float32)
        for _ in range(steps):
            near = x * x + y * y <= 4
            count += near
            x, y = np.where(near, x * x - y * y + at_x, x), np.where(near, 2 * x * y + at_y, y)
        return count

    arguments = (out, -2.0, -1.0, pitch, steps, 16, 64)
    return Case(
        (ceil(m / 16), ceil(n / 64)), arguments, ((out, expected),), 10.0 * m * n * steps, bits=0
    )


def sparse_vector(fill: Fill, rows: int, width: int) -> Case:
    values, columns_of = fill("f32", rows, width), fill("i32", rows, width)
    x, out = fill("f32", rows), fill("f32", rows)

    def prepare() -> None:
        columns_of[...] = np.random.default_rng(2).integers(0, rows, columns_of.shape)

    def expected() -> Array:
        return (f64(values) * f64(x)[columns_of]).sum(1)

    return Case(
        (ceil(rows / 64),), (values, columns_of, x, out, 64, width), ((out, expected),),
        2.0 * rows * width, bits=0, prepare=prepare,
    )  # fmt: skip


def histogram(fill: Fill, n: int) -> Case:
    image, counts, each = fill("u8", n), fill("i32", 256), 8

    def prepare() -> None:
        counts[...] = 0

    def expected() -> Array:
        return f32(np.bincount(image, minlength=256))

    arguments = (image, counts, 1024, each)
    return Case(
        (n // 1024 // each,), arguments, ((counts, expected),), 1.0 * n, bits=0, prepare=prepare
    )


def shortest_paths(fill: Fill, n: int) -> Case:
    a, b, out = (fill("f32", n, n) for _ in range(3))

    def expected() -> Array:
        return np.stack([(row[:, None] + b).min(0) for row in a])

    arguments = (a, b, out, 64, 64, 16)
    return Case((n // 64, n // 64), arguments, ((out, expected),), 2.0 * n**3, bits=0)


def nearest(fill: Fill, points: int, centres: int) -> Case:
    depth = 64
    x, y = fill("f16", points, depth), fill("f16", centres, depth)
    norms, chosen = fill("f32", centres), fill("i32", points)

    def prepare() -> None:
        norms[...] = (f32(y) ** 2).sum(1)

    def expected() -> Array:
        return f32((norms - 2 * f32(x) @ f32(y).T).argmin(1))

    return Case(
        (ceil(points / 128),), (x, y, norms, chosen, 128, 128, depth), ((chosen, expected),),
        2.0 * points * centres * depth, prepare=prepare,
    )  # fmt: skip


def sorting(fill: Fill, rows: int, length: int) -> Case:
    x, out, levels = fill("f32", rows, length), fill("f32", rows, length), int(log2(length))
    arguments, written = (x, out, 4, length, levels), ((out, lambda: np.sort(x, axis=1)),)
    return Case(
        (rows // 4,), arguments, written, 1.0 * rows * length * levels * (levels + 1), bits=0
    )


def cholesky(fill: Fill, count: int, n: int) -> Case:
    a, out = fill("f32", count, n, n), fill("f32", count, n, n)

    def prepare() -> None:
        a[...] = a @ a.swapaxes(1, 2) + n * np.eye(n, dtype=np.float32)

    def expected() -> Array:
        return np.linalg.cholesky(a)

    return Case(
        (count,), (a, out, n), ((out, expected),), count * n**3 / 3, bits=0, prepare=prepare
    )


def tridiagonal(fill: Fill, length: int, systems: int) -> Case:
    below, diagonal, above, right, ratio, out = (fill("f32", length, systems) for _ in range(6))

    def prepare() -> None:
        diagonal[...] = 4 + np.abs(diagonal)

    def expected() -> Array:
        found = np.empty((length, systems))
        for column in range(systems):
            matrix = np.diag(f64(diagonal)[:, column])
            matrix += np.diag(f64(below)[1:, column], -1) + np.diag(f64(above)[:-1, column], 1)
            found[:, column] = np.linalg.solve(matrix, f64(right)[:, column])
        return found

    arguments = (below, diagonal, above, right, ratio, out, 128)
    work = 8.0 * length * systems
    return Case(
        (ceil(systems / 128),), arguments, ((out, expected),), work, bits=0, prepare=prepare
    )


#: Where the numbers of a cell come from, and their share of its density.
_MOVES = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1))
_SHARES = (4 / 9, *(1 / 9,) * 4, *(1 / 36,) * 4)


def lattice(fill: Fill, m: int, n: int) -> Case:
    x, out = fill("f32", 9, m, n), fill("f32", 9, m, n)

    def prepare() -> None:
        x[...] = 0.5 + np.abs(x)

    def expected() -> Array:
        wide = np.pad(f64(x), ((0, 0), (1, 1), (1, 1)))
        came = [
            wide[at, 1 - di : m + 1 - di, 1 - dj : n + 1 - dj] for at, (di, dj) in enumerate(_MOVES)
        ]
        density = sum(came)
        u = sum(dj * f for (_, dj), f in zip(_MOVES, came, strict=True)) / density
        v = sum(di * f for (di, _), f in zip(_MOVES, came, strict=True)) / density
        found = []
        for (di, dj), share, f in zip(_MOVES, _SHARES, came, strict=True):
            along = u * dj + v * di
            rest = 1 - 1.5 * (u * u + v * v) + 3 * along + 4.5 * along * along
            found.append(f + 0.6 * (share * density * rest - f))
        return np.stack(found)

    return Case(
        (ceil(m / 8), ceil(n / 64)), (x, out, 0.6, 8, 64), ((out, expected),),
        100.0 * m * n, bits=0, prepare=prepare,
    )  # fmt: skip


def blur(fill: Fill, m: int, n: int) -> Case:
    image, weights, out = fill("u8", m, n), fill("f32", 5, 5), fill("u8", m, n)

    def prepare() -> None:
        weights[...] = (
            np.exp2(np.array([-4.0, -3, -2, -3, -4]))[:, None] * np.array([1, 2, 4, 2, 1]) / 8
        )

    def expected() -> Array:
        wide = np.pad(f32(image), 2)
        near = (weights[i, j] * wide[i : m + i, j : n + j] for i in range(5) for j in range(5))
        return np.floor(sum(near, np.float32(0.5)))

    grid, arguments = (ceil(m / 16), ceil(n / 128)), (image, weights, out, 16, 128)
    return Case(grid, arguments, ((out, expected),), 50.0 * m * n, bits=0, prepare=prepare)


def embedding_gradient(fill: Fill, tokens: int, words: int, depth: int) -> Case:
    token, dy, table = fill("i32", tokens), fill("bf16", tokens, depth), fill("f32", words, depth)

    def prepare() -> None:
        token[...] = np.random.default_rng(5).integers(0, words, tokens)
        table[...] = 0

    def expected() -> Array:
        found = np.zeros_like(table)
        np.add.at(found, token, f32(dy))
        return found

    return Case(
        (ceil(tokens / 8), ceil(depth / 256)), (token, dy, table, 8, 256), ((table, expected),),
        1.0 * tokens * depth, bits=0, prepare=prepare,
    )  # fmt: skip


def neighbours(fill: Fill, nodes: int, degree: int, depth: int) -> Case:
    draw = np.random.default_rng(6)
    degrees = draw.integers(0, 2 * degree, nodes)
    starts = np.concatenate([[0], degrees.cumsum()]).astype(np.int32)
    others = draw.integers(0, nodes, int(starts[-1])).astype(np.int32)
    x, out = fill("f16", nodes, depth), fill("f16", nodes, depth)

    def expected() -> Array:
        found = [f32(x)[others[a:b]].sum(0) for a, b in pairwise(starts)]
        return np.stack(found) / np.maximum(degrees, 1)[:, None]

    arguments = (x, starts, others, out, depth)
    return Case((nodes,), arguments, ((out, expected),), 1.0 * len(others) * depth, bits=0)


def sampled_grid(fill: Fill, m: int, n: int) -> Case:
    x, at_y, at_x, out = (fill("f32", m, n) for _ in range(4))

    def prepare() -> None:
        for held, size, axis in ((at_y, m, 0), (at_x, n, 1)):
            lines = np.arange(size, dtype=np.float32)
            held[...] = (lines[:, None] if axis == 0 else lines) + 2 * held

    def expected() -> Array:
        wide = np.pad(f64(x), 8)
        i, j = np.floor(at_y).astype(int), np.floor(at_x).astype(int)
        part_y, part_x = at_y - i, at_x - j
        corners = (
            (wide[i + 8 + di, j + 8 + dj], np.abs(1 - di - part_y) * np.abs(1 - dj - part_x))
            for di in (0, 1) for dj in (0, 1)
        )  # fmt: skip
        return np.sum([value * share for value, share in corners], axis=0)

    grid, arguments = (ceil(m / 16), ceil(n / 64)), (x, at_y, at_x, out, 16, 64)
    return Case(grid, arguments, ((out, expected),), 12.0 * m * n, bits=0, prepare=prepare)


def matrix_vector(fill: Fill, m: int, k: int) -> Case:
    a, x, out = fill("bf16", m, k), fill("bf16", k), fill("bf16", m)
    arguments, written = (a, x, out, 8, 512), ((out, lambda: f32(a) @ f32(x)),)
    return Case((ceil(m / 8),), arguments, written, 2.0 * m * k, bits=0)


_sized = partial(Sized, module="science_kernels", prepared=True)
CASES = (
    _sized(double_product, (2048, 2048, 2048), (100, 136, 72), within=1e-6),
    _sized(complex_product, (4096, 4096, 4096), (200, 136, 200)),
    _sized(bodies, (32768,), (256,), within=1e-4),
    _sized(jacobi, (8192, 8192), (40, 300), within=1e-6),
    _sized(heat, (512,), (70,), within=1e-6),
    _sized(options, (1 << 24,), (5000,), within=1e-5),
    _sized(simulation, (4096, 64), (3, 20), within=1e-4),
    _sized(mandelbrot, (2048, 2048, 256), (40, 100, 30), within=1e-6),
    _sized(sparse_vector, (1 << 20, 32), (200, 32), within=1e-6),
    _sized(histogram, (1 << 26,), (1 << 14,), within=1e-6),
    _sized(shortest_paths, (2048,), (128,), within=1e-6),
    _sized(nearest, (1 << 18, 4096), (200, 384), within=1e-6),
    _sized(sorting, (65536, 1024), (8, 256), within=1e-6),
    _sized(cholesky, (65536, 32), (3, 32), within=1e-4),
    _sized(tridiagonal, (1024, 1 << 16), (40, 200), within=1e-5),
    _sized(lattice, (4096, 4096), (20, 100), within=1e-5),
    _sized(blur, (8192, 8192), (40, 300), within=1e-6),
    _sized(embedding_gradient, (32768, 50000, 4096), (32, 10, 512), within=1e-5),
    _sized(neighbours, (100000, 16, 256), (40, 8, 256), within=1e-3),
    _sized(sampled_grid, (8192, 8192), (40, 130), within=1e-5),
    _sized(matrix_vector, (16384, 8192), (40, 1200), within=1e-2),
)
ROWS: tuple[Row, ...] = tuple(one.row() for one in CASES)
