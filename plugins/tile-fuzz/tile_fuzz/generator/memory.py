"""Tensors in memory, addresses, and loads of arrays that are only read."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cudatile.ops.enums import SCOPE
from tile_cudatile.tree import Value
from tile_cudatile.types import (
    I1,
    I8,
    I16,
    I32,
    I64,
    PADDING_VALUES,
    TOKEN,
    GatherScatterView,
    PartitionView,
    Pointer,
    Scalar,
    StridedView,
    TensorView,
    Tile,
    View,
)

from tile_fuzz.case import Argument
from tile_fuzz.generator.maker import IN_MEMORY, Maker, count, tile
from tile_fuzz.generator.movement import spread


@dataclass
class Extents:
    """A tensor in memory: extents and strides in elements, and the elements that it spans."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        """From the first element to the last."""
        steps = zip(self.shape, self.strides, strict=True)
        return 1 + sum((extent - 1) * stride for extent, stride in steps)


def base(maker: Maker, kind: Scalar, size: int, fill: str, exact: bool = True) -> Value:
    """A pointer argument to a new array."""
    argument = Argument(kind.name, size, fill, maker.rng.randrange(1000), exact=exact)
    return maker.argument(Tile((), Pointer(kind)), argument)


def tensor(maker: Maker, pointer: Value, kind: Scalar, extents: Extents) -> Value:
    """A tensor view; some extents and strides are only known at run time."""
    width = maker.element([I32, I64])
    given: list[tuple[int | None, ...]] = []
    dynamic: list[tuple[Value, ...]] = []
    for numbers in (extents.shape, extents.strides):
        unknown = [maker.chance(0.25) for _ in numbers]
        given.append(tuple(None if u else n for u, n in zip(unknown, numbers, strict=True)))
        dynamic.append(
            tuple(_runtime(maker, n, width) for u, n in zip(unknown, numbers, strict=True) if u)
        )
    type_ = TensorView(kind, given[0], given[1])
    return maker.emit("make_tensor_view", [pointer, *dynamic], type_)


def _runtime(maker: Maker, number: int, kind: Scalar) -> Value:
    """A number that the compiler does not know."""
    if maker.chance(0.2):
        return maker.number(number, kind)
    return maker.argument(Tile((), kind), Argument(kind.name, value=number))


def strides_of(maker: Maker, shape: tuple[int, ...]) -> Extents:
    """A tensor of the shape, its axes in any order, with gaps at times."""
    order = list(range(len(shape)))
    if maker.chance(0.3):
        maker.rng.shuffle(order)
    strides = [0] * len(shape)
    step = maker.rng.choice((1, 1, 1, 1, 2, 3))
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
        if maker.chance(0.15):
            step += maker.rng.randint(1, 8)
    return Extents(shape, tuple(strides))


# --- inputs ---------------------------------------------------------------------------------------


def load_input(maker: Maker, type_: Tile, fill: str = "bits") -> Value:
    """A tile of a new read-only array."""
    if not type_.shape:
        one = load_input(maker, Tile((1,), type_.element), fill)
        return maker.emit("reshape", [one], type_)
    way = maker.rng.choice((_load_view, _load_view, _load_pointers))
    return way(maker, type_, fill)


def load(maker: Maker) -> None:
    """A random load."""
    kind = maker.element(IN_MEMORY)
    maker.keep(load_input(maker, Tile(maker.shape(), kind)))


def _load_view(maker: Maker, type_: Tile, fill: str) -> Value:
    kind = type_.element
    assert isinstance(kind, Scalar)
    view, index = _input_view(maker, type_, kind, fill)
    order, scope = ordering(maker, "acquire")
    return maker.emit(
        "load_view_tko", [view, index, None], type_, TOKEN,
        memory_ordering_semantics=order, **scope,
    )  # fmt: skip


def ordering(maker: Maker, strong: str) -> tuple[str, dict[str, str]]:
    if maker.chance(0.85) or not maker.may(f"{strong} access"):
        return "weak", {}
    return maker.rng.choice(("relaxed", strong)), {"memory_scope": maker.rng.choice(SCOPE)}


def _input_view(
    maker: Maker, type_: Tile, kind: Scalar, fill: str
) -> tuple[Value, tuple[Value, ...]]:
    """A view whose tiles may stick out of the tensor, and an index into it."""
    tiles = tuple(maker.rng.choice((1, 1, 2, 3)) for _ in type_.shape)
    steps = type_.shape
    sort = maker.rng.choice(("partition", "partition", "strided", "gather"))
    if sort == "strided":
        steps = tuple(maker.rng.choice((e, max(e // 2, 1), e + 1)) for e in steps)
    shape = tuple(
        (n - 1) * step + (e if maker.chance(0.6) else maker.rng.randint(1, e))
        for n, step, e in zip(tiles, steps, type_.shape, strict=True)
    )
    dims = list(range(len(shape)))
    if sort != "gather" and maker.chance(0.3):
        maker.rng.shuffle(dims)
    placed = [0] * len(shape)
    for position, dim in enumerate(dims):
        placed[dim] = shape[position]
    extents = strides_of(maker, tuple(placed))
    source = tensor(maker, base(maker, kind, extents.size, fill), kind, extents)
    padding = _padding(maker, kind, fill)
    return _made_view(maker, sort, type_, steps, source, tuple(dims), extents, padding)


def _padding(maker: Maker, kind: Scalar, fill: str) -> str:
    """Without padding, elements outside are left open; a program must not depend on those."""
    partial = ("f8E8M0FNU", "fnv8E5M3FNU", "f8E4M3FN")  # no infinities, few signs
    if fill == "small" or not kind.is_float or kind.name in partial:
        return "zero"
    return maker.rng.choice(PADDING_VALUES)


def _made_view(
    maker: Maker,
    sort: str,
    type_: Tile,
    steps: tuple[int, ...],
    source: Value,
    dims: tuple[int, ...],
    extents: Extents,
    padding: str,
) -> tuple[Value, tuple[Value, ...]]:
    of = source.type
    assert isinstance(of, TensorView)
    view: View
    if sort == "gather":
        sparse = maker.rng.randrange(len(type_.shape))
        view = GatherScatterView(type_.shape, of, sparse, padding)
    elif sort == "strided":
        view = StridedView(type_.shape, steps, of, dims, padding)
    else:
        view = PartitionView(type_.shape, of, dims, padding)
    value = maker.emit(f"make_{word(sort)}_view", [source], view)
    if maker.chance(0.1) and maker.may(f"shape of {sort} view"):
        _ask_shape(maker, source, value)
    width = _index_kind(maker)
    index = []
    for position, extent in enumerate(type_.shape):
        if isinstance(view, GatherScatterView) and position == view.sparse_dim:
            index.append(_coordinates(maker, extent, extents.shape[position], width))
        else:
            # Of gather/scatter views an index is an element, of others a tile.
            step = 1 if sort == "gather" else steps[position]
            number = -(-extents.shape[dims[position]] // step)
            index.append(_tile_index(maker, number, width))
    return value, tuple(index)


def word(sort: str) -> str:
    return "gather_scatter" if sort == "gather" else sort


def _ask_shape(maker: Maker, source: Value, view: Value) -> None:
    name, of = maker.rng.choice((("get_tensor_shape", source), ("get_index_space_shape", view)))
    assert isinstance(source.type, TensorView)
    kind = maker.element([I16, I32, I64])
    maker.emit(name, [of], *[Tile((), kind)] * len(source.type.shape))
    for result in maker.ops[-1].results:
        maker.keep(result)


def _index_kind(maker: Maker) -> Scalar:
    """The type of indices; all of them are small."""
    return maker.element([I32, I32, I64] if maker.chance(0.8) else [I16])


def _tile_index(maker: Maker, limit: int, kind: Scalar) -> Value:
    from tile_fuzz.generator.values import index_below

    return index_below(maker, limit, kind)


def _coordinates(maker: Maker, extent: int, limit: int, kind: Scalar) -> Value:
    """Which rows a gather takes; some lie beyond the end and give padding."""
    type_ = Tile((extent,), kind)
    some = maker.value(type_)
    beyond = limit + (2 if maker.chance(0.3) else 0)
    number = maker.constant(type_, beyond)
    return maker.emit("remi", [some, number], type_, signedness="unsigned")


def _load_pointers(maker: Maker, type_: Tile, fill: str) -> Value:
    kind = type_.element
    assert isinstance(kind, Scalar)
    size = max(count(type_.shape), 2)
    wide = [k for k in (I8, I16, I32, I32, I64) if size <= 1 << (k.width - 1)]
    places = Tile(type_.shape, maker.element(wide))
    some = maker.value(places) if maker.chance(0.4) else numbered(maker, places)
    masked = maker.emit("andi", [some, maker.constant(places, size - 1)], places)
    pointers = addresses(maker, base(maker, kind, size, fill), masked)
    mask = padding = None
    if maker.chance(0.4):
        mask = maker.value(Tile(type_.shape, I1))
        padding = maker.value(type_) if fill != "small" else maker.constant(type_, 2)
    order, scope = ordering(maker, "acquire")
    return maker.emit(
        "load_ptr_tko", [pointers, mask, padding, None], type_, TOKEN,
        memory_ordering_semantics=order, **scope,
    )  # fmt: skip


def numbered(maker: Maker, type_: Tile) -> Value:
    """0, 1, 2, ... in row-major order."""
    size = count(type_.shape)
    line = maker.emit("iota", [], Tile((size,), type_.element))
    return maker.emit("reshape", [line], type_)


def addresses(maker: Maker, pointer: Value, offsets: Value) -> Value:
    """A pointer for every offset, at times by way of integers."""
    of = tile(pointer).element
    assert isinstance(of, Pointer)
    shape = tile(offsets).shape
    pointers = Tile(shape, of)
    found = maker.emit("offset", [spread(maker, pointer, shape), offsets], pointers)
    if maker.chance(0.1):
        numbers = maker.emit("ptr_to_int", [found], Tile(shape, I64))
        found = maker.emit("int_to_ptr", [numbers], pointers)
    if maker.chance(0.05):
        other = maker.emit("ptr_to_ptr", [found], Tile(shape, Pointer(I8)))
        found = maker.emit("ptr_to_ptr", [other], pointers)
    return found
