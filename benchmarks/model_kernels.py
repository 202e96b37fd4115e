"""More kernels of models, as users write them: low precision, states, samples, sparse operands.

benchmarks/model_rows.py has their arguments, and what NumPy makes of the same.
"""

import math

import cuda.tile as ct
from speed_kernels import place
from user_kernels import ROOT_2_PI, ZERO, Int, weigh

LOG2_E = 1 / math.log(2)
MOST_E4M3, MOST_E2M1 = 448.0, 6.0


@ct.kernel
def mx_quantise(x, out, scales, rows: Int, columns: Int):
    """MXFP8: e4m3 with a power of two for 32 of them."""
    i, j = ct.bid(0), ct.bid(1)
    part = ct.load(x, (i, j), (rows, columns), padding_mode=ZERO).astype(ct.float32)
    part = part.reshape((rows, columns // 32, 32))
    most = ct.max(ct.abs(part), axis=2, keepdims=True)
    scale = ct.exp2(ct.ceil(ct.log2(ct.maximum(most, 1.0e-20) / MOST_E4M3)))
    held = scale.reshape((rows, columns // 32))
    held = ct.astype(held, ct.float8_e8m0fnu, rounding_mode=ct.RoundingMode.RZ)
    ct.store(scales, (i, j), held)
    ct.store(out, (i, j), (part / scale).reshape((rows, columns)).astype(ct.float8_e4m3fn))


@ct.kernel
def nv_quantise(x, out, scales, rows: Int, columns: Int):
    """NVFP4: e2m1, two to a byte, with an e4m3 for 16 of them."""
    i, j = ct.bid(0), ct.bid(1)
    part = ct.load(x, (i, j), (rows, columns), padding_mode=ZERO).astype(ct.float32)
    part = part.reshape((rows, columns // 16, 16))
    most = ct.max(ct.abs(part), axis=2, keepdims=True)
    scale = ct.maximum(most / MOST_E2M1, 0.015625).astype(ct.float8_e4m3fn)
    ct.store(scales, (i, j), scale.reshape((rows, columns // 16)))
    small = (part / scale.astype(ct.float32)).astype(ct.float4_e2m1fn)
    packed = ct.pack_to_bytes(small.reshape((rows * columns,)))
    ct.store(out, (i, j), packed.reshape((rows, columns // 2)))


@ct.kernel
def mx_experts(a, a_scale, b, b_scale, out, tm: Int, tn: Int, tk: Int):
    """A product of MXFP8 for each expert; scales in rows."""
    row, column, expert = ct.bid(0), ct.bid(1), ct.bid(2)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(a.shape[2], tk)):
        left = ct.load(a, (expert, row, k), (1, tm, tk), padding_mode=ZERO)
        right = ct.load(b, (expert, column, k), (1, tn, tk), padding_mode=ZERO)
        scales = ct.load(a_scale, (expert, row, k), (1, tm, tk // 32), padding_mode=ZERO)
        others = ct.load(b_scale, (expert, column, k), (1, tn, tk // 32), padding_mode=ZERO)
        total = ct.mma_scaled(
            left.reshape((tm, tk)), scales.reshape((tm, tk // 32)),
            ct.transpose(right.reshape((tn, tk))), ct.transpose(others.reshape((tn, tk // 32))),
            total,
        )  # fmt: skip
    ct.store(out, (expert, row, column), total.astype(out.dtype).reshape((1, tm, tn)))


@ct.kernel
def float8_norm(x, gain, out, scales, eps: float, columns: Int):
    """RMS norm to e4m3, with a scale for each row."""
    row = ct.bid(0)
    part = ct.load(x, (row, 0), (1, columns), padding_mode=ZERO).astype(ct.float32)
    root = ct.rsqrt(ct.sum(part * part) / x.shape[1] + eps)
    weights = ct.load(gain, (0,), (columns,), padding_mode=ZERO).reshape((1, columns))
    normed = part * root * weights.astype(ct.float32)
    scale = ct.maximum(ct.max(ct.abs(normed)) / MOST_E4M3, 1.0e-12)
    ct.store(scales, (row,), scale.reshape((1,)))
    ct.store(out, (row, 0), (normed / scale).astype(out.dtype))


@ct.kernel
def float8_layer(x, weights, x_scale, w_scale, bias, out, tm: Int, tn: Int, tk: Int):
    """gelu(x @ weights.T + bias) of e4m3, with scales of rows and of columns."""
    row, column = place(ct.bid(0), ct.cdiv(x.shape[0], tm), ct.cdiv(weights.shape[0], tn))
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(x.shape[1], tk)):
        left = ct.load(x, (row, k), (tm, tk), padding_mode=ZERO)
        right = ct.load(weights, (k, column), (tk, tn), order=(1, 0), padding_mode=ZERO)
        total = ct.mma(left, right, total)
    rows = ct.load(x_scale, (row,), (tm,), padding_mode=ZERO).reshape((tm, 1))
    columns = ct.load(w_scale, (column,), (tn,), padding_mode=ZERO).reshape((1, tn))
    added = ct.load(bias, (column,), (tn,), padding_mode=ZERO).reshape((1, tn))
    total = total * rows * columns + added.astype(ct.float32)
    inner = ROOT_2_PI * (total + 0.044715 * total * total * total)
    ct.store(out, (row, column), (0.5 * total * (1 + ct.tanh(inner))).astype(out.dtype))


@ct.kernel
def causal_convolution(x, weights, out, channels: Int, length: Int):
    """Four taps along time for each channel, and SiLU."""
    batch, block, part = ct.bid(0), ct.bid(1), ct.bid(2)
    at = part * length + ct.arange(length, dtype=ct.int32).reshape((1, length))
    channel = block * channels + ct.arange(channels, dtype=ct.int32).reshape((channels, 1))
    total = ct.full((channels, length), 0, dtype=ct.float32)
    for tap in range(4):
        weight = ct.load(weights, (block, tap), (channels, 1)).astype(ct.float32)
        moved = ct.gather(x, (batch, channel, at - 3 + tap), padding_value=0)
        total += weight * moved.astype(ct.float32)
    total = total / (1 + ct.exp(-total))
    ct.store(out, (batch, block, part), total.astype(out.dtype).reshape((1, channels, length)))


@ct.kernel
def selective_scan(x, delta, rates, into, outof, out, channels: Int, states: Int):
    """A state of each channel that goes through time."""
    batch, block = ct.bid(0), ct.bid(1)
    rate = ct.load(rates, (block, 0), (channels, states))
    state = ct.full((channels, states), 0, dtype=ct.float32)
    for t in range(x.shape[1]):
        given = ct.load(x, (batch, t, block), (1, 1, channels)).reshape((channels, 1))
        step = ct.load(delta, (batch, t, block), (1, 1, channels)).reshape((channels, 1))
        step = step.astype(ct.float32)
        taken = ct.load(into, (batch, t, 0), (1, 1, states)).reshape((1, states))
        shown = ct.load(outof, (batch, t, 0), (1, 1, states)).reshape((1, states))
        added = step * given.astype(ct.float32) * taken.astype(ct.float32)
        state = state * ct.exp(step * rate) + added
        result = ct.sum(state * shown.astype(ct.float32), axis=1)
        ct.store(out, (batch, t, block), result.astype(out.dtype).reshape((1, 1, channels)))


def uniform(at):
    """Numbers between 0 and 1 by a hash of i32."""
    x = at.astype(ct.uint32)
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return ((x ^ (x >> 16)) >> 8).astype(ct.float32) * (1.0 / 16777216.0)


@ct.kernel
def sampling(logits, chosen, seed: int, columns: Int):
    """A token of each row, by the largest of its logits and Gumbel noise."""
    row = ct.bid(0)
    best = ct.full((1, 1), -math.inf, dtype=ct.float32)
    which = ct.full((1, 1), 0, dtype=ct.int32)
    for j in range(ct.cdiv(logits.shape[1], columns)):
        at = (j * columns + ct.arange(columns, dtype=ct.int32)).reshape((1, columns))
        score = ct.gather(logits, (row, at), padding_value=-1.0e30).astype(ct.float32)
        noise = uniform(at + row * logits.shape[1] + seed) + 2.0e-8
        score = score - ct.log(-ct.log(noise))
        here = ct.max(score, axis=1, keepdims=True)
        there = ct.argmax(score, axis=1, keepdims=True) + j * columns
        which = ct.where(here > best, there.astype(ct.int32), which)
        best = ct.maximum(best, here)
    ct.store(chosen, (row,), which.reshape((1,)))


@ct.kernel(occupancy=2)
def softcap_attention(
    q, k, v, sinks, out, scale: float, cap: float, window: int, group: Int, depth: Int, tm: Int,
    tn: Int,
):  # fmt: skip
    """Scores through tanh, a window of keys, and one more score of each head that has no value."""
    block, head = ct.bid(0), ct.bid(1)
    query = ct.load(q, (head, block, 0), (1, tm, depth)).reshape((tm, depth))
    row = (block * tm + ct.arange(tm, dtype=ct.int32)).reshape((tm, 1))
    sink = ct.load(sinks, (head,), (1,)).reshape((1, 1)) * LOG2_E
    largest = ct.broadcast_to(sink, (tm, 1))
    powers = ct.full((tm, 1), 1.0, dtype=ct.float32)
    total = ct.full((tm, depth), 0.0, dtype=ct.float32)
    first = ct.maximum(block * tm - window + 1, 0) // tn
    last = ct.minimum(ct.cdiv((block + 1) * tm, tn), ct.cdiv(k.shape[1], tn))
    for j in range(first, last):
        key = ct.load(k, (head // group, 0, j), (1, depth, tn), order=(0, 2, 1))
        scores = ct.full((tm, tn), 0.0, dtype=ct.float32)
        scores = ct.mma(query, key.reshape((depth, tn)), scores) * scale
        scores = cap * ct.tanh(scores / cap) * LOG2_E
        at = (j * tn + ct.arange(tn, dtype=ct.int32)).reshape((1, tn))
        scores = ct.where((at <= row) & (at > row - window), scores, -1.0e30)
        weights, shrink, largest, powers = weigh(scores, largest, powers)
        value = ct.load(v, (head // group, j, 0), (1, tn, depth)).reshape((tn, depth))
        total = ct.mma(weights.astype(q.dtype), value, total * shrink)
    ct.store(out, (head, block, 0), (total / powers).astype(out.dtype).reshape((1, tm, depth)))


@ct.kernel(occupancy=2)
def sigmoid_attention(q, k, v, bias, out, scale: float, depth: Int, tm: Int, tn: Int):
    """Weights that do not depend on each other: nothing is folded, and no sum scaled."""
    block, head = ct.bid(0), ct.bid(1)
    query = ct.load(q, (head, block, 0), (1, tm, depth)).reshape((tm, depth))
    added = ct.load(bias, (head,), (1,)).reshape((1, 1))
    total = ct.full((tm, depth), 0.0, dtype=ct.float32)
    for j in range(ct.cdiv(k.shape[1], tn)):
        key = ct.load(k, (head, 0, j), (1, depth, tn), order=(0, 2, 1)).reshape((depth, tn))
        scores = ct.mma(query, key, ct.full((tm, tn), 0.0, dtype=ct.float32)) * scale + added
        weights = 1.0 / (1.0 + ct.exp(-scores))
        value = ct.load(v, (head, j, 0), (1, tn, depth)).reshape((tn, depth))
        total = ct.mma(weights.astype(q.dtype), value, total)
    ct.store(out, (head, block, 0), total.astype(out.dtype).reshape((1, tm, depth)))


@ct.kernel
def column_sums(x, out, rows: Int, columns: Int, each: Int):
    """The gradient of a bias."""
    block, part = ct.bid(0), ct.bid(1)
    total = ct.full((columns,), 0, dtype=ct.float32)
    for r in range(each):
        found = ct.load(x, (block * each + r, part), (rows, columns), padding_mode=ZERO)
        total += ct.sum(found.astype(ct.float32), axis=0)
    ct.atomic_add(out, part * columns + ct.arange(columns, dtype=ct.int32), total)


@ct.kernel
def heads_first(x, out, rows: Int, depth: Int, heads: Int):
    """(batch, positions, heads, depth) to (batch, heads, positions, depth)."""
    batch, block, group = ct.bid(0), ct.bid(1), ct.bid(2)
    part = ct.load(x, (batch, block, group, 0), (1, rows, heads, depth))
    ct.store(out, (batch, group, block, 0), ct.permute(part, (0, 2, 1, 3)))


@ct.kernel
def silu_gradient(gate, up, dy, dgate, dup, tile: Int):
    """Gradients of silu(gate) * up."""
    i = ct.bid(0)
    g = ct.load(gate, (i,), (tile,)).astype(ct.float32)
    u = ct.load(up, (i,), (tile,)).astype(ct.float32)
    d = ct.load(dy, (i,), (tile,)).astype(ct.float32)
    s = 1 / (1 + ct.exp(-g))
    ct.store(dup, (i,), (d * g * s).astype(dup.dtype))
    ct.store(dgate, (i,), (d * u * s * (1 + g * (1 - s))).astype(dgate.dtype))


@ct.kernel
def dropped_norm(x, residual, gain, out, summed, keep: float, seed: int, eps: float, columns: Int):
    """Layer norm of a residual and what is kept of x."""
    row = ct.bid(0)
    at = (row * columns + ct.arange(columns, dtype=ct.int32)).reshape((1, columns))
    part = ct.load(x, (row, 0), (1, columns)).astype(ct.float32)
    part = ct.where(uniform(at + seed) < keep, part / keep, 0.0)
    part = part + ct.load(residual, (row, 0), (1, columns)).astype(ct.float32)
    ct.store(summed, (row, 0), part.astype(summed.dtype))
    mean = ct.sum(part) / columns
    variance = ct.sum((part - mean) * (part - mean)) / columns
    weights = ct.load(gain, (0,), (columns,)).reshape((1, columns)).astype(ct.float32)
    result = (part - mean) * ct.rsqrt(variance + eps) * weights
    ct.store(out, (row, 0), result.astype(out.dtype))


@ct.kernel(occupancy=2)
def split_decode(q, k, v, out, sums, scale: float, depth: Int, heads: Int, tn: Int, each: Int):
    """One query of `heads` that share keys, of which a block has `each` tiles."""
    batch, group, split = ct.bid(0), ct.bid(1), ct.bid(2)
    query = ct.load(q, (batch, group, 0, 0), (1, 1, heads, depth)).reshape((heads, depth))
    largest = ct.full((heads, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((heads, 1), 0.0, dtype=ct.float32)
    total = ct.full((heads, depth), 0.0, dtype=ct.float32)
    for j in range(each):
        at = split * each + j
        key = ct.load(k, (batch, group, 0, at), (1, 1, depth, tn), order=(0, 1, 3, 2))
        scores = ct.full((heads, tn), 0.0, dtype=ct.float32)
        scores = ct.mma(query, key.reshape((depth, tn)), scores) * scale
        weights, shrink, largest, powers = weigh(scores, largest, powers)
        value = ct.load(v, (batch, group, at, 0), (1, 1, tn, depth)).reshape((tn, depth))
        total = ct.mma(weights.astype(q.dtype), value, total * shrink)
    result = (total / powers).reshape((1, 1, 1, heads, depth))
    ct.store(out, (batch, group, split, 0, 0), result)
    ct.store(sums, (batch, group, split, 0), (largest + ct.log2(powers)).reshape((1, 1, 1, heads)))


@ct.kernel
def small_products(a, b, out, n: Int):
    """One product of n x n for each block."""
    i = ct.bid(0)
    left = ct.load(a, (i, 0, 0), (1, n, n)).astype(ct.tfloat32)
    right = ct.load(b, (i, 0, 0), (1, n, n)).astype(ct.tfloat32)
    ct.store(out, (i, 0, 0), ct.mma(left, right, ct.full((1, n, n), 0, dtype=ct.float32)))


@ct.kernel
def block_sparse(a, b, starts, columns_of, out, tm: Int, tn: Int, tk: Int):
    """A matrix of block rows, of which `a` has the blocks that are not zero, times b."""
    row, column = ct.bid(0), ct.bid(1)
    first = ct.load(starts, (row,), (1,)).reshape(())
    last = ct.load(starts, (row + 1,), (1,)).reshape(())
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for p in range(first, last):
        k = ct.load(columns_of, (p,), (1,)).reshape(())
        left = ct.load(a, (p, 0, 0), (1, tm, tk)).reshape((tm, tk))
        total = ct.mma(left, ct.load(b, (k, column), (tk, tn)), total)
    ct.store(out, (row, column), total.astype(out.dtype))
