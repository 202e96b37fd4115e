"""Root-mean-square norm: each block scales one row, TILE columns at a time.

y = x * weight / sqrt(mean(x * x) + eps)
"""

import cuda.tile as ct
from signatures import array, scalar, signature

TILE = 1024


@ct.kernel
def rms_norm(x, weight, y, eps, tile: ct.Constant[int]):
    row = ct.bid(0)
    tiles = ct.num_tiles(x, axis=1, shape=(1, tile))
    zero = ct.PaddingMode.ZERO  # adds nothing to the sum of squares

    squares = ct.full((1, tile), 0, dtype=ct.float32)
    for j in range(tiles):
        part = ct.astype(ct.load(x, index=(row, j), shape=(1, tile), padding_mode=zero), ct.float32)
        squares += part * part
    scale = ct.rsqrt(ct.sum(squares, axis=1, keepdims=True) / x.shape[1] + eps)

    for j in range(tiles):
        part = ct.load(x, index=(row, j), shape=(1, tile), padding_mode=zero)
        gain = ct.load(weight, index=(j,), shape=(tile,), padding_mode=zero)
        result = ct.astype(part, ct.float32) * scale * ct.astype(gain, ct.float32)
        ct.store(y, index=(row, j), tile=ct.astype(result, y.dtype))


def variant(name, dtype):
    """One signature: any number of rows, a multiple of 8 columns."""
    matrix = array(dtype, 2, shape_divisible_by=[1, 8])
    gain = array(dtype, 1, shape_divisible_by=[8])
    return signature(name, [matrix, gain, matrix, scalar(ct.float32), TILE])


KERNEL = rms_norm
VARIANTS = (variant("rms_norm_f32", ct.float32), variant("rms_norm_f16", ct.float16))
