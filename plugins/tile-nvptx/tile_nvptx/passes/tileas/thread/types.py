"""nv_tileas types -> what one thread holds."""

from __future__ import annotations

from math import prod

from tile_cute.atoms.records import TENSOR
from tile_tileaa.dialect import MemTokenType, PtrType
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.buffers import AsyncTokenType, BarrierType, Buffer, BufferType
from tile_tileas.dialect.pipelines import ConsumerTokenType, ProducerTokenType
from tile_tileas.dialect.tma import TmaDescType

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir

_TOKENS = (MemTokenType, AsyncTokenType, ProducerTokenType, ConsumerTokenType)
WITHOUT_LAYOUT = "works on a tile without a layout; run 'tileas-assign-layouts' before"
GLOBAL_SPACE = 1
SHARED_SPACE = 3


def global_pointer() -> ir.Type:
    """`!llvm.ptr<1>`."""
    return ir.Type.parse(f"!llvm.ptr<{GLOBAL_SPACE}>")


def shared_pointer() -> ir.Type:
    """`!llvm.ptr<3>`."""
    return ir.Type.parse(f"!llvm.ptr<{SHARED_SPACE}>")


#: What threads hold of formats that have no arithmetic: the codes of small floats and the bits of
#: i4 in bytes (i4 and f4E2M1FN in the low half, zeros above), tf32 as f32.
HELD_AS = {
    "f8E4M3FN": "i8",
    "f8E5M2": "i8",
    "f8E8M0FNU": "i8",
    "f8E5M3FNU": "i8",
    "f4E2M1FN": "i8",
    "i4": "i8",
    "tf32": "f32",
}


def held_type(element: ir.Type) -> ir.Type:
    """The type in which a thread holds a number."""
    name = HELD_AS.get(str(element))
    return element if name is None else ir.Type.parse(name)


def convert_type(type_: ir.Type) -> ir.Type:
    """tensor<SxE, layout> -> vector<NxE>, N registers; ptr -> !llvm.ptr<1>; token -> i32;
    buffer, barrier -> !llvm.ptr<3>, in tensor memory i32; tensor map -> !llvm.ptr.
    """
    if isinstance(type_, ir.RankedTensorType):
        layout = layout_of(type_)
        if layout is None:
            raise CompileError(WITHOUT_LAYOUT)
        element = convert_type(type_.element_type)
        return ir.VectorType.get([layout.elements_per_thread], element)
    if isinstance(type_, PtrType):
        return global_pointer()
    if isinstance(type_, _TOKENS):
        return ir.IntegerType.get_signless(32)
    buffer = Buffer.of(type_)
    if buffer is not None and buffer.space == TENSOR:
        return ir.IntegerType.get_signless(32)
    if isinstance(type_, BufferType | BarrierType):
        return shared_pointer()
    if isinstance(type_, TmaDescType):
        return ir.Type.parse("!llvm.ptr")
    if isinstance(type_, ir.VectorType):
        return ir.VectorType.get(type_.shape, held_type(type_.element_type))
    if isinstance(type_, ir.FloatType | ir.IntegerType):
        return held_type(type_)
    return type_


def stage_bytes(buffer: Buffer) -> int:
    """Bytes of one stage of a buffer in shared memory, where elements are as threads store them."""
    return prod(buffer.shape) * storage_type(buffer.tile.element_type).width // 8


def vector_of(count: int, element: ir.Type) -> ir.Type:
    """`vector<count x element>`."""
    return ir.VectorType.get([count], element)


def element_of(type_: ir.Type) -> ir.Type:
    """Element type of a vector or tile; a scalar's own type."""
    is_many = isinstance(type_, ir.VectorType | ir.RankedTensorType)
    return type_.element_type if is_many else type_


def count_of(type_: ir.Type) -> int:
    """Elements of a vector; 1 for a scalar."""
    return type_.shape[0] if isinstance(type_, ir.VectorType) else 1


def storage_type(element: ir.Type) -> ir.Type:
    """What an element is in memory: i1 is a byte, pointers are addresses, fp8 is bytes."""
    element = held_type(element)
    if isinstance(element, ir.IntegerType) and element.width == 1:
        return ir.IntegerType.get_signless(8)
    if not hasattr(element, "width"):
        return ir.IntegerType.get_signless(64)
    return element
