"""Softmax of each row; a row fits into one tile of COLUMNS elements."""

import cuda.tile as ct
from signatures import array, signature

COLUMNS = 1024


@ct.kernel
def softmax(x, y, columns: ct.Constant[int]):
    row = ct.bid(0)
    # Beyond the row's end the tile holds -inf, whose exponential adds nothing.
    padded = ct.load(x, index=(row, 0), shape=(1, columns), padding_mode=ct.PaddingMode.NEG_INF)
    values = ct.astype(padded, ct.float32)
    powers = ct.exp(values - ct.max(values, 1, keepdims=True))
    result = powers / ct.sum(powers, 1, keepdims=True)
    ct.store(y, index=(row, 0), tile=ct.astype(result, y.dtype))


def variant(name, dtype):
    """One signature: rows of any length up to COLUMNS that is a multiple of 8."""
    matrix = array(dtype, 2, shape_divisible_by=[1, 8])
    return signature(name, [matrix, matrix, COLUMNS])


KERNEL = softmax
VARIANTS = (variant("softmax_f32", ct.float32), variant("softmax_f16", ct.float16))
