"""The shared-memory layout that serves a pair of accesses with the fewest bank conflicts.

Offsets are linear in the element: offset bits are, from the lowest, `V` (the vector one thread
moves), `F` (what else shares a 4-byte word), `B` (the rest of 128 bytes: the banks) and `G` (the
line of 128 bytes). Lanes conflict when their elements differ by something in G, plus anything
within a word. So G is chosen as a common complement of what the storing lanes and what the
loading lanes span, which is as large as such a space can be.

After Zhou et al., "Linear Layouts" (2025), section on optimal swizzling.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tile_cute import gf2

LINE_BITS = 7  # log2 of the 128 bytes that 32 banks serve in one wavefront
WORD_BITS = 2  # log2 of the 4 bytes of one bank
VECTOR_BITS = 4  # log2 of the widest access, 16 bytes


@dataclass(frozen=True)
class Participant:
    """One side of a round trip: bases of registers, lanes and warps in the space of offsets."""

    registers: Sequence[int]
    lanes: Sequence[int]
    warps: Sequence[int]

    @property
    def threads(self) -> list[int]:
        return [*self.lanes, *self.warps]


@dataclass(frozen=True)
class SharedMap:
    """`columns[i]` is the element offset of bit i; the vectors are log2 element counts."""

    columns: list[int]
    wide_vector: int
    narrow_vector: int

    def offset(self, vector: int) -> int:
        return gf2.combine(self.columns, vector)


def phase_lanes(lanes: Sequence[int], access_bytes_log2: int) -> list[int]:
    """Bases of the lanes served together: 32 up to 4 bytes, 16 for 8 bytes, 8 for 16 bytes."""
    return list(lanes[: len(lanes) - max(0, access_bytes_log2 - WORD_BITS)])


def conflict_degree(offsets: Sequence[int], access_log2: int, elem_log2: int) -> int:
    """Wavefronts per phase: 2^(line bits that lanes of the same bank differ in).

    `offsets` are the element offsets of all lane bits. Lanes that read the same word share it.
    """
    lanes = phase_lanes(offsets, access_log2)
    words = [(offset << elem_log2) >> WORD_BITS for offset in lanes]
    banks = (1 << (LINE_BITS - WORD_BITS)) - 1
    return 1 << (gf2.rank(words) - gf2.rank(word & banks for word in words))


def phases(access_log2: int) -> int:
    """In how many turns a warp is served for this access size."""
    return 1 << max(0, access_log2 - WORD_BITS)


def choose_vectors(
    wide: Participant, narrow: Participant, elem_log2: int, extend: bool
) -> tuple[list[int], list[int]]:
    """Vector bits common to both sides, and further ones of the wide side alone.

    A common vector bit must not be needed by any thread bit of either side, one of the wide side
    by none of its own: else the order inside the vector would differ between threads.
    """
    room = VECTOR_BITS - elem_log2
    both = gf2.Span((*wide.threads, *narrow.threads))
    common = []
    for vector in gf2.intersection(wide.registers, narrow.registers):
        if len(common) < room and both.add(vector):
            common.append(vector)
    extra: list[int] = []
    if extend:
        own = gf2.Span((*wide.threads, *common))
        for vector in gf2.independent(wide.registers):
            if len(common) + len(extra) >= room:
                break
            trial = gf2.Span((*wide.threads, *narrow.threads, *extra, vector))
            if all(trial.add(v) for v in common) and own.add(vector):
                extra.append(vector)
    return common, extra


def design(
    wide: Participant, narrow: Participant, bits: int, elem_log2: int, extend: bool
) -> SharedMap:
    """The best offsets for elements numbered by `bits` bits; `extend` lets the wide side use
    vectors that the narrow side cannot.
    """
    common, extra = choose_vectors(wide, narrow, elem_log2, extend)
    vector = [*common, *extra]
    frame = list(vector)
    span = gf2.Span(vector)
    for candidate in (*wide.threads, *narrow.threads, *(1 << i for i in range(bits))):
        if span.add(candidate):
            frame.append(candidate)
    to_frame = gf2.inverse(frame)
    assert to_frame is not None
    width = len(vector)

    def rest(v: int) -> int:
        """Coordinates of an element beside those inside the vector."""
        return gf2.combine(to_frame, v) >> width

    wide_log2, narrow_log2 = elem_log2 + width, elem_log2 + len(common)
    p = [rest(v) for v in phase_lanes(wide.lanes, wide_log2)]
    q = [rest(v) for v in phase_lanes(narrow.lanes, narrow_log2)]
    order = _split(p, q, bits - width, wide_log2)
    to_order = gf2.inverse(order)
    assert to_order is not None
    columns = []
    for i in range(bits):
        coords = gf2.combine(to_frame, 1 << i)
        high = gf2.combine(to_order, coords >> width)
        columns.append(coords & ((1 << width) - 1) | high << width)
    return SharedMap(columns, width, len(common))


def _split(p: list[int], q: list[int], bits: int, access_log2: int) -> list[int]:
    """Basis of the remaining space in the order F, B, G; see the module's head."""
    fill = min(bits, max(0, WORD_BITS - access_log2))
    banks = min(bits - fill, LINE_BITS - access_log2 - fill)
    span = gf2.Span()
    inner = []
    for vector in (*gf2.intersection(p, q), *p, *q, *(1 << i for i in range(bits))):
        if len(inner) < fill and span.add(vector):
            inner.append(vector)
    lines = _lines([*inner, *p], [*inner, *q], inner, bits, bits - fill - banks)
    used = gf2.Span((*inner, *lines))
    bank = [v for v in (*p, *q, *(1 << i for i in range(bits))) if used.add(v)]
    return [*inner, *bank, *lines]


def _lines(p: list[int], q: list[int], inner: list[int], bits: int, count: int) -> list[int]:
    """`count` vectors that span as little as possible of `p` and of `q`; none within `inner`."""
    if not count:
        return []
    shared = gf2.intersection(p, q)
    p_only = _extension(shared, p)
    q_only = _extension(shared, q)
    both = gf2.Span((*shared, *p_only, *q_only))
    outside = [1 << i for i in range(bits) if both.add(1 << i)]
    paired = [a ^ b for a, b in zip(p_only, q_only, strict=False)]
    m = len(paired)
    last = _extension(inner, shared)
    candidates = [*outside, *paired, *p_only[m:], *q_only[m:], *p_only[:m], *last]
    return candidates[:count]


def _extension(base: Sequence[int], vectors: Sequence[int]) -> list[int]:
    """Those of `vectors` that extend the span of `base` to that of both."""
    span = gf2.Span(base)
    return [vector for vector in vectors if span.add(vector)]
