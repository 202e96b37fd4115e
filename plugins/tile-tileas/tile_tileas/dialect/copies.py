"""Asynchronous copies, and waiting for them.

`async_load` and `async_tiled_load` copy global to shared memory with cp.async: each thread copies
the elements that the attribute `layout` (a distributed layout) gives it. Groups of cp.async and of
bulk stores belong to threads: `async_commit_group` closes one, `async_wait` waits until at most
`pending` of a kind are left. Texts follow the Tile IR specification, "nv_tileas verifiers".
"""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any

from tile_cute.atoms.records import GLOBAL, SHARED
from tile_tileaa.dialect.accesses import MAX_TILE_ELEMENTS
from tile_tileaa.dialect.types import (
    count_of,
    element_of,
    is_integer,
    is_token,
    memref_parts,
    pointee_of,
    shape_of,
    view_parts,
)

from tile_core.dialect import Operand, OperationSpec, ReadsAndWrites, Result, declare
from tile_core.mlir import ir
from tile_tileas.dialect.barriers import barrier_problem
from tile_tileas.dialect.base import LayoutAttr, NvTileAS, layout_in
from tile_tileas.dialect.buffers import Buffer, is_async_token
from tile_tileas.dialect.effects import effects
from tile_tileas.dialect.fields import operand_of
from tile_tileas.dialect.staging import buffer_problem, is_index

#: Groups that `async_wait` counts: of cp.async, of bulk copies, of bulk copies that have been read,
#: of products of warpgroups.
GROUPS = ("cp.async", "bulk", "bulk.read", "wgmma")
#: Those that an operation of their own closes; products are groups one by one.
_COMMITTED = ("cp.async", "bulk")

_MODE = "weak"


def _destination(op: ir.OpView) -> str | None:
    """One stage of shared memory."""
    type_ = op.destination.type
    problem = buffer_problem(type_)
    if problem is not None:
        return problem
    buffer = Buffer.of(type_)
    assert buffer is not None
    if buffer.space != SHARED or buffer.stages != 1:
        return f"expects one stage of shared memory to copy to, but got {type_}"
    return None


def _tokens(op: ir.OpView) -> str | None:
    """A memory token may come in; an asynchronous and a memory token go out."""
    came = operand_of(op, "token")
    if came is not None and not is_token(came.type):
        return f"expects a memory token, but got {came.type}"
    done, order = op.results
    if not is_async_token(done.type) or not is_token(order.type):
        return f"expects an async token and a memory token, but got {done.type}, {order.type}"
    return None


def _exists(op: ir.OpView) -> str | None:
    """A flag may say whether anything is copied at all."""
    flag = operand_of(op, "exists")
    if flag is None or (is_integer(flag.type) and flag.type.width == 1):
        return None
    return f"expects exists to be i1, but got {flag.type}"


def _weak(op: ir.OpView) -> str | None:
    semantic = op.mem_semantic.value
    return None if semantic == _MODE else f"unsupported mem_semantic: {semantic}"


def _copied_by(op: ir.OpView) -> str | None:
    """The threads' layout, if there is one, covers the destination's tile."""
    if "layout" not in op.attributes:
        return None
    attribute, buffer = op.attributes["layout"], Buffer.of(op.destination.type)
    assert buffer is not None
    if not isinstance(attribute, LayoutAttr):
        return f"expects layout to be a distributed layout, but got {attribute}"
    layout = layout_in(attribute)
    if list(layout.shape) != buffer.shape or not layout.is_surjective:
        return f"expects a layout for every element of {buffer.shape}, but got {layout}"
    return None


def _through_pointers(op: ir.OpView) -> str | None:
    base, buffer = op.operands[0], Buffer.of(op.destination.type)
    assert buffer is not None
    pointee = pointee_of(base.type)
    if pointee is None:
        return f"expects pointers, but got {base.type}"
    if shape_of(base.type) != buffer.shape or pointee != buffer.tile.element_type:
        return f"cannot copy what {base.type} points to to {op.destination.type}"
    mask = operand_of(op, "mask")
    if mask is None:
        return None
    element = element_of(mask.type)
    one_bit = isinstance(element, ir.IntegerType) and element.width == 1
    if shape_of(mask.type) == buffer.shape and one_bit:
        return None
    return f"expects a mask of i1 of shape {buffer.shape}, but got {mask.type}"


def _through_view(op: ir.OpView) -> str | None:
    owner = op.operands[0].owner
    if isinstance(owner, ir.Block) or owner.name != "nv_tileaa.block_tile":
        return "tiled_load's tiled_view type must be produced by block_tile directly"
    view, buffer = view_parts(op.view.type), Buffer.of(op.destination.type)
    assert buffer is not None
    assert view is not None
    source, tile, _, _ = view
    memref = memref_parts(source)
    if memref is None or tile != buffer.shape or memref[0] != buffer.tile.element_type:
        return f"cannot copy a tile of {op.view.type} to {op.destination.type}"
    if len(op.coords) != len(tile):
        return f"expects {len(tile)} coordinates, but got {len(op.coords)}"
    if count_of(tile) > MAX_TILE_ELEMENTS:
        return f"tile would exceed the maximum of {MAX_TILE_ELEMENTS} elements, got {tile}"
    return None


def _bulk(op: ir.OpView) -> str | None:
    """A run of bytes: global to shared on a barrier, shared to global in a group."""
    source, destination = op.operands[0].type, op.operands[1].type
    pair = _end(source), _end(destination)
    if pair not in ((GLOBAL, SHARED), (SHARED, GLOBAL)):
        return f"cannot copy from {source} to {destination}"
    size = op.bytes.value
    if size < 1 or size % 16:
        return f"expects bytes to be a positive multiple of 16, but got {size}"
    barrier, stage = operand_of(op, "barrier"), operand_of(op, "stage")
    if (pair[1] == SHARED) != (barrier is not None) or (barrier is None) != (stage is None):
        return "expects a barrier and its stage for copies to shared memory, and for no others"
    if barrier is None or stage is None:
        return None
    if not is_index(stage):
        return f"expects stage to be i32, but got {stage.type}"
    return barrier_problem(barrier.type)


def _end(type_: ir.Type) -> str | None:
    buffer = Buffer.of(type_)
    if buffer is not None and buffer_problem(type_) is None and buffer.stages == 1:
        return buffer.space
    return GLOBAL if pointee_of(type_) is not None and not shape_of(type_) else None


def _async_result(op: ir.OpView) -> str | None:
    type_ = op.results[0].type
    return None if is_async_token(type_) else f"expects an async token, but got {type_}"


def _awaited(op: ir.OpView) -> str | None:
    wrong = [value.type for value in op.operands if not is_async_token(value.type)]
    return f"expects async tokens, but got {wrong[0]}" if wrong else None


def _group(op: ir.OpView) -> str | None:
    group = op.group.value
    return None if group in GROUPS else f"expects a group of {', '.join(GROUPS)}, but got '{group}'"


def _commit(op: ir.OpView) -> str | None:
    group = op.group.value
    return None if group in _COMMITTED else f"cannot commit groups of '{group}'"


def _pending(op: ir.OpView) -> str | None:
    number = op.pending.value
    return None if number >= 0 else f"expects pending to be at least 0, but got {number}"


_DONE: dict[str, Any] = {"result": Result[Any]}
_ORDERED: dict[str, Any] = {
    "destination": Operand[Any],
    "token": Operand[Any] | None,
    **_DONE,
    "result_token": Result[Any],
    "mem_semantic": ir.StringAttr,
}
_EXISTS: dict[str, Any] = {"exists": Operand[Any] | None}
_WRITES = effects(writes=("destination",))

SPECS = (
    OperationSpec(
        "async_load",
        {"base": Operand[Any], "mask": Operand[Any] | None, **_ORDERED, **_EXISTS},
        "Copy what a tile of pointers points to into a buffer; where the mask is false, zeros. "
        "Nothing is copied where `exists` is false.",
        (_WRITES,),
        (_destination, _through_pointers, _copied_by, _tokens, _weak, _exists),
    ),
    OperationSpec(
        "async_tiled_load",
        {"view": Operand[Any], "coords": Sequence[Operand[Any]], **_ORDERED, **_EXISTS},
        "Copy one tile of a view into a buffer; elements outside the memref become zeros. "
        "Nothing is copied where `exists` is false.",
        (_WRITES,),
        (_destination, _through_view, _copied_by, _tokens, _weak, _exists),
    ),
    OperationSpec(
        "async_copy",
        {
            "source": Operand[Any],
            "destination": Operand[Any],
            "barrier": Operand[Any] | None,
            "stage": Operand[Any] | None,
            **_DONE,
            "bytes": ir.IntegerAttr,
        },
        "One thread copies a run of bytes between a global pointer and a buffer (cp.async.bulk). "
        "Both ends start at a multiple of 16 bytes. To shared memory, the barrier gets the bytes.",
        (effects(reads=("source",), writes=("destination",)),),
        (_bulk, _async_result),
    ),
    OperationSpec(
        "async_commit_group",
        {"tokens": Sequence[Operand[Any]], **_DONE, "group": ir.StringAttr},
        "What each thread has begun since the last group becomes a group of its own.",
        (ReadsAndWrites,),
        (_awaited, _async_result, _group, _commit),
    ),
    OperationSpec(
        "async_wait",
        {"tokens": Sequence[Operand[Any]], "pending": ir.IntegerAttr, "group": ir.StringAttr},
        "Each thread waits until at most `pending` of its groups are left. What other threads "
        "copied is there after a `sync`.",
        (ReadsAndWrites,),
        (_awaited, _group, _pending),
    ),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)
