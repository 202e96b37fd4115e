"""c = a + b, one tile of TILE elements a block."""

import cuda.tile as ct
from signatures import array, signature

TILE = 1024


@ct.kernel
def vector_add(a, b, c, tile: ct.Constant[int]):
    block = ct.bid(0)
    x = ct.load(a, index=(block,), shape=(tile,))
    y = ct.load(b, index=(block,), shape=(tile,))
    ct.store(c, index=(block,), tile=x + y)


def variant(name, dtype, *, multiple_of):
    """One signature: arrays of any length that is a multiple of `multiple_of`."""
    vector = array(dtype, 1, shape_divisible_by=[multiple_of])
    return signature(name, [vector, vector, vector, TILE])


KERNEL = vector_add
VARIANTS = (
    variant("vector_add_f32", ct.float32, multiple_of=16),
    variant("vector_add_f16", ct.float16, multiple_of=16),
    variant("vector_add_tail_f32", ct.float32, multiple_of=1),
)
