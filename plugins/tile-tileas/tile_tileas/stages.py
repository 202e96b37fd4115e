"""Operands of a product that pass through shared memory: layouts, stores and loads. No MLIR here.

Both operands are stored, then there is one barrier, and fragments are read as the product goes
along K: only those of one step need registers. Operands that come as fragments stay there.

The buffer's layout is the cheapest of those that copies and matrix loads agree on (rows of 16-byte
pieces, swizzled) and the one that serves this store and this load best; "cheapest" counts
wavefronts, bank conflicts included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import xor

from tile_cute.atoms import find_copies
from tile_cute.linear import (
    LayoutError,
    LinearLayout,
    MatrixSide,
    SharedSide,
    byte_matrix_access,
    matrix_access,
    memory_access,
    shared_layouts,
    swizzled_rows,
)
from tile_cute.linear.memory import offsets_in
from tile_cute.linear.plans import ACCESS_COST, WAVEFRONT_COST

from tile_tileas.dots import Fragments

_BYTE = 8
_SWIZZLES = (128, 64, 32, 16)  # bytes, the widest first
#: How many times as long as in the best layout fragments may be read where nobody stores the tile.
#: RTX 5090 (model), tf32 of 4096 x 4096 x 2048 by four warps, us, B in boxes of 8 columns, which is
#: read in half of the time, and of 32: 128 x 128 x 16 1716 and 1079, 64 x 128 x 64 1273 and 1001.
_MOST_OF_BEST = 2.25


@dataclass(frozen=True)
class Reading:
    """How fragments of an operand are read from a buffer in shared memory.

    Offsets are in elements. `load` reads the fragments of one step along K; step k reads at
    offsets XORed with `steps[k]`.
    """

    load: SharedSide | MatrixSide
    steps: tuple[int, ...]
    elem_bytes: int

    @property
    def cost(self) -> int:
        """Quarter cycles of a warp, as plans of conversions count them."""
        once = ACCESS_COST * len(_accesses(self.load)) + WAVEFRONT_COST * self.load.wavefronts
        return once * len(self.steps)


def _accesses(side: SharedSide | MatrixSide) -> tuple[object, ...]:
    return side.accesses if isinstance(side, MatrixSide) else side.accesses[0]


@lru_cache(maxsize=512)
def staging_layout(
    source: LinearLayout,
    wanted: Fragments,
    bits: int,
    *,
    turns_bytes: bool = False,
    brought_along: int | None = None,
) -> LinearLayout:
    """The buffer (offset -> tile) through which `source` becomes fragments most cheaply, for
    elements of `bits` bits in memory.

    `turns_bytes`: the target has ldmatrix for matrices of bytes to transpose. `brought_along`: the
    axis along which rows lie that a tensor map would bring, if no other layout is read in less than
    half of the time: no thread stores anything then.
    """

    def cost(buffer: LinearLayout) -> int:
        store = memory_access(buffer, source, bits)
        writes = ACCESS_COST * len(store.accesses[0]) + WAVEFRONT_COST * store.wavefronts
        return writes + reading(buffer, wanted, bits, turns_bytes=turns_bytes).cost

    best = min(_buffers(source, wanted, bits), key=cost)
    if brought_along is None:
        return best

    def read(buffer: LinearLayout) -> int:
        return reading(buffer, wanted, bits, turns_bytes=turns_bytes).cost

    boxes = list(_rows(source, brought_along, bits))
    if best in boxes:
        return best
    # The widest: narrow rows are many boxes.
    return next((one for one in boxes if read(one) <= _MOST_OF_BEST * read(best)), best)


def turns_bytes(chip: str) -> bool:
    """Whether `chip` ("sm_90a") has the ldmatrix that transposes matrices of bytes."""
    return any(
        copy.supported_on(chip)
        for copy in find_copies(family="ldmatrix")
        if copy.name == "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8"
    )


def _buffers(source: LinearLayout, wanted: Fragments, bits: int) -> Iterator[LinearLayout]:
    for fast in (source.rank - 1, source.rank - 2):
        yield from _rows(source, fast, bits)
    for load in (wanted.step, wanted.whole):
        for choice in shared_layouts(source, load, bits):
            yield choice.layout


def _rows(source: LinearLayout, fast: int, bits: int) -> Iterator[LinearLayout]:
    """Swizzled rows along `fast`, one of the last two axes."""
    last = source.rank - 1
    order = (fast, 2 * last - 1 - fast, *reversed(range(last - 1)))
    for width in _SWIZZLES:
        if width * 8 <= source.shape[fast] * bits:
            yield swizzled_rows(source.shape, order, bits, width)


@lru_cache(maxsize=512)
def reading(
    buffer: LinearLayout, wanted: Fragments, bits: int, *, turns_bytes: bool = False
) -> Reading:
    """How fragments are read from shared memory laid out as `buffer`.

    Raises:
        LayoutError: `buffer` does not hold the tile, each element once.
    """
    load = part_access(buffer, wanted.step, bits, turns_bytes=turns_bytes)
    along = LinearLayout({"register": wanted.steps}, buffer.shape)
    offsets = [0]
    for bit in offsets_in(buffer, along)["register"]:
        offsets += [place ^ bit for place in offsets]
    return Reading(load, tuple(offsets), bits // 8)


@lru_cache(maxsize=512)
def part_access(
    buffer: LinearLayout, part: LinearLayout, bits: int, *, turns_bytes: bool = False
) -> SharedSide | MatrixSide:
    """How a part of a tile, in coordinates of the whole, is read from shared memory laid out as
    `buffer`.

    Raises:
        LayoutError: `buffer` does not hold the tile, each element once.
    """
    shape = part.shape
    whole = buffer.is_injective and buffer.is_surjective
    if buffer.shape != shape or buffer.spaces not in (("offset",), ()) or not whole:
        raise LayoutError(f"{buffer} is no layout in shared memory of a tile of {shape}")
    sides: list[SharedSide | MatrixSide] = [memory_access(buffer, part, bits)]
    for transposed in (False, True):
        matrix = matrix_access(buffer, part, bits, transposed=transposed)
        if matrix is not None:
            sides.append(matrix)
    turned = byte_matrix_access(buffer, part) if turns_bytes and bits == _BYTE else None
    if turned is not None:
        sides.append(turned)
    return min(sides, key=lambda side: WAVEFRONT_COST * side.wavefronts + len(_accesses(side)))


def offset_of(buffer: LinearLayout, corner: tuple[int, ...]) -> int:
    """Where the element at `corner` lies, in elements. A part whose first element it is lies where
    that at the origin does, XORed with it, if no coordinate of that one has a bit of `corner`.
    """
    bits = [
        tuple(1 << bit if axis == at else 0 for axis in range(len(corner)))
        for at, place in enumerate(corner)
        for bit in range(place.bit_length())
        if place >> bit & 1
    ]
    places = offsets_in(buffer, LinearLayout({"register": bits}, buffer.shape))["register"]
    return reduce(xor, places, 0)
