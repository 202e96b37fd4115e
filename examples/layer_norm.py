"""Layer norm, forward: each block normalises one row, TILE columns at a time.

y = (x - mean) * rstd * weight + bias, with rstd = 1 / sqrt(variance + eps); mean and rstd are
kept for the backward pass.
"""

import cuda.tile as ct
from signatures import array, scalar, signature

TILE = 1024


@ct.kernel
def layer_norm(x, weight, bias, y, mean, rstd, eps, tile: ct.Constant[int]):
    row = ct.bid(0)
    tiles = ct.num_tiles(x, axis=1, shape=(1, tile))
    columns = x.shape[1]

    total = ct.full((1, tile), 0, dtype=ct.float32)
    for j in range(tiles):
        part = ct.load(x, index=(row, j), shape=(1, tile), padding_mode=ct.PaddingMode.ZERO)
        total += ct.astype(part, ct.float32)
    average = ct.sum(total, axis=1) / columns
    ct.store(mean, index=(row,), tile=average)

    squares = ct.full((1, tile), 0, dtype=ct.float32)
    for j in range(tiles):
        part = ct.load(x, index=(row, j), shape=(1, tile), padding_mode=ct.PaddingMode.ZERO)
        inside = (j * tile + ct.arange(tile, dtype=ct.int32)) < columns
        centred = ct.where(inside, ct.astype(part, ct.float32) - average, 0)
        squares += centred * centred
    scale = 1 / ct.sqrt(ct.sum(squares, axis=1) / columns + eps)
    ct.store(rstd, index=(row,), tile=scale)

    for j in range(tiles):
        part = ct.load(x, index=(row, j), shape=(1, tile), padding_mode=ct.PaddingMode.ZERO)
        gain = ct.astype(ct.load(weight, index=(j,), shape=(tile,)), ct.float32)
        shift = ct.astype(ct.load(bias, index=(j,), shape=(tile,)), ct.float32)
        result = (ct.astype(part, ct.float32) - average) * scale * gain + shift
        ct.store(y, index=(row, j), tile=ct.astype(result, y.dtype))


def variant(name, dtype):
    """One signature: any number of rows, a multiple of 8 columns; statistics are f32."""
    matrix = array(dtype, 2, shape_divisible_by=[1, 8])
    vector = array(dtype, 1, shape_divisible_by=[8])
    statistic = array(ct.float32, 1)
    return signature(
        name,
        [matrix, vector, vector, matrix, statistic, statistic, scalar(ct.float32), TILE],
    )


KERNEL = layer_norm
VARIANTS = (variant("layer_norm_f32", ct.float32), variant("layer_norm_f16", ct.float16))
