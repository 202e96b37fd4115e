"""Products as users call them: layouts, strides, precisions, triangles, shares of K.

benchmarks/product_rows.py has their arguments, and what NumPy makes of the same.
"""

import cuda.tile as ct
from user_kernels import ZERO, Flag, Int


@ct.kernel
def laid_out(a, b, out, turned_a: Flag, turned_b: Flag, tm: Int, tn: Int, tk: Int):
    """a @ b, each of which may lie the other way round in memory."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    steps = ct.cdiv(a.shape[0] if turned_a else a.shape[1], tk)
    for k in range(steps):
        if turned_a:
            left = ct.load(a, (k, row), (tk, tm), padding_mode=ZERO).transpose()
        else:
            left = ct.load(a, (row, k), (tm, tk), padding_mode=ZERO)
        if turned_b:
            right = ct.load(b, (column, k), (tn, tk), padding_mode=ZERO).transpose()
        else:
            right = ct.load(b, (k, column), (tk, tn), padding_mode=ZERO)
        total = ct.mma(left, right, total)
    ct.store(out, (row, column), total.astype(out.dtype))


@ct.kernel
def narrow_sum(a, b, out, tm: Int, tn: Int, tk: Int):
    """Sums of f16, as those ask for who want all of the tensor cores of a small GPU."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.float16)
    for k in range(ct.cdiv(a.shape[1], tk)):
        left = ct.load(a, (row, k), (tm, tk), padding_mode=ZERO)
        total = ct.mma(left, ct.load(b, (k, column), (tk, tn), padding_mode=ZERO), total)
    ct.store(out, (row, column), total)


@ct.kernel
def gram(x, out, tile: Int, tk: Int):
    """x @ x.T: one triangle is computed, and stored twice."""
    row, column = ct.bid(0), ct.bid(1)
    if row >= column:
        total = ct.full((tile, tile), 0, dtype=ct.float32)
        for k in range(ct.cdiv(x.shape[1], tk)):
            left = ct.load(x, (row, k), (tile, tk), padding_mode=ZERO)
            right = ct.load(x, (column, k), (tile, tk), padding_mode=ZERO)
            total = ct.mma(left, right.transpose(), total)
        ct.store(out, (row, column), total)
        if row > column:
            ct.store(out, (column, row), total.transpose())


@ct.kernel
def blended(a, b, c, alpha: float, beta: float, tm: Int, tn: Int, tk: Int):
    """alpha * a @ b + beta * c in the place of c, as BLAS has it."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(a.shape[1], tk)):
        left = ct.load(a, (row, k), (tm, tk), padding_mode=ZERO)
        total = ct.mma(left, ct.load(b, (k, column), (tk, tn), padding_mode=ZERO), total)
    old = ct.load(c, (row, column), (tm, tn), padding_mode=ZERO)
    ct.store(c, (row, column), alpha * total + beta * old)


@ct.kernel
def stream_k(
    a, b, out, blocks: Int, columns: Int, steps: Int, tiles: Int, tm: Int, tn: Int, tk: Int
):
    """Each block has as many steps along K as any other, of one tile or of several."""
    block = ct.bid(0)
    first, last = block * tiles * steps // blocks, (block + 1) * tiles * steps // blocks
    for tile in range(first // steps, ct.cdiv(last, steps)):
        row, column = tile // columns, tile % columns
        begin = max(first - tile * steps, 0)
        end = min(last - tile * steps, steps)
        total = ct.full((tm, tn), 0, dtype=ct.float32)
        for k in range(begin, end):
            left = ct.load(a, (row, k), (tm, tk), padding_mode=ZERO)
            total = ct.mma(left, ct.load(b, (k, column), (tk, tn), padding_mode=ZERO), total)
        rows = row * tm + ct.arange(tm, dtype=ct.int32).reshape((tm, 1))
        across = column * tn + ct.arange(tn, dtype=ct.int32).reshape((1, tn))
        ct.atomic_add(out, (rows, across), total)


@ct.kernel
def squared_relu(x, weights, out, tm: Int, tn: Int, tk: Int):
    """A layer whose activation comes before the product."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        given = ct.maximum(ct.load(x, (row, k), (tm, tk), padding_mode=ZERO), 0)
        weight = ct.load(weights, (k, column), (tk, tn), padding_mode=ZERO)
        total = ct.mma(given * given, weight, total)
    ct.store(out, (row, column), total.astype(out.dtype))


@ct.kernel
def assigned(x, centres, out, tm: Int, tn: Int, tk: Int):
    """Softmax of each row of x @ centres.T: all centres are one tile."""
    row = ct.bid(0)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        left = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO)
        right = ct.load(centres, (0, k), (tn, tk), padding_mode=ZERO)
        total = ct.mma(left, right.transpose(), total)
    powers = ct.exp2((total - ct.max(total, axis=1, keepdims=True)) * 1.4426950408889634)
    ct.store(out, (row, 0), (powers / ct.sum(powers, axis=1, keepdims=True)).astype(out.dtype))


@ct.kernel
def both_kept(a, b, out, turned, tm: Int, tn: Int, tk: Int):
    """A product that is stored as it is and turned, as a later pass wants both."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(a.shape[1], tk)):
        left = ct.load(a, (row, k), (tm, tk), padding_mode=ZERO)
        total = ct.mma(left, ct.load(b, (k, column), (tk, tn), padding_mode=ZERO), total)
    found = total.astype(out.dtype)
    ct.store(out, (row, column), found)
    ct.store(turned, (column, row), found.transpose())


@ct.kernel
def offset_bytes(a, b, scale, out, zero_a: int, zero_b: int, tm: Int, tn: Int, tk: Int):
    """Bytes with zero points: sums of rows and columns beside the product take them away."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.int32)
    rows = ct.full((tm, 1), 0, dtype=ct.int32)
    columns = ct.full((1, tn), 0, dtype=ct.int32)
    for k in range(ct.cdiv(a.shape[1], tk)):
        left = ct.load(a, (row, k), (tm, tk), padding_mode=ZERO)
        right = ct.load(b, (k, column), (tk, tn), padding_mode=ZERO)
        total = ct.mma(left, right, total)
        rows += ct.sum(left.astype(ct.int32), axis=1, keepdims=True)
        columns += ct.sum(right.astype(ct.int32), axis=0, keepdims=True)
    total = total - zero_b * rows - zero_a * columns + zero_a * zero_b * a.shape[1]
    part = ct.load(scale, (column,), (tn,), padding_mode=ZERO).reshape((1, tn))
    ct.store(out, (row, column), (total.astype(ct.float32) * part).astype(out.dtype))


@ct.kernel
def bias_gradient(dy, x, out, bias, tm: Int, tn: Int, tk: Int):
    """dy.T @ x, and the sums of columns of dy that the first blocks find beside it."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    sums = ct.full((1, tm), 0, dtype=ct.float32)
    for k in range(ct.cdiv(dy.shape[0], tk)):
        left = ct.load(dy, (k, row), (tk, tm), padding_mode=ZERO)
        right = ct.load(x, (k, column), (tk, tn), padding_mode=ZERO)
        total = ct.mma(left.transpose(), right, total)
        if column == 0:
            sums += ct.sum(left.astype(ct.float32), axis=0, keepdims=True)
    ct.store(out, (row, column), total)
    if column == 0:
        ct.store(bias, (row,), sums.reshape((tm,)))


@ct.kernel
def normed_first(x, weights, out, eps: float, tm: Int, tn: Int, tk: Int):
    """Layer norm and the layer behind it: mean and variance first, in a loop of their own."""
    row, column = ct.bid(0), ct.bid(1)
    count = x.shape[1]
    sums = ct.full((tm, tk), 0, dtype=ct.float32)
    squares = ct.full((tm, tk), 0, dtype=ct.float32)
    for k in range(ct.cdiv(count, tk)):
        given = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO).astype(ct.float32)
        sums, squares = sums + given, squares + given * given
    mean = ct.sum(sums, axis=1, keepdims=True) / count
    factor = ct.rsqrt(ct.sum(squares, axis=1, keepdims=True) / count - mean * mean + eps)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(count, tk)):
        given = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO).astype(ct.float32)
        left = ((given - mean) * factor).astype(x.dtype)
        total = ct.mma(left, ct.load(weights, (k, column), (tk, tn), padding_mode=ZERO), total)
    ct.store(out, (row, column), total.astype(out.dtype))


@ct.kernel
def scaled_first(x, weights, out, tm: Int, tn: Int, tk: Int):
    """A product scaled by the largest of each row of x, which a loop before it finds."""
    row, column = ct.bid(0), ct.bid(1)
    largest = ct.full((tm, tk), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        given = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO).astype(ct.float32)
        largest = ct.maximum(largest, abs(given))
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        left = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO)
        total = ct.mma(left, ct.load(weights, (k, column), (tk, tn), padding_mode=ZERO), total)
    factor = 1 / (ct.max(largest, axis=1, keepdims=True) + 1e-6)
    ct.store(out, (row, column), (total * factor).astype(out.dtype))
