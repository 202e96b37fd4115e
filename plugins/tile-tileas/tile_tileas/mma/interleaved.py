"""A of wgmma that lies along M in shared memory, of elements which the instruction reads along K
alone: threads read it as fragments. No MLIR here.

Which rows of the tile are those of an atom is free, as long as the sums are taken for the same. So
each thread has rows that lie side by side in memory, and reads them at once; lanes have rows such
that they meet in no bank. Threads then hold neighbouring elements of the sums along M, too.

Of bytes, a thread reads two or four rows at four places along K, and puts together what lies along
K: `byte_words` says which. Lanes that are 8 apart along K would meet in a bank, as a swizzle turns
with 8 of its rows; so the second of two reads what is one further along K first (`as_read`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import permutations

from tile_cute.atoms.descriptors import canonical_buffer
from tile_cute.linear import LinearLayout, memory_access
from tile_cute.linear.layout import log2

#: Bits of elements that threads read so.
BITS_READ = (8, 32)
#: Behind the name of an instruction whose A is read so.
MARK = " (A along M)"
#: Bits of a row's number in an atom that come from lanes and from registers; those below
#: `_ATOM_ROWS` that remain come from warps (PTX ISA, "wgmma.mma_async", fragments).
_LANES, _REGISTER, _ATOM_ROWS = (0, 1, 2), 3, 6
#: Bits of the widest access of a thread, and of rows that choices of lanes are tried with: those of
#: a row of the swizzle.
_WIDEST, _TRIED = 128, 5
_SPANS = {128: "128B", 64: "64B"}
_BYTE = 8
#: (M, K) between lanes of a fragment of bytes that a swizzle treats alike.
TURNED_LANES = (0, 8)

Bases = dict[str, list[tuple[int, ...]]]
Places = Mapping[str, Sequence[tuple[int, ...]]]


def buffer_of(m: int, k: int, bits: int) -> LinearLayout:
    """The buffer (offset -> (m, k)) of such an A; of M 64 and more."""
    return canonical_buffer(m, k, bits, "MN", _SPANS[min(128, m * bits // 8)])


def placed(bases: Places, rows: tuple[int, ...]) -> Bases:
    """Bases of a tile that has bit i of a row's number at `rows[i]`, from those of one that counts
    rows as atoms do.
    """

    def place(row: int) -> int:
        return sum(there for bit, there in enumerate(rows) if row >> bit & 1)

    return {name: [(place(m), rest) for m, rest in found] for name, found in bases.items()}


def as_read(fragments: LinearLayout, bits: int) -> LinearLayout:
    """What threads have of A before they put bytes together, of elements of `bits` bits: lanes 8
    apart along K hold neighbours along K in turned order.
    """
    if bits != _BYTE:
        return fragments
    lanes = [(m, k | 1) if (m, k) == TURNED_LANES else (m, k) for m, k in fragments.bases["lane"]]
    return LinearLayout({**fragments.bases, "lane": lanes}, fragments.shape)


def byte_words(fragments: LinearLayout) -> list[tuple[tuple[int, ...], ...]]:
    """Elements of a thread's A: `[group][place along K][row]`, of four places and two or four rows
    that lie side by side. Each row of a group is a word of the instruction.
    """
    bit = {basis: 1 << at for at, basis in enumerate(fragments.bases["register"])}
    along = bit[0, 1], bit[0, 2]
    rows = [bit[basis] for basis in ((1, 0), (2, 0)) if basis in bit]
    rest = [value for value in bit.values() if value not in (*along, *rows)]
    return [
        tuple(tuple(start + k + row for row in _sums(rows)) for k in _sums(along))
        for start in _sums(rest)
    ]


def _sums(bits: Sequence[int]) -> list[int]:
    """Sums of all subsets, in the order of the numbers whose bits they are."""
    found = [0]
    for bit in bits:
        found += [bit + other for other in found]
    return found


@lru_cache(maxsize=64)
def interleaved_rows(registers: LinearLayout, groups: int, bits: int) -> tuple[int, ...]:
    """Where each bit of a row's number in the atoms of all warpgroups stands in the tile.

    `registers` are A's fragments with rows as atoms count them, of elements of `bits` bits; of the
    rows of atoms the lowest are those of `groups` warpgroups.
    """
    m, k = registers.shape
    count, buffer = log2(m), buffer_of(m, k, bits)
    own = [_REGISTER, *range(_ATOM_ROWS + log2(groups), count)][: log2(_WIDEST // bits)]
    others = [bit for bit in range(count) if bit not in own and bit not in _LANES]
    free = range(len(own), count)

    def rows(lanes: tuple[int, ...]) -> tuple[int, ...]:
        place = dict(zip(own, range(len(own)), strict=True)) | dict(zip(_LANES, lanes, strict=True))
        place |= dict(zip(others, (at for at in free if at not in lanes), strict=True))
        return tuple(1 << place[bit] for bit in range(count))

    def wavefronts(lanes: tuple[int, ...]) -> int:
        found = LinearLayout(placed(registers.bases, rows(lanes)), (m, k))
        return memory_access(buffer, as_read(found, bits), bits).wavefronts

    return rows(min(permutations(free[:_TRIED], len(_LANES)), key=wavefronts))
