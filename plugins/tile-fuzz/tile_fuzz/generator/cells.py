"""Arrays that kernels write: cells, of which blocks own parts, and counters.

Every tile block reads and writes its own part of each cell in the order of one chain of tokens.
Counters belong to all blocks, which update them with one commutative atomic operation and never
look.
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
    I32,
    I64,
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

from tile_fuzz.generator.maker import SCALAR_I32, Maker, count, tile
from tile_fuzz.generator.memory import (
    addresses,
    base,
    numbered,
    ordering,
    strides_of,
    tensor,
    word,
)
from tile_fuzz.generator.movement import spread


@dataclass
class Cell:
    """An array of which every block owns one tile, or that is the block's `own`.

    Tiles lie along the first axis of the view, if there is one.
    """

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
    type_ = Tile(shape, kind)
    if maker.chance(0.8 if kind in _APART else 0.4):
        size = maker.blocks * count(shape)
        return Cell(base(maker, kind, size, fill, exact), type_, by_pointers=True)
    return _new_viewed(maker, type_, fill, exact)


def _new_viewed(maker: Maker, type_: Tile, fill: str, exact: bool) -> Cell:
    """A cell that is accessed through a view of any kind."""
    kind, shape = type_.element, type_.shape
    assert isinstance(kind, Scalar)
    sort = maker.rng.choice(("partition", "partition", "strided", "gather"))
    dims, steps = list(range(len(shape))), shape
    if sort != "gather" and maker.chance(0.3):
        maker.rng.shuffle(dims)
    if sort == "strided":  # tiles of different blocks never overlap
        steps = tuple(extent + maker.rng.choice((0, 0, 1, 2)) for extent in shape)
    placed = [0] * len(shape)
    for position, dim in enumerate(dims):
        placed[dim] = steps[position] * maker.blocks if position == 0 else shape[position]
    extents = strides_of(maker, tuple(placed))
    pointer = base(maker, kind, extents.size, fill, exact)
    source = tensor(maker, pointer, kind, extents)
    of = source.type
    assert isinstance(of, TensorView)
    padding = None if maker.chance(0.5) else "zero"
    view: View = PartitionView(shape, of, tuple(dims), padding)
    if sort == "strided":
        view = StridedView(shape, steps, of, tuple(dims), padding)
    if sort == "gather":
        view = GatherScatterView(shape, of, maker.rng.randrange(len(shape)), padding)
    return Cell(pointer, type_, maker.emit(f"make_{word(sort)}_view", [source], view))


def new_scratch(maker: Maker, type_: Tile) -> Cell:
    """Memory of the block alone, whose first contents are written at once."""
    kind = type_.element
    assert isinstance(kind, Scalar)
    type_ = Tile(type_.shape or (1,), kind)
    size = count(type_.shape)
    alignment = max(16, kind.width // 8)
    flags = {"global": True} if maker.chance(0.3) else {}
    pointer = maker.emit(
        "alloca", [], Tile((), Pointer(kind)), num_elem=size, alignment=alignment, **flags
    )
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
    found = _shuffled(maker, numbered(maker, offsets), size)
    if cell.own:
        return addresses(maker, cell.pointer, found)
    assert maker.block is not None
    start = maker.emit("muli", [maker.block, maker.number(size)], SCALAR_I32)
    moved = maker.emit("addi", [found, spread(maker, start, offsets.shape)], offsets)
    return addresses(maker, cell.pointer, moved)


def _index(maker: Maker, cell: Cell) -> tuple[Value, ...]:
    """The block's tile; of a gather/scatter view, where it begins, and all its rows in an order."""
    assert maker.block is not None
    assert cell.view is not None
    index = [maker.block, *(maker.number(0) for _ in cell.type.shape[1:])]
    if isinstance(cell.view.type, GatherScatterView):
        axis = cell.view.type.sparse_dim
        start = maker.number(cell.type.shape[0])
        index[0] = maker.emit("muli", [maker.block, start], SCALAR_I32)
        index[axis] = _rows(maker, cell.type.shape[axis], maker.block if axis == 0 else None)
    return tuple(index)


def _rows(maker: Maker, extent: int, block: Value | None) -> Value:
    """The numbers of a block's `extent` rows, each once."""
    line = Tile((extent,), I32)
    rows = _shuffled(maker, maker.emit("iota", [], line), extent)
    if block is None:
        return rows
    start = maker.emit("muli", [block, maker.number(extent)], SCALAR_I32)
    return maker.emit("addi", [rows, spread(maker, start, (extent,))], line)


def _shuffled(maker: Maker, numbers: Value, size: int) -> Value:
    """The numbers below a power of two in another order: odd multiples, moved."""
    if not maker.chance(0.4):
        return numbers
    type_ = tile(numbers)
    factor = maker.constant(type_, 2 * maker.rng.randrange(8) + 1)
    found = maker.emit("muli", [numbers, factor], type_)
    found = maker.emit("addi", [found, maker.constant(type_, maker.rng.randrange(9))], type_)
    return maker.emit("andi", [found, maker.constant(type_, size - 1)], type_)


def write(maker: Maker, cell: Cell, value: Value) -> None:
    """The block's part of the cell = value, at times only where a mask says so."""
    if not tile(value).shape:
        value = maker.emit("reshape", [value], cell.type)
    order, scope = ordering(maker, "release")
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
    order, scope = ordering(maker, "acquire")
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
