"""Accesses of a distributed tile to a shared buffer of given layout, and the best such layout."""

from collections.abc import Sequence
from dataclasses import dataclass

from tile_cute import gf2
from tile_cute.errors import LayoutError
from tile_cute.linear.banks import (
    LINE_BITS,
    VECTOR_BITS,
    WORD_BITS,
    Participant,
    conflict_degree,
    design,
    phases,
)
from tile_cute.linear.construct import strided
from tile_cute.linear.layout import LinearLayout, log2
from tile_cute.linear.plans import SharedAccess, SharedSide
from tile_cute.linear.shuffle import register_bits, unique_registers, vector_groups
from tile_cute.swizzle import Swizzle

BANKS = 1 << (LINE_BITS - WORD_BITS)
WORD_BYTES = 1 << WORD_BITS


def count_wavefronts(addresses: Sequence[int | None], access_bytes: int) -> int:
    """Wavefronts of one warp's shared-memory access; `None` for a lane that is off.

    Lanes are served 32 at a time up to 4 bytes, 16 for 8 bytes, 8 for 16 bytes. Each phase takes
    as many wavefronts as the busiest of the 32 banks has distinct 4-byte words. LayoutError for
    a size that no instruction has and an address that is not a multiple of it.
    """
    if access_bytes not in (1, 2, 4, 8, 16):
        raise LayoutError(f"no shared-memory access moves {access_bytes} bytes per lane")
    served = len(addresses) // max(1, access_bytes // WORD_BYTES)
    total = 0
    for first in range(0, len(addresses), max(1, served)):
        words: dict[int, set[int]] = {}
        for address in addresses[first : first + served]:
            if address is None:
                continue
            if address % access_bytes:
                raise LayoutError(f"address {address} is not aligned to {access_bytes} bytes")
            for word in range(
                address // WORD_BYTES, (address + access_bytes - 1) // WORD_BYTES + 1
            ):
                words.setdefault(word % BANKS, set()).add(word)
        total += max(map(len, words.values()), default=0)
    return total


def offsets_in(shared: LinearLayout, tile: LinearLayout) -> dict[str, list[int]]:
    """Element offset that each register, lane and warp bit of `tile` adds in the buffer `shared`.

    LayoutError if the buffer lacks elements or the tiles differ.
    """
    if shared.shape != tile.shape:
        raise LayoutError(f"the buffer {shared} and the tile {tile} differ in shape")
    place = gf2.Span(shared.flat("offset"))
    found: dict[str, list[int]] = {}
    for space in ("register", "lane", "warp"):
        places = [place.solve(v) for v in tile.flat(space)]
        if None in places:
            raise LayoutError(f"the buffer {shared} lacks elements that {tile} has")
        found[space] = [p or 0 for p in places]
    return found


def memory_access(
    shared: LinearLayout,
    tile: LinearLayout,
    elem_bits: int,
    max_bits: int = 128,
    *,
    unique: bool = True,
) -> SharedSide:
    """How the threads of `tile` access a buffer whose layout is `shared` (offset -> tile).

    Vectors are as wide as the two layouts and `max_bits` allow. With `unique`, registers that
    duplicate others of their thread take no part (a load fills them by a copy). LayoutError if
    the buffer lacks elements or the tiles differ.
    """
    elem_log2 = log2(max(8, elem_bits) // 8)
    offsets = offsets_in(shared, tile)
    registers, lanes, warps = offsets["register"], offsets["lane"], offsets["warp"]
    kept = gf2.independent(registers) if unique else registers
    numbers = register_bits(tile) if unique else [1 << i for i in range(len(registers))]
    width = _vector_bits(kept, [*lanes, *warps], min(VECTOR_BITS, log2(max_bits // 8)) - elem_log2)
    accesses = tuple(
        SharedAccess(group, place) for group, place in vector_groups(kept, numbers, width)
    )
    access_log2 = elem_log2 + width
    ideal = len(accesses) * phases(access_log2)
    degree = conflict_degree(lanes, access_log2, elem_log2)
    return SharedSide(
        (accesses,),
        tuple(lanes),
        tuple(warps),
        (0,) * len(warps),
        1 << width,
        ideal * degree,
        ideal,
    )


def _vector_bits(registers: list[int], threads: list[int], limit: int) -> int:
    """How many low offset bits are enumerated by registers and untouched by thread bits."""
    span = gf2.Span(registers)
    if span.rank != len(registers):
        return 0
    bits = 0
    while bits < limit and span.contains(1 << bits):
        if any(vector >> bits & 1 for vector in threads):
            break
        bits += 1
    return bits


@dataclass(frozen=True)
class SharedChoice:
    """A buffer layout for a pair of accesses; see `memory_access` for the two sides."""

    layout: LinearLayout
    store: SharedSide
    load: SharedSide

    @property
    def wavefronts(self) -> int:
        return self.store.wavefronts + self.load.wavefronts


def best_shared_layout(store: LinearLayout, load: LinearLayout, elem_bits: int) -> SharedChoice:
    """The buffer layout (offset -> tile) that both accesses together use with the fewest
    wavefronts. Both layouts must be surjective; ties go to the earlier of: vectors common to
    both sides, wide stores, wide loads.
    """
    if not load.is_surjective:
        raise LayoutError(f"{load} does not hold the whole tile")
    return min(shared_layouts(store, load, elem_bits), key=lambda choice: choice.wavefronts)


def shared_layouts(
    store: LinearLayout, load: LinearLayout, elem_bits: int
) -> tuple[SharedChoice, ...]:
    """Buffer layouts (offset -> tile) with few conflicts, by what their vectors serve: both
    sides, stores, loads. `store` must be surjective; `load` may read a part of the tile.
    """
    if store.shape != load.shape or not store.is_surjective:
        raise LayoutError(f"{store} and {load} do not both hold elements of one whole tile")
    elem_log2 = log2(max(8, elem_bits) // 8)
    sides = [
        Participant(unique_registers(tile)[0], tile.flat("lane"), tile.flat("warp"))
        for tile in (store, load)
    ]
    choices = []
    for wide, narrow, extend in ((0, 1, False), (0, 1, True), (1, 0, True)):
        chosen = design(sides[wide], sides[narrow], store.out_bits, elem_log2, extend)
        forward = gf2.inverse(chosen.columns)
        assert forward is not None
        layout = LinearLayout.from_flat({"offset": forward}, store.shape)
        choices.append(
            SharedChoice(
                layout,
                memory_access(layout, store, elem_bits),
                memory_access(layout, load, elem_bits),
            )
        )
    return tuple(choices)


def swizzled_rows(
    shape: Sequence[int],
    order: Sequence[int],
    elem_bits: int,
    swizzle_bytes: int,
    pattern: Swizzle | None = None,
) -> LinearLayout:
    """A buffer in the swizzle pattern of TMA, wgmma and tcgen05 (offset -> tile).

    Rows of `swizzle_bytes` (32, 64 or 128; 16 for none) along order[0]; a longer extent there is
    cut into columns of that width, each holding all rows, as tensor maps write them. 16-byte
    pieces of a row are XORed with the row number (in units of 128 bytes), unless `pattern` is
    another swizzle of byte addresses.
    """
    names = {16: 0, 32: 1, 64: 2, 128: 3}
    if swizzle_bytes not in names:
        raise LayoutError(f"no swizzle spans {swizzle_bytes} bytes; use 16 (none), 32, 64 or 128")
    span = swizzle_bytes * 8 // elem_bits
    fast = order[0]
    inner = [min(size, span) if dim == fast else size for dim, size in enumerate(shape)]
    plain = list(strided(inner, order).bases["offset"])
    for bit in range(log2(max(1, shape[fast] // span))):
        plain.append(tuple(span << bit if dim == fast else 0 for dim in range(len(shape))))
    in_bytes = pattern or Swizzle(names[swizzle_bytes], 4, 3)
    swizzle = in_bytes.recast(8, 1).recast(1, elem_bits)
    size = 1 << len(plain)
    linear = LinearLayout({"offset": plain}, shape)
    columns = linear.flat("offset")
    moved = [gf2.combine(columns, swizzle(1 << bit) & (size - 1)) for bit in range(len(plain))]
    return LinearLayout.from_flat({"offset": moved}, shape)
