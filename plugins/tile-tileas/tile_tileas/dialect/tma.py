"""Copies by tensor maps (TMA): descriptors, loads, stores, reductions, rows by index.

One thread of the agent issues a copy; its coordinates count elements, outer axis first. A load
completes on a barrier, or on the pipe whose producer token it is given; stores complete in bulk
groups. Texts follow the Tile IR specification, "nv_tileas verifiers" and "TileAS TMA and memops
family"; where it has none, they are ours.

Optional attributes: `cache_hint` (a policy of `CACHE_HINTS`), `tmaIdx` (the number of the map); of
`make_tiled_tma_desc`, `axes` (the axes of memory that the map has, outer first; without it, all in
order).
"""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from math import prod
from typing import Any

from tile_cute.atoms.descriptors import SPANS
from tile_cute.atoms.records import SHARED
from tile_cute.map_recipe import joined_problem
from tile_cute.tensor_map import MAX_BOX, MAX_RANK
from tile_cute.tensor_map import SIZE as MAP_BYTES
from tile_tileaa.dialect.types import bits_of, is_token, memref_parts, view_parts

from tile_core.dialect import (
    WRITE,
    Check,
    Operand,
    OperationSpec,
    Pure,
    ReadsAndWrites,
    Result,
    Type,
    declare,
)
from tile_core.mlir import ir
from tile_tileas.dialect.barriers import barrier_problem
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dialect.buffers import Buffer, is_async_token
from tile_tileas.dialect.effects import effects
from tile_tileas.dialect.fields import operand_of, operands_of, results_of
from tile_tileas.dialect.pipelines import is_producer_token
from tile_tileas.dialect.staging import buffer_problem, is_index

OOB_MODES = ("zero", "nan", "constant")
#: On a tensor map: along so many of its innermost axes its copies are at 0 (i32).
JOINED = "joined"
CACHE_HINTS = ("evict_first", "evict_last", "no_allocate")
#: What a reduction does in memory (PTX ISA, "cp.reduce.async.bulk.tensor").
REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
#: Rows of one gather or scatter.
ROWS = 4
#: Bytes to which the innermost extent of a box is a multiple.
GRAIN = 16
#: Where boxes start in shared memory, in bytes; with a swizzle, where its pattern starts.
ALIGNMENT = 128


class TmaDescType(Type, dialect=NvTileAS, name="tma_desc"):
    """A tensor map that copies boxes of the tensor type `tile`, written with `swizzle`."""

    tile: Any
    swizzle: Any


def descriptor(tile: ir.Type, swizzle: str = "none") -> ir.Type:
    """`!nv_tileas.tma_desc<tile, swizzle>`."""
    return TmaDescType.get(ir.TypeAttr.get(tile), ir.StringAttr.get(swizzle))


def descriptor_parts(type_: ir.Type) -> tuple[ir.RankedTensorType, str] | None:
    """Box and swizzle of a descriptor; None for anything else."""
    if not isinstance(type_, TmaDescType):
        return None
    tile, swizzle = type_.params
    return ir.RankedTensorType(ir.TypeAttr(tile).value), ir.StringAttr(swizzle).value


def box_bytes(type_: ir.Type) -> int:
    """What one copy brings, parts outside of the tensor included."""
    parts = descriptor_parts(type_)
    assert parts is not None
    return prod(parts[0].shape) * (bits_of(parts[0].element_type) or 0) // 8


def box_problem(type_: ir.Type) -> str | None:
    """What is wrong with a type that must be a descriptor."""
    parts = descriptor_parts(type_)
    if parts is None:
        return f"expects a tma descriptor, but got {type_}"
    tile, swizzle = parts
    bits, shape = bits_of(tile.element_type) or 0, list(tile.shape)
    if swizzle not in SPANS:
        return f"expects a swizzle_mode of {', '.join(SPANS)}, but got '{swizzle}'"
    if not 1 <= len(shape) <= MAX_RANK:
        return f"expects a box of 1 to {MAX_RANK} axes, but got {len(shape)}"
    if max(shape) > MAX_BOX:
        return f"expects a box of extents up to {MAX_BOX}, but got {shape}"
    inner = shape[-1] * bits // 8
    if inner % GRAIN:
        return "tma leading box-dim bit-width is not 16 bytes aligned"
    if swizzle != "none" and inner > SPANS[swizzle]:
        return (
            f"expects rows of up to {SPANS[swizzle]} bytes for swizzle {swizzle}, but got {inner}"
        )
    return None


def _made(op: ir.OpView) -> str | None:
    """A box along axes of the view's memory, the last of which is contiguous."""
    problem = box_problem(op.result.type)
    if problem is not None:
        return problem
    parts, view = descriptor_parts(op.result.type), view_parts(op.view.type)
    assert parts is not None
    if view is None:
        return f"expects a tiled view, but got {op.view.type}"
    memref = memref_parts(view[0])
    axes = None if memref is None else axes_of(op, len(memref[1]))
    if memref is None or axes is None:
        return f"expects axes of {view[0]}, each at most once, but got {op.attributes['axes']}"
    if not _copied_as(memref[0], parts[0].element_type) or len(axes) != len(parts[0].shape):
        return f"tma box-dim and copy atom box-dim mismatch: {parts[0]} of {view[0]}"
    if memref[2][axes[-1]] != 1:
        return f"expects unit element stride along the last axis, but got {memref[2]}"
    problem = _joined_problem(op, *parts)
    if problem is not None:
        return problem
    mode = op.oob_mode.value
    if mode not in OOB_MODES:
        return f"expects an oob_mode of {', '.join(OOB_MODES)}, but got '{mode}'"
    return None if mode != "constant" else "TmaLoad only support zero padding now"


def _joined_problem(op: ir.OpView, box: ir.RankedTensorType, swizzle: str) -> str | None:
    if JOINED not in op.attributes:
        return None
    if swizzle != "none":
        return f"expects no swizzle of {JOINED} axes, but got {swizzle}"
    return joined_problem(box.shape[::-1], joined_of(op), bits_of(box.element_type) or 0)


def joined_of(op: ir.OpView | ir.Operation) -> int:
    """Along how many of its innermost axes the box of a map may be one run of memory, as copies
    are at 0 there; 0 if nothing says.
    """
    if JOINED not in op.attributes:
        return 0
    given = op.attributes[JOINED]
    return given.value if isinstance(given, ir.IntegerAttr) else 0


def _copied_as(memory: ir.Type, box: ir.Type) -> bool:
    """Whether elements in memory come as those of the box: as they are, or f32 rounded to tf32."""
    rounded = isinstance(memory, ir.F32Type) and isinstance(box, ir.FloatTF32Type)
    return memory == box or rounded


def axes_of(op: ir.OpView | ir.Operation, rank: int) -> list[int] | None:
    """The axes of memory that the map of a `make_tiled_tma_desc` has, outer first: all of `rank`,
    unless `axes` says which. None if it says what is wrong.
    """
    if "axes" not in op.attributes:
        return list(range(rank))
    given = op.attributes["axes"]
    axes = list(given) if isinstance(given, ir.DenseI32ArrayAttr) else []
    fine = axes and len(set(axes)) == len(axes) and all(0 <= axis < rank for axis in axes)
    return axes if fine else None


def _counted(op: ir.OpView) -> str | None:
    return None if op.count.value > 0 else f"expects count to be positive, but got {op.count.value}"


def _claimed(op: ir.OpView) -> str | None:
    buffer = Buffer.of(op.buffer.type)
    if buffer is None or not is_index(op.result) or buffer.space != SHARED:
        return f"expects a buffer in shared memory and an i32, but got {op.buffer.type}"
    return _counted(op)


def _filled(op: ir.OpView) -> str | None:
    """As many extents as the box has axes, strides for all but the last."""
    problem = box_problem(op.result.type) or buffer_problem(op.scratch.type) or _counted(op)
    if problem is not None:
        return problem
    parts, scratch = descriptor_parts(op.result.type), Buffer.of(op.scratch.type)
    assert parts is not None
    assert scratch is not None
    rank = len(parts[0].shape)
    numbers = len(operands_of(op, "extents")), len(operands_of(op, "strides"))
    if numbers != (rank, rank - 1):
        return f"expects {rank} extents and {rank - 1} strides, but got {numbers}"
    if scratch.bytes < MAP_BYTES:
        return f"expects {MAP_BYTES} bytes of scratch, but got {op.scratch.type}"
    if not 0 <= op.index.value < op.count.value:
        return f"expects an index below {op.count.value}, but got {op.index.value}"
    return None


def _box_in(field: str) -> Check:
    """The buffer of field `field` is one stage of shared memory that the descriptor fits."""

    def check(op: ir.OpView) -> str | None:
        desc, type_ = op.operands[0].type, op.operands[1].type
        problem = box_problem(desc) or buffer_problem(type_)
        if problem is not None:
            return problem
        buffer, parts = Buffer.of(type_), descriptor_parts(desc)
        assert buffer is not None
        assert parts is not None
        if buffer.space != SHARED or buffer.stages != 1:
            return f"expects one stage of shared memory as {field}, but got {type_}"
        return _fits(op, buffer, *parts)

    return check


def _fits(op: ir.OpView, buffer: Buffer, tile: ir.RankedTensorType, swizzle: str) -> str | None:
    by_rows = "gather" in op.operation.name or "scatter" in op.operation.name
    shape = list(tile.shape)
    wanted = [ROWS, *shape[1:]] if by_rows else shape
    if by_rows and (len(shape) != 2 or shape[0] != 1):
        return f"expects a descriptor of one row, but got {shape}"
    if buffer.shape != wanted or buffer.tile.element_type != tile.element_type:
        return f"tma box-dim and copy atom box-dim mismatch: {wanted} and {buffer.tile}"
    if buffer.layout is not None and buffer.layout != shared_layout(wanted, tile, swizzle):
        return f"expects a TMA-compatible layout for swizzle {swizzle}, but got {buffer.layout}"
    return None


def shared_layout(shape: Sequence[int], tile: ir.RankedTensorType, swizzle: str):
    """The layout in which a copy with `swizzle` leaves a box of `shape` in shared memory."""
    from tile_cute.linear import strided, swizzled_rows
    from tile_cute.swizzle import BYTE_SWIZZLES

    order = list(reversed(range(len(shape))))
    bits = bits_of(tile.element_type) or 0
    if swizzle == "none" or len(shape) == 1:
        return strided(shape, order)
    pattern = BYTE_SWIZZLES[swizzle]
    return swizzled_rows(tuple(shape), tuple(order), bits, SPANS[swizzle], pattern)


def _coordinates(op: ir.OpView) -> str | None:
    coords, parts = operands_of(op, "coords"), descriptor_parts(op.operands[0].type)
    assert parts is not None
    by_rows = "gather" in op.operation.name or "scatter" in op.operation.name
    wanted = 1 + ROWS if by_rows else len(parts[0].shape)
    if len(coords) != wanted:
        return f"expects {wanted} coordinates, but got {len(coords)}"
    if not is_index(coords[0]):
        return f"expects coordinates to be i32, but got {coords[0].type}"
    return None


def _completes(op: ir.OpView) -> str | None:
    """On a barrier's stage, or on a pipe; `tx_count` is the whole box."""
    barrier, stage = operand_of(op, "barrier"), operand_of(op, "stage")
    assert barrier is not None
    if is_producer_token(barrier.type):
        if stage is not None:
            return "expects no stage beside a producer token"
    else:
        problem = barrier_problem(barrier.type)
        if problem is not None:
            return problem
        if stage is None or not is_index(stage):
            return "expects the i32 stage of its barrier"
    buffer = Buffer.of(op.operands[1].type)
    assert buffer is not None
    if op.tx_count.value != buffer.stage_bytes:
        return f"expects tx_count to be {buffer.stage_bytes} bytes, but got {op.tx_count.value}"
    return None


def _hint(op: ir.OpView) -> str | None:
    if "cache_hint" not in op.attributes:
        return None
    hint = ir.StringAttr(op.attributes["cache_hint"]).value
    if hint in CACHE_HINTS:
        return None
    return f"expects a cache_hint of {', '.join(CACHE_HINTS)}, but got '{hint}'"


def _done(op: ir.OpView) -> str | None:
    type_ = op.results[0].type
    return None if is_async_token(type_) else f"expects an async token, but got {type_}"


def _tokens(op: ir.OpView) -> str | None:
    tokens = (*operands_of(op, "token"), *results_of(op, "result_token"))
    wrong = [value.type for value in tokens if not is_token(value.type)]
    return f"expects a memory token, but got {wrong[0]}" if wrong else None


def _mode(op: ir.OpView) -> str | None:
    mode = op.rmw_mode.value
    if mode in REDUCTIONS:
        return None
    return f"expects an rmw_mode of {', '.join(REDUCTIONS)}, but got '{mode}'"


def _multicast(op: ir.OpView) -> str | None:
    mask = operand_of(op, "mask")
    if mask is None or (isinstance(mask.type, ir.IntegerType) and mask.type.width == 16):
        return None
    return f"expects a mask of blocks in i16, but got {mask.type}"


def _descriptor(op: ir.OpView) -> str | None:
    return box_problem(op.operands[0].type)


_DESC: dict[str, Any] = {"desc": Operand[Any]}
_COORDS: dict[str, Any] = {"coords": Sequence[Operand[Any]]}
_DONE: dict[str, Any] = {"result": Result[Any]}
_LOADED: dict[str, Any] = {
    **_DESC,
    "destination": Operand[Any],
    **_COORDS,
    "barrier": Operand[Any],
    "stage": Operand[Any] | None,
    "mask": Operand[Any] | None,
    **_DONE,
    "tx_count": ir.IntegerAttr,
}
_STORED: dict[str, Any] = {
    **_DESC,
    "source": Operand[Any],
    **_COORDS,
    "token": Operand[Any] | None,
    **_DONE,
    "result_token": Result[Any] | None,
}
_LOAD_CHECKS = (_box_in("destination"), _coordinates, _completes, _multicast, _hint, _done)
_STORE_CHECKS = (_box_in("source"), _coordinates, _hint, _done, _tokens)
_WRITES, _READS = effects(writes=("destination",)), effects(reads=("source",))


class _Stores(_READS):
    """A store reads its buffer and writes global memory."""

    @staticmethod
    def get_effects(op: Any, effects: ir.MemoryEffectInstancesList) -> None:
        _READS.get_effects(op, effects)
        effects.append(WRITE)


SPECS = (
    OperationSpec(
        "make_tiled_tma_desc",
        {"view": Operand[Any], "result": Result[Any], "oob_mode": ir.StringAttr},
        "The tensor map of a view's memory, for boxes of the result's tile. Along so many `joined` "
        "axes, the innermost ones, copies are at 0, or bring nothing and begin before all rows "
        "that there may be: host code may find that the box is one run along them.",
        (Pure,),
        (_made,),
    ),
    OperationSpec(
        "claim_tma_descs",
        {"buffer": Operand[Any], "result": Result[Any], "count": ir.IntegerAttr},
        "A place (i32) in global memory for `count` tensor maps that is this block's until it is "
        "released. One thread claims it, and tells the others through the buffer.",
        (effects(reads=("buffer",), writes=("buffer",)),),
        (_claimed,),
    ),
    OperationSpec(
        "release_tma_descs",
        {"place": Operand[Any], "count": ir.IntegerAttr},
        "Others may have the place: nobody uses the tensor maps in it any more.",
        (ReadsAndWrites,),
        (_counted,),
    ),
    OperationSpec(
        "fill_tma_desc",
        {
            "place": Operand[Any],
            "scratch": Operand[Any],
            "address": Operand[Any],
            "extents": Sequence[Operand[Any]],
            "strides": Sequence[Operand[Any]],
            "result": Result[Any],
            "element": ir.StringAttr,
            "count": ir.IntegerAttr,
            "index": ir.IntegerAttr,
        },
        "Make tensor map `index` of the place's `count`, for elements `element` (as tensor maps "
        "name them) at `address`. Extents (i32, at least 1) and strides (i64, in bytes, not of the "
        "last axis) are outer first. The first warp writes it, by way of 128 bytes of `scratch`; "
        "copies may use it behind `acquire_tma_desc`.",
        (effects(writes=("scratch",)),),
        (_filled,),
    ),
    OperationSpec(
        "prefetch_tma_desc",
        _DESC,
        "Bring a tensor map near before its first use.",
        (ReadsAndWrites,),
        (_descriptor,),
    ),
    OperationSpec(
        "acquire_tma_desc",
        _DESC,
        "Copies after this see what other threads wrote into the tensor map before.",
        (ReadsAndWrites,),
        (_descriptor,),
    ),
    OperationSpec(
        "async_tiled_tma_load",
        _LOADED,
        "Copy a box to shared memory; what is outside of the tensor becomes zeros. With `mask`, "
        "to the same place in each block of the cluster whose bit is set. With `pair` the barrier "
        "is that of the pair's first block; with `copier` the agent's second warp begins it.",
        (_WRITES,),
        _LOAD_CHECKS,
    ),
    OperationSpec(
        "async_gather_tma_load",
        _LOADED,
        "Copy four rows of a matrix to shared memory: coordinates are a column and four rows.",
        (_WRITES,),
        _LOAD_CHECKS,
    ),
    OperationSpec(
        "async_tiled_tma_store",
        _STORED,
        "Copy a box from shared memory; what is outside of the tensor is left out.",
        (_Stores,),
        _STORE_CHECKS,
    ),
    OperationSpec(
        "async_scatter_tma_store",
        _STORED,
        "Copy four rows of a matrix from shared memory: coordinates are a column and four rows.",
        (_Stores,),
        _STORE_CHECKS,
    ),
    OperationSpec(
        "async_tiled_tma_reduce",
        {**_STORED, "rmw_mode": ir.StringAttr},
        "Combine a box in shared memory into the tensor, element by element, each atomically.",
        (_Stores,),
        (*_STORE_CHECKS, _mode),
    ),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)
