"""Kernels of libraries, as users write them: layers, serving, images, sequences.

benchmarks/library_rows.py has their arguments, and what NumPy makes of the same.
"""

import math

import cuda.tile as ct
from user_kernels import ZERO, Int, weigh

LOG2_E = math.log2(math.e)


@ct.kernel
def channel_moments(x, mean, variance, rows: Int, columns: Int):
    """Mean and variance of each channel of a batch, for batch normalisation."""
    channel = ct.bid(0)
    total = ct.full((rows, columns), 0, dtype=ct.float32)
    squares = ct.full((rows, columns), 0, dtype=ct.float32)
    for i in range(ct.cdiv(x.shape[0], rows)):
        for j in range(ct.cdiv(x.shape[2], columns)):
            part = ct.load(x, (i, channel, j), (rows, 1, columns), padding_mode=ZERO)
            given = part.reshape((rows, columns)).astype(ct.float32)
            total, squares = total + given, squares + given * given
    count = x.shape[0] * x.shape[2]
    centre = ct.sum(total) / count
    ct.store(mean, (channel,), centre.reshape((1,)))
    ct.store(variance, (channel,), (ct.sum(squares) / count - centre * centre).reshape((1,)))


@ct.kernel
def largest_of_four(x, out, columns: Int, channels: Int):
    """The largest of each 2 x 2 of an image whose channels lie side by side."""
    batch_row, block, part = ct.bid(0), ct.bid(1), ct.bid(2)
    both = ct.load(x, (batch_row, block, part), (2, 2 * columns, channels))
    found = ct.max(ct.max(both.reshape((2, columns, 2, channels)), axis=2), axis=0)
    ct.store(out, (batch_row, block, part), found.reshape((1, columns, channels)))


@ct.function
def sigmoid(x):
    return 1 / (1 + ct.exp2(x * -LOG2_E))


@ct.kernel
def lstm_cell(x, weights, bias, cell, out, next_cell, tm: Int, tn: Int, tk: Int):
    """A step of an LSTM: four gates of x @ weights, which lie behind one another."""
    row, column = ct.bid(0), ct.bid(1)
    zero = ct.full((tm, tn), 0, dtype=ct.float32)
    entry, keep, given, leave = zero, zero, zero, zero
    for k in range(ct.cdiv(x.shape[1], tk)):
        left = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO)
        entry = ct.mma(left, ct.load(weights, (0, k, column), (1, tk, tn)).reshape((tk, tn)), entry)
        keep = ct.mma(left, ct.load(weights, (1, k, column), (1, tk, tn)).reshape((tk, tn)), keep)
        given = ct.mma(left, ct.load(weights, (2, k, column), (1, tk, tn)).reshape((tk, tn)), given)
        leave = ct.mma(left, ct.load(weights, (3, k, column), (1, tk, tn)).reshape((tk, tn)), leave)
    entry = entry + ct.load(bias, (0, column), (1, tn))
    keep = keep + ct.load(bias, (1, column), (1, tn))
    given = given + ct.load(bias, (2, column), (1, tn))
    leave = leave + ct.load(bias, (3, column), (1, tn))
    state = sigmoid(keep) * ct.load(cell, (row, column), (tm, tn), padding_mode=ZERO)
    state = state + sigmoid(entry) * ct.tanh(given)
    ct.store(next_cell, (row, column), state)
    ct.store(out, (row, column), (sigmoid(leave) * ct.tanh(state)).astype(out.dtype))


@ct.kernel
def delta_rule(q, k, v, rates, out, depth: Int, chunk: Int):
    """Linear attention that corrects what its state has, by chunks (the delta rule).

    The inverse of 1 + L, where L is strictly lower triangular, is a product of 1 + L^(2^i).
    """
    head = ct.bid(0)
    at = ct.arange(chunk, dtype=ct.int32)
    i, j = at.reshape((chunk, 1)), at.reshape((1, chunk))
    zero = ct.full((chunk, chunk), 0, dtype=ct.float32)
    empty = ct.full((chunk, depth), 0, dtype=ct.float32)
    state = ct.full((depth, depth), 0, dtype=ct.float32)
    for t in range(ct.cdiv(q.shape[1], chunk)):
        query = ct.load(q, (head, t, 0), (1, chunk, depth)).reshape((chunk, depth))
        key = ct.load(k, (head, t, 0), (1, chunk, depth)).reshape((chunk, depth))
        value = ct.load(v, (head, t, 0), (1, chunk, depth)).reshape((chunk, depth))
        rate = ct.load(rates, (head, t), (1, chunk)).reshape((chunk, 1))
        power = ct.where(i > j, ct.mma(key, key.transpose(), zero) * -rate, 0.0)
        inverse = ct.where(i == j, 1.0, power)
        for _ in ct.static_iter(range(int(math.log2(chunk)) - 1)):
            small = power.astype(ct.bfloat16)
            power = ct.mma(small, small, zero)
            inverse = ct.mma(power.astype(ct.bfloat16), inverse.astype(ct.bfloat16), inverse)
        held = state.astype(ct.bfloat16)
        left = (value.astype(ct.float32) - ct.mma(key, held, empty)) * rate
        new = ct.mma(inverse.astype(ct.bfloat16), left.astype(ct.bfloat16), empty)
        new = new.astype(ct.bfloat16)
        scores = ct.where(i >= j, ct.mma(query, key.transpose(), zero), 0.0)
        found = ct.mma(scores.astype(ct.bfloat16), new, ct.mma(query, held, empty))
        ct.store(out, (head, t, 0), found.astype(out.dtype).reshape((1, chunk, depth)))
        state = ct.mma(key.transpose(), new, state)


@ct.kernel
def norm_gradient(x, gain, dy, dx, dgain, rows: Int, columns: Int, epsilon: float):
    """Gradients of an RMS norm: of its input, and of its gain as sums of some rows."""
    weight = ct.load(gain, (0,), (columns,)).reshape((1, columns)).astype(ct.float32)
    total = ct.full((1, columns), 0, dtype=ct.float32)
    for i in range(rows):
        row = ct.bid(0) * rows + i
        given = ct.load(x, (row, 0), (1, columns)).astype(ct.float32)
        above = ct.load(dy, (row, 0), (1, columns)).astype(ct.float32)
        inverse = ct.rsqrt(ct.sum(given * given, axis=1, keepdims=True) / columns + epsilon)
        unit, scaled = given * inverse, above * weight
        along = ct.sum(unit * scaled, axis=1, keepdims=True) / columns
        ct.store(dx, (row, 0), ((scaled - unit * along) * inverse).astype(dx.dtype))
        total += above * unit
    ct.store(dgain, (ct.bid(0), 0), total)


@ct.kernel
def entropy_gradient(logits, labels, out, columns: Int):
    """The gradient of cross entropy by its logits, whose rows are read twice."""
    row = ct.bid(0)
    label = ct.load(labels, (row,), (1,)).reshape((1, 1))
    largest = ct.full((1, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((1, 1), 0, dtype=ct.float32)
    for part in range(ct.cdiv(logits.shape[1], columns)):
        given = ct.load(logits, (row, part), (1, columns), padding_mode=ct.PaddingMode.NEG_INF)
        _, _, largest, powers = weigh(given.astype(ct.float32) * LOG2_E, largest, powers)
    for part in range(ct.cdiv(logits.shape[1], columns)):
        given = ct.load(logits, (row, part), (1, columns), padding_mode=ct.PaddingMode.NEG_INF)
        share = ct.exp2(given.astype(ct.float32) * LOG2_E - largest) / powers
        at = part * columns + ct.arange(columns, dtype=ct.int32).reshape((1, columns))
        ct.store(out, (row, part), ct.where(at == label, share - 1, share).astype(out.dtype))


@ct.kernel
def cache_write(keys, cosine, sine, slots, cache, scales, heads: Int, half: Int):
    """New keys, turned by their places, as bytes with a scale a head, where slots say."""
    token = ct.bid(0)
    slot = ct.load(slots, (token,), (1,)).reshape(())
    both = ct.load(keys, (token, 0, 0), (1, heads, 2 * half)).reshape((heads, 2 * half))
    first = ct.extract(both, (0, 0), (heads, half)).astype(ct.float32)
    second = ct.extract(both, (0, 1), (heads, half)).astype(ct.float32)
    c, s = ct.load(cosine, (token, 0), (1, half)), ct.load(sine, (token, 0), (1, half))
    turned = ct.cat((first * c - second * s, second * c + first * s), 1)
    scale = ct.max(ct.abs(turned), axis=1, keepdims=True) / 127
    whole = ct.floor(turned / scale + 0.5).astype(ct.int8)
    ct.store(cache, (slot, 0, 0), whole.reshape((1, heads, 2 * half)))
    ct.store(scales, (slot, 0), scale.reshape((1, heads)))


@ct.kernel
def nibble_vector(x, weights, scales, out, rows: Int, group: Int):
    """weights @ x for one token, with weights of 4 bits, two in a byte, and a scale a group."""
    total = ct.full((rows, group // 2), 0, dtype=ct.float32)
    for k in range(ct.cdiv(weights.shape[1], group // 2)):
        both = ct.load(weights, (ct.bid(0), k), (rows, group // 2))
        scale = ct.load(scales, (ct.bid(0), k), (rows, 1)).astype(ct.float32)
        pairs = ct.load(x, (k,), (group,)).reshape((2, group // 2)).astype(ct.float32)
        first = ct.extract(pairs, (0, 0), (1, group // 2))
        second = ct.extract(pairs, (1, 0), (1, group // 2))
        low = (both & 15).astype(ct.float32) - 8
        high = (both >> 4).astype(ct.float32) - 8
        total += (low * first + high * second) * scale
    ct.store(out, (ct.bid(0),), ct.sum(total, axis=1).astype(out.dtype))


@ct.kernel
def top_masses(x, out, columns: Int, count: Int):
    """What the `count` largest of each row have together, by the bits of the least of them."""
    row = ct.bid(0)
    given = ct.load(x, (row, 0), (1, columns), padding_mode=ct.PaddingMode.NEG_INF)
    bits = ct.bitcast(given, ct.int32)
    keys = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(ct.int32)
    least = ct.full((1, 1), -2147483648, dtype=ct.int32)
    for step in range(32):
        tried = least + (1 << (31 - step))
        enough = ct.sum((keys >= tried).astype(ct.int32), axis=1, keepdims=True) >= count
        least = ct.where(enough, tried, least)
    chosen = ct.where(keys >= least, given, 0.0)
    ct.store(out, (row,), ct.sum(chosen, axis=1))


@ct.kernel
def compaction(x, starts, out, length: Int):
    """What is above zero, side by side; `starts` has where each block's begin."""
    given = ct.load(x, (ct.bid(0),), (length,))
    kept = (given > 0).astype(ct.int32)
    place = ct.load(starts, (ct.bid(0),), (1,)) + ct.cumsum(kept, 0) - kept
    ct.scatter(out, (ct.where(kept == 1, place, -1),), given)


@ct.kernel
def colours(image, light, blue, red, rows: Int, columns: Int):
    """Light and two differences of colour, of three bytes a point."""
    own = ct.bid(0), ct.bid(1)
    point = ct.load(image, (*own, 0), (rows, columns, 4), padding_mode=ZERO).astype(ct.float32)
    r = ct.extract(point, (0, 0, 0), (rows, columns, 1)).reshape((rows, columns))
    g = ct.extract(point, (0, 0, 1), (rows, columns, 1)).reshape((rows, columns))
    b = ct.extract(point, (0, 0, 2), (rows, columns, 1)).reshape((rows, columns))
    y = 0.299 * r + 0.587 * g + 0.114 * b
    ct.store(light, own, ct.floor(y + 0.5).astype(ct.uint8))
    ct.store(blue, own, ct.floor(0.564 * (b - y) + 128.5).astype(ct.uint8))
    ct.store(red, own, ct.floor(0.713 * (r - y) + 128.5).astype(ct.uint8))


@ct.function
def ordered(a, b):
    return ct.minimum(a, b), ct.maximum(a, b)


@ct.kernel
def median(image, out, rows: Int, columns: Int):
    """The median of each 3 x 3, by a network of minima and maxima."""
    i = ct.bid(0) * rows + ct.arange(rows, dtype=ct.int32).reshape((rows, 1))
    j = ct.bid(1) * columns + ct.arange(columns, dtype=ct.int32).reshape((1, columns))
    a, d, g = (
        ct.gather(image, (i - 1, j - 1)),
        ct.gather(image, (i - 1, j)),
        ct.gather(image, (i - 1, j + 1)),
    )
    b, e, h = ct.gather(image, (i, j - 1)), ct.gather(image, (i, j)), ct.gather(image, (i, j + 1))
    c, f, k = (
        ct.gather(image, (i + 1, j - 1)),
        ct.gather(image, (i + 1, j)),
        ct.gather(image, (i + 1, j + 1)),
    )
    a, b = ordered(a, b)
    b, c = ordered(b, c)
    a, b = ordered(a, b)
    d, e = ordered(d, e)
    e, f = ordered(e, f)
    d, e = ordered(d, e)
    g, h = ordered(g, h)
    h, k = ordered(h, k)
    g, h = ordered(g, h)
    low = ct.maximum(ct.maximum(a, d), g)
    high = ct.minimum(ct.minimum(c, f), k)
    b, e = ordered(b, e)
    middle = ct.maximum(b, ct.minimum(e, h))
    low, middle = ordered(low, middle)
    ct.store(out, (ct.bid(0), ct.bid(1)), ct.maximum(low, ct.minimum(middle, high)))


@ct.kernel
def ragged_means(values, starts, out, rows: Int, columns: Int):
    """The mean of each sequence, whose rows lie behind those of the one before."""
    one, block = ct.bid(0), ct.bid(1)
    first = ct.load(starts, (one,), (1,)).reshape(())
    last = ct.load(starts, (one + 1,), (1,)).reshape(())
    j = block * columns + ct.arange(columns, dtype=ct.int32).reshape((1, columns))
    total = ct.full((rows, columns), 0, dtype=ct.float32)
    for part in range(ct.cdiv(last - first, rows)):
        i = first + part * rows + ct.arange(rows, dtype=ct.int32).reshape((rows, 1))
        total += ct.gather(values, (i, j), mask=i < last, padding_value=0).astype(ct.float32)
    mean = ct.sum(total, axis=0) / ct.maximum(last - first, 1).astype(ct.float32)
    ct.store(out, (one, block), mean.astype(out.dtype).reshape((1, columns)))


@ct.kernel
def overlaps(boxes, out, limit: float, rows: Int, columns: Int):
    """Which boxes overlap by more than a limit, 32 of them in a word."""
    i, j = ct.bid(0), ct.bid(1)
    left = ct.load(boxes, (0, i), (1, rows)).reshape((rows, 1))
    top = ct.load(boxes, (1, i), (1, rows)).reshape((rows, 1))
    right = ct.load(boxes, (2, i), (1, rows)).reshape((rows, 1))
    bottom = ct.load(boxes, (3, i), (1, rows)).reshape((rows, 1))
    other_left = ct.load(boxes, (0, j), (1, columns))
    other_top = ct.load(boxes, (1, j), (1, columns))
    other_right = ct.load(boxes, (2, j), (1, columns))
    other_bottom = ct.load(boxes, (3, j), (1, columns))
    wide = ct.minimum(right, other_right) - ct.maximum(left, other_left)
    high = ct.minimum(bottom, other_bottom) - ct.maximum(top, other_top)
    common = ct.maximum(wide, 0.0) * ct.maximum(high, 0.0)
    area = (right - left) * (bottom - top)
    other = (other_right - other_left) * (other_bottom - other_top)
    bit = (common > limit * (area + other - common)).astype(ct.uint32)
    shift = ct.arange(32, dtype=ct.uint32).reshape((1, 1, 32))
    words = ct.sum(bit.reshape((rows, columns // 32, 32)) << shift, axis=2)
    ct.store(out, (i, j), words)


@ct.kernel
def newton_schulz(x, out, b: float, c: float, size: Int, depth: Int):
    """b x + c x @ x of a symmetric matrix: a step towards an orthogonal one."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((size, size), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], depth)):
        left = ct.load(x, (row, k), (size, depth), padding_mode=ZERO)
        right = ct.load(x, (column, k), (size, depth), padding_mode=ZERO)
        total = ct.mma(left, right.transpose(), total)
    own = ct.load(x, (row, column), (size, size), padding_mode=ZERO).astype(ct.float32)
    ct.store(out, (row, column), (b * own + c * total).astype(out.dtype))


@ct.kernel
def byte_decode(q, keys, key_scale, values, value_scale, out, group: Int, tile: Int, depth: Int):
    """One token's attention to keys and values of bytes, with scales a token."""
    batch, head = ct.bid(0), ct.bid(1)
    query = ct.load(q, (batch, head, 0, 0), (1, 1, group, depth)).reshape((group, depth))
    largest = ct.full((group, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((group, 1), 0, dtype=ct.float32)
    total = ct.full((group, depth), 0, dtype=ct.float32)
    for t in range(ct.cdiv(keys.shape[2], tile)):
        at = batch, head, t, 0
        key = ct.load(keys, at, (1, 1, tile, depth)).reshape((tile, depth)).astype(q.dtype)
        scale = ct.load(key_scale, (batch, head, t), (1, 1, tile)).reshape((1, tile))
        scores = ct.mma(query, key.transpose(), ct.full((group, tile), 0, dtype=ct.float32))
        scores = scores * scale * LOG2_E
        weights, shrink, largest, powers = weigh(scores, largest, powers)
        scale = ct.load(value_scale, (batch, head, t), (1, 1, tile)).reshape((1, tile))
        value = ct.load(values, at, (1, 1, tile, depth)).reshape((tile, depth)).astype(q.dtype)
        total = ct.mma((weights * scale).astype(q.dtype), value, total * shrink)
    found = (total / powers).astype(out.dtype).reshape((1, 1, group, depth))
    ct.store(out, (batch, head, 0, 0), found)


@ct.kernel
def grouped_decode(q, keys, values, out, scale: float, group: Int, tile: Int, depth: Int):
    """One token's attention, with a few queries for each head of keys."""
    batch, head = ct.bid(0), ct.bid(1)
    query = ct.load(q, (batch, head, 0, 0), (1, 1, group, depth)).reshape((group, depth))
    largest = ct.full((group, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((group, 1), 0, dtype=ct.float32)
    total = ct.full((group, depth), 0, dtype=ct.float32)
    for t in range(ct.cdiv(keys.shape[2], tile)):
        at = batch, head, t, 0
        key = ct.load(keys, at, (1, 1, tile, depth)).reshape((tile, depth))
        scores = ct.mma(query, key.transpose(), ct.full((group, tile), 0, dtype=ct.float32))
        weights, shrink, largest, powers = weigh(scores * scale, largest, powers)
        value = ct.load(values, at, (1, 1, tile, depth)).reshape((tile, depth))
        total = ct.mma(weights.astype(q.dtype), value, total * shrink)
    found = (total / powers).astype(out.dtype).reshape((1, 1, group, depth))
    ct.store(out, (batch, head, 0, 0), found)


@ct.kernel
def few_tokens(x, weights, out, tm: Int, tn: Int, tk: Int):
    """x @ weights for as many tokens as one tile has."""
    column = ct.bid(0)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        left = ct.load(x, (0, k), (tm, tk), padding_mode=ZERO)
        right = ct.load(weights, (k, column), (tk, tn), padding_mode=ZERO)
        total = ct.mma(left, right, total)
    ct.store(out, (0, column), total.astype(out.dtype))


@ct.kernel
def triangular_product(a, b, out, size: Int, depth: Int):
    """a @ b, where only what lies on and below the diagonal of a counts."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((size, size), 0, dtype=ct.float32)
    i = row * size + ct.arange(size, dtype=ct.int32).reshape((size, 1))
    for k in range((row + 1) * size // depth):
        left = ct.load(a, (row, k), (size, depth), padding_mode=ZERO)
        j = k * depth + ct.arange(depth, dtype=ct.int32).reshape((1, depth))
        left = ct.where(i >= j, left, 0)
        right = ct.load(b, (k, column), (depth, size), padding_mode=ZERO)
        total = ct.mma(left, right, total)
    ct.store(out, (row, column), total.astype(out.dtype))


@ct.function
def product_of_words(a, b):
    """The upper and the lower half of a product of 32 bits by 32 bits."""
    wide = a.astype(ct.uint64) * b
    return (wide >> 32).astype(ct.uint32), wide.astype(ct.uint32)


@ct.function
def philox_words(at, seed):
    """Four words of a counter, by ten rounds."""
    zero = ct.full(at.shape, 0, dtype=ct.uint32)
    x0, x1, x2, x3 = at.astype(ct.uint32), zero, zero, zero
    key0, key1 = ct.full(at.shape, seed, dtype=ct.uint32), zero
    for _ in ct.static_iter(range(10)):
        high0, low0 = product_of_words(x0, 0xD2511F53)
        high1, low1 = product_of_words(x2, 0xCD9E8D57)
        x0, x1, x2, x3 = high1 ^ x1 ^ key0, low1, high0 ^ x3 ^ key1, low0
        key0, key1 = key0 + 0x9E3779B9, key1 + 0xBB67AE85
    return x0, x1, x2, x3


@ct.kernel
def philox(out, seed: int, length: Int):
    """Random words by Philox, four of each counter."""
    block = ct.bid(0)
    words = philox_words(block * length + ct.arange(length, dtype=ct.int32), seed)
    for word, held in ct.static_iter(list(enumerate(words))):
        ct.store(out, (word, block), held.reshape((1, length)))


@ct.kernel
def dropout(x, out, seed: int, rate: float, length: Int):
    """x without a share of its elements, which Philox chooses."""
    block = ct.bid(0)
    given = ct.load(x, (block,), (length,)).astype(ct.float32)
    words = philox_words(block * length + ct.arange(length, dtype=ct.int32), seed)
    share = (words[0] >> 8).astype(ct.float32) * (1.0 / 16777216.0)
    ct.store(out, (block,), ct.where(share < rate, 0.0, given / (1 - rate)).astype(out.dtype))


@ct.kernel
def binary_product(a, b, out, rows: Int, columns: Int, words: Int):
    """How many bits rows of a and of b have apart, 32 in a word."""
    total = ct.full((rows, columns), 0, dtype=ct.uint32)
    for k in range(a.shape[1] // words):
        left = ct.load(a, (ct.bid(0), k), (rows, words)).reshape((rows, 1, words))
        right = ct.load(b, (ct.bid(1), k), (columns, words)).reshape((1, columns, words))
        x = left ^ right
        x = x - ((x >> 1) & 0x55555555)
        x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
        x = (x + (x >> 4)) & 0x0F0F0F0F
        total += ct.sum((x * 0x01010101) >> 24, axis=2)
    ct.store(out, (ct.bid(0), ct.bid(1)), total)


@ct.kernel
def channels_last(x, out, channels: Int, columns: Int):
    """Channels of images, from one behind the other to side by side."""
    batch, block, part = ct.bid(0), ct.bid(1), ct.bid(2)
    given = ct.load(x, (batch, block, part), (1, channels, columns))
    ct.store(out, (batch, part, block), given.permute((0, 2, 1)))


@ct.kernel
def depthwise(x, weights, out, width: Int, channels: Int):
    """3 x 3 for each channel by itself; channels lie side by side."""
    batch_row, part, block = ct.bid(0), ct.bid(1), ct.bid(2)
    batch, row = batch_row // x.shape[1], batch_row % x.shape[1]
    j = part * width + ct.arange(width, dtype=ct.int32).reshape((width, 1))
    channel = block * channels + ct.arange(channels, dtype=ct.int32).reshape((1, channels))
    total = ct.full((width, channels), 0, dtype=ct.float32)
    for di in ct.static_iter(range(3)):
        for dj in ct.static_iter(range(3)):
            near = ct.gather(x, (batch, row + di - 1, j + dj - 1, channel), padding_value=0)
            weight = ct.load(weights, (di, dj, block), (1, 1, channels)).reshape((1, channels))
            total += near.astype(ct.float32) * weight.astype(ct.float32)
    found = ct.maximum(total, 0.0).astype(out.dtype).reshape((1, 1, width, channels))
    ct.store(out, (batch, row, part, block), found)


@ct.kernel
def best_word(logits, word, score, columns: Int):
    """The largest of each row, and where it is."""
    row = ct.bid(0)
    best = ct.full((1, 1), -math.inf, dtype=ct.float32)
    where = ct.full((1, 1), 0, dtype=ct.int32)
    for part in range(ct.cdiv(logits.shape[1], columns)):
        given = ct.load(logits, (row, part), (1, columns), padding_mode=ct.PaddingMode.NEG_INF)
        given = given.astype(ct.float32)
        now = ct.max(given, axis=1, keepdims=True)
        at = part * columns + ct.argmax(given, axis=1, keepdims=True)
        best, where = ct.where(now > best, now, best), ct.where(now > best, at, where)
    ct.store(word, (row,), where.reshape((1,)))
    ct.store(score, (row,), best.reshape((1,)))


@ct.kernel
def fourier(real, imaginary, cosine, sine, turn_c, turn_s, out_real, out_imaginary, side: Int):
    """Transforms of side x side numbers, by products with the matrix of a small one, twice."""
    row = ct.bid(0)
    zero = ct.full((side, side), 0, dtype=ct.float32)
    x = ct.load(real, (row, 0, 0), (1, side, side)).reshape((side, side)).astype(ct.tfloat32)
    y = ct.load(imaginary, (row, 0, 0), (1, side, side)).reshape((side, side)).astype(ct.tfloat32)
    c = ct.load(cosine, (0, 0), (side, side)).astype(ct.tfloat32)
    s = ct.load(sine, (0, 0), (side, side)).astype(ct.tfloat32)
    once, other = ct.mma(c, x, zero) + ct.mma(s, y, zero), ct.mma(c, y, zero) - ct.mma(s, x, zero)
    tc, ts = ct.load(turn_c, (0, 0), (side, side)), ct.load(turn_s, (0, 0), (side, side))
    x = (once * tc + other * ts).astype(ct.tfloat32)
    y = (other * tc - once * ts).astype(ct.tfloat32)
    found = ct.mma(x, c, zero) + ct.mma(y, s, zero)
    turned = ct.mma(y, c, zero) - ct.mma(x, s, zero)
    ct.store(out_real, (row, 0, 0), found.transpose().reshape((1, side, side)))
    ct.store(out_imaginary, (row, 0, 0), turned.transpose().reshape((1, side, side)))


@ct.kernel
def checksums(data, out, rows: Int, length: Int):
    """FNV-1a of each row of bytes."""
    block = ct.bid(0)
    state = ct.full((rows, 1), 0xCBF29CE484222325, dtype=ct.uint64)
    for at in range(length):
        byte = ct.load(data, (block, at), (rows, 1)).astype(ct.uint64)
        state = (state ^ byte) * 0x100000001B3
    ct.store(out, (block,), state.reshape((rows,)))


@ct.kernel
def probe(keys, table, values, found, rows: Int):
    """What a hash table has for each key: open addresses, a step at a time until all are done."""
    key = ct.load(keys, (ct.bid(0),), (rows,))
    size = table.shape[0]
    slot = ((key.astype(ct.uint32) * 0x9E3779B1) >> 8).astype(ct.int32) & (size - 1)
    result = ct.full((rows,), -1, dtype=ct.int32)
    open_ones = ct.full((rows,), 1, dtype=ct.int32)
    while ct.sum(open_ones) > 0:
        there = ct.gather(table, (slot,), mask=open_ones == 1, padding_value=-1)
        hit = (there == key) & (open_ones == 1)
        result = ct.where(hit, ct.gather(values, (slot,), mask=hit, padding_value=-1), result)
        open_ones = ct.where(hit | (there == -1), 0, open_ones)
        slot = (slot + 1) & (size - 1)
    ct.store(found, (ct.bid(0),), result)


@ct.kernel
def chained_sums(x, out, carry, ready, length: Int):
    """Running sums in one pass: each block waits for what the one before has."""
    block = ct.bid(0)
    given = ct.load(x, (block,), (length,))
    before = ct.full((1,), 0, dtype=ct.int32)
    if block > 0:
        while ct.atomic_add(ready, block - 1, 0, memory_order=ct.MemoryOrder.ACQUIRE) == 0:
            pass
        before = ct.load(carry, (block - 1,), (1,))
    ct.store(carry, (block,), before + ct.sum(given))
    ct.atomic_xchg(ready, block, 1, memory_order=ct.MemoryOrder.RELEASE)
    ct.store(out, (block,), before + ct.cumsum(given, 0))
