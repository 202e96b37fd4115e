"""Attention whose scores have something added that each step loads: a tile, and a number a key."""

from __future__ import annotations

import cuda.tile as ct
import numpy as np


@ct.kernel
def biased(q, k, v, bias, slopes, out, depth: ct.Constant[int], tile: ct.Constant[int]):
    block = ct.bid(0)
    largest = ct.full((tile, 1), -np.inf, dtype=ct.float32)
    total = ct.full((tile, 1), 0.0, dtype=ct.float32)
    sums = ct.full((tile, depth), 0.0, dtype=ct.float32)
    queries = ct.load(q, index=(block, 0), shape=(tile, depth))
    for j in range(ct.cdiv(k.shape[0], tile)):
        keys = ct.load(k, index=(0, j), shape=(depth, tile), order=(1, 0))
        scores = ct.mma(queries, keys, ct.full((tile, tile), 0.0, dtype=ct.float32))
        scores = scores + ct.load(bias, index=(block, j), shape=(tile, tile)).astype(ct.float32)
        slope = ct.load(slopes, index=(j,), shape=(tile,))
        scores = scores + ct.reshape(slope, (1, tile))
        top = ct.maximum(largest, ct.max(scores, axis=1, keepdims=True))
        weights = ct.exp2(scores - top, flush_to_zero=True)
        scale = ct.exp2(largest - top, flush_to_zero=True)
        total = total * scale + ct.sum(weights, axis=1, keepdims=True)
        values = ct.load(v, index=(j, 0), shape=(tile, depth))
        sums = ct.mma(weights.astype(ct.float16), values, sums * scale)
        largest = top
    ct.store(out, index=(block, 0), tile=(sums / total).astype(out.dtype))
