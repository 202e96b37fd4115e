"""Buffers of nv_tileas: allocated, viewed by stage and subtile, filled and read, freed.

An operation runs in the agent that its region belongs to, with all of the agent's threads.
Optional attributes: `shared_offset` of `alloc_tensor` (bytes; set by allocation), `atom` of `copy`
(a copy of tile_cute's registry; without one, code generation takes the widest vectors), `few` of
one from tensor memory (how many registers are read before the next ones).
"""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from math import prod
from typing import Any

from tile_cute.atoms.records import GLOBAL, REGISTERS, SHARED, TENSOR
from tile_cute.atoms.registry import copy_atoms
from tile_cute.linear import LinearLayout

from tile_core.dialect import Operand, OperationSpec, Pure, Result, declare
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS, layout_of
from tile_tileas.dialect.buffers import SPACES, Buffer
from tile_tileas.dialect.effects import effects
from tile_tileas.dialect.fields import operand_of

#: On a copy from tensor memory: it is made in pieces of so many registers, of which each may be
#: worked on before the next one is read.
FEW = "few"
#: Residencies that one copy connects (Tile IR specification, "nv_tileas verifiers").
PAIRS = frozenset(
    {
        (GLOBAL, REGISTERS), (GLOBAL, SHARED), (REGISTERS, GLOBAL), (REGISTERS, SHARED),
        (REGISTERS, TENSOR), (SHARED, GLOBAL), (SHARED, REGISTERS), (SHARED, TENSOR),
        (TENSOR, REGISTERS),
    }
)  # fmt: skip


def buffer_problem(type_: ir.Type) -> str | None:
    """What is wrong with a type that must be a buffer."""
    buffer = Buffer.of(type_)
    if buffer is None:
        return f"expects a buffer, but got {type_}"
    if buffer.space not in SPACES:
        return f"expects a buffer in 'shared' or 'tensor' memory, but got '{buffer.space}'"
    if buffer.stages < 1:
        return f"expects a buffer of at least one stage, but got {buffer.stages}"
    return layout_problem(buffer)


def layout_problem(buffer: Buffer) -> str | None:
    """What is wrong with the layout of a buffer, if it has one."""
    layout = buffer.layout
    if layout is None:
        return None
    allowed = SPACES[buffer.space]
    if list(layout.shape) != buffer.shape:
        return f"expects a layout of {buffer.shape}, but got one of {list(layout.shape)}"
    if any(space not in allowed for space in layout.spaces):
        return f"expects a layout over {' and '.join(allowed)}, but got {layout}"
    # Tensor memory may leave rows unused (M of 64), shared memory has one place per element.
    if not layout.is_surjective or (buffer.space == SHARED and not layout.is_injective):
        return f"expects a layout with a place for every element, but got {layout}"
    return None


def is_index(value: ir.Value) -> bool:
    """Whether a value is an i32, as stages, phases and indices are."""
    return isinstance(value.type, ir.IntegerType) and value.type.width == 32


def _alloc(op: ir.OpView) -> str | None:
    problem = buffer_problem(op.results[0].type)
    if problem is not None:
        return problem
    alignment = op.alignment.value
    if alignment < 1 or alignment & (alignment - 1):
        return f"expects alignment to be a power of two, but got {alignment}"
    if "shared_offset" in op.attributes:
        offset = ir.IntegerAttr(op.attributes["shared_offset"]).value
        if offset < 0 or offset % alignment:
            return f"expects shared_offset {offset} to be a multiple of the alignment {alignment}"
    return None


def _operand_buffer(op: ir.OpView) -> str | None:
    return buffer_problem(op.operands[0].type)


def _view(op: ir.OpView) -> str | None:
    """One stage of the source, and of it one tile of the grid that results of this shape form."""
    problem = buffer_problem(op.operands[0].type) or buffer_problem(op.results[0].type)
    if problem is not None:
        return problem
    source, result = Buffer.of(op.operands[0].type), Buffer.of(op.results[0].type)
    assert source is not None
    assert result is not None
    if result.stages != 1:
        return f"expects a view of one stage, but got {result.stages}"
    if source.space != result.space or source.tile.element_type != result.tile.element_type:
        return f"cannot view {op.operands[0].type} as {op.results[0].type}"
    for index in op.operands[1:]:
        if not is_index(index):
            return f"expects stage and indices to be i32, but got {index.type}"
    return _subtile(source, result, len(op.operands) - 2)


def _subtile(source: Buffer, result: Buffer, indices: int) -> str | None:
    if indices not in (0, len(source.shape)):
        return f"expects no indices or {len(source.shape)}, but got {indices}"
    if not indices:
        same = source.shape == result.shape and source.layout == result.layout
        return None if same else f"cannot view a stage of {source.tile} as {result.tile}"
    if len(source.shape) != len(result.shape) or any(
        whole % part for whole, part in zip(source.shape, result.shape, strict=True)
    ):
        return f"cannot cut {source.shape} into tiles of {result.shape}"
    if source.layout is None:
        return None if result.layout is None else f"cannot know {result.layout} without a layout"
    expected = subtile_layout(source.layout, result.shape)
    if expected is None:
        return f"cannot view tiles of {result.shape} in {source.layout}: each must be one run"
    if result.layout != expected:
        return f"expects a view of layout {expected}, but got {result.layout}"
    return None


def subtile_layout(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout | None:
    """The layout of one tile of `shape` inside a shared buffer of `layout`.

    None unless such tiles are pieces of memory of their own, equal but for where they start: the
    low bits of the offset make up the tile, those above choose it.
    """
    low = 1
    for extent in shape:
        low *= extent
    bits = low.bit_length() - 1
    vectors = layout.bases["offset"]
    inside = [all(x < n for x, n in zip(v, shape, strict=True)) for v in vectors[:bits]]
    above = [all(x % n == 0 for x, n in zip(v, shape, strict=True)) for v in vectors[bits:]]
    if layout.spaces not in (("offset",), ()) or not all(inside) or not all(above):
        return None
    return LinearLayout({"offset": vectors[:bits]}, shape)


def _reinterpret(op: ir.OpView) -> str | None:
    """The same bytes: as many elements of the same type in as many stages."""
    problem = buffer_problem(op.operands[0].type) or buffer_problem(op.results[0].type)
    if problem is not None:
        return problem
    source, result = Buffer.of(op.operands[0].type), Buffer.of(op.results[0].type)
    assert source is not None
    assert result is not None
    same = source.space == result.space and source.stages == result.stages
    same = same and source.tile.element_type == result.tile.element_type
    if same and prod(source.shape) == prod(result.shape):
        return None
    return f"cannot reinterpret {op.operands[0].type} as {op.results[0].type}"


def residency(type_: ir.Type) -> str | None:
    """Where values of a type are: "registers" for tiles, the space of buffers; None otherwise."""
    buffer = Buffer.of(type_)
    if buffer is not None:
        return buffer.space
    return REGISTERS if isinstance(type_, ir.RankedTensorType) else None


def _nothing(op: ir.OpView) -> str | None:
    type_ = op.results[0].type
    if str(type_).startswith(("!nv_tileas.", "!nv_tileaa.")) and str(type_).endswith("_token"):
        return None
    return f"expects the type of a token, but got {type_}"


def _tile_type(type_: ir.Type) -> ir.RankedTensorType:
    buffer = Buffer.of(type_)
    return buffer.tile if buffer is not None else ir.RankedTensorType(type_)


def _copy(op: ir.OpView) -> str | None:
    """Between two residencies that one copy connects; the tile's result, or a buffer written."""
    results, destination = list(op.results), operand_of(op, "destination")
    if len(results) + (destination is not None) != 1:
        return "expects a destination buffer or a result, and not both"
    target = destination.type if destination is not None else results[0].type
    pair = residency(op.operands[0].type), residency(target)
    if pair not in PAIRS or (pair[1] == REGISTERS) != bool(results):
        return f"cannot copy from {op.operands[0].type} to {target}"
    for type_ in (op.operands[0].type, target):
        buffer = Buffer.of(type_)
        problem = None if buffer is None else buffer_problem(type_)
        if problem is not None:
            return problem
        if buffer is not None and buffer.stages != 1:
            return f"expects one stage to copy, but got {buffer.stages}"
    source, result = _tile_type(op.operands[0].type), _tile_type(target)
    if list(source.shape) != list(result.shape) or source.element_type != result.element_type:
        return f"cannot copy from {op.operands[0].type} to {target}"
    return _distributed(op, target) or _atom(op, pair)


def _distributed(op: ir.OpView, target: ir.Type) -> str | None:
    for type_ in (op.operands[0].type, target):
        layout = layout_of(type_) if residency(type_) == REGISTERS else None
        if layout is not None and not layout.is_surjective:
            return f"expects registers for every element, but got {layout}"
    return None


def _atom(op: ir.OpView, pair: tuple[str | None, str | None]) -> str | None:
    if "atom" not in op.attributes:
        return None
    name = ir.StringAttr(op.attributes["atom"]).value
    if any(a.instruction == name and (a.source, a.target) == pair for a in copy_atoms()):
        return None
    return f"expects atom '{name}' to be a copy from {pair[0]} to {pair[1]}"


SPECS = (
    OperationSpec(
        "create_none",
        {"result": Result[Any]},
        "A token of nothing: work that is done, or that nobody waits for.",
        (Pure,),
        (_nothing,),
    ),
    OperationSpec(
        "alloc_tensor",
        {"result": Result[Any], "alignment": ir.IntegerAttr},
        "Memory for a buffer; what it holds is undefined. Lives until `dealloc`, or, without one, "
        "until its last use. `alignment` is in bytes.",
        (effects(allocates="result"),),
        (_alloc,),
    ),
    OperationSpec(
        "dealloc",
        {"source": Operand[Any]},
        "Nothing reads or writes the buffer from here on.",
        (effects(frees="source"),),
        (_operand_buffer,),
    ),
    OperationSpec(
        "buffer_view",
        {
            "source": Operand[Any],
            "stage": Operand[Any],
            "indices": Sequence[Operand[Any]],
            "result": Result[Any],
        },
        "Stage `stage` of a buffer and, with an index per axis, one tile of the grid that tiles "
        "of the result's shape form in it. The same memory; no data moves.",
        (Pure,),
        (_view,),
    ),
    OperationSpec(
        "buffer_reinterpret",
        {"source": Operand[Any], "result": Result[Any]},
        "The same memory as a buffer of tiles of another shape or layout, which says what lies "
        "where for those who use it by this name. No data moves.",
        (Pure,),
        (_reinterpret,),
    ),
    OperationSpec(
        "copy",
        {
            "source": Operand[Any],
            "destination": Operand[Any] | None,
            "result": Result[Any] | None,
        },
        "Move a tile between registers and a buffer, or between buffers. Each thread moves what "
        "it holds; of several that hold an element, the leader writes it. Threads that read what "
        "others wrote meet them at a `sync` before.",
        (effects(reads=("source",), writes=("destination",)),),
        (_copy,),
    ),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)
