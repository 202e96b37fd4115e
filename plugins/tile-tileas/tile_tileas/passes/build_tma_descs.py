"""tileas-build-tma-descs: tensor maps that the kernel makes itself.

Maps lie in an arena in global memory, where each block has a place of its own as long as it runs:
launches with other arguments may run at the same time. One warp fills a map in as soon as the
numbers of its view are known, before the first use; everybody who may issue copies acquires it.

Where those numbers are known in a loop alone, as of arrays of a list, the map is filled in again in
each iteration, at the same place: copies by the old one are over by then. Loads are, as the loops
that issue them wait for all of them, in the warp that fills maps in, too; for stores to have read
theirs waits what `tileas-insert-barriers` puts before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tile_cute.tensor_map import SIZE
from tile_tileaa.dialect.types import bits_of

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_tileas.analysis.proxies import is_bulk_store
from tile_tileas.analysis.users import operations
from tile_tileas.analysis.views import MemRef, maker, view_of_memref
from tile_tileas.dialect.barriers import COPIER
from tile_tileas.dialect.tma import axes_of, descriptor_parts
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.passes.separate_host_tma import NUM_DEVICE, descriptors
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tma.element_types import map_type
from tile_tileas.tma.homes import holder_in, home_of, names_around
from tile_tileas.tma.refusals import map_numbers

_AGENTS = "nv_tileas.async_pipeline_agent_switch"


@dataclass
class _Map:
    """One map: how it is made, the operations that it takes the place of, where, and when, as
    numbers of operations of the block `home`: `ready` behind which its numbers are known, `used`
    first.
    """

    op: ir.OpView
    memref: MemRef
    axes: tuple[int, ...]
    home: ir.Block
    ready: int
    used: int
    others: list[ir.OpView] = field(default_factory=list)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for maps that are the same."""
        return self.memref, self.axes, self.op.results[0].type


@dataclass(frozen=True)
class BuildTmaDescs(Pass):
    """Make what is left of tensor maps in the kernel, by `tensormap.replace`."""

    name = "tileas-build-tma-descs"
    anchor = "func.func"
    statistics = {"device": "tensor maps that the kernel makes"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        maps = list(_maps(op))
        i32 = ir.IntegerType.get_signless(32)
        if "nv_tileaa.kernel" in op.attributes and NUM_DEVICE in op.attributes:
            op.attributes[NUM_DEVICE] = ir.IntegerAttr.get(i32, len(maps))
        if not maps:
            return
        _Build(op, maps).run()
        cx.count("device", len(maps))


def _maps(func: ir.Operation) -> Iterator[_Map]:
    """The different maps of a function, in the order in which they are ready, block by block."""
    found: dict[tuple[object, ...], _Map] = {}
    for op in descriptors(func.regions[0]):
        memref = view_of_memref(maker(maker(op.view).operands[0]))
        axes = axes_of(op, len(memref.sizes))
        assert axes is not None, "the verifier has seen it"
        numbers = map_numbers(memref, axes)
        home = home_of(numbers)
        if _AGENTS in names_around(home):
            raise error_at(op, "cannot be made by the kernel: its view changes inside of an agent")
        ready = max((_ready(value, home) for value in numbers), default=-1)
        made = _Map(op, memref, tuple(axes), home, ready, _place(holder_in(home, op)))
        known = found.setdefault(made.key, made)
        known.used = min(known.used, made.used)
        known.others.append(op)
    yield from sorted(found.values(), key=lambda one: one.ready)


def _ready(value: ir.Value, home: ir.Block) -> int:
    """The operation of `home` that gives a number; -1 for what is there from the start."""
    if isinstance(value.owner, ir.Block):
        return -1
    owner = value.owner.operation
    return _place(owner) if owner.block == home else -1


def _place(op: ir.Operation) -> int:
    """Which operation of its block `op` is."""
    return next(at for at, one in enumerate(op.block.operations) if one.operation == op)


class _Build:
    """Writes what makes the maps of one kernel, and what gives their place back."""

    def __init__(self, func: ir.Operation, maps: Sequence[_Map]) -> None:
        self._func, self._maps = func, maps
        self._block = func.regions[0].blocks[0]
        self._others_copy = any(
            op.operation.name == _AGENTS or COPIER in op.attributes
            for op in operations(func.regions[0])
        )
        self._i64 = ir.IntegerType.get_signless(64)
        self._count = {"count": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), len(maps))}

    def run(self) -> None:
        homes = [(home, list(home.operations)) for home in self._homes()]  # as they were counted
        place = self._claimed()
        for home, counted in homes:
            for group in self._groups([one for one in self._maps if one.home == home]):
                self._filled(place, group, counted)
        self._released(place)

    def _homes(self) -> list[ir.Block]:
        """The blocks that maps are made in, each once."""
        homes: list[ir.Block] = []
        for one in self._maps:
            if one.home not in homes:
                homes.append(one.home)
        return homes

    @staticmethod
    def _groups(maps: Sequence[_Map]) -> Iterator[list[_Map]]:
        """Maps that are made at one place, so that all meet once for them."""
        group: list[_Map] = []
        for one in maps:
            if group and one.ready >= min(other.used for other in group):
                yield group
                group = []
            group.append(one)
        yield group

    def _claimed(self) -> ir.Value:
        cx = Exchange(self._block.operations[0])
        i32 = ir.IntegerType.get_signless(32)
        return cx.create(
            "nv_tileas.claim_tma_descs", [cx.run_of(1, i32)], [i32], self._count
        ).result

    def _filled(self, place: ir.Value, group: list[_Map], counted: Sequence[ir.OpView]) -> None:
        """Make maps behind the last of their numbers; `counted` are the operations of the block."""
        before = counted[max(one.ready for one in group) + 1]
        at, cx = Writer(group[0].op.location), Exchange(before)
        at.move(ir.InsertionPoint(before))
        made = [self._fill(at, cx, place, one) for one in group]
        if self._others_copy:  # and not the warp that fills maps in
            at.sync()
        for one, desc in zip(group, made, strict=True):
            at.create("nv_tileas.acquire_tma_desc", [desc])
            for op in one.others:
                op.results[0].replace_all_uses_with(desc)
                op.operation.erase()

    def _fill(self, at: Writer, cx: Exchange, place: ir.Value, one: _Map) -> ir.Value:
        memref, outer = one.memref, one.axes[:-1]
        parts = descriptor_parts(one.op.results[0].type)
        assert parts is not None, "the verifier has seen it"
        tile, _ = parts
        bits = bits_of(memref.element) or 0
        extents = [self._extent(at, memref.sizes[axis]) for axis in one.axes]
        strides = [self._stride(at, memref.strides[axis], bits) for axis in outer]
        scratch = cx.run_of(SIZE // 8, self._i64)
        attributes = {
            **self._count,
            "index": ir.IntegerAttr.get(at.i32, self._maps.index(one)),
            "element": ir.StringAttr.get(map_type(memref.element, tile.element_type)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, len(extents), len(strides)]),
        }
        operands = [place, scratch, memref.base, *extents, *strides]
        types = [one.op.results[0].type]
        return at.create("nv_tileas.fill_tma_desc", operands, types, attributes).result

    def _extent(self, at: Writer, size: int | ir.Value) -> ir.Value:
        """An i32. Maps have no extent of 0; who copies takes care that nothing is inside then."""
        if isinstance(size, int):
            return at.constant(max(1, size))
        narrow = size
        if narrow.type != at.i32:
            narrow = at.create("arith.trunci", [narrow], [at.i32]).result
        return at.binary("maxui", narrow, at.constant(1))

    def _stride(self, at: Writer, stride: int | ir.Value, bits: int) -> ir.Value:
        """An i64, in bytes."""
        if isinstance(stride, int):
            return at.constant(stride * bits // 8, self._i64)
        return at.binary("muli", at.wide(stride), at.constant(bits // 8, self._i64))

    def _released(self, place: ir.Value) -> None:
        """When all are through, and no store reads its map any more."""
        end = self._block.operations[len(self._block.operations) - 1]
        at = Writer(end.location)
        at.move(ir.InsertionPoint(end))
        if any(is_bulk_store(op) for op in operations(self._func.regions[0])):
            attributes = {
                "pending": ir.IntegerAttr.get(at.i32, 0),
                "group": ir.StringAttr.get("bulk"),
            }
            at.create("nv_tileas.async_wait", [], [], attributes)
        at.sync()
        at.create("nv_tileas.release_tma_descs", [place], [], self._count)
