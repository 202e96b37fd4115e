"""Strided and gather/scatter views, and atomic updates of views, against the evaluator."""

import numpy as np
import pytest
from support.programs import I32, Program
from tile_cudatile import types as t
from tile_cudatile.evaluator.formats import dtype_of

STRATEGIES = ("blocked", "first-legal", 0, 1)


def tensor(p, shape, element):
    """A new argument as a row-major tensor."""
    base = p.argument(t.Tile((), t.Pointer(element)))
    steps = tuple(int(np.prod(shape[at + 1 :])) for at in range(len(shape)))
    type_ = t.TensorView(element, shape, steps)
    return p.emit("make_tensor_view", [base, (), ()], type_), type_


def counting(shape, element):
    return (np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype_of(element))


def block(p, axes=1):
    """Coordinates of the tile block."""
    p.emit("get_tile_block_id", [], I32, I32, I32)
    return p.ops[-1].results[:axes]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize(
    ("shape", "tile", "steps"),
    [((40, 24), (4, 16), (3, 8)), ((37, 64), (8, 32), (8, 48)), ((64, 64), (16, 16), (32, 16))],
)
def test_strided_loads(shape, tile, steps, padding, strategy):
    """out[block] = the tile that begins at block * steps."""
    p = Program()
    view, type_ = tensor(p, shape, t.F32)
    kind = t.StridedView(tile, steps, type_, (0, 1), padding)
    view = p.emit("make_strided_view", [view], kind)
    at = block(p, 2)
    x = p.emit("load_view_tko", [view, at], t.Tile(tile, t.F32), t.TOKEN,
               memory_ordering_semantics="weak")  # fmt: skip
    grid = tuple(-(-s // step) for s, step in zip(shape, steps, strict=True))
    whole = tuple(g * e for g, e in zip(grid, tile, strict=True))
    out, out_type = tensor(p, whole, t.F32)
    out = p.emit("make_partition_view", [out], t.PartitionView(tile, out_type, (0, 1), "zero"))
    p.emit("store_view_tko", [x, out, at], t.TOKEN, memory_ordering_semantics="weak")
    p.agrees(counting(shape, t.F32), np.ones(whole, np.float32), grid=(*grid, 1), strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strided_stores_and_index_space(strategy):
    p, shape = Program(), (37,)
    view, type_ = tensor(p, shape, t.I32)
    view = p.emit("make_strided_view", [view], t.StridedView((8,), (16,), type_, (0,), "zero"))
    size = p.emit("get_index_space_shape", [view], I32)
    one = p.emit("reshape", [size], t.Tile((1,), t.I32))
    value = p.emit("broadcast", [one], t.Tile((8,), t.I32))
    p.emit("store_view_tko", [value, view, block(p)], t.TOKEN, memory_ordering_semantics="weak")
    p.agrees(np.zeros(37, np.int32), grid=(3, 1, 1), strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("element", [t.F32, t.I8, t.F64], ids=str)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("start", [5, 13, -3])
def test_gather_and_scatter(start, dim, element, strategy):
    """Rows (or columns) picked from a table, and put back in other places.

    The other axis begins at any element, also one before or less than a tile from the edge.
    """
    p, shape, tile = Program(), (20, 24), ((8, 16), (16, 8))[dim]
    rows = p.load((8,), t.I32)
    places = p.load((8,), t.I32)
    at = p.constant(I32, start)
    found = None
    for which in (rows, places):
        view, type_ = tensor(p, shape, element)
        kind = t.GatherScatterView(tile, type_, dim, "zero")
        view = p.emit("make_gather_scatter_view", [view], kind)
        index = (which, at) if dim == 0 else (at, which)
        order = {"memory_ordering_semantics": "weak"}
        if found is None:
            found = p.emit("load_view_tko", [view, index], t.Tile(tile, element), t.TOKEN, **order)
        else:
            p.emit("store_view_tko", [found, view, index], t.TOKEN, **order)
    rows = np.array([3, 19, 0, 7, 22, 5, 5, 11], np.int32)
    places = np.array([0, 2, 4, 6, 19, 10, 30, 14], np.int32)
    p.agrees(
        rows, places, counting(shape, element), np.zeros(shape, dtype_of(element)),
        strategy=strategy,
    )  # fmt: skip


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("mode", "element", "padding"),
    [("addf", t.F32, None), ("addf", t.F16, "nan"), ("max", t.I32, "zero"), ("or", t.I64, None)],
    ids=str,
)
def test_atomic_updates_of_a_view(mode, element, padding, strategy):
    p, shape, tile = Program(), (10, 40), (8, 16)
    x = p.load(tile, element)
    view, type_ = tensor(p, shape, element)
    view = p.emit("make_partition_view", [view], t.PartitionView(tile, type_, (0, 1), padding))
    at = block(p, 2)
    for _ in range(2):
        p.emit("atomic_red_view_tko", [view, at, x], t.TOKEN, mode=mode,
               memory_ordering_semantics="relaxed", memory_scope="device")  # fmt: skip
    p.agrees(counting(tile, element), counting(shape, element), grid=(2, 3, 1), strategy=strategy)


@pytest.mark.parametrize("shape", [(), (16,)], ids=str)
def test_padding_without_a_mask_is_never_read(shape):
    p = Program()
    source = p.argument(t.Tile((), t.Pointer(t.I32)))
    type_ = t.Tile(shape, t.I32)
    if shape:
        source = p.addresses(source, t.I32, p.emit("iota", [], type_))
    x = p.emit("load_ptr_tko", [source, None, p.constant(type_, 7), None], type_, t.TOKEN,
               memory_ordering_semantics="weak")  # fmt: skip
    p.store(x, shape or (1,), t.I32)
    p.agrees(counting((16,), t.I32) + 1, np.zeros(shape or (1,), np.int32))


def _copied(promise: tuple[bool, bool]) -> Program:
    """Rows of 16 of a matrix of so many rows that only the launch knows."""
    p, tile = Program(), (8, 16)
    rows, type_ = p.argument(I32), t.TensorView(t.F32, (None, 40), (40, 1))
    order = {"memory_ordering_semantics": "weak", "inbounds": promise}
    at, found = block(p, 2), None
    for _ in range(2):
        base = p.argument(t.Tile((), t.Pointer(t.F32)))
        view = p.emit("make_tensor_view", [base, (rows,), ()], type_)
        view = p.emit("make_partition_view", [view], t.PartitionView(tile, type_, (0, 1), "zero"))
        if found is None:
            found = p.emit("load_view_tko", [view, at], t.Tile(tile, t.F32), t.TOKEN, **order)
        else:
            p.emit("store_view_tko", [found, view, at], t.TOKEN, **order)
    return p


@pytest.mark.parametrize(
    ("promise", "grid"), [((True, False), (2, 3, 1)), ((True, True), (2, 2, 1))]
)
def test_promised_bounds(promise, grid):
    """What a program promises to be inside is not compared."""
    p = _copied(promise)
    p.agrees(16, counting((16, 40), t.F32), np.zeros((16, 40), np.float32), grid=grid)
    checks = [_copied(flags).ptx().count("setp") for flags in ((False, False), promise)]
    assert checks[1] < checks[0]
    if all(promise):
        assert checks[1] == 0
