"""Kernels of training, as users write them: layers with norms, gradients, optimisers, graphs.

benchmarks/training_rows.py has their arguments, and what NumPy makes of the same.
"""

import math

import cuda.tile as ct
from user_kernels import ROOT_2_PI, ZERO, Int


@ct.kernel
def norm_layer(x, gain, weights, out, eps: float, tm: Int, tn: Int, tk: Int):
    """RMS norm and the layer behind it, whose products need no second reading of x."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    squares = ct.full((tm, 1), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        given = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO)
        wide = given.astype(ct.float32)
        squares += ct.sum(wide * wide, axis=1, keepdims=True)
        scaled = (wide * ct.load(gain, (k,), (tk,)).reshape((1, tk))).astype(x.dtype)
        weight = ct.load(weights, (k, column), (tk, tn), padding_mode=ZERO)
        total = ct.mma(scaled, weight, total)
    total = total * ct.rsqrt(squares / x.shape[1] + eps)
    ct.store(out, (row, column), total.astype(out.dtype))


@ct.kernel
def gelu_gradient(dy, weights, before, out, tm: Int, tn: Int, tk: Int):
    """The gradient by what a gelu was made of: dy @ weights.T, and the function's slope."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(dy.shape[1], tk)):
        given = ct.load(dy, (row, k), (tm, tk), padding_mode=ZERO)
        weight = ct.load(weights, (column, k), (tn, tk), padding_mode=ZERO)
        total = ct.mma(given, weight.transpose(), total)
    x = ct.load(before, (row, column), (tm, tn), padding_mode=ZERO).astype(ct.float32)
    inner = ct.tanh(ROOT_2_PI * (x + 0.044715 * x * x * x))
    slope = 0.5 * (1 + inner) + 0.5 * x * (1 - inner * inner) * ROOT_2_PI * (1 + 0.134145 * x * x)
    ct.store(out, (row, column), (total * slope).astype(out.dtype))


@ct.kernel
def attention_gradients(
    q, k, v, dy, sums, delta, dq, dk, dv, scale: float, depth: Int, tm: Int, tn: Int
):
    """All gradients of attention; those of queries are added up in memory."""
    block, head = ct.bid(0), ct.bid(1)
    key = ct.load(k, (head, block, 0), (1, tn, depth)).reshape((tn, depth))
    value = ct.load(v, (head, block, 0), (1, tn, depth)).reshape((tn, depth))
    key_sum = ct.full((tn, depth), 0, dtype=ct.float32)
    value_sum = ct.full((tn, depth), 0, dtype=ct.float32)
    channel = ct.arange(depth, dtype=ct.int32).reshape((1, depth))
    for i in range(ct.cdiv(q.shape[1], tm)):
        query = ct.load(q, (head, i, 0), (1, tm, depth)).reshape((tm, depth))
        above = ct.load(dy, (head, i, 0), (1, tm, depth)).reshape((tm, depth))
        total = ct.load(sums, (head, i), (1, tm)).reshape((tm, 1))
        own = ct.load(delta, (head, i), (1, tm)).reshape((tm, 1))
        zero = ct.full((tm, tn), 0, dtype=ct.float32)
        weights = ct.exp2(ct.mma(query, key.transpose(), zero) * scale - total)
        value_sum = ct.mma(weights.astype(q.dtype).transpose(), above, value_sum)
        slope = weights * (ct.mma(above, value.transpose(), zero) - own)
        slope = slope.astype(q.dtype)
        key_sum = ct.mma(slope.transpose(), query, key_sum)
        part = ct.mma(slope, key, ct.full((tm, depth), 0, dtype=ct.float32))
        at = i * tm + ct.arange(tm, dtype=ct.int32).reshape((tm, 1))
        ct.atomic_add(dq, (head, at, channel), part, memory_order=ct.MemoryOrder.RELAXED)
    ct.store(dk, (head, block, 0), key_sum.astype(dk.dtype).reshape((1, tn, depth)))
    ct.store(dv, (head, block, 0), value_sum.astype(dv.dtype).reshape((1, tn, depth)))


@ct.kernel
def contrast(x, y, row_sums, own, scale: float, tm: Int, tn: Int, depth: Int):
    """Sums of powers of what texts and images have in common, and what pairs have."""
    block = ct.bid(0)
    given = ct.load(x, (block, 0), (tm, depth))
    row = block * tm + ct.arange(tm, dtype=ct.int32).reshape((tm, 1))
    total = ct.full((tm, 1), 0, dtype=ct.float32)
    pairs = ct.full((tm, 1), 0, dtype=ct.float32)
    for j in range(ct.cdiv(y.shape[0], tn)):
        other = ct.load(y, (j, 0), (tn, depth), padding_mode=ZERO)
        like = ct.mma(given, other.transpose(), ct.full((tm, tn), 0, dtype=ct.float32)) * scale
        column = j * tn + ct.arange(tn, dtype=ct.int32).reshape((1, tn))
        power = ct.where(column < y.shape[0], ct.exp(like - scale), 0.0)
        total += ct.sum(power, axis=1, keepdims=True)
        pairs += ct.sum(ct.where(row == column, like, 0.0), axis=1, keepdims=True)
    ct.store(row_sums, (block,), ct.log(total).reshape((tm,)))
    ct.store(own, (block,), pairs.reshape((tm,)))


@ct.kernel
def byte_adam(
    weights, gradient, first, second, first_scale, second_scale, table, rate: float, tile: Int
):
    """A step of Adam whose moments are places in a table, with a scale for each tile."""
    at = ct.bid(0)
    slope = ct.load(gradient, (at,), (tile,)).astype(ct.float32)
    one = ct.gather(table, ct.load(first, (at,), (tile,)).astype(ct.int32))
    one = one * ct.gather(first_scale, at)
    two = ct.load(second, (at,), (tile,)).astype(ct.float32) / 255 * ct.gather(second_scale, at)
    one, two = 0.9 * one + 0.1 * slope, 0.99 * two + 0.01 * slope * slope
    value = ct.load(weights, (at,), (tile,)) - rate * one / (ct.sqrt(two) + 1e-8)
    ct.store(weights, (at,), value)
    most = ct.max(ct.maximum(one, -one), axis=0, keepdims=True)
    share = one / most
    low = ct.full((tile,), 0, dtype=ct.int32)
    for bit in ct.static_iter((128, 64, 32, 16, 8, 4, 2, 1)):
        there = ct.gather(table, low + bit) <= share
        low = ct.where(there, low + bit, low)
    ct.store(first, (at,), low.astype(ct.uint8))
    ct.store(first_scale, (at,), most)
    top = ct.max(two, axis=0, keepdims=True)
    ct.store(second, (at,), (two / top * 255 + 0.5).astype(ct.uint8))
    ct.store(second_scale, (at,), top)


@ct.kernel
def packed_nibbles(x, out, scales, rows: Int, columns: Int):
    """Numbers of four bits, two of neighbours in a byte, with a scale for each row of a tile."""
    i, j = ct.bid(0), ct.bid(1)
    given = ct.load(x, (i, j), (rows, columns)).astype(ct.float32)
    most = ct.max(ct.maximum(given, -given), axis=1, keepdims=True)
    ct.store(scales, (i, j), most / 7)
    codes = ct.where(most > 0, given / most * 7, 0.0)
    codes = (ct.floor(codes + 0.5) + 8).astype(ct.int32).reshape((rows, columns // 2, 2))
    low = ct.extract(codes, (0, 0, 0), (rows, columns // 2, 1))
    high = ct.extract(codes, (0, 0, 1), (rows, columns // 2, 1))
    both = (low | (high << 4)).reshape((rows, columns // 2))
    ct.store(out, (i, j), both.astype(ct.uint8))


@ct.kernel
def both_ways(x, rows_out, columns_out, tile: Int, scale: float):
    """A matrix as 8-bit floats, as it lies and turned."""
    i, j = ct.bid(0), ct.bid(1)
    given = (ct.load(x, (i, j), (tile, tile)).astype(ct.float32) * scale).astype(rows_out.dtype)
    ct.store(rows_out, (i, j), given)
    ct.store(columns_out, (j, i), given.transpose())


@ct.kernel
def factored(gradient, rows_sum, columns_sum, tm: Int, tn: Int):
    """Means of squares along rows and along columns (Adafactor)."""
    i, j = ct.bid(0), ct.bid(1)
    given = ct.load(gradient, (i, j), (tm, tn)).astype(ct.float32)
    squares = given * given
    row = i * tm + ct.arange(tm, dtype=ct.int32)
    column = j * tn + ct.arange(tn, dtype=ct.int32)
    ct.atomic_add(rows_sum, row, ct.sum(squares, axis=1))
    ct.atomic_add(columns_sum, column, ct.sum(squares, axis=0))


@ct.kernel
def sampled_products(a, b, rows, columns, out, tile: Int, depth: Int):
    """Products of rows and columns where a sparse matrix has entries."""
    at = ct.bid(0)
    row = ct.load(rows, (at,), (tile,)).reshape((tile, 1))
    column = ct.load(columns, (at,), (tile,)).reshape((tile, 1))
    channel = ct.arange(depth, dtype=ct.int32).reshape((1, depth))
    left, right = ct.gather(a, (row, channel)), ct.gather(b, (column, channel))
    both = left.astype(ct.float32) * right.astype(ct.float32)
    ct.store(out, (at,), ct.sum(both, axis=1).astype(out.dtype))


@ct.kernel
def edge_softmax(scores, starts, out, columns: Int):
    """Softmax over the edges of each node; heads lie side by side."""
    node = ct.bid(0)
    first, last = ct.gather(starts, node), ct.gather(starts, node + 1)
    heads = scores.shape[1]
    at = ct.arange(columns, dtype=ct.int32).reshape((columns, 1))
    head = ct.arange(8, dtype=ct.int32).reshape((1, 8))
    most = ct.full((1, 8), -math.inf, dtype=ct.float32)
    total = ct.full((1, 8), 0, dtype=ct.float32)
    for i in range(ct.cdiv(last - first, columns)):
        place = first + i * columns + at
        there = (place < last) & (head < heads)
        given = ct.gather(scores, (place, head), mask=there, padding_value=-math.inf)
        now = ct.maximum(most, ct.max(given, axis=0, keepdims=True))
        total = total * ct.exp(most - now) + ct.sum(ct.exp(given - now), axis=0, keepdims=True)
        most = now
    for i in range(ct.cdiv(last - first, columns)):
        place = first + i * columns + at
        there = (place < last) & (head < heads)
        given = ct.gather(scores, (place, head), mask=there, padding_value=0)
        ct.scatter(out, (place, head), ct.exp(given - most) / total, mask=there)
