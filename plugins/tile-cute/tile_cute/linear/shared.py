"""Conversions through shared memory."""

from dataclasses import dataclass, replace

from tile_cute import gf2
from tile_cute.errors import LayoutError
from tile_cute.linear.banks import (
    VECTOR_BITS,
    Participant,
    SharedMap,
    conflict_degree,
    design,
    phases,
)
from tile_cute.linear.layout import LinearLayout, log2
from tile_cute.linear.matrix import LANES_LOG2, matrix_side
from tile_cute.linear.plans import (
    ACCESS_COST,
    WAVEFRONT_COST,
    SharedAccess,
    SharedRoundTrip,
    SharedSide,
)
from tile_cute.linear.shuffle import register_bits, unique_registers, vector_groups


@dataclass(frozen=True)
class _Frame:
    """Elements numbered for one CTA: `bits` of them per pass, the pass number above those."""

    src: Participant
    dst: Participant
    bits: int
    pass_bits: int
    basis: tuple[int, ...]  # the row-major index that each bit of an element's number adds


#: A frame, where elements lie, and how many bits a vector of the stores and of the loads has.
_Trip = tuple[_Frame, SharedMap, int, int]


def plan_shared(
    src: LinearLayout,
    dst: LinearLayout,
    storage_bits: int,
    max_smem: int | None,
    scope: str,
    guarded: bool = False,
) -> SharedRoundTrip:
    """The cheapest round trip; `max_smem` in bytes splits it into passes, with `guarded` also
    into such as only some warps take part in.

    LayoutError if a CTA lacks elements that it needs, or if no split fits.
    """
    elem_log2 = log2(storage_bits // 8)
    slots, gather = unique_registers(dst)
    sources, _ = unique_registers(src)
    limit = None if max_smem is None else max_smem >> elem_log2
    frame = _frame(src, dst, sources, slots, limit, guarded)
    trips = []
    for wide_store, extend in ((True, False), (True, True), (False, True)):
        wide, narrow = _in_one_pass(frame.src, frame), _in_one_pass(frame.dst, frame)
        if not wide_store:
            wide, narrow = narrow, wide
        chosen = design(wide, narrow, frame.bits, elem_log2, extend)
        vectors = (chosen.wide_vector, chosen.narrow_vector)
        if extend and vectors[0] == vectors[1]:
            continue  # nothing gained over the first attempt
        store, load = vectors if wide_store else vectors[::-1]
        trips.append((frame, chosen, store, load))
        if elem_log2 + vectors[1] == VECTOR_BITS:
            break  # both sides are as wide as can be
    best = min(trips, key=lambda trip: _cost(trip, elem_log2))

    def round_trip(trip: _Trip) -> SharedRoundTrip:
        frame, chosen, store, load = trip
        return SharedRoundTrip(
            _side(frame, chosen, frame.src, store, elem_log2, register_bits(src)),
            _side(frame, chosen, frame.dst, load, elem_log2, [1 << i for i in range(len(slots))]),
            gather,
            1 << elem_log2,
            1 << (frame.bits + elem_log2),
            1 << frame.pass_bits,
            src.free_mask("lane"),
            src.free_mask("warp"),
            scope,
            _buffer(frame, chosen, src),
        )

    plain, turned = round_trip(best), _turned(frame, elem_log2)
    if turned is None:
        return plain
    moved = _with_matrices(round_trip(turned), storage_bits)
    return moved if moved is not None and moved.cost < plain.cost else plain


def _turned(frame: _Frame, elem_log2: int) -> _Trip | None:
    """Stores of 16 bytes along what lanes of the other side hold next to each other: of 16-bit
    elements, `ldmatrix.trans` reads such rows, one for each register and lane of its own.

    Its eight rows are served at a time as eight vectors of 16 bytes are; lanes and registers
    change places.
    """
    lanes, registers = frame.dst.lanes, frame.dst.registers
    if frame.pass_bits or elem_log2 != 1 or len(lanes) != LANES_LOG2 or not registers:
        return None
    row, others = list(lanes[2:]), [*registers[1:3], 0, 0][:2]
    held = gf2.Span(frame.src.registers)
    if gf2.rank(row) < len(row) or not all(held.contains(vector) for vector in row):
        return None
    wide = Participant(row, frame.src.lanes, frame.src.warps)
    rows = Participant(row, [registers[0], *lanes[:2], *others], frame.dst.warps)
    chosen = design(wide, rows, frame.bits, elem_log2, extend=False)
    if chosen.narrow_vector < len(row):
        return None
    return frame, chosen, chosen.wide_vector, 0


def _with_matrices(trip: SharedRoundTrip, storage_bits: int) -> SharedRoundTrip | None:
    """`trip` with the matrix loads that do what its loads do; None if there are none."""
    found = matrix_side(trip.load, storage_bits, transposed=True)
    if found is None:
        return None
    return replace(trip, matrices=(found.wavefronts, len(found.accesses)))


def _buffer(frame: _Frame, chosen: SharedMap, src: LinearLayout) -> LinearLayout | None:
    """Where the tile lies, if all of it goes through at once."""
    if frame.pass_bits or frame.bits != src.out_bits:
        return None
    numbers = gf2.inverse(chosen.columns)
    assert numbers is not None, "each element has a place of its own"
    places = [gf2.combine(frame.basis, number) for number in numbers]
    return LinearLayout.from_flat({"offset": places}, src.shape)


def _cost(trip: _Trip, elem_log2: int) -> int:
    frame, chosen, store, load = trip
    sides = ((frame.src, store), (frame.dst, load))
    accesses = sum(1 << (len(side.registers) - vector) for side, vector in sides)
    return ACCESS_COST * accesses + WAVEFRONT_COST * sum(
        _wavefronts(frame, chosen, side, elem_log2) for side in sides
    )


def _frame(
    src: LinearLayout,
    dst: LinearLayout,
    sources: list[int],
    slots: list[int],
    limit: int | None,
    guarded: bool,
) -> _Frame:
    """Number the elements one CTA holds: lanes lowest, then warps, then what differs only in
    registers. At most `limit` elements share a pass; passes divide registers, or warps too.
    """
    lanes = [*src.flat("lane"), *dst.flat("lane")]
    threads = [*lanes, *src.flat("warp"), *dst.flat("warp")]
    held = gf2.Span((*sources, *src.flat("lane"), *src.flat("warp")))
    if not all(held.contains(v) for v in (*slots, *dst.flat("lane"), *dst.flat("warp"))):
        raise LayoutError(
            f"a CTA needs elements that another one holds; no conversion from {src} to {dst} "
            "without distributed shared memory"
        )
    basis = gf2.independent((*threads, *sources))
    spare = held.rank - gf2.rank(lanes if guarded else threads)
    pass_bits = 0
    if limit is not None:
        while pass_bits <= spare and limit << pass_bits < 1 << held.rank:
            pass_bits += 1
    if pass_bits > spare:
        raise LayoutError(
            f"the conversion from {src} to {dst} needs room for {1 << (held.rank - spare)} "
            f"elements in shared memory at least, {limit} fit"
        )
    span = gf2.Span(basis)

    def number(vectors: tuple[int, ...] | list[int]) -> list[int]:
        return [span.solve(v) or 0 for v in vectors]

    return _Frame(
        Participant(number(sources), number(src.flat("lane")), number(src.flat("warp"))),
        Participant(number(slots), number(dst.flat("lane")), number(dst.flat("warp"))),
        held.rank - pass_bits,
        pass_bits,
        tuple(basis),
    )


def _in_one_pass(side: Participant, frame: _Frame) -> Participant:
    """The registers, or sums of them, that stay inside a pass; lanes always do."""
    if not frame.pass_bits:
        return side
    within = [1 << bit for bit in range(frame.bits)]
    inside = (1 << frame.bits) - 1
    warps = [v & inside for v in side.warps]
    return Participant(gf2.intersection(side.registers, within), side.lanes, warps)


def _wavefronts(
    frame: _Frame, chosen: SharedMap, side: tuple[Participant, int], elem_log2: int
) -> int:
    participant, vector = side
    lanes = [chosen.offset(v) for v in participant.lanes]
    access = elem_log2 + vector
    count = 1 << (len(participant.registers) - vector)
    return count * phases(access) * conflict_degree(lanes, access, elem_log2)


def _side(
    frame: _Frame,
    chosen: SharedMap,
    side: Participant,
    vector: int,
    elem_log2: int,
    numbers: list[int],
) -> SharedSide:
    """Group the registers of a thread into vector accesses, pass by pass."""
    inside = (1 << frame.bits) - 1
    columns = [*chosen.columns, *[0] * frame.pass_bits]
    # the pass number above the offset, so that both are one linear function of the register
    places = [gf2.combine(columns, v) | v >> frame.bits << frame.bits for v in side.registers]
    accesses: list[list[SharedAccess]] = [[] for _ in range(1 << frame.pass_bits)]
    for registers, place in vector_groups(places, numbers, vector):
        accesses[place >> frame.bits].append(SharedAccess(registers, place & inside))
    wavefronts = _wavefronts(frame, chosen, (side, vector), elem_log2)
    ideal = (1 << (len(side.registers) - vector)) * phases(elem_log2 + vector)
    return SharedSide(
        tuple(map(tuple, accesses)),
        tuple(chosen.offset(v & inside) for v in side.lanes),
        tuple(chosen.offset(v & inside) for v in side.warps),
        tuple(v >> frame.bits for v in side.warps),
        1 << vector,
        wavefronts,
        ideal,
    )
