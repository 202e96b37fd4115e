"""Kernels as users write them beside cuTile's own benchmarks: what models and libraries need.

Nobody tuned the compiler for them before they were written; benchmarks/user_rows.py has their
arguments, and what NumPy makes of the same.
"""

import math

import cuda.tile as ct
from speed_kernels import place

Int = ct.Constant[int]
Flag = ct.Constant[bool]
ZERO = ct.PaddingMode.ZERO
LOG_2, ROOT_2_PI = math.log(2), math.sqrt(2 / math.pi)


def weigh(scores, largest, powers):
    """Weights of keys that came, what shrinks those before, the largest score, and all powers."""
    now = ct.maximum(largest, ct.max(scores, axis=1, keepdims=True))
    weights = ct.exp2(scores - now, flush_to_zero=True)
    shrink = ct.exp2(largest - now, flush_to_zero=True)
    return weights, shrink, now, powers * shrink + ct.sum(weights, axis=1, keepdims=True)


@ct.kernel(num_ctas=ct.ByTarget(sm_90=2, sm_100=2, default=1))
def gated_layer(x, gate_weights, up_weights, bias, out, tm: Int, tn: Int, tk: Int):
    """gelu(x @ gate_weights + bias) * (x @ up_weights)."""
    row, column = ct.bid(0), ct.bid(1)
    gate = ct.full((tm, tn), 0, dtype=ct.float32)
    up = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        left = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO)
        gate = ct.mma(left, ct.load(gate_weights, (k, column), (tk, tn), padding_mode=ZERO), gate)
        up = ct.mma(left, ct.load(up_weights, (k, column), (tk, tn), padding_mode=ZERO), up)
    gate = gate + ct.load(bias, (column,), (tn,), padding_mode=ZERO).astype(ct.float32)
    inner = ROOT_2_PI * (gate + 0.044715 * gate * gate * gate)
    ct.store(out, (row, column), (gate * 0.5 * (1 + ct.tanh(inner)) * up).astype(out.dtype))


@ct.kernel
def byte_weights(x, weights, scale, out, tm: Int, tn: Int, tk: Int):
    """x @ (weights * scale), with a weight a byte and a scale a column."""
    row, column = place(ct.bid(0), ct.cdiv(x.shape[0], tm), ct.cdiv(weights.shape[1], tn))
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        left = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO)
        right = ct.load(weights, (k, column), (tk, tn), padding_mode=ZERO).astype(x.dtype)
        total = ct.mma(left, right, total)
    total = total * ct.load(scale, (column,), (tn,), padding_mode=ZERO)
    ct.store(out, (row, column), total.astype(out.dtype))


@ct.kernel
def nibble_weights(x, weights, scale, out, tm: Int, tn: Int, tk: Int, group: Int):
    """x @ (weights * scale), two weights of 4 bits in a byte along K, a scale a `group` of K.

    The lower four bits of byte k are row k of the first half of the group, the upper ones of the
    second half; a weight is what stands there, less 8.
    """
    row, column = place(ct.bid(0), ct.cdiv(x.shape[0], tm), ct.cdiv(weights.shape[1], tn))
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    half = tk // 2
    for k in range(ct.cdiv(x.shape[1], tk)):
        packed = ct.load(weights, (k, column), (half, tn), padding_mode=ZERO)
        factor = ct.load(scale, (k * tk // group, column), (1, tn), padding_mode=ZERO)
        low = ((packed & 15).astype(x.dtype) - 8) * factor
        high = ((packed >> 4).astype(x.dtype) - 8) * factor
        total = ct.mma(ct.load(x, (row, 2 * k), (tm, half), padding_mode=ZERO), low, total)
        total = ct.mma(ct.load(x, (row, 2 * k + 1), (tm, half), padding_mode=ZERO), high, total)
    ct.store(out, (row, column), total.astype(out.dtype))


@ct.kernel
def block_scaled_floats(a, a_scale, b, b_scale, out, tm: Int, tn: Int, tk: Int):
    """a @ b.T of 8-bit floats, scales a row and 128 of K of a, and 128 x 128 of b (tn, tk: 128)."""
    row, column = place(ct.bid(0), ct.cdiv(a.shape[0], tm), ct.cdiv(b.shape[0], tn))
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(a.shape[1], tk)):
        left = ct.load(a, (row, k), (tm, tk), padding_mode=ZERO)
        right = ct.load(b, (k, column), (tk, tn), order=(1, 0), padding_mode=ZERO)
        part = ct.mma(left, right, ct.full((tm, tn), 0, dtype=ct.float32))
        factor = ct.load(a_scale, (row, k), (tm, 1), padding_mode=ZERO) * ct.load(
            b_scale, (column, k), (1, 1)
        )
        total = total + part * factor
    ct.store(out, (row, column), total.astype(out.dtype))


@ct.kernel
def quantised_product(a, b, a_scale, b_scale, out, tm: Int, tn: Int, tk: Int):
    """a @ b.T of bytes, times a scale a row of each."""
    row, column = place(ct.bid(0), ct.cdiv(a.shape[0], tm), ct.cdiv(b.shape[0], tn))
    total = ct.full((tm, tn), 0, dtype=ct.int32)
    for k in range(ct.cdiv(a.shape[1], tk)):
        left = ct.load(a, (row, k), (tm, tk), padding_mode=ZERO)
        right = ct.load(b, (k, column), (tk, tn), order=(1, 0), padding_mode=ZERO)
        total = ct.mma(left, right, total)
    result = total.astype(ct.float32) * ct.load(a_scale, (row,), (tm,)).reshape((tm, 1))
    result = result * ct.load(b_scale, (column,), (tn,)).reshape((1, tn))
    ct.store(out, (row, column), result.astype(out.dtype))


@ct.kernel
def weight_gradient(x, dy, out, tm: Int, tn: Int, tk: Int):
    """x.T @ dy: both operands lie with K first."""
    row, column = place(ct.bid(0), ct.cdiv(x.shape[1], tm), ct.cdiv(dy.shape[1], tn))
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[0], tk)):
        left = ct.load(x, (row, k), (tm, tk), order=(1, 0), padding_mode=ZERO)
        total = ct.mma(left, ct.load(dy, (k, column), (tk, tn), padding_mode=ZERO), total)
    ct.store(out, (row, column), total.astype(out.dtype))


@ct.kernel
def residual_layer(x, weights, bias, residual, out, tm: Int, tn: Int, tk: Int):
    """relu(x @ weights + bias) + residual."""
    row, column = place(ct.bid(0), ct.cdiv(x.shape[0], tm), ct.cdiv(weights.shape[1], tn))
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        left = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO)
        total = ct.mma(left, ct.load(weights, (k, column), (tk, tn), padding_mode=ZERO), total)
    total = total + ct.load(bias, (column,), (tn,), padding_mode=ZERO).astype(ct.float32)
    beside = ct.load(residual, (row, column), (tm, tn), padding_mode=ZERO).astype(ct.float32)
    ct.store(out, (row, column), (ct.maximum(total, 0.0) + beside).astype(out.dtype))


@ct.kernel
def low_rank_layer(x, weights, down, up, out, factor: float, tm: Int, tn: Int, tk: Int, rank: Int):
    """x @ weights + factor * (x @ down) @ up (LoRA)."""
    row, column = place(ct.bid(0), ct.cdiv(x.shape[0], tm), ct.cdiv(weights.shape[1], tn))
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    inner = ct.full((tm, rank), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        left = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO)
        total = ct.mma(left, ct.load(weights, (k, column), (tk, tn), padding_mode=ZERO), total)
        inner = ct.mma(left, ct.load(down, (k, 0), (tk, rank), padding_mode=ZERO), inner)
    inner = (inner * factor).astype(x.dtype)
    total = ct.mma(inner, ct.load(up, (0, column), (rank, tn), padding_mode=ZERO), total)
    ct.store(out, (row, column), total.astype(out.dtype))


@ct.kernel
def convolution(x, weights, out, height: int, width: int, tm: Int, tn: Int, tk: Int):
    """3 x 3, padded by one, of x (height * width, channels) by weights (9, channels, filters)."""
    row, column = ct.bid(0), ct.bid(1)
    at = row * tm + ct.arange(tm, dtype=ct.int32)
    y, z = at // width, at % width
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    parts = ct.cdiv(x.shape[1], tk)
    for step in range(9 * parts):
        tap, part = step // parts, step % parts
        there_y, there_z = y + tap // 3 - 1, z + tap % 3 - 1
        inside = (there_y >= 0) & (there_y < height) & (there_z >= 0) & (there_z < width)
        source = ct.where(inside, there_y * width + there_z, -1).reshape((tm, 1))
        channel = (part * tk + ct.arange(tk, dtype=ct.int32)).reshape((1, tk))
        left = ct.gather(x, (source, channel), padding_value=0)
        right = ct.load(weights, (tap, part, column), (1, tk, tn), padding_mode=ZERO)
        total = ct.mma(left, right.reshape((tk, tn)), total)
    ct.store(out, (row, column), total.astype(out.dtype))


@ct.kernel(occupancy=2)
def biased_attention(q, k, v, bias, out, scale: float, depth: Int, tm: Int, tn: Int):
    """softmax(q @ k.T * scale + bias) @ v for each head; `scale` and `bias` are for powers of 2."""
    block, head = ct.bid(0), ct.bid(1)
    largest = ct.full((tm, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((tm, 1), 0.0, dtype=ct.float32)
    total = ct.full((tm, depth), 0.0, dtype=ct.float32)
    query = ct.load(q, (head, block, 0), (1, tm, depth)).reshape((tm, depth))
    for j in range(ct.cdiv(k.shape[1], tn)):
        key = ct.load(k, (head, 0, j), (1, depth, tn), order=(0, 2, 1)).reshape((depth, tn))
        scores = ct.mma(query, key, ct.full((tm, tn), 0.0, dtype=ct.float32)) * scale
        scores = scores + ct.load(bias, (block, j), (tm, tn)).astype(ct.float32)
        weights, shrink, now, powers = weigh(scores, largest, powers)
        value = ct.load(v, (head, j, 0), (1, tn, depth)).reshape((tn, depth))
        total = ct.mma(weights.astype(q.dtype), value, total * shrink)
        largest = now
    result = (total / powers).astype(out.dtype)
    ct.store(out, (head, block, 0), result.reshape((1, tm, depth)))


@ct.kernel(occupancy=2)
def latent_attention(
    q, k, v, turned_q, turned_k, out, scale: float, depth: Int, turned: Int, tm: Int, tn: Int
):  # fmt: skip
    """Scores are the sum of two products; the second one's keys are those of all heads (MLA)."""
    block, head = ct.bid(0), ct.bid(1)
    largest = ct.full((tm, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((tm, 1), 0.0, dtype=ct.float32)
    total = ct.full((tm, depth), 0.0, dtype=ct.float32)
    query = ct.load(q, (head, block, 0), (1, tm, depth)).reshape((tm, depth))
    turned_query = ct.load(turned_q, (head, block, 0), (1, tm, turned)).reshape((tm, turned))
    for j in range(ct.cdiv(k.shape[1], tn)):
        key = ct.load(k, (head, 0, j), (1, depth, tn), order=(0, 2, 1)).reshape((depth, tn))
        scores = ct.mma(query, key, ct.full((tm, tn), 0.0, dtype=ct.float32))
        turned_key = ct.load(turned_k, (0, j), (turned, tn), order=(1, 0))
        scores = ct.mma(turned_query, turned_key, scores) * scale
        weights, shrink, now, powers = weigh(scores, largest, powers)
        value = ct.load(v, (head, j, 0), (1, tn, depth)).reshape((tn, depth))
        total = ct.mma(weights.astype(q.dtype), value, total * shrink)
        largest = now
    result = (total / powers).astype(out.dtype)
    ct.store(out, (head, block, 0), result.reshape((1, tm, depth)))


@ct.kernel(occupancy=2)
def window_attention(q, k, v, out, sums, scale: float, window: int, depth: Int, tm: Int, tn: Int):
    """Each query sees the `window` keys up to its own; logarithms of the sums are kept."""
    block, head = ct.bid(0), ct.bid(1)
    largest = ct.full((tm, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((tm, 1), 0.0, dtype=ct.float32)
    total = ct.full((tm, depth), 0.0, dtype=ct.float32)
    query = ct.load(q, (head, block, 0), (1, tm, depth)).reshape((tm, depth))
    at = (block * tm + ct.arange(tm, dtype=ct.int32)).reshape((tm, 1))
    first = max(block * tm - window + 1, 0) // tn
    for j in range(first, ct.cdiv((block + 1) * tm, tn)):
        key = ct.load(k, (head, 0, j), (1, depth, tn), order=(0, 2, 1)).reshape((depth, tn))
        scores = ct.mma(query, key, ct.full((tm, tn), 0.0, dtype=ct.float32)) * scale
        there = (j * tn + ct.arange(tn, dtype=ct.int32)).reshape((1, tn))
        seen = (there <= at) & (there > at - window)
        scores = ct.where(seen, scores, -1.0e30)
        weights, shrink, now, powers = weigh(scores, largest, powers)
        value = ct.load(v, (head, j, 0), (1, tn, depth)).reshape((tn, depth))
        total = ct.mma(weights.astype(q.dtype), value, total * shrink)
        largest = now
    result = (total / powers).astype(out.dtype)
    ct.store(out, (head, block, 0), result.reshape((1, tm, depth)))
    ct.store(sums, (head, block), (largest + ct.log2(powers)).reshape((1, tm)))


@ct.kernel
def attention_gradient_of_keys(
    q, k, v, d_out, sums, delta, dk, dv, scale: float, depth: Int, tm: Int, tn: Int
):  # fmt: skip
    """Gradients of a tile of keys and values (Flash Attention 2, backward)."""
    block, head = ct.bid(0), ct.bid(1)
    key = ct.load(k, (head, block, 0), (1, tn, depth)).reshape((tn, depth))
    value = ct.load(v, (head, block, 0), (1, tn, depth)).reshape((tn, depth))
    of_key = ct.full((tn, depth), 0, dtype=ct.float32)
    of_value = ct.full((tn, depth), 0, dtype=ct.float32)
    for i in range(ct.cdiv(q.shape[1], tm)):
        query = ct.load(q, (head, i, 0), (1, tm, depth)).reshape((tm, depth))
        d = ct.load(d_out, (head, i, 0), (1, tm, depth)).reshape((tm, depth))
        scores = ct.mma(key, query.transpose(), ct.full((tn, tm), 0, dtype=ct.float32))
        weights = ct.exp2(scores * scale - ct.load(sums, (head, i), (1, tm)), flush_to_zero=True)
        of_value = ct.mma(weights.astype(q.dtype), d, of_value)
        of_weights = ct.mma(value, d.transpose(), ct.full((tn, tm), 0, dtype=ct.float32))
        of_scores = weights * (of_weights - ct.load(delta, (head, i), (1, tm)))
        of_key = ct.mma(of_scores.astype(q.dtype), query, of_key)
    of_key = of_key * (scale * LOG_2)
    ct.store(dk, (head, block, 0), of_key.astype(dk.dtype).reshape((1, tn, depth)))
    ct.store(dv, (head, block, 0), of_value.astype(dv.dtype).reshape((1, tn, depth)))


@ct.kernel
def attention_gradient_of_queries(
    q, k, v, d_out, sums, delta, dq, scale: float, depth: Int, tm: Int, tn: Int
):  # fmt: skip
    """The gradient of a tile of queries (Flash Attention 2, backward)."""
    block, head = ct.bid(0), ct.bid(1)
    query = ct.load(q, (head, block, 0), (1, tm, depth)).reshape((tm, depth))
    d = ct.load(d_out, (head, block, 0), (1, tm, depth)).reshape((tm, depth))
    total = ct.load(sums, (head, block), (1, tm)).reshape((tm, 1))
    less = ct.load(delta, (head, block), (1, tm)).reshape((tm, 1))
    of_query = ct.full((tm, depth), 0, dtype=ct.float32)
    for j in range(ct.cdiv(k.shape[1], tn)):
        key = ct.load(k, (head, j, 0), (1, tn, depth)).reshape((tn, depth))
        value = ct.load(v, (head, j, 0), (1, tn, depth)).reshape((tn, depth))
        scores = ct.mma(query, key.transpose(), ct.full((tm, tn), 0, dtype=ct.float32))
        weights = ct.exp2(scores * scale - total, flush_to_zero=True)
        of_weights = ct.mma(d, value.transpose(), ct.full((tm, tn), 0, dtype=ct.float32))
        of_scores = weights * (of_weights - less)
        of_query = ct.mma(of_scores.astype(q.dtype), key, of_query)
    of_query = of_query * (scale * LOG_2)
    ct.store(dq, (head, block, 0), of_query.astype(dq.dtype).reshape((1, tm, depth)))


@ct.kernel(occupancy=2)
def float8_attention(q, k, v, out, scale: float, depth: Int, tm: Int, tn: Int):
    """Attention of 8-bit floats, weights among them; v lies (head, depth, length)."""
    block, head = ct.bid(0), ct.bid(1)
    largest = ct.full((tm, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((tm, 1), 0.0, dtype=ct.float32)
    total = ct.full((tm, depth), 0.0, dtype=ct.float32)
    query = ct.load(q, (head, block, 0), (1, tm, depth)).reshape((tm, depth))
    for j in range(ct.cdiv(k.shape[1], tn)):
        key = ct.load(k, (head, 0, j), (1, depth, tn), order=(0, 2, 1)).reshape((depth, tn))
        scores = ct.mma(query, key, ct.full((tm, tn), 0.0, dtype=ct.float32)) * scale
        weights, shrink, now, powers = weigh(scores, largest, powers)
        value = ct.load(v, (head, j, 0), (1, tn, depth), order=(0, 2, 1)).reshape((tn, depth))
        total = ct.mma(weights.astype(q.dtype), value, total * shrink)
        largest = now
    result = (total / powers).astype(out.dtype)
    ct.store(out, (head, block, 0), result.reshape((1, tm, depth)))


@ct.kernel
def retention(q, k, v, out, decay, depth: Int, chunk: Int):
    """Linear attention with a decay a head, chunk by chunk; the state stays in the loop."""
    head = ct.bid(0)
    rate = ct.load(decay, (head,), (1,)).reshape((1, 1))
    at = ct.arange(chunk, dtype=ct.float32)
    lag = at.reshape((chunk, 1)) - at.reshape((1, chunk))
    mask = ct.where(lag >= 0, ct.exp2(rate * lag), 0.0)
    since = ct.exp2(rate * (at.reshape((chunk, 1)) + 1))
    until = ct.exp2(rate * (chunk - 1 - at.reshape((chunk, 1))))
    state = ct.full((depth, depth), 0, dtype=ct.float32)
    for i in range(ct.cdiv(q.shape[1], chunk)):
        query = ct.load(q, (head, i, 0), (1, chunk, depth)).reshape((chunk, depth))
        key = ct.load(k, (head, i, 0), (1, chunk, depth)).reshape((chunk, depth))
        value = ct.load(v, (head, i, 0), (1, chunk, depth)).reshape((chunk, depth))
        scores = ct.mma(query, key.transpose(), ct.full((chunk, chunk), 0, dtype=ct.float32))
        early = (query.astype(ct.float32) * since).astype(q.dtype)
        part = ct.mma(early, state.astype(q.dtype), ct.full((chunk, depth), 0, dtype=ct.float32))
        part = ct.mma((scores * mask).astype(q.dtype), value, part)
        ct.store(out, (head, i, 0), part.astype(out.dtype).reshape((1, chunk, depth)))
        late = (key.astype(ct.float32) * until).astype(q.dtype)
        state = ct.mma(late.transpose(), value, state * ct.exp2(rate * chunk))


@ct.kernel
def rotary(x, cosine, sine, out, rows: Int, half: Int):
    """Rotary embedding: the halves of a head are turned by an angle a position."""
    block, head = ct.bid(0), ct.bid(1)
    first = ct.load(x, (block, head, 0), (rows, 1, half)).reshape((rows, half)).astype(ct.float32)
    second = ct.load(x, (block, head, 1), (rows, 1, half)).reshape((rows, half)).astype(ct.float32)
    c, s = ct.load(cosine, (block, 0), (rows, half)), ct.load(sine, (block, 0), (rows, half))
    one, two = first * c - second * s, second * c + first * s
    ct.store(out, (block, head, 0), one.astype(out.dtype).reshape((rows, 1, half)))
    ct.store(out, (block, head, 1), two.astype(out.dtype).reshape((rows, 1, half)))


@ct.kernel
def adam(weights, gradient, first, second, rate: float, correction: float, tile: Int):
    """One step of Adam, in place."""
    i = ct.bid(0)
    g = ct.load(gradient, (i,), (tile,)).astype(ct.float32)
    m = 0.9 * ct.load(first, (i,), (tile,)) + 0.1 * g
    v = 0.999 * ct.load(second, (i,), (tile,)) + 0.001 * g * g
    w = ct.load(weights, (i,), (tile,)) - rate * m / (ct.sqrt(v * correction) + 1e-8)
    ct.store(first, (i,), m)
    ct.store(second, (i,), v)
    ct.store(weights, (i,), w)


@ct.kernel
def running_sums(x, out, rows: Int, columns: Int):
    block = ct.bid(0)
    carried = ct.full((rows, 1), 0, dtype=ct.float32)
    for j in range(ct.cdiv(x.shape[1], columns)):
        part = ct.load(x, (block, j), (rows, columns), padding_mode=ZERO)
        ct.store(out, (block, j), ct.cumsum(part, 1) + carried)
        carried = carried + ct.sum(part, axis=1, keepdims=True)


@ct.kernel
def routing(logits, weights, chosen, experts: Int, top: Int, rows: Int):
    """The `top` experts of each token and their shares of the softmax."""
    block = ct.bid(0)
    scores = ct.load(logits, (block, 0), (rows, experts)).astype(ct.float32)
    powers = ct.exp(scores - ct.max(scores, axis=1, keepdims=True))
    shares = powers / ct.sum(powers, axis=1, keepdims=True)
    which = ct.arange(experts, dtype=ct.int32).reshape((1, experts))
    for t in range(top):
        best = ct.argmax(shares, axis=1, keepdims=True)
        ct.store(weights, (block, t), ct.max(shares, axis=1, keepdims=True))
        ct.store(chosen, (block, t), best)
        shares = ct.where(which == best, -1.0, shares)


@ct.kernel
def embedding(tokens, table, out, rows: Int, columns: Int):
    block, part = ct.bid(0), ct.bid(1)
    token = ct.load(tokens, (block,), (rows,)).reshape((rows, 1))
    at = (part * columns + ct.arange(columns, dtype=ct.int32)).reshape((1, columns))
    ct.store(out, (block, part), ct.gather(table, (token, at)))


@ct.kernel
def group_norm(x, gain, bias, out, eps: float, channels: Int, columns: Int):
    """x (images, channels of all groups, positions); `channels` of a group."""
    image, group = ct.bid(0), ct.bid(1)
    total = ct.full((channels, columns), 0, dtype=ct.float32)
    squares = ct.full((channels, columns), 0, dtype=ct.float32)
    for j in range(ct.cdiv(x.shape[2], columns)):
        part = ct.load(x, (image, group, j), (1, channels, columns), padding_mode=ZERO)
        part = part.reshape((channels, columns)).astype(ct.float32)
        total, squares = total + part, squares + part * part
    count = channels * x.shape[2]
    mean = ct.sum(total) / count
    scale = ct.rsqrt(ct.sum(squares) / count - mean * mean + eps)
    g = ct.load(gain, (group,), (channels,)).reshape((channels, 1))
    b = ct.load(bias, (group,), (channels,)).reshape((channels, 1))
    for j in range(ct.cdiv(x.shape[2], columns)):
        part = ct.load(x, (image, group, j), (1, channels, columns), padding_mode=ZERO)
        part = part.reshape((channels, columns)).astype(ct.float32)
        result = ((part - mean) * scale * g + b).astype(out.dtype)
        ct.store(out, (image, group, j), result.reshape((1, channels, columns)))


@ct.kernel
def fused_layers(x, first, second, out, depth: Int, tm: Int, tn: Int):
    """relu(x @ first) @ second, `tn` inner columns at a time."""
    row = ct.bid(0)
    left = ct.load(x, (row, 0), (tm, depth), padding_mode=ZERO)
    total = ct.full((tm, depth), 0, dtype=ct.float32)
    for j in range(ct.cdiv(first.shape[1], tn)):
        inner = ct.full((tm, tn), 0, dtype=ct.float32)
        inner = ct.mma(left, ct.load(first, (0, j), (depth, tn), padding_mode=ZERO), inner)
        inner = ct.maximum(inner, 0.0).astype(x.dtype)
        total = ct.mma(inner, ct.load(second, (j, 0), (tn, depth), padding_mode=ZERO), total)
    ct.store(out, (row, 0), total.astype(out.dtype))


@ct.kernel
def paged_attention(q, k, v, table, lengths, out, scale: float, depth: Int, heads: Int, page: Int):
    """One query of `heads` that share keys, which lie in the pages that `table` names."""
    batch, group = ct.bid(0), ct.bid(1)
    query = ct.load(q, (batch, group, 0, 0), (1, 1, heads, depth)).reshape((heads, depth))
    length = ct.load(lengths, index=batch, shape=())
    largest = ct.full((heads, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((heads, 1), 0.0, dtype=ct.float32)
    total = ct.full((heads, depth), 0.0, dtype=ct.float32)
    for j in range(ct.cdiv(length, page)):
        number = ct.load(table, index=(batch, j), shape=(1, 1)).reshape(())
        key = ct.load(k, (number, group, 0, 0), (1, 1, depth, page), order=(0, 1, 3, 2))
        scores = ct.full((heads, page), 0.0, dtype=ct.float32)
        scores = ct.mma(query, key.reshape((depth, page)), scores) * scale
        at = (j * page + ct.arange(page, dtype=ct.int32)).reshape((1, page))
        scores = ct.where(at < length, scores, -1.0e30)
        weights, shrink, now, powers = weigh(scores, largest, powers)
        value = ct.load(v, (number, group, 0, 0), (1, 1, page, depth)).reshape((page, depth))
        total = ct.mma(weights.astype(q.dtype), value, total * shrink)
        largest = now
    result = (total / powers).astype(out.dtype)
    ct.store(out, (batch, group, 0, 0), result.reshape((1, 1, heads, depth)))


@ct.kernel
def linear_entropy(x, weights, target, losses, tm: Int, tn: Int, tk: Int):
    """Cross entropy of softmax(x @ weights.T), whose scores are nowhere in memory."""
    row = ct.bid(0)
    wanted = ct.load(target, (row,), (tm,)).reshape((tm, 1))
    largest = ct.full((tm, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((tm, 1), 0.0, dtype=ct.float32)
    chosen = ct.full((tm, 1), 0.0, dtype=ct.float32)
    for j in range(ct.cdiv(weights.shape[0], tn)):
        scores = ct.full((tm, tn), 0, dtype=ct.float32)
        for k in range(ct.cdiv(x.shape[1], tk)):
            left = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO)
            right = ct.load(weights, (k, j), (tk, tn), order=(1, 0), padding_mode=ZERO)
            scores = ct.mma(left, right, scores)
        at = (j * tn + ct.arange(tn, dtype=ct.int32)).reshape((1, tn))
        scores = ct.where(at < weights.shape[0], scores, -1.0e30)
        chosen = chosen + ct.sum(ct.where(at == wanted, scores, 0.0), axis=1, keepdims=True)
        now = ct.maximum(largest, ct.max(scores, axis=1, keepdims=True))
        here = ct.sum(ct.exp(scores - now), axis=1, keepdims=True)
        powers = powers * ct.exp(largest - now) + here
        largest = now
    ct.store(losses, (row,), (largest + ct.log(powers) - chosen).reshape((tm,)))


@ct.kernel(occupancy=2)
def sparse_attention(q, k, v, chosen, out, scale: float, depth: Int, tm: Int, tn: Int):
    """Attention to the tiles of keys that are chosen for a tile of queries."""
    block, head = ct.bid(0), ct.bid(1)
    largest = ct.full((tm, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((tm, 1), 0.0, dtype=ct.float32)
    total = ct.full((tm, depth), 0.0, dtype=ct.float32)
    query = ct.load(q, (head, block, 0), (1, tm, depth)).reshape((tm, depth))
    for j in range(ct.cdiv(k.shape[1], tn)):
        if ct.load(chosen, index=(block, j), shape=(1, 1)).reshape(()) != 0:
            key = ct.load(k, (head, 0, j), (1, depth, tn), order=(0, 2, 1)).reshape((depth, tn))
            scores = ct.mma(query, key, ct.full((tm, tn), 0.0, dtype=ct.float32)) * scale
            weights, shrink, now, powers = weigh(scores, largest, powers)
            value = ct.load(v, (head, j, 0), (1, tn, depth)).reshape((tn, depth))
            total = ct.mma(weights.astype(q.dtype), value, total * shrink)
            largest = now
    result = (total / powers).astype(out.dtype)
    ct.store(out, (head, block, 0), result.reshape((1, tm, depth)))
