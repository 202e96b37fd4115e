"""Kernels of models of sequences, as users write them: some of them of several lengths.

benchmarks/sequence_rows.py has their arguments, and what NumPy makes of the same.
"""

import math

import cuda.tile as ct
from user_kernels import ZERO, Int, weigh


@ct.kernel
def state_space(x, decays, into, outof, out, channels: Int, states: Int, chunk: Int):
    """Chunks of a state-space model whose decay differs from step to step (Mamba 2)."""
    batch, head = ct.bid(0), ct.bid(1)
    at = ct.arange(chunk, dtype=ct.int32)
    lower = at.reshape((chunk, 1)) >= at.reshape((1, chunk))
    state = ct.full((states, channels), 0, dtype=ct.float32)
    for i in range(ct.cdiv(x.shape[1], chunk)):
        value = ct.load(x, (batch, i, head), (1, chunk, channels)).reshape((chunk, channels))
        key = ct.load(into, (batch, i, 0), (1, chunk, states)).reshape((chunk, states))
        query = ct.load(outof, (batch, i, 0), (1, chunk, states)).reshape((chunk, states))
        rate = ct.load(decays, (batch, head, i), (1, 1, chunk)).reshape((chunk,))
        since = ct.cumsum(rate, 0)
        whole = ct.sum(rate, axis=0, keepdims=True).reshape((1, 1))
        rows, columns = since.reshape((chunk, 1)), since.reshape((1, chunk))
        between = ct.where(lower, ct.exp2(rows - columns), 0.0)
        scores = ct.mma(query, key.transpose(), ct.full((chunk, chunk), 0, dtype=ct.float32))
        part = ct.mma(query, state.astype(x.dtype), ct.full((chunk, channels), 0, dtype=ct.float32))
        part = ct.mma((scores * between).astype(x.dtype), value, part * ct.exp2(rows))
        ct.store(out, (batch, i, head), part.astype(out.dtype).reshape((1, chunk, channels)))
        late = (key.astype(ct.float32) * ct.exp2(whole - rows)).astype(x.dtype)
        state = ct.mma(late.transpose(), value, state * ct.exp2(whole))


@ct.kernel
def receptance(r, k, v, w, bonus, out, depth: Int):
    """A step after the other of RWKV 6: the state decays by channels."""
    batch, head = ct.bid(0), ct.bid(1)
    own = ct.load(bonus, (head,), (depth,)).reshape((depth, 1))
    state = ct.full((depth, depth), 0, dtype=ct.float32)
    for t in range(r.shape[1]):
        asked = ct.load(r, (batch, t, head), (1, 1, depth)).reshape((depth, 1)).astype(ct.float32)
        key = ct.load(k, (batch, t, head), (1, 1, depth)).reshape((depth, 1)).astype(ct.float32)
        value = ct.load(v, (batch, t, head), (1, 1, depth)).reshape((1, depth)).astype(ct.float32)
        rate = ct.load(w, (batch, t, head), (1, 1, depth)).reshape((depth, 1)).astype(ct.float32)
        new = key * value
        found = ct.sum(asked * (state + own * new), axis=0, keepdims=True)
        ct.store(out, (batch, t, head), found.astype(out.dtype).reshape((1, 1, depth)))
        state = state * rate + new


@ct.kernel
def packed_attention(q, k, v, starts, out, scale: float, group: Int, depth: Int, tm: Int, tn: Int):
    """Causal attention of sequences that lie one behind the other; heads share keys by groups."""
    block, head, one = ct.bid(0), ct.bid(1), ct.bid(2)
    first = ct.gather(starts, one)
    length = ct.gather(starts, one + 1) - first
    if block * tm < length:
        row = block * tm + ct.arange(tm, dtype=ct.int32).reshape((tm, 1))
        channel = ct.arange(depth, dtype=ct.int32).reshape((1, depth))
        query = ct.gather(q, (first + row, head, channel), mask=row < length, padding_value=0)
        largest = ct.full((tm, 1), -math.inf, dtype=ct.float32)
        powers = ct.full((tm, 1), 0.0, dtype=ct.float32)
        total = ct.full((tm, depth), 0.0, dtype=ct.float32)
        for j in range(ct.cdiv(ct.minimum((block + 1) * tm, length), tn)):
            at = j * tn + ct.arange(tn, dtype=ct.int32).reshape((tn, 1))
            there = at < length
            key = ct.gather(k, (first + at, head // group, channel), mask=there, padding_value=0)
            scores = ct.mma(query, key.transpose(), ct.full((tm, tn), 0.0, dtype=ct.float32))
            scores = ct.where(row >= at.reshape((1, tn)), scores * scale, -math.inf)
            weights, shrink, largest, powers = weigh(scores, largest, powers)
            value = ct.gather(v, (first + at, head // group, channel), mask=there, padding_value=0)
            total = ct.mma(weights.astype(q.dtype), value, total * shrink)
        result = (total / powers).astype(out.dtype)
        ct.scatter(out, (first + row, head, channel), result, mask=row < length)


@ct.kernel
def ragged_attention(q, k, v, starts, out, scale: float, group: Int, depth: Int, tm: Int, tn: Int):
    """Causal attention of sequences that lie one behind the other; heads share keys by groups."""
    block, head, one = ct.bid(0), ct.bid(1), ct.bid(2)
    first, last = ct.gather(starts, one), ct.gather(starts, one + 1)
    if block * tm < last - first:
        queries = q.slice(0, first, last)
        keys, values = k.slice(0, first, last), v.slice(0, first, last)
        found = out.slice(0, first, last)
        row = block * tm + ct.arange(tm, dtype=ct.int32).reshape((tm, 1))
        query = ct.load(queries, (block, head, 0), (tm, 1, depth), padding_mode=ZERO)
        query = query.reshape((tm, depth))
        largest = ct.full((tm, 1), -math.inf, dtype=ct.float32)
        powers = ct.full((tm, 1), 0.0, dtype=ct.float32)
        total = ct.full((tm, depth), 0.0, dtype=ct.float32)
        for j in range(ct.cdiv(ct.minimum((block + 1) * tm, last - first), tn)):
            at = j * tn + ct.arange(tn, dtype=ct.int32).reshape((1, tn))
            key = ct.load(keys, (j, head // group, 0), (tn, 1, depth), padding_mode=ZERO)
            key = key.reshape((tn, depth)).transpose()
            scores = ct.mma(query, key, ct.full((tm, tn), 0.0, dtype=ct.float32))
            scores = ct.where(row >= at, scores * scale, -math.inf)
            weights, shrink, largest, powers = weigh(scores, largest, powers)
            value = ct.load(values, (j, head // group, 0), (tn, 1, depth), padding_mode=ZERO)
            value = value.reshape((tn, depth))
            total = ct.mma(weights.astype(q.dtype), value, total * shrink)
        result = (total / powers).astype(out.dtype)
        ct.store(found, (block, head, 0), result.reshape((tm, 1, depth)))


@ct.kernel
def ragged_experts(x, weights, starts, out, tm: Int, tn: Int, tk: Int):
    """A layer for each expert, of the tokens that are its."""
    block, column, one = ct.bid(0), ct.bid(1), ct.bid(2)
    first, last = ct.gather(starts, one), ct.gather(starts, one + 1)
    if block * tm < last - first:
        rows, found = x.slice(0, first, last), out.slice(0, first, last)
        total = ct.full((tm, tn), 0, dtype=ct.float32)
        for k in range(ct.cdiv(x.shape[1], tk)):
            given = ct.load(rows, (block, k), (tm, tk), padding_mode=ZERO)
            weight = ct.load(weights, (one, k, column), (1, tk, tn), padding_mode=ZERO)
            total = ct.mma(given, weight.reshape((tk, tn)), total)
        ct.store(found, (block, column), total.astype(out.dtype))


@ct.kernel
def ragged_norm(x, gain, starts, out, eps: float, columns: Int):
    """RMS norm of all tokens of a sequence for each block."""
    one = ct.bid(0)
    first, last = ct.gather(starts, one), ct.gather(starts, one + 1)
    given, found = x.slice(0, first, last), out.slice(0, first, last)
    weight = ct.load(gain, (0,), (columns,)).reshape((1, columns)).astype(ct.float32)
    for i in range(last - first):
        part = ct.load(given, (i, 0), (1, columns)).astype(ct.float32)
        inverse = ct.rsqrt(ct.sum(part * part, axis=1, keepdims=True) / columns + eps)
        ct.store(found, (i, 0), (part * inverse * weight).astype(out.dtype))


@ct.kernel
def sink_attention(
    q, k, v, sinks, slopes, out, scale: float, group: Int, depth: Int, tm: Int, tn: Int
):
    """Causal attention with a bias by distance, and a weight that goes to no key."""
    block, head, batch = ct.bid(0), ct.bid(1), ct.bid(2)
    query = ct.load(q, (batch, head, block, 0), (1, 1, tm, depth)).reshape((tm, depth))
    largest = ct.full((tm, 1), 0.0, dtype=ct.float32) + ct.gather(sinks, head)
    powers = ct.full((tm, 1), 1.0, dtype=ct.float32)
    total = ct.full((tm, depth), 0.0, dtype=ct.float32)
    slope = ct.gather(slopes, head)
    row = block * tm + ct.arange(tm, dtype=ct.int32).reshape((tm, 1))
    for j in range(ct.cdiv((block + 1) * tm, tn)):
        at = j * tn + ct.arange(tn, dtype=ct.int32).reshape((1, tn))
        key = ct.load(k, (batch, head // group, 0, j), (1, 1, depth, tn), order=(0, 1, 3, 2))
        scores = ct.mma(query, key.reshape((depth, tn)), ct.full((tm, tn), 0.0, dtype=ct.float32))
        scores = scores * scale + slope * (at - row).astype(ct.float32)
        scores = ct.where(row >= at, scores, -math.inf)
        weights, shrink, largest, powers = weigh(scores, largest, powers)
        value = ct.load(v, (batch, head // group, j, 0), (1, 1, tn, depth)).reshape((tn, depth))
        total = ct.mma(weights.astype(q.dtype), value, total * shrink)
    result = (total / powers).astype(out.dtype)
    ct.store(out, (batch, head, block, 0), result.reshape((1, 1, tm, depth)))


@ct.kernel
def table_weights(x, weights, table, scales, out, tm: Int, tn: Int, tk: Int):
    """A layer whose weights are places in a table of sixteen, two of a byte (NF4)."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        given = ct.load(x, (row, k), (tm, tk))
        packed = ct.load(weights, (column, k), (tn, tk // 2)).astype(ct.int32)
        both = ct.cat(
            ((packed & 15).reshape((tn, tk // 2, 1)), (packed >> 4).reshape((tn, tk // 2, 1))), 2
        ).reshape((tn, tk))
        scale = ct.load(scales, (column, k), (tn, 1))
        weight = (ct.gather(table, both) * scale).astype(x.dtype)
        total = ct.mma(given, weight.transpose(), total)
    ct.store(out, (row, column), total.astype(out.dtype))


@ct.kernel
def rotary_layer(x, weights, cosine, sine, out, half: Int, tm: Int, tk: Int):
    """A layer whose heads are turned by the angles of their position as they are stored."""
    row, head = ct.bid(0), ct.bid(1)
    total = ct.full((tm, 2 * half), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        given = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO)
        weight = ct.load(weights, (k, head), (tk, 2 * half), padding_mode=ZERO)
        total = ct.mma(given, weight, total)
    first = ct.extract(total, (0, 0), (tm, half))
    second = ct.extract(total, (0, 1), (tm, half))
    c, s = ct.load(cosine, (row, 0), (tm, half)), ct.load(sine, (row, 0), (tm, half))
    turned = ct.cat((first * c - second * s, second * c + first * s), 1)
    ct.store(out, (row, head), turned.astype(out.dtype))


@ct.kernel
def combine(parts, places, weights, out, count: Int, columns: Int):
    """The sum of what some experts made of a token, by their weights."""
    token, block = ct.bid(0), ct.bid(1)
    column = block * columns + ct.arange(columns, dtype=ct.int32)
    total = ct.full((columns,), 0, dtype=ct.float32)
    for i in range(count):
        place = ct.gather(places, (token, i))
        part = ct.gather(parts, (place, column), mask=column < out.shape[1], padding_value=0)
        total += ct.gather(weights, (token, i)) * part.astype(ct.float32)
    ct.scatter(out, (token, column), total.astype(out.dtype), mask=column < out.shape[1])


@ct.kernel
def viterbi(emissions, moves, out, best, tags: Int):
    """The best way through hidden states: scores of each step, and where they came from."""
    one = ct.bid(0)
    move = ct.load(moves, (0, 0), (tags, tags))
    score = ct.load(emissions, (one, 0, 0), (1, 1, tags)).reshape((tags, 1))
    for t in range(1, emissions.shape[1]):
        ways = score + move
        ct.store(out, (one, t, 0), ct.argmax(ways, axis=0).astype(out.dtype).reshape((1, 1, tags)))
        now = ct.load(emissions, (one, t, 0), (1, 1, tags)).reshape((1, tags))
        score = (ct.max(ways, axis=0, keepdims=True) + now).reshape((tags, 1))
    ct.store(best, (one, 0), score.reshape((1, tags)))


@ct.kernel
def patches(image, weights, bias, out, count: Int, side: Int, tn: Int):
    """The first layer of a vision transformer: squares of pixels by a matrix."""
    batch, down, column = ct.bid(0) // image.shape[1], ct.bid(0) % image.shape[1], ct.bid(1)
    total = ct.full((count, tn), 0, dtype=ct.float32)
    for line in range(side):
        rows = ct.load(image, (batch, down, line, 0, 0), (1, 1, 1, count, side * 4))
        weight = ct.load(weights, (line, column), (side * 4, tn))
        total = ct.mma(rows.reshape((count, side * 4)), weight, total)
    total = total + ct.load(bias, (column,), (tn,)).reshape((1, tn))
    ct.store(out, (batch, down, 0, column), total.astype(out.dtype).reshape((1, 1, count, tn)))
