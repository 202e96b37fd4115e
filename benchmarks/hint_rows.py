"""Hints that a tuner tries, also those that do not suit a kernel: rows for
`speed.py --rows hint_rows:ROWS`. Clusters are in tile_rows.py.
"""

from __future__ import annotations

from math import ceil

import speed_rows
from speed_rows import Launch, Row, Tile, attention_row, batched_row, hinted, matmul_row, zeros

_LARGE = (4096, 4096, 2048)
_TILES = ((64, 64, 64), (64, 128, 64), (128, 128, 64), (128, 256, 64), (256, 256, 64))
#: Kernels that wait for loads, by the beginnings of their names.
_WAITING = (
    "RMS norm f16 65536x1024, regular", "RMS norm f16 65536x2048, gather",
    "RMS norm f16 65536x2048, persistent", "layer norm bf16 2048x8192",
    "softmax f16 65536x1024", "gated SiLU",
)  # fmt: skip


def _product_row(tile: Tile, latency: int, allow_tma: bool) -> Row:
    (m, n, k), (tm, tn, tk) = _LARGE, tile

    def launch(_: int) -> Launch:
        arrays = (zeros("f16", m, k), zeros("f16", k, n), zeros("f16", m, n))
        return Launch((ceil(m / tm), ceil(n / tn), 1), (*arrays, *tile, latency, allow_tma))

    return Row(
        f"product f16 {m}x{n}x{k}, {tm}x{tn}x{tk}, latency {latency}"
        + ("" if allow_tma else ", no TMA"),
        "hint_kernels:product", launch, 2.0 * m * n * k, 2.0 * (m * k + k * n + m * n), 16,
    )  # fmt: skip


def _rows() -> list[Row]:
    products = [matmul_row("f16", *_LARGE, tile) for tile in _TILES]
    products.append(batched_row("e4m3", 1, *_LARGE, (128, 128, 128)))
    attention = [
        attention_row(16, 16, 4096, 4096, depth, causal, tile)
        for depth, causal, tile in ((128, False, (128, 128)), (64, True, (64, 64)))
    ]
    waiting = [row for row in speed_rows.ROWS if row.name.startswith(_WAITING)]
    rows = [hinted(row, f"{n} blocks", occupancy=n) for row in products for n in (2, 4)]
    rows += [hinted(row, f"{n} blocks", occupancy=n) for row in waiting for n in (2, 8)]
    rows += [
        hinted(row, f"{n} warps", num_worker_warps=n)
        for row in (*products, *attention) for n in (4, 8)
    ]  # fmt: skip
    rows += [_product_row(tile, latency, True) for tile in _TILES[:-1] for latency in (1, 10)]
    rows += [_product_row(tile, 4, False) for tile in _TILES[:-1]]
    return rows


ROWS = _rows()
