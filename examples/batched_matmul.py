"""A product of matrices for each of a batch, one tile of one result for each block."""

import cuda.tile as ct
from signatures import array, signature


@ct.kernel
def batched_matmul(
    a, b, c, rows: ct.Constant[int], columns: ct.Constant[int], depth: ct.Constant[int]
):
    which, row, column = ct.bid(0), ct.bid(1), ct.bid(2)
    zero = ct.PaddingMode.ZERO
    total = ct.full((rows, columns), 0, dtype=ct.float32)
    for step in range(ct.num_tiles(a, axis=2, shape=(1, rows, depth))):
        left = ct.load(a, index=(which, row, step), shape=(1, rows, depth), padding_mode=zero)
        right = ct.load(
            b, index=(which, step, column), shape=(1, depth, columns), padding_mode=zero
        )
        left, right = ct.reshape(left, (rows, depth)), ct.reshape(right, (depth, columns))
        total = ct.mma(left, right, total)
    result = ct.reshape(ct.astype(total, c.dtype), (1, rows, columns))
    ct.store(c, index=(which, row, column), tile=result)


def variant(name, dtype, *tile):
    """One signature: any number of matrices of any shape, whose rows start at 16 bytes."""
    tensor = array(dtype, 3)
    return signature(name, [tensor, tensor, tensor, *tile])


KERNEL = batched_matmul
VARIANTS = (variant("batched_matmul_f16", ct.float16, 128, 64, 32),)
