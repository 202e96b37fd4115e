"""Loads, stores and atomics through views and pointers.

Arrays are of three kinds. Inputs are only read. Every tile block owns a part of each cell, which
it reads and writes in the order of one chain of tokens. Counters belong to all blocks, which
update them with one commutative atomic operation and never look.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tile_cudatile.ops.enums import SCOPE
from tile_cudatile.tree import Value
from tile_cudatile.types import (
    BF16,
    F16,
    F32,
    F64,
    I1,
    I8,
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
from tile_fuzz.generator.maker import IN_MEMORY, SCALAR_I32, Maker, count, tile
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
    order, scope = _ordering(maker, "acquire")
    return maker.emit(
        "load_view_tko", [view, index, None], type_, TOKEN,
        memory_ordering_semantics=order, **scope,
    )  # fmt: skip


def _ordering(maker: Maker, strong: str) -> tuple[str, dict[str, str]]:
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
    value = maker.emit(f"make_{_word(sort)}_view", [source], view)
    if maker.chance(0.1) and maker.may(f"shape of {sort} view"):
        _ask_shape(maker, source, value)
    width = maker.element([I32, I32, I64])
    index = []
    for position, extent in enumerate(type_.shape):
        if isinstance(view, GatherScatterView) and position == view.sparse_dim:
            index.append(_coordinates(maker, extent, extents.shape[position], width))
        else:
            number = -(-extents.shape[dims[position]] // steps[position])
            index.append(_tile_index(maker, number, width))
    return value, tuple(index)


def _word(sort: str) -> str:
    return "gather_scatter" if sort == "gather" else sort


def _ask_shape(maker: Maker, source: Value, view: Value) -> None:
    name, of = maker.rng.choice((("get_tensor_shape", source), ("get_index_space_shape", view)))
    assert isinstance(source.type, TensorView)
    kind = maker.element([I32, I64])
    maker.emit(name, [of], *[Tile((), kind)] * len(source.type.shape))
    for result in maker.ops[-1].results:
        maker.keep(result)


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
    places = Tile(type_.shape, I32 if maker.chance(0.7) else I64)
    some = maker.value(places) if maker.chance(0.4) else _numbered(maker, places)
    masked = maker.emit("andi", [some, maker.constant(places, size - 1)], places)
    pointers = addresses(maker, base(maker, kind, size, fill), masked)
    mask = padding = None
    if maker.chance(0.4):
        mask = maker.value(Tile(type_.shape, I1))
        padding = maker.value(type_) if fill != "small" else maker.constant(type_, 2)
    order, scope = _ordering(maker, "acquire")
    return maker.emit(
        "load_ptr_tko", [pointers, mask, padding, None], type_, TOKEN,
        memory_ordering_semantics=order, **scope,
    )  # fmt: skip


def _numbered(maker: Maker, type_: Tile) -> Value:
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


# --- cells ----------------------------------------------------------------------------------------


@dataclass
class Cell:
    """An array of which every block owns one tile, or that is the block's `own`."""

    pointer: Value
    type: Tile
    view: Value | None = None
    by_pointers: bool = False
    own: bool = False


@dataclass
class Counter:
    """An array that all blocks update."""

    pointer: Value
    kind: Scalar
    mode: str
    size: int


@dataclass
class Store:
    """The arrays that a kernel writes."""

    cells: list[Cell] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)


def new_cell(maker: Maker, type_: Tile, fill: str = "bits", exact: bool = True) -> Cell:
    """An array for tiles of a type, made in the kernel's first operations."""
    kind = type_.element
    assert isinstance(kind, Scalar)
    shape = type_.shape or (1,)
    whole = (maker.blocks * shape[0], *shape[1:])
    extents = strides_of(maker, whole)
    type_ = Tile(shape, kind)
    if maker.chance(0.8 if kind in _APART else 0.4):
        size = maker.blocks * count(shape)
        return Cell(base(maker, kind, size, fill, exact), type_, by_pointers=True)
    pointer = base(maker, kind, extents.size, fill, exact)
    source = tensor(maker, pointer, kind, extents)
    of = source.type
    assert isinstance(of, TensorView)
    padding = None if maker.chance(0.5) else "zero"
    view = PartitionView(shape, of, tuple(range(len(shape))), padding)
    return Cell(pointer, type_, maker.emit("make_partition_view", [source], view))


def new_scratch(maker: Maker, type_: Tile) -> Cell:
    """Memory of the block alone, whose first contents are written at once."""
    kind = type_.element
    assert isinstance(kind, Scalar)
    type_ = Tile(type_.shape or (1,), kind)
    size = count(type_.shape)
    alignment = max(16, kind.width // 8)
    pointer = maker.emit("alloca", [], Tile((), Pointer(kind)), num_elem=size, alignment=alignment)
    cell = Cell(pointer, type_, by_pointers=True, own=True)
    maker.emit(
        "store_ptr_tko", [_places(maker, cell), maker.value(type_), None, maker.memory], TOKEN,
        memory_ordering_semantics="weak",
    )  # fmt: skip
    maker.memory = maker.ops[-1].results[0]
    return cell


def _places(maker: Maker, cell: Cell) -> Value:
    """One pointer per element of the block's part, in an order of its own."""
    size = count(cell.type.shape)
    offsets = Tile(cell.type.shape, I32)
    found = _numbered(maker, offsets)
    if maker.chance(0.4):
        factor = maker.constant(offsets, 2 * maker.rng.randrange(8) + 1)
        found = maker.emit("muli", [found, factor], offsets)
        found = maker.emit(
            "addi", [found, maker.constant(offsets, maker.rng.randrange(9))], offsets
        )
        found = maker.emit("andi", [found, maker.constant(offsets, size - 1)], offsets)
    if cell.own:
        return addresses(maker, cell.pointer, found)
    assert maker.block is not None
    start = maker.emit("muli", [maker.block, maker.number(size)], SCALAR_I32)
    moved = maker.emit("addi", [found, spread(maker, start, offsets.shape)], offsets)
    return addresses(maker, cell.pointer, moved)


def _index(maker: Maker, cell: Cell) -> tuple[Value, ...]:
    assert maker.block is not None
    return (maker.block, *(maker.number(0) for _ in cell.type.shape[1:]))


def write(maker: Maker, cell: Cell, value: Value) -> None:
    """The block's part of the cell = value, at times only where a mask says so."""
    if not tile(value).shape:
        value = maker.emit("reshape", [value], cell.type)
    order, scope = _ordering(maker, "release")
    attrs = {"memory_ordering_semantics": order, **scope}
    if cell.by_pointers:
        mask = maker.value(Tile(cell.type.shape, I1)) if maker.chance(0.3) else None
        operands = [_places(maker, cell), value, mask, maker.memory]
        maker.memory = maker.emit("store_ptr_tko", operands, TOKEN, **attrs)
        return
    operands = [value, cell.view, _index(maker, cell), maker.memory]
    maker.memory = maker.emit("store_view_tko", operands, TOKEN, **attrs)


def read(maker: Maker, cell: Cell) -> Value:
    """The block's part of the cell."""
    order, scope = _ordering(maker, "acquire")
    attrs = {"memory_ordering_semantics": order, **scope}
    if cell.by_pointers:
        operands = [_places(maker, cell), None, None, maker.memory]
        found = maker.emit("load_ptr_tko", operands, cell.type, TOKEN, **attrs)
    else:
        operands = [cell.view, _index(maker, cell), maker.memory]
        found = maker.emit("load_view_tko", operands, cell.type, TOKEN, **attrs)
    _follow(maker, maker.ops[-1].results[1])
    return found


def _follow(maker: Maker, token: Value) -> None:
    """Later accesses come after this one, too."""
    if maker.chance(0.3) and maker.memory is not None:
        token = maker.emit("join_tokens", [(maker.memory, token)], TOKEN)
    if maker.chance(0.1) and maker.may("memory_fence_alias_tko"):
        token = maker.emit("memory_fence_alias_tko", [token], TOKEN)
    maker.memory = token


_WORDS = ("and", "or", "xor", "add", "max", "min", "umax", "umin")
#: The modes that give one result in every order, where sums of whole numbers are exact.
_MODES: dict[Scalar, tuple[str, ...]] = {
    I32: _WORDS,
    I64: _WORDS,
    F32: ("addf",),
    F64: ("addf",),
}
#: The modes of updates that do not collide.
_APART: dict[Scalar, tuple[str, ...]] = {
    I32: (*_WORDS, "xchg", "cas", "cas"),
    I64: (*_WORDS, "xchg", "cas", "cas"),
    F32: ("xchg",),  # GPUs flush subnormals in sums; comparing bits tells which NaN a value is
    F64: ("addf", "xchg"),
    F16: ("addf",),
    BF16: ("addf",),
}


def update(maker: Maker, cell: Cell) -> Value | None:
    """An atomic update of the block's own part; gives the old values."""
    modes = _APART.get(element_of(cell))
    if not cell.by_pointers or modes is None:
        return None
    mode = maker.rng.choice(modes)
    attrs = {
        "memory_ordering_semantics": maker.rng.choice(("relaxed", "acquire", "release", "acq_rel")),
        "memory_scope": maker.rng.choice(SCOPE),
    }
    pointers, value = _places(maker, cell), maker.value(cell.type)
    if mode == "cas":
        operands = [pointers, maker.value(cell.type), value, None, maker.memory]
        found = maker.emit("atomic_cas_tko", operands, cell.type, TOKEN, **attrs)
    else:
        operands = [pointers, value, None, maker.memory]
        found = maker.emit("atomic_rmw_tko", operands, cell.type, TOKEN, mode=mode, **attrs)
    maker.memory = maker.ops[-1].results[1]
    return found


def element_of(cell: Cell) -> Scalar:
    """The element type of a cell."""
    kind = cell.type.element
    assert isinstance(kind, Scalar)
    return kind


def new_counter(maker: Maker) -> Counter:
    """An array that all blocks may update in one way."""
    kind = maker.element(tuple(_MODES))
    size = 1 << maker.rng.randint(0, 5)
    mode = maker.rng.choice(_MODES[kind])
    return Counter(base(maker, kind, size, "small"), kind, mode, size)


def count_up(maker: Maker, counter: Counter) -> None:
    """An update of any elements of a counter; several may be the same one."""
    from tile_fuzz.generator.values import whole

    if maker.chance(0.3) and maker.may("atomic_red_view_tko"):
        _count_view(maker, counter)
        return
    shape = maker.shape()
    places = Tile(shape, I32)
    some = maker.value(places)
    masked = maker.emit("andi", [some, maker.constant(places, counter.size - 1)], places)
    value = Tile(shape, counter.kind)
    amount = whole(maker, value)  # so that sums do not depend on the order
    mask = maker.value(Tile(shape, I1)) if maker.chance(0.3) else None
    maker.emit(
        "atomic_rmw_tko", [addresses(maker, counter.pointer, masked), amount, mask, None],
        value, TOKEN, mode=counter.mode, memory_ordering_semantics="relaxed",
        memory_scope=maker.rng.choice(("device", "sys")),
    )  # fmt: skip


def _count_view(maker: Maker, counter: Counter) -> None:
    """The same through a view, whose tile may stick out of the array."""
    from tile_fuzz.generator.values import index_below, whole

    extent = 1 << maker.rng.randint(0, 6)
    of = TensorView(counter.kind, (counter.size,), (1,))
    source = maker.emit("make_tensor_view", [counter.pointer, (), ()], of)
    view = maker.emit("make_partition_view", [source], PartitionView((extent,), of, (0,)))
    index = index_below(maker, -(-counter.size // extent))
    amount = whole(maker, Tile((extent,), counter.kind))
    maker.emit(
        "atomic_red_view_tko", [view, (index,), amount, None], TOKEN, mode=counter.mode,
        memory_ordering_semantics="relaxed", memory_scope="device",
    )  # fmt: skip
