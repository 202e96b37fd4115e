"""Why a tile cannot be copied by a tensor map.

Rules of `cp.async.bulk.tensor` and of `cuTensorMapEncodeTiled` (PTX ISA, "Tensors"; CUDA driver
API, "Tensor Map Object Management"), and such as keep results those of copies by threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tile_cute.atoms.tma import MAX_RANK
from tile_tileaa.dialect.hints import allows_tma
from tile_tileaa.dialect.types import bits_of

from tile_core.mlir import ir
from tile_tileas.analysis import axis_info as facts
from tile_tileas.analysis.alias import is_made_once
from tile_tileas.analysis.axis import AxisAnalysis, element_bytes
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.host_values import NotOnHost, host_expression
from tile_tileas.analysis.tokens import LOADS, TokenOrder, is_weak, only_reads
from tile_tileas.analysis.views import MemRef, TiledView, maker, tiled_view
from tile_tileas.dialect.fields import operand_of
from tile_tileas.tma.element_types import map_type
from tile_tileas.tma.homes import home_of, is_in_loop_of

#: First compute capability with TMA, times 10 (PTX ISA, "cp.async.bulk.tensor").
SINCE = 90
#: Where tensor maps come from: host code that runs at a launch, or the kernel.
SOURCES = ("host", "device")
#: Bytes to which addresses, strides and rows are multiples, and the end of strides in bytes.
GRAIN, STRIDE_END = 16, 1 << 40
#: Extents of maps have 32 bits, coordinates 31 and a sign.
MOST_ELEMENTS = (1 << 31) - 1
_COORDINATE_BITS = 32
_BYTE = 8


@dataclass(frozen=True)
class Knowledge:
    """What is known of the values of one kernel, where maps come from, and whether agents share
    its work.
    """

    kernel: ir.Operation
    axis: AxisAnalysis
    bounds: BoundsAnalysis
    order: TokenOrder
    source: str = "host"
    agents: bool = False

    def divides(self, value: int | ir.Value) -> int:
        """A power of two that `value` is a multiple of."""
        return facts.pow2_divisor(value) if isinstance(value, int) else self.axis[value].scalar

    def range(self, value: int | ir.Value) -> tuple[int, int]:
        """The least and the most that `value` may be."""
        if isinstance(value, int):
            return value, value
        found = self.bounds[value]
        return found.lo, found.hi


def refusals(op: ir.OpView, known: Knowledge) -> list[str]:
    """Why no tensor map copies the tile of a `tiled_load` or `tiled_store`; empty if one may."""
    record = tiled_view(op.view)
    return [*_of_the_access(op, record, known), *refusals_of_memory(op, record, known)]


def refusals_of_memory(op: ir.OpView, record: TiledView, known: Knowledge) -> list[str]:
    """Why no tensor map copies tiles of a view where `op` stands, whatever the access."""
    return [
        *_of_the_tile(record),
        *_of_the_memory(record.memref, record, known),
        *_of_the_map(op, record, known),
    ]


def _of_the_access(op: ir.OpView, record: TiledView, known: Knowledge) -> Iterator[str]:
    reads = op.operation.name in LOADS
    if not allows_tma(op):
        yield "the hint allow_tma is false"
    if not is_weak(op) or "volatile" in op.attributes:
        yield "the access is ordered"
    if reads and (record.padding or "zero") != "zero":
        yield f"elements outside become {record.padding}, and tensor maps give zeros"
    coords = list(op.coords)
    if coords and getattr(coords[0].type, "width", 64) != _COORDINATE_BITS:
        yield f"coordinates are {coords[0].type}, and those of tensor maps i32"
    if any(step < extent for step, extent in zip(record.steps, record.tile, strict=True)):
        yield "tiles of the view overlap"
    token = operand_of(op, "token")
    if reads and token is not None and follows_writes(token, known.order):
        yield "the tile is read after the kernel has written memory"


def follows_writes(token: ir.Value, order: TokenOrder) -> bool:
    """Copies go by a proxy of their own, which does not see what threads wrote a while ago."""
    return any(not only_reads(maker(result)) for result in order.before(token))


def _of_the_tile(record: TiledView) -> Iterator[str]:
    memref = record.memref
    try:
        map_type(memref.element)
    except NotOnHost as reason:
        yield str(reason)
        return
    if (bits_of(memref.element) or 0) < _BYTE:
        yield "elements have less than a byte"
    inner = innermost(record)
    if inner is None:
        yield "no axis of the tile is known to lie contiguously in memory"
        return
    row = record.tile[record.dim_map.index(inner)] * element_bytes(memref.element)
    if row % GRAIN:
        yield f"rows of the tile have {row} bytes, which is no multiple of {GRAIN}"


def innermost(record: TiledView) -> int | None:
    """The axis of memory that is contiguous; of several, the one that the tile reaches furthest
    along.
    """
    memref = record.memref
    found = [axis for axis, stride in enumerate(memref.strides) if stride == 1]
    return max(found, key=lambda axis: record.tile[record.dim_map.index(axis)], default=None)


def map_axes(record: TiledView) -> tuple[int, ...]:
    """The axes of memory that a map has: all but those of constant extent 1, where the innermost
    one stays.
    """
    inner, sizes = innermost(record), record.memref.sizes
    return tuple(axis for axis in range(len(sizes)) if sizes[axis] != 1 or axis == inner)


def _of_the_memory(memref: MemRef, record: TiledView, known: Knowledge) -> Iterator[str]:
    axes, inner = map_axes(record), innermost(record)
    if len(axes) > MAX_RANK:
        yield f"memory has {len(axes)} axes, and tensor maps have up to {MAX_RANK}"
    if known.divides(memref.base) % GRAIN:
        yield f"the address is not known to be a multiple of {GRAIN} bytes"
    size = element_bytes(memref.element)
    for axis in axes:
        low, high = known.range(memref.sizes[axis])
        if low < 0 or high > MOST_ELEMENTS or high == 0:
            yield f"the extent of axis {axis} is not known to be in 0 .. {MOST_ELEMENTS}"
        if axis == inner:
            continue
        stride = memref.strides[axis]
        low, high = known.range(stride)
        if known.divides(stride) * size % GRAIN:
            yield f"the stride of axis {axis} is not known to be a multiple of {GRAIN} bytes"
        if low < 0 or high * size >= STRIDE_END or high == 0:
            yield f"the stride of axis {axis} is not known to be in 0 .. {STRIDE_END} bytes"


def _of_the_map(op: ir.OpView, record: TiledView, known: Knowledge) -> Iterator[str]:
    """Why neither a launch nor the kernel makes the map."""
    values = map_numbers(record.memref, map_axes(record))
    if known.source == "host":
        if "nv_tileaa.kernel" not in known.kernel.attributes:
            yield "the function is no kernel"
        elif (reason := not_on_host(values, known.kernel)) is not None:
            if not is_in_loop_of(op, home_of(values)):
                yield (
                    "the view depends on more than arguments, and no loop copies by its map: "
                    f"{reason}"
                )
            elif known.agents and not all(map(is_made_once, values)):
                yield f"the view depends on more than arguments, which one agent knows: {reason}"
    elif not all(map(is_made_once, values)) and (
        known.agents or not is_in_loop_of(op, home_of(values))
    ):
        yield "the view changes in a loop or a branch"


def map_numbers(memref: MemRef, axes: Sequence[int]) -> list[ir.Value]:
    """The values that a map along `axes` of memory is made of, beside constants."""
    numbers = [number[axis] for axis in axes for number in (memref.sizes, memref.strides)]
    return [value for value in (memref.base, *numbers) if isinstance(value, ir.Value)]


def not_on_host(values: list[ir.Value], kernel: ir.Operation) -> str | None:
    """Why a launch does not know one of the values."""
    for value in values:
        try:
            host_expression(value, kernel)
        except NotOnHost as reason:
            return str(reason)
    return None
