"""Rules of tile schedulers."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_cute.cutlass.dialect.around import ASYNC_EXEC, integer, integers, parents, word
from tile_cute.cutlass.dialect.checks.barriers import generic_barrier
from tile_cute.cutlass.dialect.checks.pipes import same_stages
from tile_cute.cutlass.dialect.types import kind_of, name_of
from tile_cute.cutlass.records import FIELDS, RASTERS, SWIZZLES, WORK
from tile_cute.errors import LayoutError

_STREAMK = "streamk"
_LAUNCHED = "sm100"
_PREFIX = "cutlass.tile_scheduler_"


def _kinds(op: ir.OpView) -> list[str]:
    """Kinds of all schedulers and pieces of work around an operation."""
    values = [*op.operation.operands, *op.operation.results]
    names = ("tile_scheduler", "tile_scheduler_params", "work_tile_info")
    return [kind_of(value.type) for value in values if name_of(value.type) in names]


def same_kind(op: ir.OpView) -> None:
    """Work is of the kind of its scheduler."""
    kinds = _kinds(op)
    if len(set(kinds)) > 1:
        raise LayoutError(f"expects values of kind {kinds[0]}, but got {', '.join(kinds[1:])}")
    raster_of(op)


def raster_of(op: ir.OpView | ir.Operation) -> tuple[str, int]:
    """(order, swizzle) of output tiles, by the attributes `raster` and `swizzle`."""
    swizzle = integer(op, "swizzle", 1)
    if swizzle not in SWIZZLES:
        raise LayoutError(f"expects a swizzle of 1, 2, 4 or 8, but got {swizzle}")
    return word(op, "raster", RASTERS, "along_m"), swizzle


def params(op: ir.OpView) -> None:
    """The kind that the operation's name says; a cluster's shape."""
    name = op.operation.name.removeprefix(_PREFIX)
    wanted = name.partition("_")[2].removesuffix("_params")
    kind = kind_of(op.operation.results[0].type)
    if kind != wanted:
        raise LayoutError(f"expects parameters of kind {wanted}, but got {kind}")
    if "cluster_shape" in op.operation.attributes:
        cluster = integers(op, "cluster_shape")
        if len(cluster) != 3 or min(cluster) < 1:
            raise LayoutError(f"expects a cluster_shape of three extents, but got {list(cluster)}")


def work(op: ir.OpView) -> None:
    """The kind that the operation's name says."""
    name = op.operation.name.removeprefix(_PREFIX + "create_").removesuffix("_work_tile_info")
    same_kind(op)
    if _kinds(op)[0] != name:
        raise LayoutError(f"expects parameters of kind {name}, but got {_kinds(op)[0]}")


def launched(op: ir.OpView) -> None:
    """Work that the hardware gives is numbered like a data-parallel grid's."""
    kind = kind_of(op.operation.operands[0].type)
    if kind != "dp":
        raise LayoutError(f"expects parameters of kind dp, whose grid is launched, but got {kind}")
    raster_of(op)


def query(op: ir.OpView) -> None:
    """The pipe of answers."""
    same_stages(op)
    kinds = [kind for kind in _kinds(op) if kind != _LAUNCHED]
    if kinds:
        raise LayoutError(f"expects work of kind {_LAUNCHED}, but got {kinds[0]}")


def work_field(op: ir.OpView) -> None:
    """A field of work."""
    word(op, "field", WORK)
    same_kind(op)


def params_field(op: ir.OpView) -> None:
    """A field of the record, in its width."""
    field = word(op, "field", tuple(FIELDS))
    wanted = f"i{FIELDS[field][1]}"
    found = str(op.operation.results[0].type)
    if found != wanted:
        raise LayoutError(f"expects '{field}' as {wanted}, but got {found}")


def cta_coord(op: ir.OpView) -> None:
    """The cluster's shape, if it is not one block."""
    if "cluster_shape" in op.operation.attributes and len(integers(op, "cluster_shape")) != 3:
        raise LayoutError("expects a cluster_shape of three extents")


def advance(op: ir.OpView) -> None:
    """Inside of asynchronous execution: it may end a round of a pipe."""
    same_kind(op)
    if not any(parent.name == ASYNC_EXEC for parent in parents(op)):
        raise LayoutError(f"expects to stand in '{ASYNC_EXEC}'")
    rounds = integer(op, "tiles_per_pipeline_round", 1)
    if rounds < 1:
        raise LayoutError(f"expects at least one tile of a round, but got {rounds}")


def streamk(op: ir.OpView) -> None:
    """Only StreamK has partial sums."""
    if _STREAMK not in _kinds(op):
        raise LayoutError(f"expects parameters of kind {_STREAMK}, but got {_kinds(op)[0]}")
    same_kind(op)


def sizes(op: ir.OpView) -> None:
    """Bytes of an accumulator tile; other kinds than StreamK need no workspace."""
    count = integer(op, "accumulator_bytes")
    if count < 1:
        raise LayoutError(f"expects a positive number of accumulator_bytes, but got {count}")


def fixup_counter(op: ir.OpView) -> None:
    """Counters lie behind the partial sums, whose size is known."""
    streamk(op)
    sizes(op)
    generic_barrier(op)


def fixup(op: ir.OpView) -> None:
    """The same accumulators in and out; who works on them together."""
    streamk(op)
    generic_barrier(op)
    if integer(op, "threads") < 1:
        raise LayoutError("expects a positive number of threads")
    partial, total = op.operation.operands[2].type, op.operation.results[0].type
    if partial != total:
        raise LayoutError(f"expects a sum of {partial}, but got {total}")
