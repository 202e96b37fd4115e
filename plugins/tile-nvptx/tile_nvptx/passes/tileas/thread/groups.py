"""Elements of a fragment that are computed together, a few at a time with one test."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of

#: Elements that are worth a test of their own.
LEAST = 4
#: Elements that are tested together: as many are computed one by one if one of them has to be.
#: Model, us, of quotients one by one and with 4 or 8 of them: attention by sigmoids, 16 heads, 4096
#: x 4096, B200 289, 214, 214; H100 826, 372, 371; norms to e4m3 of 16384 x 4096, B200 63, 43, 43;
#: convolutions through SiLU, B200 393, 410, 417.
MOST = 4


def cut(group: Sequence[int], most: int) -> list[Sequence[int]]:
    return [group[at : at + most] for at in range(0, len(group), most)]


def in_groups(
    cx: Kernel, groups: list[Sequence[int]], made: Callable[[Sequence[int]], ir.Value]
) -> ir.Value:
    """One vector of what is made of each group, elements where the groups say."""
    b = Builder(cx)
    parts = [made(group) for group in groups]
    order = [at for group in groups for at in group]
    picks = [order.index(at) for at in range(len(order))]
    if len({count_of(part.type) for part in parts}) == 1 and len(parts).bit_count() == 1:
        return b.shuffle(b.concat(parts), picks)
    scalars = [b.extract(part, at) for part in parts for at in range(count_of(part.type))]
    return b.vector([scalars[pick] for pick in picks])


def call(cx: Kernel, helper: tuple[str, str], operands: list[ir.Value]) -> ir.Value:
    """What a helper, its name and text, makes of operands, of the type of the first."""
    return cx.state.helpers.call(cx, *helper, operands, operands[0].type).result
