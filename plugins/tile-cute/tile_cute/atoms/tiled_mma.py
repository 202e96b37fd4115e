"""Tiled MMAs: how the threads of several warps share the operands of a product.

`!cute.tiled_mma<"mma.sync...", "(2,2,1):(1,2,4)", "(32,16,16)">` names the instruction, the layout
of warps (warpgroups) along M, N and K, and the tile.
"""

from dataclasses import dataclass

from tile_cute import int_tuple as it
from tile_cute import tiling
from tile_cute.atoms.registry import mma_atom
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout, concat, from_leaves
from tile_cute.linear.layout import LinearLayout
from tile_cute.text import parse_layout


@dataclass(frozen=True)
class Part:
    """A thread's part of an operand of a tiled MMA.

    Attributes:
        layout: ((values), rest, rest).
        lane: what each bit of the thread's number among those of the instruction adds to the
            index: of a warp, or of a warpgroup.
        warps: (warps or warpgroups before it, along it, index from one to the next) of each mode.
    """

    layout: Layout
    lane: tuple[it.Extent, ...]
    warps: tuple[tuple[int, int, it.Extent], ...]


def partition_of(instruction: str, warps: str, operand: str, tensor: Layout) -> Part:
    """How the threads of a tiled MMA share an operand: "A" (M, K), "B" (N, K) or "C" (M, N).

    Args:
        warps: layout of warps along M, N and K: compact, the first along M.

    Raises:
        LayoutError: warps in another order, or a tensor that is no multiple of the tile.
    """
    atom, placed = mma_atom(instruction), parse_layout(warps)
    if not isinstance(placed, Layout) or placed.int_leaves() != Layout(placed.shape).int_leaves():
        raise LayoutError(f"expects warps in order, M first, but got {warps}")
    m, n, k = (*(mode.size for mode in placed), 1, 1)[:3]
    if k != 1:
        raise LayoutError("cannot share K among warps: their sums would have to be added")
    chosen = {
        "A": (atom.a_layout, (atom.m * m, atom.k), ((1, m, atom.m), (m, 1, 0)), False),
        "B": (atom.b_layout, (atom.n * n, atom.k), ((m, n, atom.n), (1, 1, 0)), True),
        "C": (atom.c_layout, (atom.m * m, atom.n * n), ((1, m, atom.m), (m, n, atom.n)), False),
    }
    if operand not in chosen:
        raise LayoutError(f"expects 'operand' to be A, B or C, but got '{operand}'")
    fragment, tile, steps, swapped = chosen[operand]
    if fragment is None or len(tensor) != 2:
        raise LayoutError(f"expects a tensor of two modes, but got {tensor}")
    rests = []
    for mode, extent in zip(tensor, tile, strict=True):
        if mode.size % extent:
            raise LayoutError(f"cannot cut {mode} into tiles of {extent}")
        rests.append(tiling.logical_divide(mode, extent)[1])
    values = from_leaves([(2, at) for at in _weights(fragment, "register", tensor, swapped)])
    layout = concat([concat(list(values)), *rests]) if len(values) > 1 else concat([values, *rests])
    warp = tuple(
        (step, extent, mode(by) if extent > 1 else 0)
        for (step, extent, by), mode in zip(steps, tensor, strict=True)
    )
    lane = _weights(fragment, "lane", tensor, swapped) + _weights(fragment, "warp", tensor, swapped)
    return Part(layout, tuple(lane), warp)


def _weights(fragment: LinearLayout, space: str, tensor: Layout, swapped: bool) -> list[it.Extent]:
    """What each bit of a space of a fragment adds to the index in a tensor of two modes.

    Args:
        swapped: the fragment's coordinates are those of the tensor, the other way round.
    """
    found: list[it.Extent] = []
    for basis in fragment.bases.get(space, ()):
        coordinate = tuple(reversed(basis)) if swapped else tuple(basis)
        index = tensor(*coordinate)
        assert isinstance(index, it.Extent), "the tensor's strides are integers"
        found.append(index)
    return found
