"""Products without tensor cores: fused multiply-adds of each thread."""

from __future__ import annotations

from tile_cute.linear import LinearLayout, blocked

from tile_tileas.dots import FMA
from tile_tileas.mma.tier import Planned, Product, Unfit

LANES = 32
#: Rows and columns of an accumulator that one thread multiplies, where there are enough: each row
#: and column that it reads serves four elements.
_ROWS, _COLUMNS = 4, 4
_LANES_ALONG_ROW = 8  # with _COLUMNS of f32 a store of 128 bytes


class FmaTier:
    """Takes every product."""

    family = FMA

    def choose(self, product: Product) -> str | Unfit:
        """Multiply-adds have any type and shape."""
        return FMA

    def has(self, atom: str) -> bool:
        """The tier has one atom, of its own name."""
        return atom == FMA

    def accumulator(self, planned: Planned, *, whole_rows: bool) -> LinearLayout:
        """A block of rows and columns for each thread."""
        batch, m, n, _ = planned.shape
        shape = (batch, m, n) if planned.rank == 3 else (m, n)
        return register_block(shape, planned.num_warps)


def register_block(shape: tuple[int, ...], num_warps: int) -> LinearLayout:
    """Blocks of rows and columns for each thread, as large as keeps all threads at work."""
    *batch, m, n = shape
    count = batch[0] if batch else 1
    room = max(1, count * m * n // (LANES * num_warps))
    columns = min(_COLUMNS, n, room)
    rows = min(_ROWS, m, room // columns)
    along = min(_LANES_ALONG_ROW, n // columns)
    down = min(LANES // along, m // rows)
    along = LANES // down
    deep = min(count, num_warps)
    left = num_warps // deep
    below = min(left, max(1, m // (rows * down)))
    boxes = [[rows, columns], [down, along], [below, left // below]]
    if batch:
        boxes = [[first, *box] for first, box in zip((1, 1, deep), boxes, strict=True)]
    order = tuple(reversed(range(len(shape))))
    return blocked(shape, boxes[0], boxes[1], boxes[2], order)
