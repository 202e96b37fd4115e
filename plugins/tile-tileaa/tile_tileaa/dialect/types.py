"""What the types of values say, for verifiers: shapes, elements, views."""

from tile_core.mlir import ir
from tile_tileaa.dialect.base import MemRefType, MemTokenType, PtrType, TiledViewType

#: A size or stride that is only known when the kernel runs.
DYNAMIC = -(1 << 63)

POINTER_BITS = 64
TF32_BITS = 32


def shape_of(type_: ir.Type) -> list[int]:
    """The extents of a tile type; [] for a scalar."""
    return list(type_.shape) if isinstance(type_, ir.RankedTensorType) else []


def element_of(type_: ir.Type) -> ir.Type:
    """The element type of a tile; a scalar's own type."""
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_


def count_of(shape: list[int]) -> int:
    """The number of elements of a tile of this shape."""
    total = 1
    for extent in shape:
        total *= extent
    return total


def bits_of(element: ir.Type) -> int | None:
    """The bits that an element takes; None for what is no element. tf32 takes 32, not 19."""
    if isinstance(element, PtrType):
        return POINTER_BITS
    if isinstance(element, ir.FloatTF32Type):
        return TF32_BITS
    return element.width if isinstance(element, ir.IntegerType | ir.FloatType) else None


def is_integer(element: ir.Type) -> bool:
    """Whether tiles of this element are integers."""
    return isinstance(element, ir.IntegerType)


def is_float(element: ir.Type) -> bool:
    """Whether tiles of this element are floats."""
    return isinstance(element, ir.FloatType)


def is_token(type_: ir.Type) -> bool:
    """Whether values of this type are ordering edges."""
    return isinstance(type_, MemTokenType)


def pointee_of(type_: ir.Type) -> ir.Type | None:
    """What a pointer, or each of a tile of pointers, points to; None for anything else."""
    element = element_of(type_)
    return ir.TypeAttr(element.params[0]).value if isinstance(element, PtrType) else None


def memref_parts(type_: ir.Type) -> tuple[ir.Type, list[int], list[int]] | None:
    """Element, sizes and strides of a memref; None for anything else."""
    if not isinstance(type_, MemRefType):
        return None
    element, sizes, strides = type_.params
    return (
        ir.TypeAttr(element).value,
        list(ir.DenseI64ArrayAttr(sizes)),
        list(ir.DenseI64ArrayAttr(strides)),
    )


def view_parts(type_: ir.Type) -> tuple[ir.Type, list[int], list[int], str] | None:
    """Memref, tile, axes of the memref and padding of a tiled view; None for anything else."""
    if not isinstance(type_, TiledViewType):
        return None
    source, tile, dim_map, padding = type_.params
    return (
        ir.TypeAttr(source).value,
        list(ir.DenseI32ArrayAttr(tile)),
        list(ir.DenseI32ArrayAttr(dim_map)),
        ir.StringAttr(padding).value,
    )
