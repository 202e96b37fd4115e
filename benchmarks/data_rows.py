"""Arguments of data_kernels.py: `speed.py --rows data_rows:ROWS`, and what NumPy makes."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from math import ceil

import numpy as np
from speed_rows import Row
from user_rows import Array, Case, Fill, Sized, f32


def radix_pass(fill: Fill, blocks: int) -> Case:
    (keys, out), starts = (fill("u32", blocks * 2048) for _ in range(2)), fill("i32", blocks, 16)

    def prepare() -> None:
        keys[...] = np.random.default_rng(5).integers(0, 1 << 32, keys.size)
        digit = ((keys >> 8) & 15).reshape(blocks, -1)
        counts = np.stack([(digit == d).sum(axis=1) for d in range(16)])
        before = np.cumsum(counts.ravel()) - counts.ravel()
        starts[...] = before.reshape(16, blocks).T

    def expected() -> Array:
        return f32(keys[np.argsort((keys >> 8) & 15, kind="stable")])

    return Case(
        (blocks,),
        (keys, starts, out, 8, 2048),
        ((out, expected),),
        50.0 * keys.size,
        bits=0,
        prepare=prepare,
    )


def digit_counts(fill: Fill, blocks: int) -> Case:
    keys, counts = fill("u32", blocks * 2048), fill("i32", blocks, 16)

    def prepare() -> None:
        keys[...] = np.random.default_rng(5).integers(0, 1 << 32, keys.size)

    def expected() -> Array:
        digit = ((keys >> 8) & 15).reshape(blocks, -1)
        return f32(np.stack([(digit == d).sum(axis=1) for d in range(16)], axis=1))

    return Case(
        (blocks,),
        (keys, counts, 8, 2048),
        ((counts, expected),),
        32.0 * keys.size,
        bits=0,
        prepare=prepare,
    )


def merged(fill: Fill, length: int) -> Case:
    first, second, out = fill("f32", length), fill("f32", length), fill("f32", 2 * length)

    def prepare() -> None:
        draw = np.random.default_rng(5)
        for one in (first, second):
            one[...] = np.sort(draw.standard_normal(length))

    def expected() -> Array:
        return np.sort(np.concatenate([first, second]))

    return Case(
        (ceil(length / 1024),),
        (first, second, out, length.bit_length(), 1024),
        ((out, expected),),
        8.0 * length * length.bit_length(),
        bits=0,
        prepare=prepare,
    )


def number_transform(fill: Fill, rows: int, length: int) -> Case:
    modulus = 2013265921
    x, out = (fill("u32", rows, 2, length) for _ in range(2))
    roots = fill("u32", length)

    def prepare() -> None:
        draw = np.random.default_rng(5)
        x[...] = draw.integers(0, modulus, x.shape)
        roots[...] = draw.integers(0, modulus, roots.shape)

    def expected() -> Array:
        back = pow(1 << 32, -1, modulus)
        turned = x[:, 1].astype(np.uint64) * roots % modulus * back % modulus
        a = x[:, 0].astype(np.uint64)
        return f32(np.stack([(a + turned) % modulus, (a + modulus - turned) % modulus], axis=1))

    inverse = pow(modulus, -1, 1 << 32)
    return Case(
        (rows, length // 1024),
        (x, roots, out, modulus, inverse, 1024),
        ((out, expected),),
        5.0 * x.size,
        bits=0,
        prepare=prepare,
    )


def forest(fill: Fill, rows: int, trees: int) -> Case:
    depth, width = 6, 32
    x, out = fill("f32", rows, width), fill("f32", rows)
    features, limits = fill("i32", trees, 63), fill("f32", trees, 63)
    leaves = fill("f32", trees, 64)

    def prepare() -> None:
        draw = np.random.default_rng(5)
        features[...] = draw.integers(0, width, features.shape)
        x[...], limits[...] = draw.standard_normal(x.shape), draw.standard_normal(limits.shape)

    def expected() -> Array:
        total, row = np.zeros(rows, np.float32), np.arange(rows)
        for tree in range(trees):
            node = np.zeros(rows, np.int64)
            for _ in range(depth):
                right = x[row, features[tree, node]] > limits[tree, node]
                node = 2 * node + 1 + right
            total += leaves[tree, node - 63]
        return total

    return Case(
        (ceil(rows / 256),),
        (x, features, limits, leaves, out, 256, depth),
        ((out, expected),),
        4.0 * rows * trees * depth,
        bits=0,
        prepare=prepare,
    )


def substitution(fill: Fill, batch: int, columns: int) -> Case:
    n = 64
    lower, right = fill("f32", batch, n, n), fill("f32", batch, n, columns)
    out = fill("f32", batch, n, columns)

    def prepare() -> None:
        lower[...] = np.tril(lower * np.float32(0.1)) + 2 * np.eye(n, dtype=np.float32)

    def expected() -> Array:
        return np.linalg.solve(lower.astype(np.float64), right.astype(np.float64))

    return Case(
        (batch, ceil(columns / 64)),
        (lower, right, out, n, 64),
        ((out, expected),),
        1.0 * n * right.size,
        bits=0,
        prepare=prepare,
    )


def turned_points(fill: Fill, batch: int, count: int) -> Case:
    points, out = (fill("f32", batch, count, 3) for _ in range(2))
    turns, shifts = fill("f32", batch, 3, 3), fill("f32", batch, 3)

    def expected() -> Array:
        return points @ turns.swapaxes(1, 2) + shifts[:, None]

    return Case(
        (ceil(count / 1024), batch),
        (points, turns, shifts, out, 1024),
        ((out, expected),),
        6.0 * points.size,
        bits=0,
    )


def neighbour_forces(fill: Fill, count: int) -> Case:
    width = 64
    places = [fill("f32", count) for _ in range(3)]
    forces = [fill("f32", count) for _ in range(3)]
    others = fill("i32", count, width)

    def prepare() -> None:
        draw = np.random.default_rng(5)
        side = ceil(count ** (1 / 3))
        at = np.arange(count)
        for axis, one in enumerate(places):
            one[...] = at // side**axis % side + draw.uniform(-0.1, 0.1, count)
        near = at[:, None] + draw.integers(-200, 200, others.shape)
        near = np.where(near == at[:, None], near + 1, near)
        others[...] = np.where((near >= 0) & (near < count), near, -1)

    def expected(axis: int) -> Array:
        apart = [np.where(others >= 0, one[:, None] - one[others], 1e3) for one in places]
        squared = sum(one.astype(np.float64) ** 2 for one in apart)
        size = 24 / squared**4 * (2 / squared**3 - 1)
        return np.where(squared < 6.25, size * apart[axis], 0).sum(axis=1)

    return Case(
        (ceil(count / 32),),
        (*places, others, *forces, 32, width),
        tuple((one, partial(expected, axis)) for axis, one in enumerate(forces)),
        25.0 * others.size,
        bits=0,
        prepare=prepare,
    )


def digests(fill: Fill, count: int) -> Case:
    words, out = fill("u32", 16, count), fill("u32", 8, count)
    constants = fill("u32", 64)

    def prepare() -> None:
        primes = [p for p in range(2, 312) if all(p % d for d in range(2, p))]
        constants[...] = [int(p ** (1 / 3) % 1 * 2**32) for p in primes]
        words[...] = np.random.default_rng(5).integers(0, 1 << 32, words.shape)
        words[14:] = [[0], [440]]
        words[13] = words[13] & 0xFFFFFF00 | 0x80

    def expected() -> Array:
        texts = [words[:, i].astype(">u4").tobytes()[:55] for i in range(count)]
        found = [np.frombuffer(sha256(text).digest(), ">u4") for text in texts]
        return f32(np.stack(found, axis=1))

    return Case(
        (ceil(count / 256),),
        (words, constants, out, 256),
        ((out, expected),),
        64 * 40.0 * count,
        bits=0,
        prepare=prepare,
    )


def volume(fill: Fill, side: int) -> Case:
    density, colour, out = fill("f16", 128, side, side), fill("f32", 128), fill("f32", side, side)

    def prepare() -> None:
        density[...] = np.abs(density) * np.float16(0.1)

    def expected() -> Array:
        wide = np.pad(f32(density), ((0, 0), (0, 130), (0, 130)))
        seen, left = np.zeros((side, side), np.float32), np.ones((side, side), np.float32)
        for t in range(128):
            at = t * 0.25
            low, part = int(at), at - int(at)
            near = wide[t, low : low + side + 1, low : low + side + 1]
            rows = near[:-1] * (1 - part) + near[1:] * part
            thick = rows[:, :-1] * (1 - part) + rows[:, 1:] * part
            clear = np.exp2(-thick)
            seen, left = seen + left * (1 - clear) * colour[t], left * clear
        return seen

    return Case(
        (ceil(side / 8), ceil(side / 64)),
        (density, colour, out, 128, 0.25, 8, 64),
        ((out, expected),),
        128 * 20.0 * out.size,
        bits=0,
        prepare=prepare,
    )


def kernel_sums(fill: Fill, m: int, n: int) -> Case:
    depth, width = 64, 128
    x, y, values = fill("f16", m, depth), fill("f16", n, depth), fill("f16", n, width)
    norms, out = (fill("f32", m), fill("f32", n)), fill("f32", m, width)

    def prepare() -> None:
        for one, norm in ((x, norms[0]), (y, norms[1])):
            one[...] = one * np.float16(0.3)
            norm[...] = 0.5 * (f32(one) ** 2).sum(axis=1)

    def expected() -> Array:
        apart = f32(x) @ f32(y).T - norms[0][:, None] - norms[1]
        return np.exp2(apart) @ f32(values)

    arguments = (x, norms[0], y, norms[1], values, out, 128, 128, depth, width)
    return Case(
        (ceil(m / 128),),
        arguments,
        ((out, expected),),
        2.0 * m * n * (depth + width),
        prepare=prepare,
    )


_sized = partial(Sized, module="data_kernels", prepared=True)
CASES = (
    _sized(radix_pass, (8192,), (3,), within=1e-7),
    _sized(digit_counts, (8192,), (3,), within=1e-7),
    _sized(merged, (1 << 22,), (1000,), within=1e-7),
    _sized(number_transform, (1024, 8192), (2, 2048), within=1e-7),
    _sized(forest, (1 << 20, 64), (300, 5), within=1e-5),
    _sized(substitution, (1024, 256), (3, 100), within=1e-4),
    _sized(turned_points, (64, 1 << 18), (2, 1500), within=1e-5),
    _sized(neighbour_forces, (1 << 18,), (200,), within=1e-3),
    _sized(digests, (1 << 20,), (300,), within=1e-7),
    _sized(volume, (1024,), (40,), within=1e-3),
    _sized(kernel_sums, (65536, 8192), (200, 300)),
    _sized(kernel_sums, (16384, 16384), (100, 500)),
)
ROWS: tuple[Row, ...] = tuple(one.row() for one in CASES)
