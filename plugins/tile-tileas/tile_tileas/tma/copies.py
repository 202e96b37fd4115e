"""Operations that copy one tile by boxes of a tensor map: descriptors, coordinates, parts of the
buffer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import takewhile

from tile_cute.map_recipe import joined_problem
from tile_cute.tensor_map import MAX_BOX
from tile_tileaa.dialect.base import MemTokenType
from tile_tileaa.dialect.types import bits_of

from tile_core.mlir import ir
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.caches import handed_on
from tile_tileas.analysis.constants import splat_integer
from tile_tileas.analysis.ranges import Range
from tile_tileas.analysis.views import TiledView, tiled_view
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Buffer, async_token
from tile_tileas.dialect.staging import subtile_layout
from tile_tileas.dialect.tma import JOINED, box_bytes, descriptor, shared_layout
from tile_tileas.pipelining.writer import Writer
from tile_tileas.storage import storage_bits
from tile_tileas.tma.boxes import Boxes, boxes_of
from tile_tileas.tma.refusals import MOST_ELEMENTS, innermost, map_axes

_STORE = "nv_tileas.async_tiled_tma_store"
_ULE, _NE, _EQ = 7, 1, 0  # arith.CmpIPredicate
#: Rows of a box, bytes, of which the copy engine makes no fewer than fill the port of an SM.
_LONG_ROW = 128


@dataclass(frozen=True)
class Shared:
    """Blocks of a cluster of which each copies a part of a tile to the same place in all of them.

    Attributes:
        ctas: how many, a power of two.
        rank: i32, the number of this block.
        mask: i16, a bit for each of them.
    """

    ctas: int
    rank: ir.Value
    mask: ir.Value


@dataclass(frozen=True)
class TileCopy:
    """A tile that tensor maps copy from or to a buffer of one stage.

    Attributes:
        view: the tiled view.
        boxes: how the buffer is cut.
        axes: the axes of memory that the map has, outer first.
        element: what a box has; tf32 where the map rounds the f32 of memory.
        far: those along which the tile's index may be too large to be counted in elements.
        empty: those whose extent may be 0.
        hints: what copies say to L2.
    """

    view: TiledView
    boxes: Boxes
    axes: tuple[int, ...]
    element: ir.Type
    far: frozenset[int]
    empty: frozenset[int]
    hints: Mapping[str, ir.Attribute] = field(default_factory=dict)

    @staticmethod
    def of(op: ir.OpView, buffer: Buffer, bounds: BoundsAnalysis) -> TileCopy | str:
        """The copies between the memory of a load or store and `buffer`, or why there are none."""
        view = tiled_view(op.view)
        inner = innermost(view)
        if inner is None or buffer.layout is None:
            return "no axis of the tile is known to lie contiguously in memory"
        element = buffer.tile.element_type
        bits = storage_bits(element)
        boxes = boxes_of(buffer.layout, bits, view.dim_map.index(inner))
        if isinstance(boxes, str):
            return boxes
        far = frozenset(
            axis
            for tile_axis, axis in enumerate(view.dim_map)
            if not _counts(bounds[op.coords[tile_axis]], view.steps[tile_axis])
        )
        sizes = enumerate(view.memref.sizes)
        empty = frozenset(
            n for n, size in sizes if isinstance(size, ir.Value) and bounds[size].lo < 1
        )
        axes = _map_order(view, boxes)
        return TileCopy(view, boxes, axes, element, far, empty, handed_on(op))

    def divided(self, parts: int) -> TileCopy | None:
        """The same in at least `parts` copies; None if the boxes cannot be cut so."""
        bits = storage_bits(self.element)
        boxes = self.boxes.divided(parts, bits)
        return None if boxes is None else replace(self, boxes=boxes)

    @property
    def bytes(self) -> int:
        """What all copies together bring, parts outside of the tensor included."""
        return len(self.boxes.origins) * box_bytes(self._type)

    @property
    def _type(self) -> ir.Type:
        extents = [self.boxes.extents[self._tile_axis(axis)] for axis in self.axes]
        box = ir.RankedTensorType.get(extents, self.element)
        return descriptor(box, self.boxes.swizzle)

    def _tile_axis(self, axis: int) -> int:
        return self.view.dim_map.index(axis)

    # -- operations ---------------------------------------------------------------------------

    def load(
        self,
        at: Writer,
        view: ir.Value,
        coords: Sequence[ir.Value],
        into: ir.Value,
        barrier: tuple[ir.Value, ir.Value],
        shared: Shared | None = None,
        how: Mapping[str, ir.Attribute] | None = None,
    ) -> None:
        """Copies of the tile at `coords` of `view` to `into`; `barrier` and its stage get the
        bytes. With `shared`, this block's part of them, to all blocks. `how`: more attributes,
        which say whose barrier it is and who begins them.
        """
        map_ = self._map(at, view, coords)
        sizes = [1, 1, len(self.axes), 1, 1, int(shared is not None)]
        attributes = {
            "tx_count": ir.IntegerAttr.get(at.i32, box_bytes(self._type)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(sizes),
            **self.hints,
            **(how or {}),
        }
        starts, own = self._starts(at, coords), None
        origins, masks = self.boxes.origins, []
        if shared is not None:
            own, masks = self._own_part(at, shared), [shared.mask]
            origins = origins[: len(origins) // shared.ctas]
            tiles = [own[self._tile_axis(axis)] for axis in self.axes]
            starts = [
                start if by is None else at.binary("addi", start, by)
                for start, by in zip(starts, tiles, strict=True)
            ]
        for origin in origins:
            place = self._moved(at, starts, [origin[self._tile_axis(axis)] for axis in self.axes])
            operands = [map_, self._part(at, into, origin, own), *place, *barrier, *masks]
            at.create("nv_tileas.async_tiled_tma_load", operands, [async_token()], attributes)

    def _own_part(self, at: Writer, shared: Shared) -> list[ir.Value | None]:
        """Where the part of the block begins, along each axis of the tile, in elements.

        Parts follow one another in memory: the bits of the rank are the highest of a copy's number.
        """
        origins = self.boxes.origins
        own: list[ir.Value | None] = [None] * len(self.view.tile)
        for bit in range(shared.ctas.bit_length() - 1):
            step = origins[len(origins) // shared.ctas << bit]
            moved = at.binary("shrui", shared.rank, at.constant(bit))
            flag = at.binary("andi", moved, at.constant(1))
            for axis, by in enumerate(step):
                if by:
                    part = at.binary("muli", flag, at.constant(by))
                    before = own[axis]
                    own[axis] = part if before is None else at.binary("addi", before, part)
        return own

    def store(
        self,
        at: Writer,
        view: ir.Value,
        coords: Sequence[ir.Value],
        source: ir.Value,
        token: Sequence[ir.Value],
    ) -> list[ir.Operation]:
        """Copies of `source` to the tile at `coords` of `view`, each behind `token`, if any."""
        map_, starts = self._map(at, view, coords), self._starts(at, coords)
        sizes = [1, 1, len(self.axes), len(token)]
        attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get(sizes), **self.hints}
        types = [async_token(), MemTokenType.get()]
        found: list[ir.Operation] = []
        for origin in self.boxes.origins:
            place = self._moved(at, starts, [origin[self._tile_axis(axis)] for axis in self.axes])
            operands = [map_, self._part(at, source, origin), *place, *token]
            found.append(at.create(_STORE, operands, types, attributes))
        return found

    def _map(self, at: Writer, view: ir.Value, coords: Sequence[ir.Value]) -> ir.Value:
        attributes: dict[str, ir.Attribute] = {
            "oob_mode": ir.StringAttr.get("zero"),
            "axes": ir.DenseI32ArrayAttr.get(list(self.axes)),
        }
        joined = self._joined(coords)
        if joined:
            attributes[JOINED] = ir.IntegerAttr.get(at.i32, joined)
        return at.create("nv_tileas.make_tiled_tma_desc", [view], [self._type], attributes).result

    def _joined(self, coords: Sequence[ir.Value]) -> int:
        """Along how many axes, inner ones, all copies are at 0, where their rows are short; 0 where
        joining them gives no longer ones.
        """
        extents, bits = self.boxes.extents, bits_of(self.element) or 0
        inner = [self._tile_axis(axis) for axis in reversed(self.axes)]
        if self.boxes.swizzle != "none" or extents[inner[0]] * bits // 8 >= _LONG_ROW:
            return 0
        at_zero = takewhile(
            lambda axis: (
                splat_integer(coords[axis]) == 0
                and not any(origin[axis] for origin in self.boxes.origins)
            ),
            inner,
        )
        box = [extents[axis] for axis in at_zero]
        while box and (box[-1] == 1 or joined_problem(box, len(box), bits)):
            box.pop()
        return len(box)

    def _part(
        self,
        at: Writer,
        buffer: ir.Value,
        origin: tuple[int, ...],
        own: Sequence[ir.Value | None] | None = None,
    ) -> ir.Value:
        """The box of `buffer` at `origin`, and `own` elements on, with the axes of the map."""
        whole = Buffer.of(buffer.type)
        assert whole is not None
        extents, element = self.boxes.extents, whole.tile.element_type
        if list(extents) != whole.shape:
            indices = [start // extent for start, extent in zip(origin, extents, strict=True)]
            layout = None if whole.layout is None else subtile_layout(whole.layout, extents)
            assert layout is not None, "boxes are runs of the buffer"
            held = distributed(ir.RankedTensorType.get(extents, element), layout)
            type_ = Buffer(ir.RankedTensorType(held), whole.space, 1).type
            places = [at.constant(index) for index in indices]
            for axis, by in enumerate(own or ()):
                if by is not None:
                    boxes = at.binary("divui", by, at.constant(extents[axis]))
                    places[axis] = at.binary("addi", places[axis], boxes)
            operands = [buffer, at.constant(0), *places]
            buffer = at.create("nv_tileas.buffer_view", operands, [type_]).result
        shape = [extents[self._tile_axis(axis)] for axis in self.axes]
        plain = ir.RankedTensorType.get(shape, element)
        held = distributed(plain, shared_layout(shape, plain, self.boxes.swizzle))
        type_ = Buffer(ir.RankedTensorType(held), whole.space, 1).type
        if type_ == buffer.type:
            return buffer
        return at.create("nv_tileas.buffer_reinterpret", [buffer], [type_]).result

    # -- coordinates --------------------------------------------------------------------------

    def _starts(self, at: Writer, coords: Sequence[ir.Value]) -> list[ir.Value]:
        """Where the tile begins along each axis of the map, in elements.

        Tensors have no extent of 0 in a map (it means 2**32 there), and coordinates must not wrap
        around: where nothing is inside, the tile begins before the tensor and ends there.
        """
        empty = self._nothing_inside(at, coords)
        found = [self._start(at, axis, coords[self._tile_axis(axis)]) for axis in self.axes]
        if empty is not None:
            row = self.view.tile[self._tile_axis(self.axes[-1])]
            if self._joined(coords):
                row = max(row, MAX_BOX)  # whichever rows the map has
            before = at.constant(-row)
            found[-1] = at.create("arith.select", [empty, before, found[-1]], [at.i32]).result
        return found

    def _start(self, at: Writer, axis: int, index: ir.Value) -> ir.Value:
        step = self.view.steps[self._tile_axis(axis)]
        if axis in self.far:
            # Tile -1 is outside, as are all beyond the last one that there can be.
            inside = at.compare(_ULE, index, at.constant(MOST_ELEMENTS // step))
            operands = [inside, index, at.constant(-1)]
            index = at.create("arith.select", operands, [at.i32]).result
        return index if step == 1 else at.binary("muli", index, at.constant(step))

    def _nothing_inside(self, at: Writer, coords: Sequence[ir.Value]) -> ir.Value | None:
        """i1: an extent is 0, or the tile is not the first along an axis of extent 1 that the map
        leaves out. None if neither can be.
        """
        flags: list[ir.Value] = []
        for axis, size in enumerate(self.view.memref.sizes):
            if axis not in self.axes:
                flags.append(at.compare(_NE, coords[self._tile_axis(axis)], at.constant(0)))
            elif not isinstance(size, int) and axis in self.empty:
                flags.append(at.compare(_EQ, size, at.constant(0, size.type)))
        return reduce(lambda a, b: at.binary("ori", a, b), flags) if flags else None

    @staticmethod
    def _moved(at: Writer, starts: list[ir.Value], by: Sequence[int]) -> list[ir.Value]:
        return [
            at.plus(start, step) if step else start for start, step in zip(starts, by, strict=True)
        ]


def _counts(index: Range, step: int) -> bool:
    """Whether elements up to a tile can be counted, whichever tile it is."""
    return index.lo * step >= -MOST_ELEMENTS and index.hi * step <= MOST_ELEMENTS


def _map_order(view: TiledView, boxes: Boxes) -> tuple[int, ...]:
    """Axes of memory, outer first: innermost those of the box as it lies in shared memory, then
    others that the tile reaches along, then the rest, outer ones inside (as NVIDIA's maps are).
    """
    inner_first = [view.dim_map[axis] for axis in boxes.order]
    reached = [view.dim_map[t] for t, extent in enumerate(view.tile) if extent > 1]
    inner_first += [axis for axis in sorted(reached, reverse=True) if axis not in inner_first]
    inner_first += [axis for axis in map_axes(view) if axis not in inner_first]
    return tuple(reversed(inner_first))
