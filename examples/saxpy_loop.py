"""y = alpha * x + y; each block walks over tiles, as far apart as there are blocks."""

import cuda.tile as ct
from signatures import array, scalar, signature

TILE = 1024


@ct.kernel
def saxpy_loop(alpha, x, y, tile: ct.Constant[int]):
    tiles = ct.num_tiles(y, axis=0, shape=(tile,))
    for i in range(ct.bid(0), tiles, ct.num_blocks(0)):
        xs = ct.load(x, index=(i,), shape=(tile,))
        ys = ct.load(y, index=(i,), shape=(tile,))
        total = alpha * ct.astype(xs, ct.float32) + ct.astype(ys, ct.float32)
        ct.store(y, index=(i,), tile=ct.astype(total, y.dtype))


def variant(name, dtype):
    """One signature: alpha is an f32 whatever the arrays hold."""
    vector = array(dtype, 1, shape_divisible_by=[16])
    return signature(name, [scalar(ct.float32), vector, vector, TILE])


KERNEL = saxpy_loop
VARIANTS = (variant("saxpy_loop_f32", ct.float32), variant("saxpy_loop_f16", ct.float16))
