"""cuTile programs that benchmarks/speed.py times, where `examples/` has none of that form.

Each takes its arguments in the order of the kernel of cuTile's benchmarks that it stands for, so
that those can be timed in its place (`speed.py --suite`).
"""

import math

import cuda.tile as ct

Int = ct.Constant[int]
Flag = ct.Constant[bool]
ZERO = ct.PaddingMode.ZERO
LOG2_E = 1 / math.log(2)  # powers of two are what the hardware has
GROUP = 8  # rows of tiles that are walked together, so that what they share stays in L2


def place(block, rows, columns):
    """Row and column of a tile: bands of GROUP rows of tiles, column by column within a band."""
    band = block // (GROUP * columns)
    height = min(rows - band * GROUP, GROUP)
    return band * GROUP + block % height, block % (GROUP * columns) // height


def product(a, b, row, column, first, step, tm, tn, tk):
    """One tile of a @ b, over every `step`-th tile of K from `first` on; f32 goes through tf32."""
    kind = ct.tfloat32 if a.dtype == ct.float32 else a.dtype
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(first, ct.num_tiles(a, axis=1, shape=(tm, tk)), step):
        left = ct.load(a, index=(row, k), shape=(tm, tk), padding_mode=ZERO).astype(kind)
        right = ct.load(b, index=(k, column), shape=(tk, tn), padding_mode=ZERO).astype(kind)
        total = ct.mma(left, right, total)
    return total


@ct.kernel
def matmul(a, b, c, tm: Int, tn: Int, tk: Int):
    rows, columns = ct.cdiv(a.shape[0], tm), ct.cdiv(b.shape[1], tn)
    row, column = place(ct.bid(0), rows, columns)
    total = product(a, b, row, column, 0, 1, tm, tn, tk)
    ct.store(c, index=(row, column), tile=ct.astype(total, c.dtype))


@ct.kernel
def persistent_matmul(a, b, c, tm: Int, tn: Int, tk: Int):
    rows, columns = ct.cdiv(a.shape[0], tm), ct.cdiv(b.shape[1], tn)
    for block in range(ct.bid(0), rows * columns, ct.num_blocks(0)):
        row, column = place(block, rows, columns)
        total = product(a, b, row, column, 0, 1, tm, tn, tk)
        ct.store(c, index=(row, column), tile=ct.astype(total, c.dtype))


@ct.kernel
def scaled_matmul(a, a_scale, b, b_scale, c, tm: Int, tn: Int, tk: Int, block: Int):
    """a @ b.T, with a scale for each `block` elements along K of either."""
    rows, columns = ct.cdiv(a.shape[0], tm), ct.cdiv(b.shape[0], tn)
    row, column = place(ct.bid(0), rows, columns)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk))):
        left = ct.load(a, index=(row, k), shape=(tm, tk), padding_mode=ZERO)
        right = ct.load(b, index=(column, k), shape=(tn, tk), padding_mode=ZERO)
        scales = (
            ct.load(a_scale, index=(row, k), shape=(tm, tk // block), padding_mode=ZERO),
            ct.load(b_scale, index=(column, k), shape=(tn, tk // block), padding_mode=ZERO),
        )
        total = ct.mma_scaled(left, scales[0], ct.transpose(right), ct.transpose(scales[1]), total)
    ct.store(c, index=(row, column), tile=ct.astype(total, c.dtype))


@ct.kernel
def packed_matmul(a, a_scale, b, b_scale, c, tm: Int, tn: Int, tk: Int, block: Int):
    """a @ b.T of numbers of four bits, two to a byte, with a scale for each `block` along K."""
    rows, columns = ct.cdiv(a.shape[0], tm), ct.cdiv(b.shape[0], tn)
    row, column = place(ct.bid(0), rows, columns)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk // 2))):
        left = ct.load(a, index=(row, k), shape=(tm, tk // 2), padding_mode=ZERO)
        right = ct.load(b, index=(column, k), shape=(tn, tk // 2), padding_mode=ZERO)
        left = ct.unpack_from_bytes(left.reshape((-1,)), ct.float4_e2m1fn).reshape((tm, tk))
        right = ct.unpack_from_bytes(right.reshape((-1,)), ct.float4_e2m1fn).reshape((tn, tk))
        scales = (
            ct.load(a_scale, index=(row, k), shape=(tm, tk // block), padding_mode=ZERO),
            ct.load(b_scale, index=(column, k), shape=(tn, tk // block), padding_mode=ZERO),
        )
        total = ct.mma_scaled(left, scales[0], ct.transpose(right), ct.transpose(scales[1]), total)
    ct.store(c, index=(row, column), tile=ct.astype(total, c.dtype))


@ct.kernel
def split_k_matmul(a, b, c, locks, counts, tm: Int, tn: Int, tk: Int, parts: Int):
    """Blocks of the second axis take every `parts`-th tile of K, and add under a lock a tile."""
    rows, columns = ct.cdiv(a.shape[0], tm), ct.cdiv(b.shape[1], tn)
    block = ct.bid(0)
    row, column = place(block, rows, columns)
    total = product(a, b, row, column, ct.bid(1), parts, tm, tn, tk)
    part = ct.astype(total, c.dtype)
    while ct.atomic_cas(locks, block, 0, 1, memory_order=ct.MemoryOrder.ACQUIRE) == 1:
        pass
    before = ct.gather(counts, block)
    if before == 0:
        ct.store(c, index=(row, column), tile=part)
    else:
        there = ct.load(c, index=(row, column), shape=(tm, tn))
        ct.store(c, index=(row, column), tile=there + part)
    ct.scatter(counts, block, (before + 1) % parts)
    ct.atomic_xchg(locks, block, 0, memory_order=ct.MemoryOrder.RELEASE)


@ct.kernel
def attention(
    q, k, v, out, scale: float, first: int, depth: Int, heads: Int, rows: Int, keys: Int,
    sharing: Int, causal: Flag, even: Flag,
):  # fmt: skip
    """Rows of one head of q (batch, heads, length, depth); `sharing` heads have the same keys.

    `first` is the position of the first query, `even` whether the keys fill their tiles.
    """
    block, which = ct.bid(0), ct.bid(1)
    batch, head = which // heads, which % heads
    source = head // sharing
    length = k.shape[2]
    factor = scale * LOG2_E
    query = ct.load(q, index=(batch, head, block, 0), shape=(1, 1, rows, depth))
    query = ct.reshape(query, (rows, depth))
    at_row = ct.reshape(first + block * rows + ct.arange(rows, dtype=ct.int32), (rows, 1))
    at_key = ct.reshape(ct.arange(keys, dtype=ct.int32), (1, keys))
    largest = ct.full((rows, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((rows, 1), 0, dtype=ct.float32)
    total = ct.full((rows, depth), 0, dtype=ct.float32)

    end, masked = length, length // keys  # keys that count, tiles that need no mask
    if causal:
        end = min(first + (block + 1) * rows, length)
        masked = min((first + block * rows) // keys, masked)
    for j in range(ct.cdiv(end, keys)):
        # Read transposed, as a product takes it.
        part = ct.load(
            k, index=(batch, source, 0, j), shape=(1, 1, depth, keys), order=(0, 1, 3, 2), latency=2
        )
        scores = ct.full((rows, keys), 0, dtype=ct.float32)
        scores = ct.mma(query, ct.reshape(part, (depth, keys)), scores)
        if (causal or not even) and j >= masked:
            here = j * keys + at_key
            allowed = ct.full((rows, keys), True, dtype=ct.bool_)
            if not even:
                allowed = allowed & (here < length)
            if causal:
                allowed = allowed & (at_row >= here)
            scores += ct.where(allowed, 0.0, -math.inf)
        now = max(largest, ct.max(scores, axis=-1, keepdims=True) * factor)
        weights = ct.exp2(scores * factor - now, flush_to_zero=True)
        shrink = ct.exp2(largest - now, flush_to_zero=True)
        powers = powers * shrink + ct.sum(weights, axis=-1, keepdims=True)
        values = ct.load(v, index=(batch, source, j, 0), shape=(1, 1, keys, depth), latency=4)
        values = ct.reshape(values, (keys, depth))
        total = ct.mma(ct.astype(weights, q.dtype), values, total * shrink)
        largest = now
    result = ct.truediv(total, powers, flush_to_zero=True, rounding_mode=ct.RoundingMode.APPROX)
    result = ct.astype(ct.reshape(result, (1, 1, rows, depth)), out.dtype)
    ct.store(out, index=(batch, head, block, 0), tile=result)


@ct.kernel
def rms_norm(x, w, out, rstd, columns: Int, eps: ct.Constant[float], tile: Int):
    row = ct.bid(0)
    squares = ct.full((1, tile), 0, dtype=ct.float32)
    for j in range(ct.cdiv(x.shape[1], tile)):
        part = ct.load(x, index=(row, j), shape=(1, tile), padding_mode=ZERO, allow_tma=False,
                       latency=1).astype(ct.float32)  # fmt: skip
        squares += part * part
    scale = ct.rsqrt(ct.sum(squares, axis=1) / columns + eps)
    ct.store(rstd, index=(row,), tile=scale)
    for j in range(ct.cdiv(x.shape[1], tile)):
        gain = ct.load(w, index=(j,), shape=(tile,), allow_tma=False, latency=1)
        part = ct.load(x, index=(row, j), shape=(1, tile), allow_tma=False, latency=1)
        result = part.astype(ct.float32) * scale * gain.astype(ct.float32)
        ct.store(out, index=(row, j), tile=result.astype(x.dtype), allow_tma=False, latency=1)


@ct.kernel
def rms_norm_gather(x, w, out, rstd, columns: Int, eps: ct.Constant[float], tile: Int):
    row = ct.bid(0)
    squares = ct.full((tile,), 0, dtype=ct.float32)
    lane = ct.arange(tile, dtype=ct.int32)
    for j in range(ct.cdiv(columns, tile)):
        part = ct.gather(x, (row, j * tile + lane), latency=1).astype(ct.float32)
        squares += part * part
    scale = ct.rsqrt(ct.sum(squares, axis=0) / columns + eps)
    ct.scatter(rstd, row, scale)
    for j in range(ct.cdiv(columns, tile)):
        at = j * tile + lane
        gain = ct.gather(w, at, latency=1).astype(ct.float32)
        result = ct.gather(x, (row, at), latency=1).astype(ct.float32) * scale * gain
        ct.scatter(out, (row, at), result.astype(x.dtype), latency=1)


@ct.kernel
def rms_norm_persistent(x, y, w, tm: Int, tn: Int, columns: Int, eps: ct.Constant[float]):
    gain = ct.load(w, index=(0,), shape=(columns,), padding_mode=ZERO)
    parts = ct.cdiv(columns, tn)
    for block in range(ct.bid(0), ct.cdiv(x.shape[0], tm), ct.num_blocks(0)):
        squares = ct.full((tm, 1), 0, dtype=ct.float32)
        for j in range(parts):
            part = ct.load(x, index=(block, j), shape=(tm, tn), latency=10, padding_mode=ZERO)
            part = part.astype(ct.float32)
            squares += ct.sum(part * part, axis=1, keepdims=True)
        scale = ct.rsqrt(squares / columns + eps)
        for j in range(parts):
            part = ct.load(x, index=(block, j), shape=(tm, tn), latency=10, padding_mode=ZERO)
            result = part.astype(ct.float32) * scale * ct.extract(gain, (j,), (tn,))
            ct.store(y, index=(block, j), tile=result.astype(x.dtype), allow_tma=False, latency=3)


@ct.kernel
def layer_norm_sums(dw, db, out_w, out_b, tm: Int, tn: Int):
    """Backward, second part: the columns' sums of partial gradients."""
    column = ct.bid(0)
    w, b = ct.zeros((tm, tn), dtype=ct.float32), ct.zeros((tm, tn), dtype=ct.float32)
    for i in range(ct.num_tiles(dw, axis=0, shape=(tm, tn))):
        w += ct.load(dw, index=(i, column), shape=(tm, tn), padding_mode=ZERO)
        b += ct.load(db, index=(i, column), shape=(tm, tn), padding_mode=ZERO)
    ct.store(out_w, index=(column,), tile=ct.sum(w, axis=0).astype(out_w.dtype))
    ct.store(out_b, index=(column,), tile=ct.sum(b, axis=0).astype(out_b.dtype))


@ct.kernel
def transpose(x, y, tm: Int, tn: Int):
    row, column = ct.bid(0), ct.bid(1)
    tile = ct.load(x, index=(row, column), shape=(tm, tn))
    ct.store(y, index=(column, row), tile=ct.transpose(tile))


@ct.kernel
def copy(x, y, tm: Int, tn: Int):
    row, column = ct.bid(0), ct.bid(1)
    ct.store(y, index=(row, column), tile=ct.load(x, index=(row, column), shape=(tm, tn)))


@ct.kernel
def add_gathered(a, b, c, tile: Int):
    at = ct.bid(0) * tile + ct.arange(tile, dtype=ct.int32)
    ct.scatter(c, at, ct.gather(a, at) + ct.gather(b, at))


@ct.kernel
def softmax_rows(x, y, rows: Int, columns: Int):
    for row in range(ct.bid(0), rows, ct.num_blocks(0)):
        values = ct.load(x, index=(row, 0), shape=(1, columns)).astype(ct.float32)
        powers = ct.exp(values - ct.max(values, axis=1, keepdims=True))
        result = powers / ct.sum(powers, axis=1, keepdims=True)
        ct.store(y, index=(row, 0), tile=result.astype(y.dtype))


@ct.kernel
def moe(
    a, b, c, weights, tokens, experts, replicas: int, weighted: Flag, tm: Int, tn: Int, tk: Int
):
    """Rows of `a` by token, times the matrix of their expert: one expert for a tile of rows."""
    rows, columns = ct.cdiv(tokens.shape[0], tm), ct.cdiv(b.shape[1], tn)
    row, column = place(ct.bid(0), rows, columns)
    token = ct.gather(tokens, row * tm + ct.arange(tm, dtype=ct.int32))
    source = ct.reshape(token // replicas, (tm, 1))
    expert = ct.load(experts, index=row, shape=())
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(b.shape[2], tk)):
        at = ct.reshape(k * tk + ct.arange(tk, dtype=ct.int32), (1, tk))
        left = ct.gather(a, (source, at))
        right = ct.load(b, (expert, k, column), shape=(1, tk, tn), order=(0, 2, 1),
                        padding_mode=ZERO)  # fmt: skip
        total = ct.mma(left, ct.reshape(right, (tk, tn)), total)
    if weighted:
        total = total * ct.reshape(ct.gather(weights, token), (tm, 1))
    at = ct.reshape(column * tn + ct.arange(tn, dtype=ct.int32), (1, tn))
    ct.scatter(c, (ct.reshape(token, (tm, 1)), at), ct.astype(total, c.dtype))


@ct.kernel
def gated(a, b, c, tile: Int):
    """silu(a) * b, row by row."""
    row = ct.bid(0)
    x = ct.load(a, (row, 0), (1, tile)).astype(ct.float32)
    y = ct.load(b, (row, 0), (1, tile)).astype(ct.float32)
    below = ct.add(1, ct.exp(-x), flush_to_zero=True)
    share = ct.truediv(1.0, below, flush_to_zero=True, rounding_mode=ct.RoundingMode.APPROX)
    result = ct.mul(ct.mul(x, share, flush_to_zero=True), y, flush_to_zero=True)
    ct.store(c, (row, 0), result.astype(c.dtype))


@ct.kernel
def grouped_matmul(several_a, several_b, several_c, blocks: Int, tm: Int, tn: Int, tk: Int):
    """Products of several sizes, tile after tile dealt out to `blocks` blocks."""
    tile, before = ct.bid(0), 0
    for g in range(len(several_a)):
        a, b, c = several_a[g], several_b[g], several_c[g]
        columns = ct.num_tiles(b, 1, (tk, tn))
        count = ct.num_tiles(a, 0, (tm, tk)) * columns
        while tile >= before and tile < before + count:
            row, column = (tile - before) // columns, (tile - before) % columns
            total = ct.zeros((tm, tn), dtype=ct.float32)
            for k in range(ct.num_tiles(a, 1, (tm, tk))):
                left = ct.load(a, (row, k), shape=(tm, tk), padding_mode=ZERO)
                right = ct.load(b, (k, column), shape=(tk, tn), padding_mode=ZERO)
                total = ct.mma(left, right, total)
            ct.store(c, (row, column), tile=ct.astype(total, c.dtype))
            tile += blocks
        before += count


@ct.kernel
def cross_entropy(logits, labels, loss, tm: Int, tn: Int):
    """-log softmax(logits)[label] of each row, in one pass over a vocabulary of any size."""
    row = ct.bid(0)
    largest = ct.full((tm, 1), -1e30, dtype=ct.float32)
    total = ct.full((tm, 1), 0, dtype=ct.float32)
    picked = ct.full((tm, 1), 0, dtype=ct.float32)
    label = ct.load(labels, index=(row,), shape=(tm,)).reshape((tm, 1))
    for j in range(ct.num_tiles(logits, axis=1, shape=(tm, tn))):
        part = ct.load(logits, index=(row, j), shape=(tm, tn), padding_mode=ct.PaddingMode.NEG_INF)
        part = ct.astype(part, ct.float32)
        now = ct.maximum(largest, ct.max(part, axis=1, keepdims=True))
        total = total * ct.exp(largest - now) + ct.sum(ct.exp(part - now), axis=1, keepdims=True)
        largest = now
        column = ct.arange(tn, dtype=ct.int32)[None, :] + j * tn
        picked = picked + ct.sum(ct.where(column == label, part, 0.0), axis=1, keepdims=True)
    ct.store(loss, index=(row,), tile=(ct.log(total) + largest - picked).reshape((tm,)))
