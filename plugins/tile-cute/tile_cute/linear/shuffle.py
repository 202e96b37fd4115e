"""Conversions that stay inside a warp: the search for a shuffle plan.

Destination point (register, lane) comes from source point M(register, lane). One shuffle fills
one register of every lane, and every lane sends one register. So the destination registers are
filled along affine planes: in round r0 lane l fills register `r0 ^ E(l)`, with E chosen so that
the senders of a round are distinct, or send the same register where they coincide.
"""

from dataclasses import dataclass

from tile_cute import gf2
from tile_cute.linear.layout import LinearLayout
from tile_cute.linear.plans import ConditionalXor, ShuffleRound, WarpShuffle


@dataclass
class _Search:
    """Source points are ints: register bits low, lane bits above `registers` bits."""

    registers: int
    slot_points: list[int]
    lane_points: list[int]
    warp_points: list[int]
    kernel: list[int]
    choice: list[int]

    def lane(self, point: int) -> int:
        return point >> self.registers

    def register(self, point: int) -> int:
        return point & ((1 << self.registers) - 1)


def unique_registers(layout: LinearLayout) -> tuple[list[int], tuple[int, ...]]:
    """Register bases without duplicates, and for each register the slot that it equals."""
    bases = gf2.independent(layout.flat("register"))
    span = gf2.Span(bases)
    return bases, tuple(gf2.table([span.solve(v) or 0 for v in layout.flat("register")]))


def register_bits(layout: LinearLayout) -> list[int]:
    """The register bits, as register numbers, that are not free: those of unique elements."""
    span = gf2.Span()
    return [1 << i for i, vector in enumerate(layout.flat("register")) if span.add(vector)]


def vector_groups(
    places: list[int], numbers: list[int], vector: int
) -> list[tuple[tuple[int, ...], int]]:
    """Split registers into vectors of 2^vector: registers in memory order, place of the first.

    Register bit i is register `numbers[i]` and lies at `places[i]`; all bits of a place beyond
    the vector are kept. The places 1, 2, 4, ... inside a vector must be reachable.
    """
    span = gf2.Span(places)
    inner = [span.solve(1 << bit) for bit in range(vector)]
    steps = [mask for mask in inner if mask is not None]
    assert len(steps) == vector
    low = (1 << vector) - 1
    rest = gf2.Span()
    masks = []
    for mask in steps:
        rest.add(mask)
    for i, place in enumerate(places):
        mask = 1 << i ^ gf2.combine(steps, place & low)
        if rest.add(mask):
            masks.append(mask)
    within = gf2.table([gf2.combine(numbers, mask) for mask in steps])
    starts = gf2.table([gf2.combine(numbers, mask) for mask in masks])
    offsets = gf2.table([gf2.combine(places, mask) for mask in masks])
    return [
        (tuple([start ^ register for register in within]), offset)
        for start, offset in zip(starts, offsets, strict=True)
    ]


def plan_shuffle(src: LinearLayout, dst: LinearLayout, storage_bits: int) -> WarpShuffle | None:
    """The shuffles that turn `src` into `dst`; None if data has to cross warps (or if one lane
    would have to send several registers at once). `storage_bits` is 8, 16, 32 or 64.
    """
    slots, gather = unique_registers(dst)
    search = _locate(src, dst, slots)
    if search is None or not _choose(search):
        return None
    return _emit(search, gather, storage_bits)


def _locate(src: LinearLayout, dst: LinearLayout, slots: list[int]) -> _Search | None:
    """Solve for M, staying in the own lane wherever possible."""
    registers, lanes = src.flat("register"), src.flat("lane")
    local = gf2.Span(registers)
    anywhere = gf2.Span((*registers, *lanes))
    low = len(registers)

    def point(wanted: int, own: int, lane_bit: int) -> int | None:
        mask = local.solve(wanted ^ own)
        return mask | lane_bit if mask is not None else anywhere.solve(wanted)

    slot_points = [point(vector, 0, 0) for vector in slots]
    lane_points = [
        point(vector, lanes[bit], 1 << (low + bit)) for bit, vector in enumerate(dst.flat("lane"))
    ]
    warp_points = [
        point(there ^ here, 0, 0)
        for there, here in zip(dst.flat("warp"), src.flat("warp"), strict=True)
    ]
    found = [p for p in (*slot_points, *lane_points, *warp_points) if p is not None]
    if len(found) != len(slot_points) + len(lane_points) + len(warp_points):
        return None
    cut = len(slot_points)
    return _Search(
        low,
        found[:cut],
        found[cut : cut + len(lane_points)],
        found[cut + len(lane_points) :],
        gf2.kernel((*registers, *lanes)),
        [0] * len(lane_points),
    )


def _choose(search: _Search) -> bool:
    """Choose E (and places among replicas) lane bit by lane bit; adjusts `lane_points`.

    Lane bits that can stay at home come first. The order does not decide about success: the
    candidates of all lane bits are cosets of one space, so independent ones are found greedily.
    """
    moves = [*search.slot_points, *search.kernel]
    lane_moves = gf2.Span(map(search.lane, moves))
    senders = gf2.Span()
    order: list[int] = []
    waiting = []
    for bit, point in enumerate(search.lane_points):
        mask = lane_moves.solve(search.lane(point) ^ (1 << bit))
        if mask is None:
            waiting.append(bit)
        else:
            _take(search, bit, mask)
            senders.add(1 << bit)
            order.append(bit)
    for bit in waiting:
        mask = _independent_move(search, moves, senders, bit)
        if mask is None:
            mask = _coinciding_move(search, moves, senders, order, bit)
        if mask is None:
            return False
        _take(search, bit, mask)
        senders.add(search.lane(_sender(search, bit)))
        order.append(bit)
    return True


def _take(search: _Search, bit: int, mask: int) -> None:
    """Add the moves in `mask`: registers to E, replicas to the lane's own point."""
    registers = len(search.slot_points)
    search.choice[bit] = mask & ((1 << registers) - 1)
    search.lane_points[bit] ^= gf2.combine(search.kernel, mask >> registers)


def _sender(search: _Search, bit: int) -> int:
    return search.lane_points[bit] ^ gf2.combine(search.slot_points, search.choice[bit])


def _independent_move(search: _Search, moves: list[int], senders: gf2.Span, bit: int) -> int | None:
    point = search.lane_points[bit]
    if not senders.contains(search.lane(point)):
        return 0
    for index, move in enumerate(moves):
        if not senders.contains(search.lane(point ^ move)):
            return 1 << index
    return None


def _coinciding_move(
    search: _Search, moves: list[int], senders: gf2.Span, order: list[int], bit: int
) -> int | None:
    """Receive from a lane that already sends, and the same register as the other receiver."""
    point = search.lane_points[bit]
    combo = senders.solve(search.lane(point))
    assert combo is not None
    others = gf2.combine([_sender(search, other) for other in order], combo)
    return gf2.Span(moves).solve(point ^ others)


def _emit(search: _Search, gather: tuple[int, ...], storage_bits: int) -> WarpShuffle:
    senders = [_sender(search, bit) for bit in range(len(search.lane_points))]
    select = _sender_select(search, senders)

    def turned(point: int) -> int:
        """Register to send for a point, after the sender's own conditional XOR."""
        return gf2.combine(select, search.lane(point)) ^ search.register(point)

    before = [ConditionalXor("lane", bit, xor) for bit, xor in enumerate(select) if xor]
    for bit, point in enumerate(search.warp_points):
        if turned(point):
            before.append(ConditionalXor("warp", bit, turned(point)))
    after = [ConditionalXor("lane", bit, xor) for bit, xor in enumerate(search.choice) if xor]
    lane_map = tuple(map(search.lane, senders))
    warp_map = tuple(map(search.lane, search.warp_points))
    stays = not any(warp_map) and all(v == 1 << bit for bit, v in enumerate(lane_map))
    sources = gf2.table([turned(point) for point in search.slot_points])
    groups: dict[int, list[int]] = {}
    for slot, lane_xor in enumerate(gf2.table([search.lane(p) for p in search.slot_points])):
        groups.setdefault(lane_xor, []).append(slot)
    rounds = []
    for lane_xor, slots in groups.items():
        words = 0 if stays and not lane_xor else -(-len(slots) * storage_bits // 32)
        rounds.append(ShuffleRound(lane_xor, tuple(sources[s] for s in slots), tuple(slots), words))
    return WarpShuffle(
        tuple(before),
        tuple(rounds),
        tuple(after),
        gather,
        lane_map,
        warp_map,
        1 << search.registers,
    )


def _sender_select(search: _Search, senders: list[int]) -> list[int]:
    """Per bit of the sending lane what it adds to the register it sends."""
    span = gf2.Span()
    registers = []
    for point in senders:
        span.add(search.lane(point))
        registers.append(search.register(point))
    for bit in range(len(senders)):
        span.add(1 << bit)
        registers.append(0)
    columns = []
    for bit in range(len(senders)):
        combo = span.solve(1 << bit)
        assert combo is not None
        columns.append(gf2.combine(registers, combo))
    return columns
