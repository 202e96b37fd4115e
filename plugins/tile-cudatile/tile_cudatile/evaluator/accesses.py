"""Loads, stores, atomics, views and tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_cudatile.evaluator.errors import EvaluationError
from tile_cudatile.evaluator.formats import (
    Array,
    dtype_of,
    element_of,
    encode,
    memory_bytes,
)
from tile_cudatile.evaluator.integers import signed, unsigned, wrap
from tile_cudatile.evaluator.nibbles import load_nibbles, store_nibbles
from tile_cudatile.evaluator.registry import handles
from tile_cudatile.evaluator.rounding import narrow, widen
from tile_cudatile.evaluator.views import (
    TensorViewValue,
    ViewValue,
    access,
    padding_value,
)
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import (
    F4E2M1FN,
    GatherScatterView,
    Pointer,
    Scalar,
    TensorView,
    Tile,
)

if TYPE_CHECKING:
    from tile_cudatile.evaluator.machine import Running

TOKEN = None


@handles(
    "make_token",
    "join_tokens",
    "gdc_launch_dependents_tko",
    "gdc_wait_tko",
    "memory_fence_alias_tko",
)
def order(_: Any, op: Op, *tokens: Any) -> Any:
    """Operations run in program order, which every order of tokens allows."""
    return TOKEN


@handles("make_tensor_view")
def make_tensor_view(
    _: Any, op: Op, base: Array, shape: tuple[Array, ...], strides: tuple[Array, ...]
) -> TensorViewValue:
    """Dynamic extents are unsigned."""
    type_ = op.result.type
    assert isinstance(type_, TensorView)
    extents, steps = (
        _fill(static, values, op, group)
        for static, values, group in ((type_.shape, shape, 1), (type_.strides, strides, 2))
    )
    return TensorViewValue(type_, int(base), extents, steps)


def _fill(
    static: tuple[int | None, ...], values: tuple[Array, ...], op: Op, group: int
) -> tuple[int, ...]:
    sources = iter(zip(op.operands[group], values, strict=True))  # type: ignore[arg-type]
    found: list[int] = []
    for extent in static:
        if extent is None:
            source, value = next(sources)
            extent = int(unsigned(value, element_of(source.type)))
        found.append(extent)
    return tuple(found)


@handles("make_partition_view", "make_strided_view", "make_gather_scatter_view")
def make_view(_: Any, op: Op, tensor: TensorViewValue) -> ViewValue:
    """A tensor seen as tiles."""
    return ViewValue(op.result.type, tensor)  # type: ignore[arg-type]


@handles("get_tensor_shape")
def get_tensor_shape(_: Any, op: Op, source: TensorViewValue) -> tuple[Array, ...]:
    """The extents."""
    return _shape_results(op, source.shape)


@handles("get_index_space_shape")
def get_index_space_shape(_: Any, op: Op, source: ViewValue) -> tuple[Array, ...]:
    """The number of tiles along each dimension."""
    return _shape_results(op, source.index_space())


def _shape_results(op: Op, extents: tuple[int, ...]) -> tuple[Array, ...]:
    found: list[Array] = []
    for result, extent in zip(op.results, extents, strict=True):
        element = element_of(result.type)
        if extent >> element.width:
            raise EvaluationError(f"'cuda_tile.{op.name}' op {extent} does not fit in {element}")
        found.append(wrap(np.asarray(extent), element))
    return tuple(found)


# Views.


@handles("load_view_tko")
def load_view(run: Running, op: Op, view: ViewValue, index: Any, token: Any) -> tuple[Any, Any]:
    """The tile at `index`; padding outside of the tensor."""
    return _load_view(run, op, view, index), TOKEN


def _load_view(run: Running, op: Op, view: ViewValue, index: Any) -> Array:
    element = view.tensor.type.element
    found = access(view, _index(op, view, index), op.name)
    _check_inbounds(op, found.inside)
    inside = found.inside
    offsets = np.broadcast_to(found.offsets, view.type.tile_shape)
    picked = offsets if inside is None else offsets[inside]
    if element == F4E2M1FN:
        values = load_nibbles(run.memory, view.tensor.base, picked, op.name)
    else:
        addresses = view.tensor.base + picked * memory_bytes(element)
        values = run.memory.load(addresses, element, op.name)
    if inside is None:
        return values
    filler = padding_value(view.type.padding, element, run.unspecified(element))
    result = np.full(view.type.tile_shape, filler, dtype_of(element))
    result[inside] = values
    return result


def _index(op: Op, view: ViewValue, index: tuple[Array, ...]) -> tuple[Array, ...]:
    """Numbers of tiles are unsigned; those of elements may lie before the tensor."""
    sources = op.group("index")
    assert isinstance(sources, tuple)
    read = signed if isinstance(view.type, GatherScatterView) else unsigned
    return tuple(
        read(value, element_of(source.type)).astype(np.int64)
        for source, value in zip(sources, index, strict=True)
    )


def _check_inbounds(op: Op, inside: Array | None) -> None:
    claimed = op.attrs.get("inbounds")
    if inside is not None and claimed and all(claimed):  # type: ignore[arg-type]
        raise EvaluationError(f"'cuda_tile.{op.name}' op is not in bounds although it says so")


@handles("store_view_tko")
def store_view(run: Running, op: Op, tile: Array, view: ViewValue, index: Any, token: Any) -> Any:
    """Elements outside of the tensor are dropped."""
    element = view.tensor.type.element
    found = access(view, _index(op, view, index), op.name)
    _check_inbounds(op, found.inside)
    offsets = np.broadcast_to(found.offsets, view.type.tile_shape)
    values = np.broadcast_to(tile, view.type.tile_shape)
    if found.inside is not None:
        offsets, values = offsets[found.inside], values[found.inside]
    if element == F4E2M1FN:
        store_nibbles(run.memory, view.tensor.base, offsets, values, op.name)
    else:
        addresses = view.tensor.base + offsets * memory_bytes(element)
        run.memory.store(addresses, values, element, op.name)
    return TOKEN


# Pointers.


def _pointee(value: Value) -> Scalar:
    type_ = value.type
    assert isinstance(type_, Tile)
    assert isinstance(type_.element, Pointer)
    return type_.element.pointee


@handles("load_ptr_tko")
def load_ptr(
    run: Running, op: Op, source: Array, mask: Array | None, padding: Array | None, token: Any
) -> tuple[Any, Any]:
    """One element per pointer; masked-off ones are the padding or unspecified."""
    element = _pointee(op.operands[0])  # type: ignore[arg-type]
    source = np.asarray(source)
    if mask is None:
        return run.memory.load(source, element, op.name), TOKEN
    mask = np.broadcast_to(mask, source.shape)
    filler = run.unspecified(element) if padding is None else padding
    result = np.array(np.broadcast_to(filler, source.shape), dtype_of(element))
    result[mask] = run.memory.load(source[mask], element, op.name)
    return result, TOKEN


@handles("store_ptr_tko")
def store_ptr(
    run: Running, op: Op, destination: Array, value: Array, mask: Array | None, token: Any
) -> Any:
    """One element per pointer; of several to one address, which one stays is arbitrary."""
    element = _pointee(op.operands[0])  # type: ignore[arg-type]
    addresses = np.asarray(destination)
    values = np.broadcast_to(value, addresses.shape)
    if mask is not None:
        keep = np.broadcast_to(mask, addresses.shape)
        addresses, values = addresses[keep], values[keep]
    order = run.order(addresses.size)
    run.memory.store(addresses.ravel()[order], values.ravel()[order], element, op.name)
    return TOKEN


# Atomics: element by element, in the order that the run's seed gives.


def _combine(mode: str, element: Scalar, old: Array, new: Array) -> Array:
    if mode == "xchg":
        return new
    if mode == "addf":
        return narrow(widen(old) + widen(new), element)
    if mode in _BITWISE:
        return _BITWISE[mode](old, new)
    read = unsigned if mode in ("umax", "umin") else signed
    left, right = read(old, element), read(new, element)
    if mode == "add":
        return wrap(left + right, element)
    larger = mode in ("max", "umax")
    return old if (left >= right) == larger else new


_BITWISE: dict[str, Callable[[Array, Array], Array]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@handles("atomic_rmw_tko")
def atomic_rmw(
    run: Running, op: Op, pointers: Array, arg: Array, mask: Array | None, token: Any
) -> tuple[Any, Any]:
    """Gives the values before; masked-off elements are unspecified."""
    element = _pointee(op.operands[0])  # type: ignore[arg-type]
    mode = str(op.attrs["mode"])
    flat = np.broadcast_to(arg, np.shape(pointers)).ravel()
    result = _each(
        run,
        op,
        pointers,
        mask,
        run.unspecified(element),
        element,
        lambda old, i: _combine(mode, element, old, flat[i]),
    )
    return result, TOKEN


@handles("atomic_cas_tko")
def atomic_cas(
    run: Running, op: Op, pointers: Array, cmp: Array, val: Array, mask: Array | None, token: Any
) -> tuple[Any, Any]:
    """Compares bits; masked-off elements give `cmp`."""
    element = _pointee(op.operands[0])  # type: ignore[arg-type]
    shape = np.shape(pointers)
    expected = np.broadcast_to(cmp, shape).ravel()
    desired = np.broadcast_to(val, shape).ravel()

    def swap(old: Array, i: int) -> Array:
        same = encode(old, element).tobytes() == encode(expected[i], element).tobytes()
        return desired[i] if same else old

    return _each(run, op, pointers, mask, np.asarray(cmp), element, swap), TOKEN


def _each(
    run: Running,
    op: Op,
    pointers: Array,
    mask: Array | None,
    filler: Array,
    element: Scalar,
    update: Callable[[Array, int], Array],
) -> Array:
    addresses = np.asarray(pointers)
    flat = addresses.ravel()
    active = np.ones(flat.shape, np.bool_)
    if mask is not None:
        active = np.broadcast_to(mask, addresses.shape).ravel()
    result = np.array(np.broadcast_to(filler, addresses.shape).ravel(), dtype_of(element))
    for i in run.order(flat.size):
        if not active[i]:
            continue
        if flat[i] % memory_bytes(element):
            raise EvaluationError(f"'cuda_tile.{op.name}' op address {flat[i]:#x} is misaligned")
        old = run.memory.load(flat[i], element, op.name)
        result[i] = old
        run.memory.store(flat[i], np.asarray(update(old, int(i))), element, op.name)
    return result.reshape(addresses.shape)


@handles("atomic_red_view_tko")
def atomic_red_view(
    run: Running, op: Op, view: ViewValue, index: Any, value: Array, token: Any
) -> Any:
    """An atomic update of every element of a tile in memory."""
    element = view.tensor.type.element
    found = access(view, _index(op, view, index), op.name)
    _check_inbounds(op, found.inside)
    offsets = np.broadcast_to(found.offsets, view.type.tile_shape)
    flat = np.broadcast_to(value, view.type.tile_shape).ravel()
    mode = str(op.attrs["mode"])
    addresses = view.tensor.base + offsets * memory_bytes(element)
    _each(
        run,
        op,
        addresses,
        found.inside,
        np.zeros((), dtype_of(element)),
        element,
        lambda old, i: _combine(mode, element, old, flat[i]),
    )
    return TOKEN


@handles("multimem_load_reduce_view_tko", "multimem_reduce_view_tko", "multimem_store_view_tko")
def multimem(_: Any, op: Op, *operands: Any) -> Any:
    """Multicast memory is shared by several GPUs, of which there is only one here."""
    raise EvaluationError(f"'cuda_tile.{op.name}' op needs several GPUs, which are not evaluated")
