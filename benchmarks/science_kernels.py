"""Kernels of numerical computing and of data, as users write them: grids, options, graphs.

benchmarks/science_rows.py has their arguments, and what NumPy makes of the same.
"""

import math

import cuda.tile as ct
from model_kernels import uniform
from user_kernels import ZERO, Int

ROOT_HALF = math.sqrt(0.5)


@ct.kernel
def double_product(a, b, out, tm: Int, tn: Int, tk: Int):
    """a @ b of f64."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.float64)
    for k in range(ct.cdiv(a.shape[1], tk)):
        left = ct.load(a, (row, k), (tm, tk), padding_mode=ZERO)
        right = ct.load(b, (k, column), (tk, tn), padding_mode=ZERO)
        total = ct.mma(left, right, total)
    ct.store(out, (row, column), total)


@ct.kernel
def complex_product(
    a_real, a_imaginary, b_real, b_imaginary, real, imaginary, tm: Int, tn: Int, tk: Int
):
    """a @ b of complex numbers, whose parts are arrays of their own."""
    row, column = ct.bid(0), ct.bid(1)
    straight = ct.full((tm, tn), 0, dtype=ct.float32)
    turned = ct.full((tm, tn), 0, dtype=ct.float32)
    crossed = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(a_real.shape[1], tk)):
        left = ct.load(a_real, (row, k), (tm, tk), padding_mode=ZERO)
        left_i = ct.load(a_imaginary, (row, k), (tm, tk), padding_mode=ZERO)
        right = ct.load(b_real, (k, column), (tk, tn), padding_mode=ZERO)
        right_i = ct.load(b_imaginary, (k, column), (tk, tn), padding_mode=ZERO)
        straight = ct.mma(left, right, straight)
        turned = ct.mma(left_i, right_i, turned)
        crossed = ct.mma(left, right_i, crossed)
        crossed = ct.mma(left_i, right, crossed)
    ct.store(real, (row, column), (straight - turned).astype(real.dtype))
    ct.store(imaginary, (row, column), crossed.astype(imaginary.dtype))


@ct.kernel
def bodies(x, y, z, mass, force_x, force_y, force_z, rows: Int, columns: Int):
    """What all bodies pull each of them with."""
    row = ct.bid(0)
    own_x = ct.load(x, (row,), (rows,)).reshape((rows, 1))
    own_y = ct.load(y, (row,), (rows,)).reshape((rows, 1))
    own_z = ct.load(z, (row,), (rows,)).reshape((rows, 1))
    sum_x = ct.full((rows, columns), 0, dtype=ct.float32)
    sum_y = ct.full((rows, columns), 0, dtype=ct.float32)
    sum_z = ct.full((rows, columns), 0, dtype=ct.float32)
    for part in range(ct.cdiv(x.shape[0], columns)):
        far_x = ct.load(x, (part,), (columns,)).reshape((1, columns)) - own_x
        far_y = ct.load(y, (part,), (columns,)).reshape((1, columns)) - own_y
        far_z = ct.load(z, (part,), (columns,)).reshape((1, columns)) - own_z
        inverse = ct.rsqrt(far_x * far_x + far_y * far_y + far_z * far_z + 1.0e-4)
        pull = (
            ct.load(mass, (part,), (columns,)).reshape((1, columns)) * inverse * inverse * inverse
        )
        sum_x, sum_y, sum_z = sum_x + pull * far_x, sum_y + pull * far_y, sum_z + pull * far_z
    ct.store(force_x, (row,), ct.sum(sum_x, axis=1))
    ct.store(force_y, (row,), ct.sum(sum_y, axis=1))
    ct.store(force_z, (row,), ct.sum(sum_z, axis=1))


@ct.kernel
def jacobi(x, source, out, rows: Int, columns: Int):
    """A step of Jacobi's method for a plane with zero around it."""
    i = ct.bid(0) * rows + ct.arange(rows, dtype=ct.int32).reshape((rows, 1))
    j = ct.bid(1) * columns + ct.arange(columns, dtype=ct.int32).reshape((1, columns))
    around = ct.gather(x, (i - 1, j)) + ct.gather(x, (i + 1, j))
    around += ct.gather(x, (i, j - 1)) + ct.gather(x, (i, j + 1))
    own = ct.load(source, (ct.bid(0), ct.bid(1)), (rows, columns))
    ct.store(out, (ct.bid(0), ct.bid(1)), 0.25 * (around - own))


@ct.kernel
def heat(x, out, rate: float, planes: Int, rows: Int, columns: Int):
    """A step of heat through a body, 7 points."""
    i = ct.bid(0) * planes + ct.arange(planes, dtype=ct.int32).reshape((planes, 1, 1))
    j = ct.bid(1) * rows + ct.arange(rows, dtype=ct.int32).reshape((1, rows, 1))
    k = ct.bid(2) * columns + ct.arange(columns, dtype=ct.int32).reshape((1, 1, columns))
    own = ct.gather(x, (i, j, k))
    around = ct.gather(x, (i - 1, j, k)) + ct.gather(x, (i + 1, j, k))
    around += ct.gather(x, (i, j - 1, k)) + ct.gather(x, (i, j + 1, k))
    around += ct.gather(x, (i, j, k - 1)) + ct.gather(x, (i, j, k + 1))
    ct.scatter(out, (i, j, k), own + rate * (around - 6 * own))


def normal(x):
    """The distribution function of normal numbers (Abramowitz and Stegun 26.2.17)."""
    size = ct.abs(x)
    t = 1 / (1 + 0.2316419 * size)
    tail = 1.330274429 * t - 1.821255978
    tail = ((tail * t + 1.781477937) * t - 0.356563782) * t + 0.319381530
    tail = tail * t * 0.3989422804 * ct.exp(-0.5 * size * size)
    return ct.where(x > 0, 1 - tail, tail)


@ct.kernel
def options(price, strike, years, call, put, rate: float, spread: float, tile: Int):
    """Prices of European options by Black and Scholes."""
    at = ct.bid(0)
    now, then = ct.load(price, (at,), (tile,)), ct.load(strike, (at,), (tile,))
    time = ct.load(years, (at,), (tile,))
    wide = spread * ct.sqrt(time)
    first = (ct.log(now / then) + (rate + 0.5 * spread * spread) * time) / wide
    discounted = then * ct.exp(-rate * time)
    value = now * normal(first) - discounted * normal(first - wide)
    ct.store(call, (at,), value)
    ct.store(put, (at,), value + discounted - now)


@ct.kernel
def simulation(out, seed: int, steps: Int, drift: float, spread: float, strike: float, tile: Int):
    """The mean gain of an Asian option over random paths, by Box and Muller."""
    path = ct.bid(0) * tile + ct.arange(tile, dtype=ct.int32)
    height = ct.full((tile,), 0, dtype=ct.float32)
    total = ct.full((tile,), 0, dtype=ct.float32)
    for step in range(steps):
        at = (path * steps + step) * 2 + seed
        radius = ct.sqrt(-2 * ct.log(uniform(at) + 1.0e-7))
        height += drift + spread * radius * ct.cos(6.2831853 * uniform(at + 1))
        total += ct.exp(height)
    ct.store(out, (ct.bid(0),), ct.sum(ct.maximum(total / steps - strike, 0.0)).reshape((1,)))


@ct.kernel
def mandelbrot(out, left: float, top: float, pitch: float, steps: Int, rows: Int, columns: Int):
    """Steps until a point of the plane is lost."""
    i = ct.bid(0) * rows + ct.arange(rows, dtype=ct.int32).reshape((rows, 1))
    j = ct.bid(1) * columns + ct.arange(columns, dtype=ct.int32).reshape((1, columns))
    at_x = ct.broadcast_to(left + pitch * j.astype(ct.float32), (rows, columns))
    at_y = ct.broadcast_to(top + pitch * i.astype(ct.float32), (rows, columns))
    x, y = at_x, at_y
    count = ct.full((rows, columns), 0, dtype=ct.int32)
    for _ in range(steps):
        near = x * x + y * y <= 4
        count += near.astype(ct.int32)
        x, y = ct.where(near, x * x - y * y + at_x, x), ct.where(near, 2 * x * y + at_y, y)
    ct.store(out, (ct.bid(0), ct.bid(1)), count)


@ct.kernel
def sparse_vector(values, columns_of, x, out, rows: Int, width: Int):
    """A sparse matrix times a vector; each row has as many places (ELLPACK)."""
    value = ct.load(values, (ct.bid(0), 0), (rows, width), padding_mode=ZERO)
    column = ct.load(columns_of, (ct.bid(0), 0), (rows, width), padding_mode=ZERO)
    ct.store(out, (ct.bid(0),), ct.sum(value * ct.gather(x, column), axis=1))


@ct.kernel
def histogram(image, counts, tile: Int, each: Int):
    """How often each byte occurs."""
    for part in range(each):
        value = ct.load(image, (ct.bid(0) * each + part,), (tile,))
        ct.atomic_add(counts, value.astype(ct.int32), 1)


@ct.kernel
def shortest_paths(a, b, out, tm: Int, tn: Int, tk: Int):
    """The product of two matrices in the algebra of least and plus."""
    row, column = ct.bid(0), ct.bid(1)
    least = ct.full((tm, tn), 1.0e30, dtype=ct.float32)
    for k in range(ct.cdiv(a.shape[1], tk)):
        left = ct.load(a, (row, k), (tm, tk)).reshape((tm, tk, 1))
        right = ct.load(b, (k, column), (tk, tn)).reshape((1, tk, tn))
        least = ct.minimum(least, ct.min(left + right, axis=1))
    ct.store(out, (row, column), least)


@ct.kernel
def nearest(points, centres, norms, chosen, tm: Int, tn: Int, depth: Int):
    """The nearest centre of each point, as k-means asks for."""
    own = ct.load(points, (ct.bid(0), 0), (tm, depth), padding_mode=ZERO)
    best = ct.full((tm,), 1.0e30, dtype=ct.float32)
    found = ct.full((tm,), 0, dtype=ct.int32)
    for part in range(ct.cdiv(centres.shape[0], tn)):
        other = ct.load(centres, (part, 0), (tn, depth), padding_mode=ZERO)
        product = ct.mma(own, ct.transpose(other), ct.full((tm, tn), 0, dtype=ct.float32))
        far = ct.load(norms, (part,), (tn,)).reshape((1, tn)) - 2 * product
        least = ct.min(far, axis=1)
        found = ct.where(least < best, part * tn + ct.argmin(far, axis=1), found)
        best = ct.minimum(best, least)
    ct.store(chosen, (ct.bid(0),), found)


@ct.kernel
def sorting(x, out, rows: Int, length: Int, levels: Int):
    """Rows in order, by Batcher's bitonic network."""
    keys = ct.load(x, (ct.bid(0), 0), (rows, length))
    for high in ct.static_iter(range(1, levels + 1)):
        for low in ct.static_iter(range(high - 1, -1, -1)):
            pairs = keys.reshape((rows, length >> (low + 1), 2, 1 << low))
            first = ct.extract(pairs, (0, 0, 0, 0), (rows, length >> (low + 1), 1, 1 << low))
            second = ct.extract(pairs, (0, 0, 1, 0), (rows, length >> (low + 1), 1, 1 << low))
            block = ct.arange(length >> (low + 1), dtype=ct.int32).reshape(
                (1, length >> (low + 1), 1, 1)
            )
            rising = (block >> (high - low - 1)) & 1 == 0
            less, more = ct.minimum(first, second), ct.maximum(first, second)
            both = ct.where(rising, less, more), ct.where(rising, more, less)
            keys = ct.cat(both, 2).reshape((rows, length))
    ct.store(out, (ct.bid(0), 0), keys)


@ct.kernel
def cholesky(a, out, n: Int):
    """The factor of a small matrix for each block."""
    rest = ct.load(a, (ct.bid(0), 0, 0), (1, n, n)).reshape((n, n))
    i = ct.arange(n, dtype=ct.int32).reshape((n, 1))
    j = ct.arange(n, dtype=ct.int32).reshape((1, n))
    factor = ct.full((n, n), 0, dtype=ct.float32)
    for at in range(n):
        column = ct.sum(ct.where(j == at, rest, 0.0), axis=1, keepdims=True)
        pivot = ct.sum(ct.where(i == at, column, 0.0), axis=0, keepdims=True)
        column = ct.where(i >= at, column * ct.rsqrt(pivot), 0.0)
        factor = ct.where(j == at, column, factor)
        rest = rest - column * column.reshape((1, n))
    ct.store(out, (ct.bid(0), 0, 0), factor.reshape((1, n, n)))


@ct.kernel
def tridiagonal(below, diagonal, above, right, ratio, out, columns: Int):
    """Many systems with three diagonals, a system for each column (Thomas)."""
    block, length = ct.bid(0), diagonal.shape[0]
    above_now = ct.full((1, columns), 0, dtype=ct.float32)
    value = ct.full((1, columns), 0, dtype=ct.float32)
    for i in range(length):
        under = ct.load(below, (i, block), (1, columns))
        pivot = ct.load(diagonal, (i, block), (1, columns)) - under * above_now
        above_now = ct.load(above, (i, block), (1, columns)) / pivot
        value = (ct.load(right, (i, block), (1, columns)) - under * value) / pivot
        ct.store(ratio, (i, block), above_now)
        ct.store(out, (i, block), value)
    for later in range(1, length):
        i = length - 1 - later
        value = ct.load(out, (i, block), (1, columns)) - value * ct.load(
            ratio, (i, block), (1, columns)
        )
        ct.store(out, (i, block), value)


@ct.kernel
def lattice(x, out, rate: float, rows: Int, columns: Int):
    """A step of a fluid by the lattice Boltzmann method, D2Q9, with walls of zero."""
    i = ct.bid(0) * rows + ct.arange(rows, dtype=ct.int32).reshape((rows, 1))
    j = ct.bid(1) * columns + ct.arange(columns, dtype=ct.int32).reshape((1, columns))
    f0, f1 = ct.gather(x, (0, i, j)), ct.gather(x, (1, i, j - 1))
    f2, f3 = ct.gather(x, (2, i - 1, j)), ct.gather(x, (3, i, j + 1))
    f4, f5 = ct.gather(x, (4, i + 1, j)), ct.gather(x, (5, i - 1, j - 1))
    f6, f7 = ct.gather(x, (6, i - 1, j + 1)), ct.gather(x, (7, i + 1, j + 1))
    f8 = ct.gather(x, (8, i + 1, j - 1))
    density = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8
    safe = ct.where(density > 0, density, 1.0)
    u = (f1 + f5 + f8 - f3 - f6 - f7) / safe
    v = (f2 + f5 + f6 - f4 - f7 - f8) / safe
    square = 1 - 1.5 * (u * u + v * v)
    straight, slanted = density / 9, density / 36
    ct.scatter(out, (0, i, j), f0 + rate * (4 * straight * square - f0))
    ct.scatter(out, (1, i, j), f1 + rate * (straight * (square + 3 * u + 4.5 * u * u) - f1))
    ct.scatter(out, (2, i, j), f2 + rate * (straight * (square + 3 * v + 4.5 * v * v) - f2))
    ct.scatter(out, (3, i, j), f3 + rate * (straight * (square - 3 * u + 4.5 * u * u) - f3))
    ct.scatter(out, (4, i, j), f4 + rate * (straight * (square - 3 * v + 4.5 * v * v) - f4))
    both, apart = u + v, u - v
    ct.scatter(out, (5, i, j), f5 + rate * (slanted * (square + 3 * both + 4.5 * both * both) - f5))
    ct.scatter(
        out, (6, i, j), f6 + rate * (slanted * (square - 3 * apart + 4.5 * apart * apart) - f6)
    )
    ct.scatter(out, (7, i, j), f7 + rate * (slanted * (square - 3 * both + 4.5 * both * both) - f7))
    ct.scatter(
        out, (8, i, j), f8 + rate * (slanted * (square + 3 * apart + 4.5 * apart * apart) - f8)
    )


@ct.kernel
def blur(image, weights, out, rows: Int, columns: Int):
    """An image of bytes through 5 x 5 weights."""
    i = ct.bid(0) * rows + ct.arange(rows, dtype=ct.int32).reshape((rows, 1))
    j = ct.bid(1) * columns + ct.arange(columns, dtype=ct.int32).reshape((1, columns))
    total = ct.full((rows, columns), 0.5, dtype=ct.float32)
    for di in range(5):
        for dj in range(5):
            near = ct.gather(image, (i + di - 2, j + dj - 2)).astype(ct.float32)
            total += near * ct.load(weights, (di, dj), (1, 1))
    ct.store(out, (ct.bid(0), ct.bid(1)), ct.floor(total).astype(out.dtype))


@ct.kernel
def embedding_gradient(tokens, dy, table, rows: Int, columns: Int):
    """Rows added where their tokens have them."""
    token = ct.load(tokens, (ct.bid(0),), (rows,)).reshape((rows, 1))
    j = ct.bid(1) * columns + ct.arange(columns, dtype=ct.int32).reshape((1, columns))
    given = ct.load(dy, (ct.bid(0), ct.bid(1)), (rows, columns)).astype(ct.float32)
    ct.atomic_add(table, (token, j), given, memory_order=ct.MemoryOrder.RELAXED)


@ct.kernel
def neighbours(x, starts, others, out, columns: Int):
    """The mean of a graph's neighbours, a node a block."""
    node = ct.bid(0)
    first = ct.load(starts, (node,), (1,)).reshape(())
    last = ct.load(starts, (node + 1,), (1,)).reshape(())
    j = ct.arange(columns, dtype=ct.int32)
    total = ct.full((columns,), 0, dtype=ct.float32)
    for edge in range(first, last):
        other = ct.load(others, (edge,), (1,)).reshape(())
        total += ct.gather(x, (other, j)).astype(ct.float32)
    mean = total / ct.maximum(last - first, 1).astype(ct.float32)
    ct.store(out, (node, 0), mean.astype(out.dtype).reshape((1, columns)))


@ct.kernel
def sampled_grid(x, at_y, at_x, out, rows: Int, columns: Int):
    """An image at points between its own, from the four around each."""
    own = ct.bid(0), ct.bid(1)
    y, x_at = ct.load(at_y, own, (rows, columns)), ct.load(at_x, own, (rows, columns))
    low_y, low_x = ct.floor(y), ct.floor(x_at)
    part_y, part_x = y - low_y, x_at - low_x
    i, j = low_y.astype(ct.int32), low_x.astype(ct.int32)
    upper = ct.gather(x, (i, j)) * (1 - part_x) + ct.gather(x, (i, j + 1)) * part_x
    lower = ct.gather(x, (i + 1, j)) * (1 - part_x) + ct.gather(x, (i + 1, j + 1)) * part_x
    ct.store(out, own, upper * (1 - part_y) + lower * part_y)


@ct.kernel
def matrix_vector(a, x, out, rows: Int, columns: Int):
    """a @ x, rows of a block at once."""
    total = ct.full((rows, columns), 0, dtype=ct.float32)
    for k in range(ct.cdiv(a.shape[1], columns)):
        weights = ct.load(a, (ct.bid(0), k), (rows, columns), padding_mode=ZERO)
        given = ct.load(x, (k,), (columns,), padding_mode=ZERO).reshape((1, columns))
        total += weights.astype(ct.float32) * given.astype(ct.float32)
    ct.store(out, (ct.bid(0),), ct.sum(total, axis=1).astype(out.dtype))
