"""Atomic operations through pointers, compiled and run, against the reference evaluator."""

import numpy as np
import pytest
from support.programs import I32, Program
from support.tiles import registry
from tile_cudatile import to_mlir
from tile_cudatile import types as t
from tile_cudatile.evaluator.formats import dtype_of

import tile_core

STRATEGIES = ("blocked", "first-legal", 0, 1)
MODES = {
    "and": (t.I32, t.I64),
    "or": (t.I32, t.I64),
    "xor": (t.I32, t.I64),
    "add": (t.I32, t.I64),
    "max": (t.I32, t.I64),
    "min": (t.I32, t.I64),
    "umax": (t.I32, t.I64),
    "umin": (t.I32, t.I64),
    "xchg": (t.I32, t.I64, t.F32, t.F64),
    "addf": (t.F16, t.BF16, t.F32, t.F64),
}
CASES = [(mode, element) for mode, elements in MODES.items() for element in elements]


def values(shape, element, seed):
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype_of(element))


def pointers(p, element, shape):
    """Pointers to the elements of a new argument, in order."""
    base = p.argument(t.Tile((), t.Pointer(element)))
    count = int(np.prod(shape))
    places = p.emit("iota", [], t.Tile((count,), t.I32))
    if len(shape) != 1:
        places = p.emit("reshape", [places], t.Tile(shape, t.I32))
    return p.addresses(base, element, places)


def exchange(mode, element, shape, *, masked=False, **order):
    """memory = mode(memory, x), the former values to `old`, where the mask says so."""
    p = Program()
    where, x = pointers(p, element, shape), p.load(shape, element)
    mask = p.load(shape, t.I1) if masked else None
    order = {"memory_ordering_semantics": "relaxed", "memory_scope": "device", **order}
    old = p.emit(
        "atomic_rmw_tko", [where, x, mask], t.Tile(shape, element), t.TOKEN, mode=mode, **order
    )
    if masked:
        old = p.emit("select", [mask, old, x], t.Tile(shape, element))
    p.store(old, shape, element)
    return p


@pytest.mark.parametrize(("mode", "element"), CASES, ids=str)
def test_every_mode_and_type(mode, element):
    shape = (256,)
    p = exchange(mode, element, shape)
    out = np.zeros(shape, dtype_of(element))
    p.agrees(values(shape, element, 1), values(shape, element, 2), out)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("shape", [(1,), (16,), (8, 64), (32, 32)])
def test_every_copy_of_a_result(shape, strategy):
    """Fewer elements than threads: one thread acts, all others hear of it."""
    p = exchange("add", t.I32, shape, masked=True)
    mask = np.random.default_rng(3).integers(0, 2, shape).astype(bool)
    out = np.zeros(shape, np.int32)
    p.agrees(values(shape, t.I32, 1), values(shape, t.I32, 2), mask, out, strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_element_acts_once(strategy):
    """A histogram: many elements, and all blocks, meet in few places."""
    p, shape = Program(), (64,)
    base = p.argument(t.Tile((), t.Pointer(t.I32)))
    where = p.addresses(base, t.I32, p.load(shape, t.I32))
    one = p.constant(t.Tile(shape, t.I32), 1)
    p.emit(
        "atomic_rmw_tko", [where, one], t.Tile(shape, t.I32), t.TOKEN, mode="add",
        memory_ordering_semantics="relaxed", memory_scope="device",
    )  # fmt: skip
    bins = np.random.default_rng(1).integers(0, 5, shape).astype(np.int32)
    p.agrees(np.zeros(5, np.int32), bins, grid=(3, 1, 1), strategy=strategy)


@pytest.mark.parametrize("element", [t.I32, t.I64, t.F32, t.F64], ids=str)
@pytest.mark.parametrize("shape", [(16,), (256,)])
def test_compare_and_swap(shape, element):
    p, tile = Program(), t.Tile(shape, element)
    where, expected, new = (
        pointers(p, element, shape),
        p.load(shape, element),
        p.load(shape, element),
    )
    mask = p.load(shape, t.I1)
    old = p.emit(
        "atomic_cas_tko", [where, expected, new, mask], tile, t.TOKEN,
        memory_ordering_semantics="acq_rel", memory_scope="sys",
    )  # fmt: skip
    p.store(old, shape, element)
    memory, wanted = values(shape, element, 1), values(shape, element, 1)
    wanted[::2] = -100
    if element.is_float:
        memory[1], wanted[1] = 0.0, -0.0  # other bits
    mask = np.arange(shape[0]) % 8 < 6
    p.agrees(memory, wanted, values(shape, element, 3), mask, np.zeros_like(memory))


def test_a_scalar_counts_blocks():
    """Each block takes a ticket; what it has found is the same in all of its threads."""
    p, one = Program(), t.Tile((), t.I32)
    counter = p.argument(t.Tile((), t.Pointer(t.I32)))
    ticket = p.emit(
        "atomic_rmw_tko", [counter, p.constant(one, 1)], one, t.TOKEN, mode="add",
        memory_ordering_semantics="relaxed", memory_scope="device",
    )  # fmt: skip
    wide = p.emit("reshape", [ticket], t.Tile((1,), t.I32))
    wide = p.emit("broadcast", [wide], t.Tile((64,), t.I32))
    step = p.emit("muli", [ticket, p.constant(I32, 64)], one)
    spread = p.emit("broadcast", [p.emit("reshape", [step], t.Tile((1,), t.I32))],
                    t.Tile((64,), t.I32))  # fmt: skip
    places = p.emit("addi", [spread, p.emit("iota", [], t.Tile((64,), t.I32))],
                    t.Tile((64,), t.I32))  # fmt: skip
    out = p.addresses(p.argument(t.Tile((), t.Pointer(t.I32))), t.I32, places)
    p.emit("store_ptr_tko", [out, wide], t.TOKEN, memory_ordering_semantics="weak")
    count, found = np.zeros(1, np.int32), np.full((4, 64), -1, np.int32)
    p.run(count, found.ravel(), grid=(4, 1, 1))
    assert count[0] == 4
    np.testing.assert_array_equal(found, np.repeat(np.arange(4), 64).reshape(4, 64))


def test_tokens_order_threads_around_atomics():
    """store, atomic, load of the same places through tokens, in different layouts."""
    for strategy in STRATEGIES:
        p, shape = Program(), (512,)
        tile = t.Tile(shape, t.I32)
        base = p.argument(t.Tile((), t.Pointer(t.I32)))
        iota = p.emit("iota", [], tile)
        back = p.emit("subi", [p.constant(tile, 511), iota], tile)
        there, turned = p.addresses(base, t.I32, iota), p.addresses(base, t.I32, back)
        stored = p.emit("store_ptr_tko", [there, iota], t.TOKEN, memory_ordering_semantics="weak")
        order = {"memory_ordering_semantics": "acq_rel", "memory_scope": "tl_blk"}
        p.emit("atomic_rmw_tko", [turned, iota, None, stored], tile, t.TOKEN, mode="add", **order)
        done = p.ops[-1].results[1]
        x = p.emit("load_ptr_tko", [there, None, None, done], tile, t.TOKEN,
                   memory_ordering_semantics="weak")  # fmt: skip
        p.store(x, shape, t.I32)
        p.agrees(np.zeros(512, np.int32), np.zeros(512, np.int32), strategy=strategy)


@pytest.mark.parametrize("semantics", ["relaxed", "acquire", "release", "acq_rel"])
@pytest.mark.parametrize(("scope", "text"), [("tl_blk", "cta"), ("device", "gpu"), ("sys", "sys")])
def test_order_and_scope_reach_the_instruction(semantics, scope, text):
    order = {"memory_ordering_semantics": semantics, "memory_scope": scope}
    ptx = exchange("max", t.I64, (128,), **order).ptx()
    assert f"atom.{semantics}.{text}.global.max.s64" in ptx


def test_bf16_is_added_by_compare_and_swap_before_sm_90():
    program = exchange("addf", t.BF16, (128,))
    assert "add.noftz.bf16" in program.ptx("sm_90")
    old = program.ptx("sm_80")
    assert "add.noftz.bf16" not in old
    assert "atom.relaxed.gpu.global.cas.b16" in old


@pytest.mark.parametrize("semantics", ["relaxed", "acq_rel"])
@pytest.mark.parametrize("target", ["sm_80", "sm_89"])
def test_bf16_sums_where_targets_cannot_add(target, semantics):
    """Many elements of all blocks meet in few places; small integers add up exactly."""
    p, shape = Program(), (64,)
    base = p.argument(t.Tile((), t.Pointer(t.BF16)))
    where = p.addresses(base, t.BF16, p.load(shape, t.I32))
    x, mask = p.load(shape, t.BF16), p.load(shape, t.I1)
    p.emit(
        "atomic_rmw_tko", [where, x, mask], t.Tile(shape, t.BF16), t.TOKEN, mode="addf",
        memory_ordering_semantics=semantics, memory_scope="device",
    )  # fmt: skip
    rng = np.random.default_rng(1)
    bins = rng.integers(0, 5, shape).astype(np.int32)
    mask = rng.integers(0, 4, shape) > 0
    sums = np.zeros(5, dtype_of(t.BF16))
    p.agrees(sums, bins, values(shape, t.BF16, 1), mask, grid=(2, 1, 1), target=target)


def test_bf16_sums_round_once():
    p = exchange("addf", t.BF16, (256,))
    rng = np.random.default_rng(7)
    memory, x = (
        np.ldexp(rng.uniform(-2, 2, 256), rng.integers(-12, 12, 256)).astype(dtype_of(t.BF16))
        for _ in range(2)
    )
    p.agrees(memory, x, np.zeros_like(x), target="sm_86")


@pytest.mark.parametrize(("scope", "said"), [("tl_blk", 1), ("device", 0), ("sys", 0)])
def test_atomics_of_one_block_alone_get_a_remark(scope, said):
    """Global memory is reached by other blocks, with which such an operation races."""
    made = tile_core.compile(
        str(to_mlir(exchange("add", t.I32, (64,), memory_scope=scope).module())),
        "sm_90",
        start_at="convert-cudatile-to-tileaa",
        emit="mlir",
        registry=registry(),
    )
    text = "is atomic within its own block alone: other blocks race with it"
    assert [remark.message for remark in made.remarks].count(text) == said
