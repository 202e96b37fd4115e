"""Rules of views, loads, stores, atomics and tokens."""

from __future__ import annotations

from collections.abc import Iterator

from tile_cudatile.rules.registry import rule, tile_of
from tile_cudatile.rules.words import dims, quote
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import (
    BF16,
    F4E2M1FN,
    F16,
    F32,
    F64,
    I32,
    I64,
    GatherScatterView,
    PartitionView,
    Pointer,
    Scalar,
    StridedView,
    TensorView,
    Tile,
    Type,
    View,
    tile_type_of,
)

_VIEWS = (PartitionView, StridedView, GatherScatterView)


@rule("make_tensor_view")
def tensor_view(op: Op) -> Iterator[str]:
    """One operand per dynamic extent, all of one type."""
    type_ = op.result.type
    assert isinstance(type_, TensorView)
    pointer = tile_of(op, "base").element
    assert isinstance(pointer, Pointer)
    if type_.element != pointer.pointee:
        yield (
            f"expected pointer to {quote(type_.element)} to build tensor_view of this type, got "
            f"{quote(pointer.pointee)}"
        )
    if pointer.kind is None and type_.kind is not None:
        yield "pointer base without ptr_attr cannot produce tensor_view with ptr_attr"
    elif type_.kind != pointer.kind:
        yield (
            "tensor_view must preserve ptr_attr from base pointer "
            f"(#cuda_tile.ptr_attr<{pointer.kind}>)"
        )
    kinds: list[Type] = []
    for name, group, extents in (
        ("shape", "dynamicShape", type_.shape),
        ("stride", "dynamicStrides", type_.strides),
    ):
        values = op.group(group)
        assert isinstance(values, tuple)
        expected = sum(e is None for e in extents)
        if len(values) != expected:
            yield f"expected {expected} dynamic {name} operands, got {len(values)}"
        for i, value in enumerate(values):
            kinds.append(value.type)
            if value.type != kinds[0]:
                yield (
                    f"expected dynamic {name} index {i} to be of the same type as the other "
                    f"dynamic values ({quote(kinds[0])}), got {quote(value.type)}"
                )


@rule("make_partition_view", "make_strided_view", "make_gather_scatter_view")
def made_view(op: Op) -> Iterator[str]:
    """A view is of the tensor that it is made from."""
    source, view = op.operands[0], op.result.type
    assert isinstance(source, Value)
    assert isinstance(view, _VIEWS)
    if source.type != view.tensor_view:
        yield (
            f"expected the type of the provided tensor_view value ({quote(source.type)}) to be "
            f"the same as the view's tensor_view type ({quote(view.tensor_view)})"
        )


@rule("get_tensor_shape", "get_index_space_shape")
def shape_count(op: Op) -> Iterator[str]:
    """A result per dimension, all of one type."""
    source = op.operands[0]
    assert isinstance(source, Value)
    type_ = source.type
    if isinstance(type_, TensorView):
        rank, why = len(type_.shape), "tensor rank"
    else:
        assert isinstance(type_, _VIEWS)
        rank, why = len(type_.tile_shape), "view index space rank"
    if len(op.results) != rank:
        yield f"expected {rank} results due to {why}, but got {len(op.results)}"


@rule(
    "load_view_tko",
    "store_view_tko",
    "multimem_load_reduce_view_tko",
    "multimem_reduce_view_tko",
    "multimem_store_view_tko",
)
def view_access(op: Op) -> Iterator[str]:
    """Indices and tile follow from the view."""
    view_value, index = op.group("view"), op.group("index")
    assert isinstance(view_value, Value)
    assert isinstance(index, tuple)
    view = view_value.type
    assert isinstance(view, _VIEWS)
    rank = len(view.tile_shape)
    if len(index) != rank:
        yield f"expected {rank} index operands (based on view type), got {len(index)}"
    name = "reduced_values" if op.name == "multimem_load_reduce_view_tko" else "tile"
    tile = tile_of(op, name)
    if tile != tile_type_of(view):
        yield (
            f"expected tile type to be {quote(tile_type_of(view))} (based on view type), got "
            f"{quote(tile)}"
        )
    if view.tensor_view.element == F4E2M1FN:
        yield from _packing(view)
    types = [v.type for v in index]
    yield from _indices(view, types)
    yield from _inbounds(op, rank)
    if op.name.startswith("multimem") and view.tensor_view.kind != "multicast":
        yield f"expected a multicast pointer, but got {view.tensor_view.kind or 'none'}"


_BITS = ("and", "or", "xor", "umin", "umax")


@rule("multimem_load_reduce_view_tko", "multimem_reduce_view_tko", "multimem_store_view_tko")
def multimem(op: Op) -> Iterator[str]:
    """What multicast memory can do with which views and elements."""
    view_value = op.group("view")
    assert isinstance(view_value, Value)
    view = view_value.type
    assert isinstance(view, _VIEWS)
    element = view.tensor_view.element
    kind = op.attrs.get("reduction")
    if element.is_float and element not in (F16, BF16, F32, F64):
        yield "multimem supports only f16, bf16, f32, and f64 floating-point element types"
    if not element.is_float and element not in (I32, I64):
        yield (
            f"multimem requires 32- or 64-bit integer/index element types; got {element.width} bits"
        )
    if element.is_float and kind in _BITS:
        yield "and/or/xor/umin/umax reductions require integer element types"
    if element.is_float and kind in ("min", "max"):
        if op.name == "multimem_reduce_view_tko":
            yield "supports only add for floating-point element types"
        if element not in (F16, BF16):
            yield f"min/max supports f16 and bf16 float types only; got {quote(element)}"
    if not isinstance(view, PartitionView):
        yield f"multimem view operations support only partition_view; got {quote(view)}"
    units = view.tensor_view.strides.count(1)
    if element in (F16, BF16) and units != 1:
        # Hardware takes them in pairs.
        yield (
            "f16/bf16 multimem views must have exactly one element stride statically known to "
            f"equal 1; got {units}"
        )
    order = op.attrs["memory_ordering_semantics"]
    if op.name == "multimem_reduce_view_tko" and order not in ("relaxed", "release"):
        yield "memory ordering semantics must be one of: relaxed, release"


def _packing(view: View) -> Iterator[str]:
    """Two f4 elements share a byte: along which dimension must be known. Since release 13.5."""
    packing = [i for i, stride in enumerate(view.tensor_view.strides) if stride == 1]
    if len(packing) != 1:
        yield (
            "an f4 view access requires exactly one statically encoded unit stride to identify "
            f"the packing dimension; got {len(packing)} in {quote(view.tensor_view)}"
        )
    elif isinstance(view, GatherScatterView) and packing[0] == view.sparse_dim:
        yield (
            f"an f4 gather/scatter view cannot use packing dimension {packing[0]} as its sparse "
            "dimension"
        )


def _inbounds(op: Op, rank: int) -> Iterator[str]:
    inbounds = op.attrs["inbounds"]
    assert isinstance(inbounds, tuple)
    if len(inbounds) != rank:
        yield (
            f"inbounds size ({len(inbounds)}) must match the number of index dimensions ({rank})"
        )


def _indices(view: Type, types: list[Type]) -> Iterator[str]:
    if isinstance(view, GatherScatterView):
        yield from _sparse_indices(view, types)
        return
    for type_ in types:
        if not isinstance(type_, Tile) or type_.shape:
            yield f"expected index type to be a scalar tile, got {quote(type_)}"
    for i, type_ in enumerate(types):
        if type_ != types[0]:
            yield (
                f"expected index type {i} to be the same as other index types "
                f"({quote(types[0])}), got {quote(type_)}"
            )


def _sparse_indices(view: GatherScatterView, types: list[Type]) -> Iterator[str]:
    sparse = view.sparse_dim
    tiles = [type_ for type_ in types if isinstance(type_, Tile)]
    if sparse < len(tiles):
        yield from _sparse_index(view, tiles[sparse])
    plain = [(i, type_) for i, type_ in enumerate(tiles) if i != sparse]
    for i, type_ in plain:
        if type_.shape:
            yield f"expected index {i} to be a scalar tile for GatherScatterView"
        elif type_ != plain[0][1]:
            yield (
                f"expected scalar index {i} to have the same type as other scalar indices "
                f"({quote(plain[0][1])}), got {quote(type_)}"
            )


def _sparse_index(view: GatherScatterView, type_: Tile) -> Iterator[str]:
    position = view.sparse_dim
    if len(type_.shape) != 1:
        yield (
            f"expected index at sparse_dim position {position} to be a 1D tensor for "
            f"GatherScatterView, got rank {len(type_.shape)}"
        )
    elif type_.shape[0] != view.tile_shape[position]:
        yield (
            f"expected gather/scatter index size ({type_.shape[0]}) to match tile shape "
            f"at gather/scatter dimension {position} ({view.tile_shape[position]})"
        )


_ORDERS = {"load": ("weak", "relaxed", "acquire"), "store": ("weak", "relaxed", "release")}


@rule(
    "load_view_tko",
    "load_ptr_tko",
    "store_view_tko",
    "store_ptr_tko",
    "multimem_load_reduce_view_tko",
    "multimem_store_view_tko",
)
def memory_model(op: Op) -> Iterator[str]:
    """A scope with every ordering but weak."""
    kind = "store" if "store" in op.name else "load"
    order, scope = op.attrs["memory_ordering_semantics"], op.attrs.get("memory_scope")
    allowed = _ORDERS[kind]
    if order not in allowed:
        yield f"expect one of: {allowed[0]}, {allowed[1]}, or {allowed[2]}, but got: {order}"
    elif order == "weak":
        if scope is not None:
            yield f"weak {kind} must not have memory scope"
    elif scope is None:
        yield f"memory scope is required for {order} {kind}"


def _mode(op: Op, element: Scalar | Pointer) -> Iterator[str]:
    mode = op.attrs["mode"]
    if mode == "addf":
        if element not in (F16, BF16, F32, F64):
            yield "'addf' works only with floats f16, bf16, f32, and f64"
    elif mode == "xchg":
        if not isinstance(element, Scalar) or element.width not in (32, 64):
            yield "'xchg' works only with integers or float of 32 or 64 bitwidth"
    elif element not in (I32, I64):
        yield f"'{mode}' works only with integers i32 and i64"


def _atomic_order(op: Op) -> Iterator[str]:
    if op.attrs["memory_ordering_semantics"] == "weak":
        yield ("memory ordering semantics must be one of: relaxed, acquire, release, acq_rel")


def _pointee(op: Op, name: str) -> Iterator[str]:
    pointer, element = tile_of(op, "pointers").element, tile_of(op, name).element
    assert isinstance(pointer, Pointer)
    if pointer.pointee != element:
        yield (
            f"expected pointee type ({quote(pointer.pointee)}) to match element type of "
            f"'{name}' ({quote(element)})"
        )


def _mask(op: Op, name: str, text: str) -> Iterator[str]:
    mask = op.group("mask")
    if not isinstance(mask, Value) or not isinstance(mask.type, Tile):
        return
    if mask.type.shape != tile_of(op, name).shape:
        yield f"failed to verify that all of {{{text}}} have same shape"


@rule("atomic_rmw_tko")
def atomic_rmw(op: Op) -> Iterator[str]:
    """The mode decides the element types."""
    yield from _pointee(op, "arg")
    yield from _mask(op, "arg", "pointers, arg, mask")
    yield from _mode(op, tile_of(op, "arg").element)
    yield from _atomic_order(op)


@rule("atomic_cas_tko")
def atomic_cas(op: Op) -> Iterator[str]:
    """32 or 64 bits."""
    yield from _pointee(op, "val")
    element = tile_of(op, "val").element
    if not isinstance(element, Scalar) or element.width not in (32, 64):
        yield "expect only float or integer types with 32 or 64 bit"
    yield from _mask(op, "val", "pointers, val, cmp and mask")
    yield from _atomic_order(op)


@rule("atomic_red_view_tko")
def atomic_red_view(op: Op) -> Iterator[str]:
    """Dense views, relaxed, not system-wide. (Up to 13.3, views without padding only.)"""
    view_value, index = op.group("view"), op.group("index")
    assert isinstance(view_value, Value)
    assert isinstance(index, tuple)
    view = view_value.type
    assert isinstance(view, _VIEWS)
    if isinstance(view, GatherScatterView):
        yield "gather_scatter_view is not supported; use partition_view instead"
    tile, value = tile_type_of(view), tile_of(op, "value")
    if tile.element != value.element:
        yield (
            f"view element type ({quote(tile.element)}) must match value element type "
            f"({quote(value.element)})"
        )
    if tile.shape != value.shape:
        yield (
            f"view tile shape {dims(tile.shape)} must match value shape {dims(value.shape)} for "
            "element-wise atomic operations"
        )
    yield from _reduction(op, value)
    if len(index) != len(tile.shape):
        yield (
            f"expected {len(tile.shape)} index operand(s) for view with tile rank "
            f"{len(tile.shape)}, got {len(index)}"
        )
    for i, v in enumerate(index):
        if isinstance(v.type, Tile) and v.type.shape:
            yield (
                f"index operand {i} must be a scalar tile (rank 0), got shape {dims(v.type.shape)}"
            )
    yield from _inbounds(op, len(tile.shape))


def _reduction(op: Op, value: Tile) -> Iterator[str]:
    if op.attrs["mode"] == "xchg":
        yield "atomic_red_view_tko op cannot use xchg operation"
    yield from _mode(op, value.element)
    if op.attrs["memory_ordering_semantics"] != "relaxed":
        yield ("only 'relaxed' memory ordering is supported for view-based atomic reductions")
    if op.attrs["memory_scope"] == "sys":
        yield (
            "memory scope 'sys' is not supported for view-based atomic reductions; use 'tl_blk' "
            "or 'device' for TMA compatibility"
        )


@rule("join_tokens")
def join_tokens(op: Op) -> Iterator[str]:
    """Joining is of several."""
    if len(op.values()) < 2:
        yield "expect two or more tokens"


@rule("alloca")
def alloca(op: Op) -> Iterator[str]:
    """Alignment is a power of two and at least natural."""
    count, alignment = op.attrs["num_elem"], op.attrs["alignment"]
    assert isinstance(count, int)
    assert isinstance(alignment, int)
    for name, value in (("num_elem", count), ("alignment", alignment)):
        if value < 0:
            yield (
                f"attribute '{name}' failed to satisfy constraint: 64-bit signless integer "
                "attribute whose minimum value is 0"
            )
    if alignment <= 0 or alignment & (alignment - 1):
        yield "'alignment' must be power of two"
    pointer = tile_of(op, "result").element
    assert isinstance(pointer, Pointer)
    pointee = pointer.pointee
    size = (pointee.width + 7) // 8
    if alignment < size:
        yield (
            f"'alignment' ({alignment}) must be at least the natural size ({size} bytes) for "
            f"element type {quote(pointee)}"
        )


_CONVERSION_ENDS = "diuoxXeEfFgGaAcsSpn%"


@rule("print_tko")
def print_format(op: Op) -> Iterator[str]:
    """One conversion per operand."""
    text = str(op.attrs["str"])
    expected = position = 0
    while (position := text.find("%", position)) >= 0:
        end = next((i for i in range(position + 1, len(text)) if text[i] in _CONVERSION_ENDS), None)
        if end is None:
            yield "found unterminated format expression"
            return
        if end == position + 1 and text[end] == "%":
            position += 2
            continue
        expected += 1
        position += 1
    found = len(op.operands[0])  # type: ignore[arg-type]
    if expected != found:
        yield f"incorrect number of operands: expected {expected}, found {found}"
