"""The dialects, their types, and how types and the algebra's values correspond.

Types carry their value as text: `!cute.layout<"(4,8):(1,4)">`,
`!cute.memref<f16, "smem", "S<3,4,3> o 0 o (8,64):(64,1)">`. Names follow the Tile IR
specification's rosters with `_` for `.`.
"""

# pyright: reportGeneralTypeIssues=false

import re
from functools import lru_cache
from typing import Any

from tile_core.dialect import Dialect, Type
from tile_core.mlir import ir
from tile_cute.errors import LayoutError
from tile_cute.text import parse_layout
from tile_cute.values import KINDS, Operand, Other, Value, View, parse_value


class Cute(Dialect, name="cute"):
    """Layouts, tensors over them, tiled copies and MMAs."""


class CuteNvgpu(Dialect, name="cute_nvgpu"):
    """NVIDIA's copy and MMA instructions as atoms and operations."""


class ComposedLayoutType(Type, dialect=Cute, name="composed_layout"):
    """Swizzle, offset and layout."""

    text: Any


class LayoutType(Type, dialect=Cute, name="layout"):
    """shape:stride."""

    text: Any


class SwizzleType(Type, dialect=Cute, name="swizzle"):
    """S<bits,base,shift>."""

    text: Any


class TileType(Type, dialect=Cute, name="tile"):
    """Layouts by mode."""

    text: Any


class ShapeType(Type, dialect=Cute, name="shape"):
    """Extents."""

    text: Any


class StrideType(Type, dialect=Cute, name="stride"):
    """Strides, also scaled bases."""

    text: Any


class CoordType(Type, dialect=Cute, name="coord"):
    """A coordinate; `_` where it is free."""

    text: Any


class IntTupleType(Type, dialect=Cute, name="int_tuple"):
    """Any other int tuple."""

    text: Any


class PtrType(Type, dialect=Cute, name="ptr"):
    """A pointer: element type, memory space (rmem, smem, gmem, tmem, generic), alignment."""

    element: Any
    space: Any
    alignment: Any


class MemRefType(Type, dialect=Cute, name="memref"):
    """A tensor: element type, memory space, layout."""

    element: Any
    space: Any
    layout: Any


class CoordTensorType(Type, dialect=Cute, name="coord_tensor"):
    """A tensor whose elements are coordinates: a layout with scaled-basis strides."""

    layout: Any


class SparseElemType(Type, dialect=Cute, name="sparse_elem"):
    """An element that stands for `logical` elements of which some are kept."""

    logical: Any
    element: Any


class FastDivmodDivisorType(Type, dialect=Cute, name="fast_divmod_divisor"):
    """A divisor with its precomputed magic numbers; `bits` wide."""

    bits: Any


class TiledMmaType(Type, dialect=Cute, name="tiled_mma"):
    """An MMA instruction, the layout of atoms over threads, the permutation of the tile."""

    atom: Any
    atoms: Any
    permutation: Any


class TiledCopyType(Type, dialect=Cute, name="tiled_copy"):
    """A copy instruction, the (thread, value) layout, the tiler."""

    atom: Any
    layout: Any
    tiler: Any


class TupleType(Type, dialect=Cute, name="tuple"):
    """Several values as one."""

    types: Any


class AtomType(Type, dialect=CuteNvgpu, name="atom"):
    """A copy or MMA instruction of the registry, by its PTX name."""

    instruction: Any


class SmemDescType(Type, dialect=CuteNvgpu, name="smem_desc"):
    """A 64-bit matrix descriptor: generation (sm90, sm100), major, swizzle."""

    generation: Any
    major: Any
    swizzle: Any


class SmemDescViewType(Type, dialect=CuteNvgpu, name="smem_desc_view"):
    """Descriptors laid out: one of each tile."""

    source: Any
    layout: Any


class TmaDescriptorTiledType(Type, dialect=CuteNvgpu, name="tma_descriptor_tiled"):
    """A tensor map for tiled copies: element type, box, swizzle."""

    element: Any
    box: Any
    swizzle: Any


class TmaDescriptorIm2colType(Type, dialect=CuteNvgpu, name="tma_descriptor_im2col"):
    """A tensor map for im2col copies."""

    element: Any
    box: Any
    swizzle: Any


SPACES = ("rmem", "smem", "gmem", "tmem", "generic")
_STATIC = re.compile(r'!cute\.(\w+)<"(.*)">')
_VIEW = re.compile(r'!cute\.memref<(.+), "(\w+)", "(.*)">')


@lru_cache(maxsize=4096)
def parse_type(text: str) -> Operand:
    """What values of the type with this text stand for; LayoutError for a malformed one."""
    view = _VIEW.fullmatch(text)
    if view is not None:
        if view[2] not in SPACES:
            raise LayoutError(f"'{view[2]}' is no memory space; use {', '.join(SPACES)}")
        return View(view[1], view[2], parse_layout(view[3]))
    static = _STATIC.fullmatch(text)
    if static is not None and static[1] in KINDS:
        return parse_value(static[1], static[2])
    return Other(text)


def operand_of(type_: ir.Type) -> Operand:
    """The algebra's view of a type."""
    return parse_type(str(type_))


def type_of(operand: Operand) -> ir.Type:
    """The type in the current context whose values are `operand`."""
    if isinstance(operand, View):
        return ir.Type.parse(
            f'!cute.memref<{operand.element}, "{operand.space}", "{operand.layout}">'
        )
    if isinstance(operand, Value):
        return ir.Type.parse(f'!cute.{operand.kind}<"{operand.text}">')
    return ir.Type.parse(operand.type)


def attributes_of(op: ir.OpView | ir.Operation) -> dict[str, Any]:
    """Integer, string and integer-array attributes as Python values, and the operation's name."""
    result: dict[str, Any] = {"op": op.operation.name.split(".", 1)[1]}
    for name in op.operation.attributes:
        attribute = op.operation.attributes[name]
        if isinstance(attribute, ir.IntegerAttr | ir.StringAttr):
            result[name] = attribute.value
        elif isinstance(attribute, ir.DenseI32ArrayAttr | ir.DenseI64ArrayAttr):
            result[name] = list(attribute)
    return result
