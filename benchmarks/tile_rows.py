"""Tiles that nobody tuned: rows for `speed.py --rows tile_rows:ROWS`.

Products and attention of speed_rows.py by the tiles of a user who tries some: small and long ones,
of few rows, with deep and with short steps, and heads of other depths.
"""

from __future__ import annotations

from speed_rows import Row, attention_row, batched_row, hinted, matmul_row

_LARGE = (4096, 4096, 2048)

_TILES = (
    (32, 32, 32), (32, 128, 64), (64, 32, 64), (64, 64, 32), (64, 64, 64), (64, 64, 128),
    (64, 128, 64), (64, 256, 64), (128, 32, 64), (128, 64, 64), (128, 64, 128), (128, 128, 32),
    (128, 128, 128), (128, 256, 32), (256, 64, 64), (256, 128, 32), (256, 128, 64), (256, 256, 32),
    (512, 64, 64),
)  # fmt: skip
_TF32_TILES = ((64, 64, 32), (64, 128, 64), (128, 64, 32), (128, 128, 16), (256, 128, 32))
_E4M3_TILES = ((64, 64, 64), (64, 128, 128), (128, 128, 64), (128, 128, 256), (256, 128, 64))
#: Rows of A, the tile: one token and few of a batch.
_FEW = ((16, (16, 64, 128)), (16, (16, 128, 256)), (32, (32, 64, 128)), (64, (64, 64, 128)))
#: The depth of a head, and rows of queries and keys of a tile.
_ATTENTION = (
    (32, (128, 128)), (64, (64, 64)), (64, (128, 32)), (64, (256, 64)), (128, (64, 64)),
    (128, (64, 128)), (128, (128, 32)), (128, (128, 64)), (128, (256, 64)), (256, (64, 32)),
    (256, (64, 64)), (256, (128, 64)),
)  # fmt: skip

#: The same, of which one block has a multiprocessor, and whether it is causal.
_ALONE = (
    (64, False, (128, 128)), (128, False, (128, 128)), (64, False, (256, 128)),
    (128, False, (256, 128)), (128, True, (256, 128)),
)  # fmt: skip


#: Products and attention whose hint asks for pairs of blocks.
_PAIRS_OF_F16 = ((128, 64, 64), (64, 128, 64))
_PAIRS = (
    matmul_row("f16", *_LARGE, (64, 256, 64)), matmul_row("f32", *_LARGE, (128, 128, 32)),
    batched_row("e4m3", 1, *_LARGE, (128, 128, 128)),
    batched_row("e4m3", 1, *_LARGE, (128, 256, 128)),
    attention_row(16, 16, 4096, 4096, 64, False, (128, 64)),
    attention_row(16, 16, 4096, 4096, 128, False, (128, 128)),
    attention_row(16, 16, 4096, 4096, 128, True, (128, 128)),
    attention_row(16, 16, 4096, 4096, 128, False, (256, 128)),
)  # fmt: skip


def _rows() -> list[Row]:
    rows = [matmul_row("f16", *_LARGE, tile) for tile in _TILES]
    rows += [matmul_row("f16", *_LARGE, tile, 2) for tile in _PAIRS_OF_F16]
    rows += [matmul_row("f32", *_LARGE, tile) for tile in _TF32_TILES]
    rows += [batched_row("e4m3", 1, *_LARGE, tile) for tile in _E4M3_TILES]
    rows += [matmul_row("f16", few, 4096, 4096, tile) for few, tile in _FEW]
    for causal in (False, True):
        rows += [
            attention_row(16, 16, 4096, 4096, depth, causal, tile) for depth, tile in _ATTENTION
        ]
    rows += [
        attention_row(16, 16, 4096, 4096, depth, causal, tile, occupancy=1)
        for depth, causal, tile in _ALONE
    ]
    rows += [hinted(row, "2 CTAs", num_ctas=2) for row in _PAIRS]
    return rows


ROWS = _rows()
