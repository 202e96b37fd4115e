"""Matrix product: a block for each tile of the result, which walks along K tile by tile."""

import cuda.tile as ct
from signatures import array, signature


@ct.kernel
def matmul(a, b, c, rows: ct.Constant[int], columns: ct.Constant[int], depth: ct.Constant[int]):
    row, column = ct.bid(0), ct.bid(1)
    zero = ct.PaddingMode.ZERO  # what lies beyond the edges adds nothing
    total = ct.full((rows, columns), 0, dtype=ct.float32)
    for step in range(ct.num_tiles(a, axis=1, shape=(rows, depth))):
        left = ct.load(a, index=(row, step), shape=(rows, depth), padding_mode=zero)
        right = ct.load(b, index=(step, column), shape=(depth, columns), padding_mode=zero)
        total = ct.mma(left, right, total)
    ct.store(c, index=(row, column), tile=ct.astype(total, c.dtype))


def variant(name, dtype, *tile):
    """One signature: matrices of any shape, rows of which start at multiples of 16 bytes."""
    return signature(name, [array(dtype, 2), array(dtype, 2), array(dtype, 2), *tile])


KERNEL = matmul
VARIANTS = (
    variant("matmul_f16", ct.float16, 64, 64, 32),
    variant("matmul_f32", ct.float32, 32, 64, 16),
    variant("matmul_large_f16", ct.float16, 128, 128, 64),
)
