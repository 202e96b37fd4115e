"""cuda_tile types -> nv_tileaa types."""

from __future__ import annotations

from tile_cudatile import dialect as ct

from tile_core.mlir import ir
from tile_tileaa import dialect as aa


def convert_type(type_: ir.Type) -> ir.Type:
    """The nv_tileaa form of a cuda_tile type; other types stay.

    tile<SxE> -> tensor<SxE>, tile<E> -> E, ptr<E> -> ptr<E, 1>, token -> mem_token,
    tensor_view -> memref, partition_view -> tiled_view over that memref.
    """
    if isinstance(type_, ct.TileType):
        element = convert_type(ct.tile_element(type_))
        shape = ct.tile_shape(type_)
        return ir.RankedTensorType.get(shape, element) if shape else element
    if isinstance(type_, ct.PtrType | ct.KindPtrType):
        return aa.ptr(ct.pointee(type_))
    if isinstance(type_, ct.TokenType):
        return aa.mem_token()
    if isinstance(type_, ct.TensorViewType):
        element, shape, strides, _ = type_.params
        return aa.MemRefType.get(element, shape, strides)
    if isinstance(type_, ct.PartitionViewType):
        tile, view, dim_map, padding = type_.params
        source = convert_type(ir.TypeAttr(view).value)
        return aa.TiledViewType.get(source, tile, dim_map, padding)
    if isinstance(type_, ct.GatherScatterViewType):
        tile, view, _, padding = type_.params
        source = convert_type(ir.TypeAttr(view).value)
        axes = ir.DenseI32ArrayAttr.get(list(range(len(ir.DenseI32ArrayAttr(tile)))))
        return aa.TiledViewType.get(source, tile, axes, padding)
    if isinstance(type_, ct.StridedViewType):
        tile, _, view, dim_map, padding = type_.params
        source = convert_type(ir.TypeAttr(view).value)
        return aa.TiledViewType.get(source, tile, dim_map, padding)
    return type_
