"""Products with block scales beyond those of speed_kernels.py: scales as `tcgen05` wants them, B
with its rows in memory.
"""

from __future__ import annotations

import cuda.tile as ct
from speed_kernels import ZERO, Int, place

#: Rows and blocks of scales that lie together (PTX ISA, "tcgen05-mma-scale-factor-a-layout-1x").
ROWS, PARTS, BLOCKS = 32, 4, 4


def together(scale, row, k, extent: Int, blocks: Int):
    """A tile of scales, which lie as in cuTile's example: (extent / 128, blocks / 4, 32, 16)."""
    high, wide = extent // (ROWS * PARTS), blocks // BLOCKS
    found = ct.load(scale, index=(row, k, 0, 0), shape=(high, wide, ROWS, PARTS * BLOCKS))
    found = ct.reshape(found, (high, wide, ROWS, PARTS, BLOCKS))
    return ct.reshape(ct.permute(found, (0, 3, 2, 1, 4)), (extent, blocks))


@ct.kernel
def interleaved_matmul(a, a_scale, b, b_scale, c, tm: Int, tn: Int, tk: Int, block: Int):
    """a @ b.T of 8-bit floats; scales of 128 rows and four blocks lie together."""
    rows, columns = ct.cdiv(a.shape[0], tm), ct.cdiv(b.shape[0], tn)
    row, column = place(ct.bid(0), rows, columns)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk))):
        left = ct.load(a, index=(row, k), shape=(tm, tk), padding_mode=ZERO)
        right = ct.load(b, index=(column, k), shape=(tn, tk), padding_mode=ZERO)
        scales = together(a_scale, row, k, tm, tk // block)
        others = together(b_scale, column, k, tn, tk // block)
        total = ct.mma_scaled(left, scales, ct.transpose(right), ct.transpose(others), total)
    ct.store(c, index=(row, column), tile=ct.astype(total, c.dtype))


@ct.kernel
def packed_interleaved_matmul(a, a_scale, b, b_scale, c, tm: Int, tn: Int, tk: Int, block: Int):
    """The same of numbers of four bits, two to a byte."""
    rows, columns = ct.cdiv(a.shape[0], tm), ct.cdiv(b.shape[0], tn)
    row, column = place(ct.bid(0), rows, columns)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk // 2))):
        left = ct.load(a, index=(row, k), shape=(tm, tk // 2), padding_mode=ZERO)
        right = ct.load(b, index=(column, k), shape=(tn, tk // 2), padding_mode=ZERO)
        left = ct.unpack_from_bytes(left.reshape((-1,)), ct.float4_e2m1fn).reshape((tm, tk))
        right = ct.unpack_from_bytes(right.reshape((-1,)), ct.float4_e2m1fn).reshape((tn, tk))
        scales = together(a_scale, row, k, tm, tk // block)
        others = together(b_scale, column, k, tn, tk // block)
        total = ct.mma_scaled(left, scales, ct.transpose(right), ct.transpose(others), total)
    ct.store(c, index=(row, column), tile=ct.astype(total, c.dtype))


@ct.kernel
def rows_matmul(a, a_scale, b, b_scale, c, tm: Int, tn: Int, tk: Int, block: Int):
    """a @ b of 8-bit floats, with rows of `b` and of its scales in memory: cuTile's example."""
    rows, columns = ct.cdiv(a.shape[0], tm), ct.cdiv(b.shape[1], tn)
    row, column = place(ct.bid(0), rows, columns)
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk))):
        left = ct.load(a, index=(row, k), shape=(tm, tk), padding_mode=ZERO)
        right = ct.load(b, index=(k, column), shape=(tk, tn), padding_mode=ZERO)
        scales = ct.load(a_scale, index=(row, k), shape=(tm, tk // block), padding_mode=ZERO)
        others = ct.load(b_scale, index=(k, column), shape=(tk // block, tn), padding_mode=ZERO)
        total = ct.mma_scaled(left, scales, right, others, total)
    ct.store(c, index=(row, column), tile=ct.astype(total, c.dtype))
