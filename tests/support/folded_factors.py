"""A cuTile program: sums that are scaled by what is folded of the weights that they add up.

    python folded_factors.py late

Run for sm_100 in check mode, under the schedule that is named, by tiles whose sums tensor memory
keeps (two blocks of a multiprocessor, teams): a factor is known there only when weights are.
"""

# pyright: basic, reportArgumentType=false

from __future__ import annotations

import sys

import cuda.tile as ct
import numpy as np
from tile_sim.cutile import settings

Int = ct.Constant[int]
KEYS, DEPTH, TRIPS = 128, 128, 5
#: Of one tile, and the blocks that its hint asks for.
TILES = ((128, 2), (256, 1))


@ct.kernel
def by_rows(q, k, v, out, trips: int, rows: Int, keys: Int, depth: Int):
    """The largest weight of each row, of half of its scores' powers."""
    query = ct.load(q, index=(0, 0), shape=(rows, depth))
    total = ct.full((rows, depth), 1.0, dtype=ct.float32)
    for j in range(trips):
        key = ct.load(k, index=(0, j), shape=(depth, keys), order=(1, 0))
        scores = ct.mma(query, key, ct.full((rows, keys), 0.0, dtype=ct.float32))
        weights = ct.exp2(scores * 0.5 - ct.max(scores, axis=1, keepdims=True))
        total = total * ct.max(weights, axis=1, keepdims=True)
        value = ct.load(v, index=(j, 0), shape=(keys, depth))
        total = ct.mma(ct.astype(weights, q.dtype), value, total)
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def by_all(q, k, v, out, trips: int, rows: Int, keys: Int, depth: Int):
    """The largest of the rows' smallest weights, one number for the tile."""
    query = ct.load(q, index=(0, 0), shape=(rows, depth))
    total = ct.full((rows, depth), 1.0, dtype=ct.float32)
    for j in range(trips):
        key = ct.load(k, index=(0, j), shape=(depth, keys), order=(1, 0))
        scores = ct.mma(query, key, ct.full((rows, keys), 0.0, dtype=ct.float32))
        weights = ct.exp2(scores - ct.max(scores, axis=1, keepdims=True))
        least = ct.min(weights, axis=1, keepdims=True)
        total = total * ct.max(least, axis=0, keepdims=True)
        value = ct.load(v, index=(j, 0), shape=(keys, depth))
        total = ct.mma(ct.astype(weights, q.dtype), value, total)
    ct.store(out, index=(0, 0), tile=total)


def wanted(name: str, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """What a kernel gives, in f64."""
    total = np.ones((len(q), DEPTH))
    for j in range(TRIPS):
        part = slice(KEYS * j, KEYS * (j + 1))
        scores = q.astype(np.float64) @ k[part].astype(np.float64).T
        half = 0.5 if name == "by_rows" else 1.0
        weights = np.exp2(scores * half - scores.max(1, keepdims=True))
        factor = weights.max(1, keepdims=True) if name == "by_rows" else weights.min(1).max()
        total = total * factor + weights @ v[part].astype(np.float64)
    return total


def main(schedule: str) -> None:
    settings.arch, settings.opt_level, settings.strict = "sm_100", 3, True
    settings.launch = {"schedule": schedule}
    draw = np.random.default_rng(7)
    for rows, blocks in TILES:
        q, k, v = (
            (draw.standard_normal((n, DEPTH)) * 0.3).astype(np.float16)
            for n in (rows, TRIPS * KEYS, TRIPS * KEYS)
        )
        for kernel, name in ((by_rows, "by_rows"), (by_all, "by_all")):
            out = np.zeros((rows, DEPTH), np.float32)
            hinted = kernel.replace_hints(occupancy=blocks)
            ct.launch(None, (1, 1, 1), hinted, (q, k, v, out, TRIPS, rows, KEYS, DEPTH))
            right = wanted(name, q, k, v)
            error = np.abs(out - right).max() / np.abs(right).max()
            assert error < 2e-3, f"{name} by {rows} rows: {error}"


if __name__ == "__main__":
    main(*sys.argv[1:])
