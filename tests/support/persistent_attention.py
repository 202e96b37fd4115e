"""Attention of one thread block over several blocks of queries, for products in turned loops."""

import cuda.tile as ct

_SIZE = 64  # rows, keys and depth


@ct.kernel
def attend(q, k, v, lengths, out, blocks: int, every: int):
    """Rows of q in blocks of 64, of which each reads `lengths[block]` tiles of 64 keys."""
    block = ct.bid(0)
    while block < blocks:
        query = ct.load(q, index=(block, 0), shape=(_SIZE, _SIZE))
        length = ct.load(lengths, index=(block,), shape=()).item()
        largest = ct.full((_SIZE, 1), -1e30, dtype=ct.float32)
        powers = ct.full((_SIZE, 1), 0, dtype=ct.float32)
        total = ct.full((_SIZE, _SIZE), 0, dtype=ct.float32)
        for j in range(length):
            part = ct.load(k, index=(0, j), shape=(_SIZE, _SIZE), order=(1, 0), latency=2)
            scores = ct.mma(query, part, ct.full((_SIZE, _SIZE), 0, dtype=ct.float32))
            now = max(largest, ct.max(scores, axis=-1, keepdims=True))
            weights = ct.exp2(scores - now)
            shrink = ct.exp2(largest - now)
            powers = powers * shrink + ct.sum(weights, axis=-1, keepdims=True)
            values = ct.load(v, index=(j, 0), shape=(_SIZE, _SIZE), latency=4)
            total = ct.mma(ct.astype(weights, q.dtype), values, total * shrink)
            largest = now
        result = total / max(powers, 1e-30)
        ct.store(out, index=(block, 0), tile=ct.astype(result, out.dtype))
        block += every
