"""A cuTile program: loops in which one product reads what another one gives, checked with NumPy.

    python chained_products.py late

Each is run for sm_90 in check mode, under the schedule that is named. Positions of rows and keys
are multiples of the tiles, so that tensor maps fill all stages and warps release them.
"""

# pyright: basic, reportArgumentType=false

from __future__ import annotations

import sys

import cuda.tile as ct
import numpy as np
from tile_sim.cutile import settings

Int = ct.Constant[int]
ROWS, KEYS, DEPTH = 128, 64, 64
#: Tiles of which one stage each fits, and that one warpgroup multiplies.
LARGE = 64, 256, 128


@ct.kernel
def attention(q, k, v, out, blocks: Int, rows: Int, keys: Int, depth: Int):
    """Causal by whole tiles; a block has several tiles of rows, one after the other."""
    for block in range(ct.bid(0), blocks, ct.num_blocks(0)):
        query = ct.load(q, index=(block, 0), shape=(rows, depth))
        largest = ct.full((rows, 1), -1e30, dtype=ct.float32)
        powers = ct.full((rows, 1), 0, dtype=ct.float32)
        total = ct.full((rows, depth), 0, dtype=ct.float32)
        for j in range(ct.cdiv((block + 1) * rows, keys)):
            key = ct.load(k, index=(0, j), shape=(depth, keys), order=(1, 0))
            scores = ct.mma(query, key, ct.full((rows, keys), 0, dtype=ct.float32))
            now = ct.maximum(largest, ct.max(scores, 1, keepdims=True))
            weights, shrink = ct.exp2(scores - now), ct.exp2(largest - now)
            powers = powers * shrink + ct.sum(weights, 1, keepdims=True)
            value = ct.load(v, index=(j, 0), shape=(keys, depth))
            total = ct.mma(ct.astype(weights, q.dtype), value, total * shrink)
            largest = now
        ct.store(out, index=(block, 0), tile=ct.astype(total / powers, out.dtype))


@ct.kernel
def two_late(q, k, v, w, out, other, trips: Int, rows: Int, keys: Int, depth: Int):
    """Two products read what one gives."""
    query = ct.load(q, index=(ct.bid(0), 0), shape=(rows, depth))
    first = second = ct.full((rows, depth), 0, dtype=ct.float32)
    for j in range(trips):
        key = ct.load(k, index=(0, j), shape=(depth, keys), order=(1, 0))
        scores = ct.mma(query, key, ct.full((rows, keys), 0, dtype=ct.float32))
        weights = ct.astype(ct.maximum(scores, 0.0) * 0.125, q.dtype)
        first = ct.mma(weights, ct.load(v, index=(j, 0), shape=(keys, depth)), first)
        second = ct.mma(weights, ct.load(w, index=(j, 0), shape=(keys, depth)), second)
    ct.store(out, index=(ct.bid(0), 0), tile=ct.astype(first, out.dtype))
    ct.store(other, index=(ct.bid(0), 0), tile=ct.astype(second, out.dtype))


@ct.kernel
def one_tile(q, k, out, trips: Int, rows: Int, keys: Int, depth: Int):
    """Both products read the same tile."""
    query = ct.load(q, index=(ct.bid(0), 0), shape=(rows, depth))
    total = ct.full((rows, depth), 0, dtype=ct.float32)
    for j in range(trips):
        tile = ct.load(k, index=(j, 0), shape=(keys, depth))
        none = ct.full((rows, keys), 0, dtype=ct.float32)
        scores = ct.mma(query, ct.transpose(tile), none)
        weights = ct.astype(ct.maximum(scores, 0.0) * 0.125, q.dtype)
        total = ct.mma(weights, tile, total)
    ct.store(out, index=(ct.bid(0), 0), tile=ct.astype(total, out.dtype))


@ct.kernel
def clamped(q, k, v, out, trips: int, rows: Int, keys: Int, depth: Int):
    """The late product is worked on in its own iteration; nobody knows how many there are."""
    query = ct.load(q, index=(ct.bid(0), 0), shape=(rows, depth))
    total = ct.full((rows, depth), 1, dtype=ct.float32)
    for j in range(trips):
        key = ct.load(k, index=(0, j), shape=(depth, keys), order=(1, 0))
        scores = ct.mma(query, key, ct.full((rows, keys), 0, dtype=ct.float32))
        weights = ct.astype(ct.maximum(scores, 0.0) * 0.125, q.dtype)
        value = ct.load(v, index=(j, 0), shape=(keys, depth))
        total = ct.maximum(ct.mma(weights, value, total * 0.5), -3.0)
    ct.store(out, index=(ct.bid(0), 0), tile=ct.astype(total, out.dtype))


@ct.kernel
def weighted(q, k, v, out, trips: Int, rows: Int, keys: Int, depth: Int):
    """What the late product adds to needs the sum of all that it multiplies."""
    query = ct.load(q, index=(ct.bid(0), 0), shape=(rows, depth))
    total = ct.full((rows, depth), 1, dtype=ct.float32)
    for j in range(trips):
        key = ct.load(k, index=(0, j), shape=(depth, keys), order=(1, 0))
        scores = ct.mma(query, key, ct.full((rows, keys), 0, dtype=ct.float32))
        weights = ct.exp2(scores - ct.max(scores, axis=1, keepdims=True))
        value = ct.load(v, index=(j, 0), shape=(keys, depth))
        total = total * ct.sum(weights, axis=1, keepdims=True)
        total = ct.mma(ct.astype(weights, q.dtype), value, total)
    ct.store(out, index=(ct.bid(0), 0), tile=ct.astype(total, out.dtype))


def check(name: str, found: np.ndarray, wanted: np.ndarray) -> None:
    error = np.abs(found.astype(np.float64) - wanted).max() / max(1.0, np.abs(wanted).max())
    assert error < 2e-3, f"{name}: {error}"


def with_one_stage(draw: np.random.Generator) -> None:
    """Two tiles of rows in turn, and one and three tiles of keys for each: loop in loop."""
    rows, keys, depth = LARGE
    q, k, v = (draw.standard_normal((n, depth)).astype(np.float16) for n in (128, 768, 768))
    out, other = np.zeros_like(q), np.zeros_like(q)
    ct.launch(None, (1, 1, 1), attention, (q, k, v, out, 2, rows, keys, depth))
    wide = [each.astype(np.float64) for each in (q, k, v)]
    scores = wide[0] @ wide[1].T
    powers = np.exp2(scores[:, :keys] - scores[:, :keys].max(1, keepdims=True))
    check("attention in one stage", out, powers / powers.sum(1, keepdims=True) @ wide[2][:keys])
    weights = np.maximum(wide[0] @ wide[1].T, 0) * 0.125
    ct.launch(None, (2, 1, 1), two_late, (q, k, v, v, out, other, 0, *LARGE))
    check("no iterations", out, np.zeros_like(q))
    ct.launch(None, (2, 1, 1), clamped, (q, k, v, out, 3, *LARGE))
    total = np.ones((128, depth))
    for j in range(3):
        part = slice(keys * j, keys * (j + 1))
        total = np.maximum(weights[:, part] @ wide[2][part] + total * 0.5, -3)
    check("clamped, in one stage", out, total)
    ct.launch(None, (2, 1, 1), weighted, (q, k, v, out, 2, *LARGE))
    total = np.ones((128, depth))
    for j in range(2):
        part = slice(keys * j, keys * (j + 1))
        powers = np.exp2(scores[:, part] - scores[:, part].max(1, keepdims=True))
        total = powers @ wide[2][part] + total * powers.sum(1, keepdims=True)
    check("weighted, in one stage", out, total)


def main(schedule: str, strategy: str = "unspecialize") -> None:
    settings.arch, settings.opt_level, settings.strict = "sm_90", 3, True
    settings.options = {"pipeline-strategy": strategy}
    settings.launch = {"schedule": schedule}
    draw = np.random.default_rng(7)
    q, k, v, w = (draw.standard_normal((256, DEPTH)).astype(np.float16) for _ in range(4))
    out, other = np.zeros_like(q), np.zeros_like(q)
    wide = [each.astype(np.float64) for each in (q, k, v, w)]
    sizes = (ROWS, KEYS, DEPTH)

    ct.launch(None, (1, 1, 1), attention, (q, k, v, out, 2, *sizes))
    wanted = []
    for rows in (slice(0, 128), slice(128, 256)):
        scores = wide[0][rows] @ wide[1][: rows.stop].T
        powers = np.exp2(scores - scores.max(1, keepdims=True))
        wanted.append(powers / powers.sum(1, keepdims=True) @ wide[2][: rows.stop])
    check("attention", out, np.concatenate(wanted))
    with_one_stage(draw)

    weights = np.maximum(wide[0] @ wide[1].T, 0) * 0.125
    ct.launch(None, (2, 1, 1), two_late, (q, k, v, w, out, other, 4, *sizes))
    check("the first of two late products", out, weights @ wide[2])
    check("the second of two late products", other, weights @ wide[3])
    ct.launch(None, (2, 1, 1), one_tile, (q, k, out, 4, *sizes))
    check("two products of one tile", out, weights @ wide[1])
    for trips in (0, 1, 2, 4):
        ct.launch(None, (2, 1, 1), clamped, (q, k, v, out, trips, *sizes))
        total = np.ones((256, DEPTH))
        for j in range(trips):
            part = slice(KEYS * j, KEYS * (j + 1))
            total = np.maximum(weights[:, part] @ wide[2][part] + total * 0.5, -3)
        check(f"clamped, {trips} iterations", out, total)


if __name__ == "__main__":
    main(*sys.argv[1:])
