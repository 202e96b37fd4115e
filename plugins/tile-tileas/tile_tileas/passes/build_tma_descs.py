"""tileas-build-tma-descs: tensor maps that the kernel makes itself.

Maps lie in an arena in global memory, where each block has a place of its own as long as it runs:
launches with other arguments may run at the same time. One warp fills a map in as soon as the
numbers of its view are known, before the first use; everybody who may issue copies acquires it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tile_cute.tensor_map import SIZE
from tile_tileaa.dialect.types import bits_of

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_tileas.analysis.proxies import is_bulk_store
from tile_tileas.analysis.views import MemRef, maker, view_of_memref
from tile_tileas.dialect.tma import axes_of, descriptor_parts
from tile_tileas.kernel_products import operations
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.passes.separate_host_tma import NUM_DEVICE, descriptors
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tma.element_types import map_type

_AGENTS = "nv_tileas.async_pipeline_agent_switch"


@dataclass
class _Map:
    """One map: how it is made, the operations that it takes the place of, and when, as numbers of
    operations of the entry block: `ready` behind which its numbers are known, `used` first.
    """

    op: ir.OpView
    memref: MemRef
    axes: tuple[int, ...]
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
    """The different maps of a function, in the order in which they are ready."""
    block = func.regions[0].blocks[0]
    place = {
        result: at for at, one in enumerate(block.operations) for result in one.operation.results
    }
    found: dict[tuple[object, ...], _Map] = {}
    for op in descriptors(func.regions[0]):
        memref = view_of_memref(maker(maker(op.view).operands[0]))
        axes = axes_of(op, len(memref.sizes))
        assert axes is not None, "the verifier has seen it"
        numbers = [memref.base, *memref.sizes, *memref.strides]
        ready = max((_ready(op, value, block, place) for value in numbers), default=-1)
        made = _Map(op, memref, tuple(axes), ready, _outermost(op, block))
        known = found.setdefault(made.key, made)
        known.used = min(known.used, made.used)
        known.others.append(op)
    yield from sorted(found.values(), key=lambda one: one.ready)


def _ready(
    op: ir.OpView, value: int | ir.Value, block: ir.Block, place: dict[ir.Value, int]
) -> int:
    """The operation of the entry block that gives a number; -1 for what is there from the start.

    Raises:
        CompileError: it is not known outside of loops and branches.
    """
    if isinstance(value, int):
        return -1
    if value in place:
        return place[value]
    if isinstance(value.owner, ir.Block) and value.owner == block:
        return -1
    raise error_at(op, "cannot be made by the kernel: its view changes in a loop or a branch")


def _outermost(op: ir.OpView, block: ir.Block) -> int:
    """Which operation of the entry block `op` is, or stands in."""
    found = op.operation
    while found.block != block:
        parent = found.parent
        assert parent is not None, "inside of the function"
        found = parent.operation
    return next(at for at, one in enumerate(block.operations) if one.operation == found)


class _Build:
    """Writes what makes the maps of one kernel, and what gives their place back."""

    def __init__(self, func: ir.Operation, maps: Sequence[_Map]) -> None:
        self._func, self._maps = func, maps
        self._block = func.regions[0].blocks[0]
        self._operations = list(self._block.operations)
        self._agents = any(op.operation.name == _AGENTS for op in operations(func.regions[0]))
        self._i64 = ir.IntegerType.get_signless(64)
        self._count = {"count": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), len(maps))}

    def run(self) -> None:
        place = self._claimed()
        for group in self._groups():
            self._filled(place, group)
        self._released(place)

    def _groups(self) -> Iterator[list[_Map]]:
        """Maps that are made at one place, so that all meet once for them."""
        group: list[_Map] = []
        for one in self._maps:
            if group and one.ready >= min(other.used for other in group):
                yield group
                group = []
            group.append(one)
        yield group

    def _claimed(self) -> ir.Value:
        cx = Exchange(self._operations[0])
        i32 = ir.IntegerType.get_signless(32)
        return cx.create(
            "nv_tileas.claim_tma_descs", [cx.run_of(1, i32)], [i32], self._count
        ).result

    def _filled(self, place: ir.Value, group: list[_Map]) -> None:
        behind = max(one.ready for one in group)
        before = self._operations[behind + 1] if behind >= 0 else self._operations[0]
        at, cx = Writer(group[0].op.location), Exchange(before)
        at.move(ir.InsertionPoint(before))
        made = [self._fill(at, cx, place, one) for one in group]
        if self._agents:  # others than the warp that fills maps in begin copies
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
