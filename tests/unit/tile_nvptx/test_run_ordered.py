"""Ordered loads of what several threads hold: read once and passed on."""

import numpy as np
import pytest
from support.programs import I32, STRATEGIES, Program
from tile_cudatile import types as t
from tile_cudatile.evaluator.formats import dtype_of

ACQUIRE = {"memory_ordering_semantics": "acquire", "memory_scope": "device"}
RELAXED = {"memory_ordering_semantics": "relaxed", "memory_scope": "sys"}
WEAK = {"memory_ordering_semantics": "weak"}


CASES = [(t.F16, (4, 16), strategy) for strategy in STRATEGIES]
CASES += [(t.I1, (1,), "blocked"), (t.I64, (16,), 1), (t.F16, (512,), 0), (t.F16, (32, 64), 2)]


@pytest.mark.parametrize(("element", "shape", "strategy"), CASES, ids=str)
def test_tiles_through_pointers(element, shape, strategy):
    """Masked, with something else where the mask is false."""
    p, count = Program(), int(np.prod(shape))
    base = p.argument(t.Tile((), t.Pointer(element)))
    places = p.emit("iota", [], t.Tile((count,), t.I32))
    if len(shape) > 1:
        places = p.emit("reshape", [places], t.Tile(shape, t.I32))
    mask, other = p.load(shape, t.I1), p.load(shape, element)
    x = p.emit(
        "load_ptr_tko", [p.addresses(base, element, places), mask, other], t.Tile(shape, element),
        t.TOKEN, **ACQUIRE,
    )  # fmt: skip
    p.store(x, shape, element)
    rng = np.random.default_rng(1)
    memory, other = (rng.integers(0, 2, shape).astype(dtype_of(element)) for _ in range(2))
    mask = rng.integers(0, 2, shape).astype(bool)
    p.agrees(memory, mask, other, np.zeros(shape, dtype_of(element)), strategy=strategy)


@pytest.mark.parametrize(
    ("tile", "opt_level", "strategy"),
    [((8,), 0, "first-legal"), ((8,), 3, "blocked"), ((256,), 2, 0), ((256,), 2, "blocked")],
)
def test_tiles_of_views(tile, opt_level, strategy):
    """The last one reaches past the end."""
    p, size = Program(), 5 * tile[0] // 2
    tensor = t.TensorView(t.F32, (size,), (1,))
    base = p.argument(t.Tile((), t.Pointer(t.F32)))
    view = p.emit("make_tensor_view", [base, (), ()], tensor)
    view = p.emit("make_partition_view", [view], t.PartitionView(tile, tensor, (0,), "nan"))
    for number in (0, 2):
        index = (p.constant(I32, number),)
        x = p.emit("load_view_tko", [view, index], t.Tile(tile, t.F32), t.TOKEN, **RELAXED)
        p.store(x, tile, t.F32)
    data = np.arange(size, dtype=np.float32)
    out = np.zeros((2, *tile), np.float32)
    p.agrees(data, out[0], out[1], strategy=strategy, opt_level=opt_level)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("masked", [False, True])
def test_scalars(masked, target):
    p, one = Program(), t.Tile((), t.F64)
    pointer = p.argument(t.Tile((), t.Pointer(t.F64)))
    flag = p.argument(t.Tile((), t.I1)) if masked else None
    other = p.constant(one, 3.5) if masked else None
    x = p.emit("load_ptr_tko", [pointer, flag, other], one, t.TOKEN, **ACQUIRE)
    p.store(x, (1,), t.F64)
    flags = (np.bool_(False),) if masked else ()
    p.agrees(np.array([2.25]), *flags, np.zeros(1), target=target)


def test_all_threads_see_one_value():
    """Blocks count while others read the counter: what one has read is the same in its warps."""
    p, tile = Program(), t.Tile((512,), t.I32)
    counter, out = (p.argument(t.Tile((), t.Pointer(t.I32))) for _ in range(2))
    one = p.constant(I32, 1)
    p.emit("atomic_rmw_tko", [counter, one], I32, t.TOKEN, mode="add", **RELAXED)
    token = p.ops[-1].results[1]
    seen = p.emit("load_ptr_tko", [counter, None, None, token], I32, t.TOKEN, **RELAXED)
    wide = p.emit("broadcast", [p.emit("reshape", [seen], t.Tile((1,), t.I32))], tile)
    number = p.emit("get_tile_block_id", [], I32, I32, I32)
    start = p.emit("muli", [number, p.constant(I32, 512)], I32)
    start = p.emit("broadcast", [p.emit("reshape", [start], t.Tile((1,), t.I32))], tile)
    places = p.emit("addi", [start, p.emit("iota", [], tile)], tile)
    p.emit("store_ptr_tko", [p.addresses(out, t.I32, places), wide], t.TOKEN, **WEAK)
    count, found = np.zeros(1, np.int32), np.zeros((8, 512), np.int32)
    p.run(count, found.ravel(), grid=(8, 1, 1))
    assert count[0] == 8
    assert (found == found[:, :1]).all()
    assert found.min() >= 1


def test_one_thread_reads():
    """The instruction stands once, under a predicate, and its value goes through shared memory."""
    p, one = Program(), t.Tile((), t.I32)
    pointer = p.argument(t.Tile((), t.Pointer(t.I32)))
    p.store(p.emit("load_ptr_tko", [pointer], one, t.TOKEN, **ACQUIRE), (1,), t.I32)
    ptx = p.ptx()
    lines = [line.strip() for line in ptx.splitlines() if "ld.acquire.gpu" in line]
    assert len(lines) == 1
    assert "@%p" in lines[0]
    assert "st.shared" in ptx
