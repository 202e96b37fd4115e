"""Products with block scales as users have them: `speed.py --rows scaled_rows:ROWS`.

All have 4096 rows, columns and elements along K. "MXFP8" and "MXFP4" have a power of two for 32
elements (OCP Microscaling Formats), "NVFP4" an e4m3 for 16; "interleaved" scales lie as `tcgen05`
wants them, others in rows.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from speed_rows import Launch, Row, Tile, zeros

_EXTENT = 4096
#: Format -> elements of memory, those of a byte, bits that count, of scales, elements of a block.
FORMATS = {
    "MXFP8": ("e4m3", 1, 8, "e8m0", 32),
    "MXFP4": ("u8", 2, 4, "e8m0", 32),
    "NVFP4": ("u8", 2, 4, "e4m3", 16),
}
KERNELS = {
    ("MXFP8", "rows"): "speed_kernels:scaled_matmul",
    ("MXFP8", "interleaved"): "scaled_kernels:interleaved_matmul",
    ("MXFP8", "b in rows"): "scaled_kernels:rows_matmul",
    ("MXFP4", "rows"): "speed_kernels:packed_matmul",
    ("MXFP4", "interleaved"): "scaled_kernels:packed_interleaved_matmul",
    ("NVFP4", "rows"): "speed_kernels:packed_matmul",
    ("NVFP4", "interleaved"): "scaled_kernels:packed_interleaved_matmul",
}


def row(form: str, scales: str, tile: Tile, ctas: int = 1) -> Row:
    kind, in_byte, bits, scale, block = FORMATS[form]
    tm, tn, _ = tile
    n = _EXTENT

    def held(of_b: bool) -> Any:
        if scales == "interleaved":
            return zeros(scale, n // 128, n // block // 4, 32, 16)
        turned = of_b and scales == "b in rows"
        return zeros(scale, n // block, n) if turned else zeros(scale, n, n // block)

    def launch(_: int) -> Launch:
        a, b = (zeros(kind, n, n // in_byte) for _ in range(2))
        arguments = (a, held(False), b, held(True), zeros("f16", n, n), *tile, block)
        return Launch((ceil(n / tm) * ceil(n / tn), 1, 1), arguments)

    name = f"{form}, {scales}, {'x'.join(map(str, tile))}" + (f", {ctas} CTAs" * (ctas > 1))
    moved = 2.0 * n * n / in_byte + 2.0 * n * n / block + 2.0 * n * n
    hints = {"num_ctas": ctas} if ctas > 1 else {}
    return Row(name, KERNELS[form, scales], launch, 2.0 * n**3, moved, bits, hints=hints,
               capability=100)  # fmt: skip


ROWS = (
    row("MXFP8", "rows", (128, 256, 128)),
    row("MXFP8", "rows", (256, 256, 128)),
    row("MXFP8", "rows", (256, 256, 128), 2),
    row("MXFP8", "interleaved", (128, 128, 128)),
    row("MXFP8", "interleaved", (128, 256, 128)),
    row("MXFP8", "interleaved", (256, 256, 128)),
    row("MXFP8", "interleaved", (256, 256, 128), 2),
    row("MXFP8", "b in rows", (128, 128, 128)),
    row("MXFP8", "b in rows", (256, 256, 128), 2),
    row("MXFP4", "rows", (128, 256, 256)),
    row("MXFP4", "rows", (256, 256, 256), 2),
    row("MXFP4", "interleaved", (128, 256, 256)),
    row("MXFP4", "interleaved", (256, 256, 256), 2),
    row("NVFP4", "rows", (128, 128, 128)),
    row("NVFP4", "rows", (128, 256, 256)),
    row("NVFP4", "rows", (256, 256, 256), 2),
    row("NVFP4", "interleaved", (128, 128, 256)),
    row("NVFP4", "interleaved", (128, 256, 256)),
    row("NVFP4", "interleaved", (256, 256, 256), 2),
)
