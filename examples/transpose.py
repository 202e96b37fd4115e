"""Transpose of a matrix: each block reads one square tile and writes it with its axes exchanged."""

import cuda.tile as ct
from signatures import array, signature

TILE = 64


@ct.kernel
def transpose(x, y, tile: ct.Constant[int]):
    row, column = ct.bid(0), ct.bid(1)
    zero = ct.PaddingMode.ZERO  # any padding would do: what lies outside is not written
    part = ct.load(x, index=(row, column), shape=(tile, tile), padding_mode=zero)
    ct.store(y, index=(column, row), tile=ct.transpose(part))


def variant(name, dtype):
    """One signature: matrices of any shape, rows of which start at multiples of 16 bytes."""
    matrix = array(dtype, 2, shape_divisible_by=[8, 8])
    return signature(name, [matrix, matrix, TILE])


KERNEL = transpose
VARIANTS = (variant("transpose_f32", ct.float32), variant("transpose_f16", ct.float16))
