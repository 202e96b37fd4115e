"""A product without tensor cores: a part of K at a time goes through shared memory. No MLIR here.

Each thread then walks along K and reads the rows of A and the columns of B that its accumulator
needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tile_cute.linear import LinearLayout, subtile
from tile_cute.linear.layout import log2

from tile_tileas.dots import Fragments, Shape
from tile_tileas.stages import STAGE_ALIGNMENT, Stage, stage_of


@dataclass(frozen=True)
class FmaPlan:
    """Parts of `step` of K; how those of A and B pass through shared memory."""

    step: int
    stages: tuple[Stage, Stage]
    reads: tuple[Fragments, Fragments]
    parts: tuple[Shape, Shape]  # shapes of the parts

    @staticmethod
    @lru_cache(maxsize=256)
    def of(layouts: tuple[LinearLayout, ...], step: int, bits: int) -> FmaPlan:
        """The plan for operands and an accumulator in `layouts`, of `bits` bits in memory.

        Threads hold whole parts of A and B: `subtile` of their layouts is one.
        """
        a, b, c = layouts
        shapes = ((*a.shape[:-1], step), (*b.shape[:-2], step, b.shape[-1]))
        sources = tuple(subtile(one, shape) for one, shape in zip((a, b), shapes, strict=True))
        reads = _reads(c, shapes[0], c.rank - 1), _reads(c, shapes[1], c.rank - 2)
        found = []
        for source, wanted in zip(sources, reads, strict=True):
            assert source is not None, "layout assignment keeps parts of K in threads"
            found.append(stage_of(source, wanted, bits))
        return FmaPlan(step, (found[0], found[1]), reads, shapes)

    @property
    def starts(self) -> tuple[int, int]:
        """Where the parts of A and B begin, in bytes."""
        return 0, -(-self.stages[0].bytes // STAGE_ALIGNMENT) * STAGE_ALIGNMENT

    @property
    def bytes(self) -> int:
        """Shared memory that both parts need."""
        return self.starts[1] + self.stages[1].bytes


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
