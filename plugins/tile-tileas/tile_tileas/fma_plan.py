"""A product without tensor cores: a part of K at a time goes through shared memory. No MLIR here.

Each thread then walks along K and reads the rows of A and the columns of B that its accumulator
needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tile_cute.linear import LayoutError, LinearLayout, subtile
from tile_cute.linear.layout import log2

from tile_tileas.dots import Fragments, Shape
from tile_tileas.stages import staging_layout


@dataclass(frozen=True)
class FmaPlan:
    """Parts of `step` of K; in which layouts those of A and B lie in shared memory."""

    step: int
    buffers: tuple[LinearLayout, LinearLayout]
    parts: tuple[Shape, Shape]  # shapes of the parts

    @staticmethod
    @lru_cache(maxsize=256)
    def of(layouts: tuple[LinearLayout, ...], step: int, bits: int) -> FmaPlan:
        """The plan for operands and an accumulator in `layouts`, of `bits` bits in memory.

        Threads hold whole parts of A and B: `subtile` of their layouts is one.
        """
        shapes, sources = _parts(layouts, step)
        wanted = fma_reads(layouts[2], step)
        a, b = map(staging_layout, sources, wanted, (bits, bits))
        return FmaPlan(step, (a, b), shapes)


def fma_reads(accumulator: LinearLayout, step: int) -> tuple[Fragments, Fragments]:
    """What threads read of parts of A and B, `step` of K, whose products they hold."""
    *batch, m, n = accumulator.shape
    rank = accumulator.rank
    left = _reads(accumulator, (*batch, m, step), rank - 1)
    return left, _reads(accumulator, (*batch, step, n), rank - 2)


def _parts(
    layouts: tuple[LinearLayout, ...], step: int
) -> tuple[tuple[Shape, Shape], tuple[LinearLayout, LinearLayout]]:
    """Shapes of the parts of A and B, and what threads hold of them."""
    a, b, _ = layouts
    shapes = ((*a.shape[:-1], step), (*b.shape[:-2], step, b.shape[-1]))
    left, right = subtile(a, shapes[0]), subtile(b, shapes[1])
    if left is None or right is None:
        raise LayoutError(f"threads hold no whole parts of {step} of K")
    return shapes, (left, right)


def _reads(accumulator: LinearLayout, shape: Shape, axis: int) -> Fragments:
    """What threads read of an operand whose K is `axis`: what the accumulator has in place of it
    is dropped.
    """

    def needed(basis: Shape) -> Shape:
        return tuple(0 if dim == axis else value for dim, value in enumerate(basis))

    bases = {
        space: [needed(basis) for basis in accumulator.bases[space]]
        for space in ("register", "lane", "warp")
    }
    along = tuple(
        tuple(1 << bit if dim == axis else 0 for dim in range(len(shape)))
        for bit in range(log2(shape[axis]))
    )
    whole = {**bases, "register": [*bases["register"], *along]}
    return Fragments(LinearLayout(whole, shape), LinearLayout(bases, shape), along)
