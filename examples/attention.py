"""Attention, forward: softmax(scale * Q K^T) V, never holding a whole row of the scores.

A block computes ROWS rows of one head. It walks along keys and values, and keeps the largest score
of each row so far, the sum of the powers and the weighted sum of values; when the largest grows,
what has been summed shrinks (Milakov and Gimelshein, "Online normalizer calculation for softmax";
Dao, "FlashAttention-2").
"""

import math

import cuda.tile as ct
from signatures import array, scalar, signature

LOG2_E = 1 / math.log(2)  # powers of two are what the hardware has


@ct.kernel
def attention(
    q, k, v, y, scale, rows: ct.Constant[int], keys: ct.Constant[int], depth: ct.Constant[int]
):
    head, block = ct.bid(0), ct.bid(1)
    zero = ct.PaddingMode.ZERO
    length = k.shape[1]
    factor = scale * LOG2_E

    queries = ct.load(q, index=(head, block, 0), shape=(1, rows, depth), padding_mode=zero)
    queries = ct.reshape(queries, (rows, depth))
    largest = ct.full((rows, 1), -math.inf, dtype=ct.float32)
    powers = ct.full((rows, 1), 0, dtype=ct.float32)
    total = ct.full((rows, depth), 0, dtype=ct.float32)
    for j in range(ct.num_tiles(k, axis=1, shape=(1, keys, depth))):
        part = ct.load(k, index=(head, j, 0), shape=(1, keys, depth), padding_mode=zero)
        part = ct.transpose(ct.reshape(part, (keys, depth)))
        scores = ct.mma(queries, part, ct.full((rows, keys), 0, dtype=ct.float32))
        inside = (j * keys + ct.arange(keys, dtype=ct.int32)) < length
        scores = ct.where(ct.reshape(inside, (1, keys)), scores * factor, -math.inf)

        now = ct.maximum(largest, ct.max(scores, 1, keepdims=True))
        weights = ct.exp2(scores - now)
        shrink = ct.exp2(largest - now)
        powers = powers * shrink + ct.sum(weights, 1, keepdims=True)
        values = ct.load(v, index=(head, j, 0), shape=(1, keys, depth), padding_mode=zero)
        values = ct.reshape(values, (keys, depth))
        total = ct.mma(ct.astype(weights, q.dtype), values, total * shrink)
        largest = now
    result = ct.reshape(ct.astype(total / powers, y.dtype), (1, rows, depth))
    ct.store(y, index=(head, block, 0), tile=result)


def variant(name, dtype, *tile):
    """One signature: (heads, length, depth); any number of heads, any length."""
    tensor = array(dtype, 3, shape_divisible_by=[1, 1, 8])
    return signature(name, [tensor] * 4 + [scalar(ct.float32), *tile])


KERNEL = attention
VARIANTS = (
    variant("attention_f16", ct.float16, 64, 64, 64),
    variant("attention_large_f16", ct.float16, 128, 128, 128),
)
