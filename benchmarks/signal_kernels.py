"""Kernels of signals and images, as users write them: filters, stencils, layers of images.

benchmarks/signal_rows.py has their arguments, and what NumPy makes of the same.
"""

import cuda.tile as ct
from user_kernels import ZERO, Int


@ct.kernel
def convolution(x, weights, out, pixels: Int, inner: Int, outer: Int):
    """3 x 3 over images whose channels lie side by side, as a product: (pixels of a row, channels)
    by (channels, channels of the result) for each tap.
    """
    batch_row, part, block = ct.bid(0), ct.bid(1), ct.bid(2)
    batch, row = batch_row // x.shape[1], batch_row % x.shape[1]
    column = part * pixels + ct.arange(pixels, dtype=ct.int32).reshape((pixels, 1))
    total = ct.full((pixels, outer), 0, dtype=ct.float32)
    for tap in range(9):
        for step in range(ct.cdiv(x.shape[3], inner)):
            channel = step * inner + ct.arange(inner, dtype=ct.int32).reshape((1, inner))
            place = (batch, row + tap // 3 - 1, column + tap % 3 - 1, channel)
            given = ct.gather(x, place, padding_value=0)
            weight = ct.load(weights, (tap, step, block), (1, inner, outer)).reshape((inner, outer))
            total = ct.mma(given, weight, total)
    found = ct.maximum(total, 0).astype(out.dtype).reshape((1, 1, pixels, outer))
    ct.store(out, (batch, row, part, block), found)


@ct.kernel
def impulse_response(x, taps, out, count: Int, length: Int):
    """A filter of `count` taps over a long signal."""
    at = ct.bid(0) * length + ct.arange(length, dtype=ct.int32)
    total = ct.full((length,), 0, dtype=ct.float32)
    for tap in range(count):
        total += ct.gather(x, at - tap, padding_value=0) * ct.gather(taps, tap)
    ct.store(out, (ct.bid(0),), total)


def places(rows, columns):
    """Rows and columns of a block's elements."""
    i = ct.bid(0) * rows + ct.arange(rows, dtype=ct.int32).reshape((rows, 1))
    j = ct.bid(1) * columns + ct.arange(columns, dtype=ct.int32).reshape((1, columns))
    return i, j


@ct.kernel
def edges(image, out, rows: Int, columns: Int):
    """The size of the gradient of an image of bytes (Sobel)."""
    i, j = places(rows, columns)
    across = ct.full((rows, columns), 0, dtype=ct.int32)
    down = ct.full((rows, columns), 0, dtype=ct.int32)
    for di in ct.static_iter((-1, 0, 1)):
        for dj in ct.static_iter((-1, 0, 1)):
            near = ct.gather(image, (i + di, j + dj)).astype(ct.int32)
            across += near * (dj * (2 - di * di))
            down += near * (di * (2 - dj * dj))
    size = ct.sqrt((across * across + down * down).astype(ct.float32))
    ct.store(out, (ct.bid(0), ct.bid(1)), ct.minimum(size, 255).astype(out.dtype))


@ct.kernel
def bilateral(image, out, close: float, alike: float, rows: Int, columns: Int):
    """A mean of 5 x 5, with weights by distance and by difference."""
    i, j = places(rows, columns)
    own = ct.gather(image, (i, j)).astype(ct.float32)
    total = ct.full((rows, columns), 0, dtype=ct.float32)
    weights = ct.full((rows, columns), 0, dtype=ct.float32)
    for di in range(5):
        for dj in range(5):
            near = ct.gather(image, (i + di - 2, j + dj - 2)).astype(ct.float32)
            apart = ((di - 2) * (di - 2) + (dj - 2) * (dj - 2)) * close
            weight = ct.exp2(apart + (near - own) * (near - own) * alike)
            total, weights = total + weight * near, weights + weight
    ct.store(out, (ct.bid(0), ct.bid(1)), (total / weights).astype(out.dtype))


@ct.kernel
def life(cells, out, rows: Int, columns: Int):
    """A generation of the game of life."""
    i, j = places(rows, columns)
    around = ct.full((rows, columns), 0, dtype=ct.int8)
    for di in ct.static_iter((-1, 0, 1)):
        for dj in ct.static_iter((-1, 0, 1)):
            around += ct.gather(cells, (i + di, j + dj))
    own = ct.gather(cells, (i, j))
    lives = (around == 3) | ((around == 4) & (own == 1))
    ct.store(out, (ct.bid(0), ct.bid(1)), ct.where(lives, 1, 0).astype(out.dtype))


@ct.kernel
def wave(now, before, weights, out, speed: float, rows: Int, columns: Int):
    """A step of a wave in a plane, with differences of order eight."""
    i, j = places(rows, columns)
    own = ct.gather(now, (i, j))
    bent = 2 * own * ct.gather(weights, 0)
    for d in range(1, 5):
        near = ct.gather(now, (i - d, j)) + ct.gather(now, (i + d, j))
        near += ct.gather(now, (i, j - d)) + ct.gather(now, (i, j + d))
        bent += near * ct.gather(weights, d)
    last = ct.load(before, (ct.bid(0), ct.bid(1)), (rows, columns))
    ct.store(out, (ct.bid(0), ct.bid(1)), 2 * own - last + speed * bent)


@ct.kernel
def largest_of_nine(x, out, rows: Int, columns: Int):
    """The largest of each 3 x 3, every two rows and columns."""
    plane = ct.bid(2)
    i, j = places(rows, columns)
    found = ct.gather(x, (plane, 2 * i, 2 * j))
    for di in ct.static_iter((-1, 0, 1)):
        for dj in ct.static_iter((-1, 0, 1)):
            near = ct.gather(x, (plane, 2 * i + di, 2 * j + dj), padding_value=-65504)
            found = ct.maximum(found, near)
    ct.store(out, (plane, ct.bid(0), ct.bid(1)), found.reshape((1, rows, columns)))


@ct.kernel
def twice_as_large(x, out, rows: Int, columns: Int):
    """Two rows and columns for each, by linear interpolation."""
    i, j = places(rows, columns)
    above, left = ct.maximum(i - 1, 0) // 2, ct.maximum(j - 1, 0) // 2
    below, right = ct.minimum(above + 1, x.shape[0] - 1), ct.minimum(left + 1, x.shape[1] - 1)
    down = ct.where(i % 2 == 0, 0.75, 0.25) * ct.where(i == 0, 0, 1).astype(ct.float32)
    across = ct.where(j % 2 == 0, 0.75, 0.25) * ct.where(j == 0, 0, 1).astype(ct.float32)
    a = ct.gather(x, (above, left)).astype(ct.float32)
    b = ct.gather(x, (above, right)).astype(ct.float32)
    c = ct.gather(x, (below, left)).astype(ct.float32)
    d = ct.gather(x, (below, right)).astype(ct.float32)
    upper, lower = a + across * (b - a), c + across * (d - c)
    ct.store(out, (ct.bid(0), ct.bid(1)), (upper + down * (lower - upper)).astype(out.dtype))


@ct.kernel
def window_attention(q, k, v, out, scale: float, side: Int, depth: Int):
    """Attention inside of windows of side x side pixels; heads lie side by side."""
    down, across, head = ct.bid(0), ct.bid(1), ct.bid(2)
    place, shape = (down, across, head), (side, side, depth)
    flat = (side * side, depth)
    queries = ct.load(q, place, shape).reshape(flat)
    keys = ct.load(k, place, shape).reshape(flat)
    scores = ct.mma(queries, keys.transpose(), ct.full((flat[0], flat[0]), 0, dtype=ct.float32))
    weights = ct.exp2((scores - ct.max(scores, axis=1, keepdims=True)) * scale)
    values = ct.load(v, place, shape).reshape(flat)
    total = ct.mma(weights.astype(v.dtype), values, ct.full(flat, 0, dtype=ct.float32))
    total = total / ct.sum(weights, axis=1, keepdims=True)
    ct.store(out, place, total.astype(out.dtype).reshape(shape))


@ct.kernel
def centroids(points, centres, lengths, which, rows: Int, columns: Int, depth: Int):
    """The nearest of the centres for each point; `lengths` are half the squares of theirs."""
    given = ct.load(points, (ct.bid(0), 0), (rows, depth), padding_mode=ZERO)
    best = ct.full((rows, 1), -3e38, dtype=ct.float32)
    where = ct.full((rows, 1), 0, dtype=ct.int32)
    for part in range(ct.cdiv(centres.shape[0], columns)):
        some = ct.load(centres, (part, 0), (columns, depth), padding_mode=ZERO)
        like = ct.mma(given, some.transpose(), ct.full((rows, columns), 0, dtype=ct.float32))
        like = like - ct.load(lengths, (part,), (columns,)).reshape((1, columns))
        now = ct.max(like, axis=1, keepdims=True)
        at = part * columns + ct.argmax(like, axis=1, keepdims=True)
        best, where = ct.where(now > best, now, best), ct.where(now > best, at, where)
    ct.store(which, (ct.bid(0),), where.reshape((rows,)))


@ct.kernel
def dilated(x, weights, out, steps: Int, channels: Int):
    """Seven taps along time, two apart, for each channel; channels lie side by side."""
    batch, part, block = ct.bid(0), ct.bid(1), ct.bid(2)
    at = part * steps + ct.arange(steps, dtype=ct.int32).reshape((steps, 1))
    channel = block * channels + ct.arange(channels, dtype=ct.int32).reshape((1, channels))
    total = ct.full((steps, channels), 0, dtype=ct.float32)
    for tap in range(7):
        weight = ct.load(weights, (tap, block), (1, channels)).astype(ct.float32)
        near = ct.gather(x, (batch, at + 2 * tap - 6, channel), padding_value=0)
        total += near.astype(ct.float32) * weight
    total = total / (1 + ct.exp(-total))
    ct.store(out, (batch, part, block), total.astype(out.dtype).reshape((1, steps, channels)))


@ct.kernel
def spectrogram(signal, waves, out, hop: Int, frames: Int, step: Int, bands: Int):
    """Products of frames that overlap with waves, and their size: (frames, bands)."""
    frame = ct.bid(0) * frames + ct.arange(frames, dtype=ct.int32).reshape((frames, 1))
    real = ct.full((frames, bands), 0, dtype=ct.float32)
    imaginary = ct.full((frames, bands), 0, dtype=ct.float32)
    for part in range(ct.cdiv(waves.shape[1], step)):
        at = frame * hop + part * step + ct.arange(step, dtype=ct.int32).reshape((1, step))
        given = ct.gather(signal, at, padding_value=0)
        block = (part, ct.bid(1))
        cosines = ct.load(waves, (0, *block), (1, step, bands)).reshape((step, bands))
        sines = ct.load(waves, (1, *block), (1, step, bands)).reshape((step, bands))
        real, imaginary = ct.mma(given, cosines, real), ct.mma(given, sines, imaginary)
    ct.store(out, (ct.bid(0), ct.bid(1)), real * real + imaginary * imaginary)
