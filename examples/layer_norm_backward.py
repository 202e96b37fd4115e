"""Layer norm, backward: the gradient of x for one row a block, and that of weight and bias for
TILE columns of the rows of a group.

With g = dy * weight and h = (x - mean) * rstd, dx = (g - mean(g) - h * mean(g * h)) * rstd; the
gradient of weight is the sum of dy * h over rows, that of bias the sum of dy.
"""

import cuda.tile as ct
from signatures import array, signature

TILE = 1024


@ct.kernel
def layer_norm_backward(
    dy, x, weight, mean, rstd, dx, dweight, dbias, groups: ct.Constant[int], tile: ct.Constant[int]
):
    row = ct.bid(0)
    zero = ct.PaddingMode.ZERO
    tiles = ct.num_tiles(x, axis=1, shape=(1, tile))
    average = ct.load(mean, index=(row,), shape=(1,))
    scale = ct.load(rstd, index=(row,), shape=(1,))

    slope = ct.full((1, tile), 0, dtype=ct.float32)
    level = ct.full((1, tile), 0, dtype=ct.float32)
    for j in range(tiles):
        gradient = ct.load(dy, index=(row, j), shape=(1, tile), padding_mode=zero)
        part = ct.load(x, index=(row, j), shape=(1, tile), padding_mode=zero)
        gain = ct.load(weight, index=(j,), shape=(tile,), padding_mode=zero)
        pulled = ct.astype(gradient, ct.float32) * ct.astype(gain, ct.float32)
        level += pulled
        slope += pulled * (ct.astype(part, ct.float32) - average) * scale
    slope = ct.sum(slope, axis=1) / x.shape[1]
    level = ct.sum(level, axis=1) / x.shape[1]

    for j in range(tiles):
        gradient = ct.load(dy, index=(row, j), shape=(1, tile), padding_mode=zero)
        gradient = ct.astype(gradient, ct.float32)
        part = ct.load(x, index=(row, j), shape=(1, tile), padding_mode=zero)
        gain = ct.load(weight, index=(j,), shape=(tile,), padding_mode=zero)
        normal = (ct.astype(part, ct.float32) - average) * scale
        result = (gradient * ct.astype(gain, ct.float32) - level - normal * slope) * scale
        ct.store(dx, index=(row, j), tile=ct.astype(result, dx.dtype))
        columns = j * tile + ct.arange(tile, dtype=ct.int32)
        ct.atomic_add(dweight, (row % groups, columns), ct.reshape(gradient * normal, (tile,)))
        ct.atomic_add(dbias, (row % groups, columns), ct.reshape(gradient, (tile,)))


def variant(name, dtype):
    """One signature: any number of rows, a multiple of 8 columns; sums are f32, by group."""
    matrix = array(dtype, 2, shape_divisible_by=[1, 8])
    vector = array(dtype, 1, shape_divisible_by=[8])
    statistic, sums = array(ct.float32, 1), array(ct.float32, 2)
    arguments = [matrix, matrix, vector, statistic, statistic, matrix, sums, sums]
    return signature(name, [*arguments, 2, TILE])


KERNEL = layer_norm_backward
VARIANTS = (variant("layer_norm_backward_f16", ct.float16),)
