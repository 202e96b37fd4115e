"""Arguments of sequence_kernels.py: `speed.py --rows sequence_rows:ROWS`, and what NumPy makes."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from math import ceil, e, log2, sqrt

import numpy as np
from speed_rows import Row
from user_rows import Array, Case, Fill, Sized, f32, softmax


def state_space(fill: Fill, batch: int, length: int, heads: int) -> Case:
    channels, states, chunk = 64, 128, 128
    x, out = (fill("bf16", batch, length, heads * channels) for _ in range(2))
    decays = fill("f32", batch, heads, length)
    into, outof = (fill("bf16", batch, length, states) for _ in range(2))

    def prepare() -> None:
        decays[...] = -0.1 * np.abs(decays)

    def expected() -> Array:
        found = np.zeros((batch, length, heads, channels), np.float32)
        state = np.zeros((batch, heads, states, channels), np.float32)
        values = f32(x).reshape(batch, length, heads, channels)
        for t in range(length):
            key = f32(into[:, t])[:, None, :, None]
            kept = np.exp2(decays[:, :, t])[..., None, None]
            state = state * kept + key * values[:, t][:, :, None]
            found[:, t] = np.einsum("bs,bhsc->bhc", f32(outof[:, t]), state)
        return found.reshape(x.shape)

    each = 2.0 * chunk * (chunk * states + chunk * channels + 2 * states * channels)
    return Case(
        (batch, heads),
        (x, decays, into, outof, out, channels, states, chunk),
        ((out, expected),),
        each * batch * heads * ceil(length / chunk),
        prepare=prepare,
    )


def receptance(fill: Fill, batch: int, length: int, heads: int) -> Case:
    depth = 64
    r, k, v, w, out = (fill("bf16", batch, length, heads * depth) for _ in range(5))
    bonus = fill("f32", heads * depth)

    def prepare() -> None:
        w[...] = np.exp2(-np.abs(f32(w))).astype(w.dtype)

    def expected() -> Array:
        found = np.zeros((batch, length, heads, depth), np.float32)
        state = np.zeros((batch, heads, depth, depth), np.float32)
        rr, kk, vv, ww = (f32(a).reshape(batch, length, heads, depth) for a in (r, k, v, w))
        own = bonus.reshape(heads, depth)
        for t in range(length):
            new = kk[:, t, :, :, None] * vv[:, t, :, None]
            found[:, t] = np.einsum("bhk,bhkv->bhv", rr[:, t], state + own[..., None] * new)
            state = state * ww[:, t][..., None] + new
        return found.reshape(r.shape)

    return Case(
        (batch, heads),
        (r, k, v, w, bonus, out, depth),
        ((out, expected),),
        7.0 * r.size * depth,
        bits=0,
        prepare=prepare,
    )


def packed_attention(fill: Fill, sequences: int, length: int, heads: int) -> Case:
    depth, group = 128, 4
    lengths = [length - 37 * (i % 5) for i in range(sequences)]
    total = sum(lengths)
    q, out = fill("f16", total, heads, depth), fill("f16", total, heads, depth)
    k, v = (fill("f16", total, heads // group, depth) for _ in range(2))
    starts = fill("i32", sequences + 1)
    scale = log2(e) / sqrt(depth)

    def prepare() -> None:
        starts[...] = np.cumsum([0, *lengths])

    def expected() -> Array:
        found = np.zeros(q.shape, np.float32)
        for first, last in pairwise(starts):
            for head in range(heads):
                scores = f32(q[first:last, head]) @ f32(k[first:last, head // group]).T
                scores = scores * scale
                scores[np.triu_indices(last - first, 1)] = -np.inf
                found[first:last, head] = softmax(scores) @ f32(v[first:last, head // group])
        return found

    grid = ceil(length / 128), heads, sequences
    work = sum(2.0 * depth * n * n * heads for n in lengths)
    return Case(
        grid,
        (q, k, v, starts, out, scale, group, depth, 128, 64),
        ((out, expected),),
        work,
        prepare=prepare,
    )


def ragged_attention(fill: Fill, sequences: int, length: int, heads: int) -> Case:
    return packed_attention(fill, sequences, length, heads)


def ragged_experts(fill: Fill, experts: int, tokens: int, n: int, k: int) -> Case:
    counts = [tokens - 37 * (i % 5) for i in range(experts)]
    total = sum(counts)
    x, weights, out = fill("bf16", total, k), fill("bf16", experts, k, n), fill("bf16", total, n)
    starts = fill("i32", experts + 1)

    def prepare() -> None:
        starts[...] = np.cumsum([0, *counts])

    def expected() -> Array:
        rows = pairwise(starts)
        return np.concatenate(
            [f32(x[a:b]) @ f32(w) for (a, b), w in zip(rows, weights, strict=True)]
        )

    grid = ceil(tokens / 128), ceil(n / 128), experts
    return Case(grid, (x, weights, starts, out, 128, 128, 64), ((out, expected),),
                2.0 * total * n * k, prepare=prepare)  # fmt: skip


def ragged_norm(fill: Fill, sequences: int, length: int) -> Case:
    lengths = [length - 37 * (i % 5) for i in range(sequences)]
    (x, out), gain = (fill("bf16", sum(lengths), 4096) for _ in range(2)), fill("bf16", 4096)
    starts = fill("i32", sequences + 1)

    def prepare() -> None:
        starts[...] = np.cumsum([0, *lengths])

    def expected() -> Array:
        return f32(x) / np.sqrt((f32(x) ** 2).mean(axis=1, keepdims=True) + 1e-5) * f32(gain)

    return Case((sequences,), (x, gain, starts, out, 1e-5, 4096), ((out, expected),),
                4.0 * x.size, bits=0, prepare=prepare)  # fmt: skip


def sink_attention(fill: Fill, batch: int, heads: int, length: int) -> Case:
    depth, group = 64, 8
    q, out = (fill("bf16", batch, heads, length, depth) for _ in range(2))
    k, v = (fill("bf16", batch, heads // group, length, depth) for _ in range(2))
    sinks, slopes = fill("f32", heads), fill("f32", heads)
    scale = log2(e) / sqrt(depth)

    def prepare() -> None:
        slopes[...] = 0.02 * np.abs(slopes)

    def expected() -> Array:
        keys, values = (np.repeat(f32(a), group, axis=1) for a in (k, v))
        scores = f32(q) @ keys.swapaxes(2, 3) * scale
        at = np.arange(length)
        scores = scores + slopes[:, None, None] * (at - at[:, None])
        scores = np.where(at[:, None] >= at, scores, -np.inf)
        extra = np.broadcast_to(sinks[:, None, None], (batch, heads, length, 1))
        both = np.concatenate([scores, extra], axis=-1)
        powers = np.exp2(both - both.max(axis=-1, keepdims=True))
        powers = powers / powers.sum(axis=-1, keepdims=True)
        return powers[..., :-1] @ values

    arguments = (q, k, v, sinks, slopes, out, scale, group, depth, 128, 128)
    return Case(
        (ceil(length / 128), heads, batch),
        arguments,
        ((out, expected),),
        2.0 * q.size * length,
        prepare=prepare,
    )


def table_weights(fill: Fill, m: int, n: int, k: int) -> Case:
    tk = 64
    x, weights = fill("bf16", m, k), fill("u8", n, k // 2)
    table, scales, out = fill("f32", 16), fill("f32", n, k // tk), fill("bf16", m, n)

    def prepare() -> None:
        table[...] = np.linspace(-1, 1, 16)

    def expected() -> Array:
        both = np.stack([weights & 15, weights >> 4], axis=2).reshape(n, k)
        return f32(x) @ (table[both] * np.repeat(scales, tk, axis=1)).T

    grid = ceil(m / 128), ceil(n / 128)
    return Case(
        grid,
        (x, weights, table, scales, out, 128, 128, tk),
        ((out, expected),),
        2.0 * m * n * k,
        prepare=prepare,
    )


def rotary_layer(fill: Fill, m: int, heads: int, k: int) -> Case:
    half = 64
    x, weights = fill("bf16", m, k), fill("bf16", k, heads * 2 * half)
    cosine, sine = (fill("f32", m, half) for _ in range(2))
    out = fill("bf16", m, heads * 2 * half)

    def expected() -> Array:
        made = (f32(x) @ f32(weights)).reshape(m, heads, 2, half)
        c, s = cosine[:, None], sine[:, None]
        first, second = made[:, :, 0], made[:, :, 1]
        turned = np.stack([first * c - second * s, second * c + first * s], axis=2)
        return turned.reshape(out.shape)

    return Case(
        (ceil(m / 128), heads),
        (x, weights, cosine, sine, out, half, 128, 64),
        ((out, expected),),
        4.0 * m * heads * half * k,
    )


def combine(fill: Fill, tokens: int, columns: int) -> Case:
    count = 8
    parts, out = fill("bf16", tokens * count, columns), fill("bf16", tokens, columns)
    places, weights = fill("i32", tokens, count), fill("f32", tokens, count)

    def prepare() -> None:
        draw = np.random.default_rng(3)
        places[...] = draw.permutation(tokens * count).reshape(places.shape)

    def expected() -> Array:
        return (f32(parts)[places] * weights[..., None]).sum(axis=1)

    return Case(
        (tokens, ceil(columns / 1024)),
        (parts, places, weights, out, count, 1024),
        ((out, expected),),
        2.0 * parts.size,
        bits=0,
        prepare=prepare,
    )


def viterbi(fill: Fill, batch: int, length: int) -> Case:
    tags = 64
    emissions, moves = fill("f32", batch, length, tags), fill("f32", tags, tags)
    out, best = fill("i32", batch, length, tags), fill("f32", batch, tags)

    def both() -> tuple[Array, Array]:
        came, score = f32(out).copy(), emissions[:, 0].copy()
        for t in range(1, length):
            ways = score[:, :, None] + moves
            came[:, t] = ways.argmax(axis=1)
            score = ways.max(axis=1) + emissions[:, t]
        return came, score

    return Case(
        (batch,),
        (emissions, moves, out, best, tags),
        ((out, lambda: both()[0]), (best, lambda: both()[1])),
        2.0 * batch * length * tags * tags,
        bits=0,
    )


def patches(fill: Fill, batch: int, rows: int, width: int) -> Case:
    side, count = 16, 32
    down, across = rows, ceil(width / count)
    image = fill("f16", batch, down, side, across * count, side * 4)
    weights, bias = fill("f16", side * side * 4, 768), fill("f16", 768)
    out = fill("f16", batch, down, across * count, 768)

    def expected() -> Array:
        lines = f32(image).transpose(0, 1, 3, 2, 4).reshape(*out.shape[:3], -1)
        return lines @ f32(weights) + f32(bias)

    return Case(
        (batch * down, 768 // 256),
        (image, weights, bias, out, count, side, 256),
        ((out, expected),),
        2.0 * image.size * 768,
    )


_sized = partial(Sized, module="sequence_kernels", prepared=True)
CASES = (
    _sized(state_space, (8, 4096, 32), (2, 300, 3)),
    _sized(receptance, (8, 1024, 32), (1, 40, 2)),
    _sized(packed_attention, (8, 2048, 16), (3, 300, 4)),
    _sized(ragged_attention, (8, 2048, 16), (3, 300, 4)),
    _sized(ragged_experts, (8, 1024, 4096, 2048), (3, 200, 256, 128)),
    _sized(ragged_norm, (512, 128), (3, 100)),
    _sized(sink_attention, (4, 32, 2048), (1, 8, 384)),
    _sized(table_weights, (4096, 4096, 4096), (200, 256, 192)),
    _sized(rotary_layer, (4096, 32, 4096), (200, 2, 192)),
    _sized(combine, (8192, 4096), (40, 1200)),
    _sized(viterbi, (512, 256), (3, 20), within=1e-5),
    _sized(patches, (64, 14, 32), (2, 2, 30)),
)
ROWS: tuple[Row, ...] = tuple(one.row() for one in CASES)
