"""Kernels that fold, scan or normalise along axes that do not lie side by side in memory.

benchmarks/column_rows.py has their arguments, and what NumPy makes of the same.
"""

import cuda.tile as ct
from user_kernels import ZERO, Int

_LOG2_E = 1.4426950408889634


@ct.kernel
def column_softmax(x, out, rows: Int, columns: Int):
    """Softmax along the first axis, all of which is one tile."""
    block = ct.bid(0)
    given = ct.load(x, (0, block), (rows, columns)).astype(ct.float32)
    powers = ct.exp2((given - ct.max(given, axis=0, keepdims=True)) * _LOG2_E)
    found = powers / ct.sum(powers, axis=0, keepdims=True)
    ct.store(out, (0, block), found.astype(out.dtype))


@ct.kernel
def column_bytes(x, out, scales, rows: Int, columns: Int):
    """Bytes with a scale for each column: the largest of it first, then all of it again."""
    block = ct.bid(0)
    largest = ct.full((1, columns), 0, dtype=ct.float32)
    steps = ct.cdiv(x.shape[0], rows)
    for i in range(steps):
        given = ct.load(x, (i, block), (rows, columns), padding_mode=ZERO).astype(ct.float32)
        largest = ct.maximum(largest, ct.max(abs(given), axis=0, keepdims=True))
    scale = ct.maximum(largest, 1e-8) / 127
    ct.store(scales, (block,), scale.reshape((columns,)))
    for i in range(steps):
        given = ct.load(x, (i, block), (rows, columns), padding_mode=ZERO).astype(ct.float32)
        ct.store(out, (i, block), ct.floor(given / scale + 0.5).astype(ct.int8))


@ct.kernel
def running_columns(x, out, rows: Int, columns: Int):
    """Running sums along the first axis."""
    block = ct.bid(0)
    before = ct.full((1, columns), 0, dtype=ct.float32)
    for i in range(ct.cdiv(x.shape[0], rows)):
        given = ct.load(x, (i, block), (rows, columns), padding_mode=ZERO).astype(ct.float32)
        ct.store(out, (i, block), (ct.cumsum(given, axis=0) + before).astype(out.dtype))
        before = before + ct.sum(given, axis=0, keepdims=True)


@ct.kernel
def largest_rows(x, places, rows: Int, columns: Int):
    """Which row has the largest of each column."""
    block = ct.bid(0)
    best = ct.full((columns,), float("-inf"), dtype=ct.float32)
    place = ct.full((columns,), 0, dtype=ct.int32)
    for i in range(ct.cdiv(x.shape[0], rows)):
        given = ct.load(x, (i, block), (rows, columns), padding_mode=ZERO).astype(ct.float32)
        most = ct.max(given, axis=0)
        here = ct.argmax(given, axis=0).astype(ct.int32) + i * rows
        place = ct.where(most > best, here, place)
        best = ct.maximum(best, most)
    ct.store(places, (block,), place)


@ct.kernel
def batch_norm(x, gain, bias, out, eps: float, rows: Int, columns: Int):
    """Normalises each channel over a batch, and what is below zero is left out."""
    block = ct.bid(0)
    total = ct.full((1, columns), 0, dtype=ct.float32)
    squares = ct.full((1, columns), 0, dtype=ct.float32)
    steps = ct.cdiv(x.shape[0], rows)
    for i in range(steps):
        given = ct.load(x, (i, block), (rows, columns), padding_mode=ZERO).astype(ct.float32)
        total += ct.sum(given, axis=0, keepdims=True)
        squares += ct.sum(given * given, axis=0, keepdims=True)
    mean = total / x.shape[0]
    factor = ct.rsqrt(squares / x.shape[0] - mean * mean + eps)
    factor = factor * ct.load(gain, (block,), (columns,)).reshape((1, columns))
    shift = ct.load(bias, (block,), (columns,)).reshape((1, columns)) - mean * factor
    for i in range(steps):
        given = ct.load(x, (i, block), (rows, columns), padding_mode=ZERO).astype(ct.float32)
        ct.store(out, (i, block), ct.maximum(given * factor + shift, 0).astype(out.dtype))


@ct.kernel
def pooled(x, out, steps: Int, channels: Int):
    """The mean over the positions of a sequence."""
    batch, block = ct.bid(0), ct.bid(1)
    total = ct.full((1, channels), 0, dtype=ct.float32)
    for i in range(ct.cdiv(x.shape[1], steps)):
        given = ct.load(x, (batch, i, block), (1, steps, channels), padding_mode=ZERO)
        total += ct.sum(given.reshape((steps, channels)).astype(ct.float32), axis=0, keepdims=True)
    ct.store(out, (batch, block), (total / x.shape[1]).astype(out.dtype))


@ct.kernel
def middle_softmax(x, out, choices: Int, columns: Int):
    """Softmax over the middle of three axes, as of routing by agreement."""
    batch, block = ct.bid(0), ct.bid(1)
    given = ct.load(x, (batch, 0, block), (1, choices, columns)).astype(ct.float32)
    powers = ct.exp2((given - ct.max(given, axis=1, keepdims=True)) * _LOG2_E)
    found = powers / ct.sum(powers, axis=1, keepdims=True)
    ct.store(out, (batch, 0, block), found.astype(out.dtype))


@ct.kernel
def power_iteration(x, vector, out, rows: Int, columns: Int):
    """x.T @ (x @ vector) by pieces of rows: a product by rows, then one by columns."""
    block = ct.bid(0)
    right = ct.load(vector, (0,), (columns,)).reshape((1, columns))
    given = ct.load(x, (block, 0), (rows, columns), padding_mode=ZERO).astype(ct.float32)
    left = ct.sum(given * right, axis=1, keepdims=True)
    at = ct.arange(columns, dtype=ct.int32)
    ct.atomic_add(out, (at,), ct.sum(given * left, axis=0))
