"""cuTile programs whose hints hint_rows.py changes, where replace_hints cannot."""

import cuda.tile as ct

Int = ct.Constant[int]


@ct.kernel
def product(a, b, c, tm: Int, tn: Int, tk: Int, latency: Int, allow_tma: ct.Constant[bool]):
    """a @ b, one tile a block; how heavy traffic will be, and whether tensor maps may copy."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk))):
        left = ct.load(a, index=(row, k), shape=(tm, tk), latency=latency, allow_tma=allow_tma)
        right = ct.load(b, index=(k, column), shape=(tk, tn), latency=latency, allow_tma=allow_tma)
        total = ct.mma(left, right, total)
    ct.store(c, index=(row, column), tile=ct.astype(total, c.dtype))
