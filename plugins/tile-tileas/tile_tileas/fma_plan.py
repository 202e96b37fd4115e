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
from tile_tileas.stages import STAGE_ALIGNMENT, Stage, stage_in, stage_of


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
        shapes, sources, reads = _parts(layouts, step)
        a, b = (stage_of(s, wanted, bits) for s, wanted in zip(sources, reads, strict=True))
        return FmaPlan(step, (a, b), reads, shapes)

    @staticmethod
    @lru_cache(maxsize=256)
    def in_buffers(
        layouts: tuple[LinearLayout, ...], buffers: tuple[LinearLayout, LinearLayout], bits: int
    ) -> FmaPlan:
        """The plan whose parts lie in shared memory as `buffers`, which also tell the step.

        Raises:
            LayoutError: they are not those of parts of A and B.
        """
        step = buffers[0].shape[-1] if buffers[0].rank else 0
        k = layouts[0].shape[-1]
        if not 0 < step <= k or k % step:
            raise LayoutError(f"{buffers[0]} holds no part of K = {k}")
        shapes, sources, reads = _parts(layouts, step)
        a, b = map(stage_in, buffers, sources, reads, (bits, bits))
        return FmaPlan(step, (a, b), reads, shapes)

    @property
    def starts(self) -> tuple[int, int]:
        """Where the parts of A and B begin, in bytes."""
        return 0, -(-self.stages[0].bytes // STAGE_ALIGNMENT) * STAGE_ALIGNMENT

    @property
    def bytes(self) -> int:
        """Shared memory that both parts need."""
        return self.starts[1] + self.stages[1].bytes


def _parts(
    layouts: tuple[LinearLayout, ...], step: int
) -> tuple[tuple[Shape, Shape], tuple[LinearLayout, LinearLayout], tuple[Fragments, Fragments]]:
    """Shapes of the parts of A and B, what threads hold of them, and what they read."""
    a, b, c = layouts
    shapes = ((*a.shape[:-1], step), (*b.shape[:-2], step, b.shape[-1]))
    left, right = subtile(a, shapes[0]), subtile(b, shapes[1])
    if left is None or right is None:
        raise LayoutError(f"threads hold no whole parts of {step} of K")
    reads = _reads(c, shapes[0], c.rank - 1), _reads(c, shapes[1], c.rank - 2)
    return shapes, (left, right), reads


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
