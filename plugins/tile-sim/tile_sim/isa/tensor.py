"""`cp.async.bulk.tensor`, its reductions, and `tensormap.replace`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.address import Addresses, address, address_of, take_space
from tile_sim.isa.bulk import (
    REDUCTIONS,
    addresses_of,
    lanes_of,
    outgoing,
    outgoing_nothing,
    receivers,
    signal,
    stores,
)
from tile_sim.machine import shared, tma
from tile_sim.machine.access import parts
from tile_sim.machine.asyncs import Operation
from tile_sim.machine.group import Group
from tile_sim.machine.local import threads
from tile_sim.machine.mapwatch import Use
from tile_sim.machine.tensormap import IMMEDIATE, REPLACEABLE, SIZE, TensorMap, decode, edits_of
from tile_sim.machine.wave import Wave
from tile_sim.program.decode import Decode, Exec, Getter, instruction
from tile_sim.program.types import TYPES
from tile_sim.ptx.syntax import Address

Array = np.ndarray
_LOADS = ("tile", "im2col", "im2col::w", "im2col::w::128", "tile::gather4")
_STORES = ("tile", "im2col_no_offs", "tile::scatter4")
_COMPLETE = "mbarrier::complete_tx::bytes"


@dataclass(frozen=True)
class TensorOperand:
    """`[map, {coordinates}]`."""

    address: Addresses
    coordinates: list[Getter]

    def read(self, g: Group) -> list[tuple[int, tuple[int, ...]]]:
        """(map address, coordinates) of each active lane."""
        columns = [g.lanes(np.asarray(get(g))).astype(np.int64) for get in self.coordinates]
        starts = [tuple(int(c[i]) for c in columns) for i in range(g.count())]
        return list(zip(addresses_of(g, self.address), starts, strict=True))


def _rank(cx: Decode) -> int:
    return int(cx.one_of("1d", "2d", "3d", "4d", "5d")[0])


def _tensor_operand(cx: Decode, which: int, count: int) -> TensorOperand:
    operand = cx.operand(which)
    if not isinstance(operand, Address) or len(operand.extra) != 1:
        cx.fail("a tensor operand is [map, {coordinates}]")
    items = cx.vector(operand.extra[0])
    if len(items) != count:
        cx.fail(f"needs {count} coordinates, found {len(items)}")
    _, where = address_of(cx, Address(operand.base, operand.offset), "generic")
    return TensorOperand(where, [cx.src(item, TYPES["s32"]) for item in items])


def _map(g: Group, place: int, rank: int, what: str) -> tuple[int, TensorMap]:
    """The tensor map at a generic address, and the tensor's address."""
    if g.wave.unmade is not None:
        g.wave.unmade.taken(place)
    if place % 64:
        raise SimError("misaligned", f"tensor map at {place:#x} is not 64-byte aligned")
    base, tensor = decode(g.wave.memory.read(place, SIZE))
    if tensor.rank != rank:
        raise SimError("tensormap", f"{what} of rank {rank} with a map of rank {tensor.rank}")
    return base, tensor


def _use(wave: Wave, row: int, place: int) -> Use | None:
    """Warp `row` begins a copy by the map at `place`."""
    return None if wave.monitor is None else wave.monitor.maps.used(row, place)


def cp_async_bulk_tensor(cx: Decode) -> Exec:
    cx.flag("tensor")
    if cx.flag("prefetch"):
        cx.mods.clear()
        return lambda g: None
    rank = _rank(cx)
    spaces = [m for m in cx.mods if m in ("global", "shared::cluster", "shared::cta")]
    for mod in spaces[:2]:
        cx.mods.remove(mod)
    if spaces[:1] == ["global"]:
        return _store(cx, rank, None)
    if len(spaces) != 2:
        cx.fail("needs a destination and a source space")
    return _load(cx, rank)


# --- loads --------------------------------------------------------------------------------------


def _load(cx: Decode, rank: int) -> Exec:
    mode = cx.option(*_LOADS) or "tile"
    if mode.startswith("im2col::"):
        cx.fail(f".{mode} is not supported")
    cx.one_of(_COMPLETE)
    multicast, policy = cx.flag("multicast::cluster"), cx.flag("L2::cache_hint")
    pair = cx.prefixed("cta_group::")
    im2col = mode == "im2col"
    cx.done(3 + im2col + multicast + policy)
    _, to = address(cx, 0, "shared")
    source = _tensor_operand(cx, 1, 5 if mode == "tile::gather4" else rank)
    _, bar = address(cx, 2, "shared")
    u16 = TYPES["u16"]
    offsets: list[Getter] = []
    if im2col:
        offsets = [cx.src(item, u16, wide=True) for item in cx.vector(3)]
        if len(offsets) != rank - 2:
            cx.fail(f"needs {rank - 2} im2col offsets")
    mask = cx.src(3 + im2col, u16, wide=True) if multicast else None

    def execute(g: Group) -> None:
        rows = g.lane_rows()
        masks = [None] * len(rows) if mask is None else lanes_of(g, mask)
        shifts = [lanes_of(g, get) for get in offsets]
        skipped = g.wave.skips_copy()
        places_skipped = skipped and "addresses" in g.wave.settings.skipped
        items = zip(
            rows, addresses_of(g, to), source.read(g), addresses_of(g, bar), masks, strict=True
        )
        for i, (row, target, (place, start), barrier, m) in enumerate(items):
            base, tensor = _map(g, place, rank, "tensor copy")
            if places_skipped and mode == "tile":
                start = (0,) * rank  # where it lies counts for nothing
            use = _use(g.wave, int(row), place)
            load = _TensorLoad(g.wave, int(row), target, barrier, m, pair == "2", use)
            if skipped and mode == "tile" and not tensor.pixels:
                first = (tma.first_unit(tensor, start[0]), *start[1:])
                load.skip(tensor, base, first, tma.box_units(tensor))
                continue
            where = _load_coordinates(tensor, mode, start, tuple(s[i] for s in shifts))
            if skipped:
                load.skip(tensor, base, tuple(where[0].tolist()), len(where))
            else:
                load.issue(tensor, base, where)

    return execute


def _load_coordinates(
    tensor: TensorMap, mode: str, start: tuple[int, ...], offsets: tuple[int, ...]
) -> Array:
    if mode == "tile::gather4":
        return tma.gather4_coordinates(tensor, start)
    if mode == "im2col":
        if not tensor.pixels:
            raise SimError("tensormap", "an .im2col copy needs an im2col map")
        return tma.im2col_coordinates(tensor, start, offsets)
    if tensor.pixels:
        raise SimError("tensormap", "a .tile copy with an im2col map")
    return tma.tile_coordinates(tensor, start)


@dataclass(frozen=True)
class _Box:
    """What a load reads: units of a tensor at `base`; its number for the checker."""

    tensor: TensorMap
    base: int
    coordinates: Array
    number: int | None


@dataclass
class _TensorLoad:
    """One tensor load of one thread; with a mask the box goes to several CTAs."""

    wave: Wave
    row: int
    target: int
    barrier: int
    mask: int | None
    pair: bool
    use: Use | None

    def skip(self, tensor: TensorMap, base: int, first: tuple[int, ...], units: int) -> None:
        """Begin and end a copy of so many units, from the first one's coordinates, without its
        data."""
        amount = units * tensor.shared_bytes
        ends, bar_offset, offset = self._begin(tensor, amount, tma.place_of(tensor, base, first))
        wave = self.wave
        for to, bar in ends:
            if wave.unmade is not None:
                wave.unmade.filled(to, offset, amount, None)
            wave.asyncs.issue(
                self.row, Operation(self._signaller(bar, bar_offset, amount), signals=True)
            )

    def issue(self, tensor: TensorMap, base: int, coordinates: Array) -> None:
        wave = self.wave
        amount = len(coordinates) * tensor.shared_bytes
        first = tma.first_byte(tensor, base, coordinates)
        ends, bar_offset, offset = self._begin(tensor, amount, first)
        number = self._watched(tensor, base, coordinates, len(ends))
        for to, bar in ends:
            where = tma.shared_places(wave, to, offset, tensor, len(coordinates))
            shared.mark_pending(wave, self.row, where, "tensor copy")
            if wave.unmade is not None:
                wave.unmade.filled(to, offset, amount, first)
            source = _Box(tensor, base, coordinates, number)
            write = self._writer(source, where, bar, bar_offset, amount)
            wave.asyncs.issue(self.row, Operation(write, signals=True))

    def _watched(self, tensor: TensorMap, base: int, coordinates: Array, ends: int) -> int | None:
        """Tell the checker, where there is one, what the load reads; its number there."""
        monitor = self.wave.monitor
        if monitor is None:
            return None
        spans = tma.touched(self.wave, tensor, base, coordinates)
        return monitor.globals.load(self.row, spans, "tensor copy", ends)

    def _begin(
        self, tensor: TensorMap, amount: int, first: int
    ) -> tuple[list[tuple[int, int]], int, int]:
        """The CTAs that receive, each with that of its barrier; offsets of barrier and box."""
        wave = self.wave
        cta, offset = shared.locate(wave, self.row, self.target, "tensor copy")
        bar_cta, bar_offset = shared.locate(wave, self.row, self.barrier, "tensor copy")
        ends = [(cta, bar_cta)]
        if self.mask is not None:
            ends = [
                (c, self._barrier_cta(c, bar_cta)) for c in receivers(wave, self.row, self.mask)
            ]
        if wave.counters is not None:
            wave.counters.moved(wave, amount * len(ends))
        if wave.trace is not None:
            known = [(bar, shared.barrier_place(wave, bar, bar_offset)) for _, bar in ends]
            wave.trace.bulk(wave, self.row, amount, first, tensor.inner_bytes, known)
        return ends, bar_offset, offset

    def _signaller(self, bar: int, offset: int, amount: int) -> Callable[[], None]:
        return lambda: signal(self.wave, bar, offset, amount)

    def _barrier_cta(self, receiver: int, barrier_cta: int) -> int:
        """Each receiver signals its own barrier, or with `.cta_group::2` that of its pair which
        has the parity of the barrier address."""
        if not self.pair:
            return receiver
        first = int(self.wave.cluster_first[self.row])
        return first + ((receiver - first) & ~1) + ((barrier_cta - first) & 1)

    def _writer(
        self, source: _Box, where: Array, bar: int, bar_offset: int, amount: int
    ) -> Callable[[], None]:
        wave, use = self.wave, self.use

        def write() -> None:
            data = tma.load_elements(wave, source.tensor, source.base, source.coordinates)
            shared.write(wave, where, data)
            if wave.monitor is not None and use is not None:
                wave.monitor.maps.landed(use, shared.barrier_place(wave, bar, bar_offset))
            signal(wave, bar, bar_offset, amount, where, source.number)

        return write


# --- stores -------------------------------------------------------------------------------------


def cp_reduce_async_bulk_tensor(cx: Decode) -> Exec:
    cx.flag("tensor")
    rank = _rank(cx)
    for mod in ("global", "shared::cta"):
        cx.flag(mod)
    return _store(cx, rank, cx.one_of(*REDUCTIONS))


def _store(cx: Decode, rank: int, op: str | None) -> Exec:
    mode = cx.option(*_STORES) or "tile"
    cx.one_of("bulk_group")
    policy = cx.flag("L2::cache_hint")
    cx.done(2 + policy)
    target = _tensor_operand(cx, 0, 5 if mode == "tile::scatter4" else rank)
    _, of = address(cx, 1, "shared")

    def execute(g: Group) -> None:
        items = zip(threads(g), g.lane_rows(), target.read(g), addresses_of(g, of), strict=True)
        wave = g.wave
        if wave.unmade is not None and wave.skips_copy():
            _skip(g, rank, mode, [(int(row), *to) for _, row, to, _ in items])
            return
        for thread, row, (place, start), origin in items:
            base, tensor = _map(g, place, rank, "tensor store")
            use = _use(wave, int(row), place)
            where = _store_coordinates(tensor, mode, start)
            _store_traced(wave, int(row), tensor, base, tuple(where[0].tolist()), len(where))
            cta, offset = shared.locate(wave, int(row), origin, "tensor store")
            places = tma.shared_places(wave, cta, offset, tensor, len(where))
            if wave.unmade is not None:
                wave.unmade.sent(places)
            if wave.monitor is not None:
                wave.monitor.async_read(np.array([row]), places, "tensor store")
            give = _giver(wave, tensor, base, where, op)
            awaited = None
            if wave.monitor is not None:
                spans = tma.touched(wave, tensor, base, where)
                again = not wave.settings.strict and _same(wave, (place, start), places)
                awaited = stores(wave.monitor, int(row), places, spans, op is not None, again, use)
            outgoing(wave, int(thread), places, _taker(wave, places), give, awaited)

    return execute


def _store_traced(
    wave: Wave, row: int, tensor: TensorMap, base: int, first: tuple[int, ...], units: int
) -> None:
    """Tell the recorder, where there is one, of a store of so many units from the first one on."""
    if wave.trace is not None:
        amount, place = units * tensor.shared_bytes, tma.place_of(tensor, base, first)
        wave.trace.bulk(wave, row, amount, place, tensor.inner_bytes, [])


def _skip(g: Group, rank: int, mode: str, stores: list[tuple[int, int, tuple[int, ...]]]) -> None:
    """Begin and end stores without their data: of each its warp, map and coordinates. What threads
    of a warp do alike is done once."""
    for row, place, start in dict.fromkeys(stores):
        base, tensor = _map(g, place, rank, "tensor store")
        if mode == "tile" and not tensor.pixels:
            first, units = (tma.first_unit(tensor, start[0]), *start[1:]), tma.box_units(tensor)
        else:
            where = _store_coordinates(tensor, mode, start)
            first, units = tuple(where[0].tolist()), len(where)
        _store_traced(g.wave, row, tensor, base, first, units)
        outgoing_nothing(g.wave, base)


def _same(wave: Wave, box: tuple[int, tuple[int, ...]], places: Array) -> bool:
    """Whether the last store to this box, of whichever warp, had the same bytes."""
    assert wave.monitor is not None
    data = hash(wave.shared.bytes[places].tobytes())
    before = wave.monitor.stored.get(box)
    wave.monitor.stored[box] = data
    return before == data


def _store_coordinates(tensor: TensorMap, mode: str, start: tuple[int, ...]) -> Array:
    if mode == "tile::scatter4":
        return tma.gather4_coordinates(tensor, start)
    if (mode == "im2col_no_offs") != bool(tensor.pixels):
        raise SimError("tensormap", f"a .{mode} store does not fit its tensor map")
    if tensor.pixels:
        return tma.im2col_coordinates(tensor, start, (0,) * (tensor.rank - 2))
    return tma.tile_coordinates(tensor, start)


def _taker(wave: Wave, places: Array) -> Callable[[], Array]:
    return lambda: shared.read(wave, places, "tensor store").copy()


def _giver(
    wave: Wave, tensor: TensorMap, base: int, where: Array, op: str | None
) -> Callable[[Array], None]:
    return lambda data: tma.store_elements(wave, tensor, base, where, data, op)


# --- changing tensor maps -----------------------------------------------------------------------


@instruction("tensormap.replace.tile")
def tensormap_replace(cx: Decode) -> Exec:
    """`[map] {, ordinal}, value` for one field of a map in global or shared memory."""
    name = cx.one_of(*REPLACEABLE)
    space = take_space(cx)
    if not cx.flag("b1024"):
        cx.fail("needs .b1024")
    type_ = cx.type("b32 b64")
    count = REPLACEABLE[name]
    cx.done(3 if count > 1 else 2)
    where, compute = address(cx, 0, space)
    ordinal = cx.constant(1) if count > 1 else 0
    if not 0 <= ordinal < count:
        cx.fail(f"ordinal {ordinal} is not in 0..{count - 1}")
    last = len(cx.operands) - 1
    fixed = cx.constant(last) if name in IMMEDIATE else None
    value = cx.src(last, type_)

    def execute(g: Group) -> None:
        at = compute(g)
        if (at & np.uint64(63)).any():
            raise SimError("misaligned", "a tensor map needs 64-byte alignment")
        values = lanes_of(g, value) if fixed is None else [fixed] * g.count()
        edits = [edits_of(name, ordinal, v) for v in values]
        for step in range(max(map(len, edits), default=0)):
            _edit_words(g, where, at, [e[step] for e in edits])
        g.wave.progress += 1

    return execute


def _edit_words(g: Group, space: str, maps: Array, edits: list[tuple[int, int]]) -> None:
    """Merge (mask, bits) of each lane into its map: the one or two words of 32 bits they touch."""
    mask = edits[0][0]
    first = ((mask & -mask).bit_length() - 1) // 32
    for word in range(first, (mask.bit_length() - 1) // 32 + 1):
        keep = np.uint32(~(mask >> 32 * word) & 0xFFFFFFFF)
        new = np.array([bits >> 32 * word & 0xFFFFFFFF for _, bits in edits], np.uint32)
        for part in parts(g, space, maps + np.uint64(4 * word), 4, np.dtype("u4")):
            mine = new if part.pick is None else new[part.pick]
            part.data[part.index] = part.data[part.index] & keep | mine


@instruction("tensormap.cp_fenceproxy")
def cp_fenceproxy(cx: Decode) -> Exec:
    """Copy a map from shared to global memory and fence it."""
    cx.mods.clear()
    _, to = address(cx, 0, "global")
    _, of = address(cx, 1, "shared")
    if cx.constant(2) != SIZE:
        cx.fail("copies 128 bytes")

    def execute(g: Group) -> None:
        # All threads of the warp name the same map: the copy is made once for each.
        items = set(
            zip(g.lane_rows().tolist(), addresses_of(g, to), addresses_of(g, of), strict=True)
        )
        for row, target, origin in sorted(items):
            cta, offset = shared.locate(g.wave, row, origin, "tensor map")
            where = shared.flat(g.wave, cta, offset + np.arange(SIZE), "tensor map")
            if g.wave.unmade is not None:
                g.wave.unmade.sent(where)
            g.wave.memory.write(target, g.wave.shared.bytes[where])
            if g.wave.monitor is not None:
                g.wave.monitor.maps.written(row, target)

    return execute
