"""Atomic operations through pointers, compiled and run, against the reference evaluator."""

import numpy as np
import pytest
import tile_sim
from support.programs import I32, Program
from support.tiles import registry
from tile_cudatile import to_mlir
from tile_cudatile import types as t
from tile_cudatile.attrs import DivBy
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


#: Few enough places for the checker to take atomics for more than counters.
ONE_WARP = {"num-warps": 1}


def second_comers(semantics):
    """Two blocks write their numbers, count themselves at each of 64 places, and read what the
    other one wrote where they come second. The second block counts its way through some zeros
    before.
    """
    p, shape = Program(), (64,)
    tile = t.Tile(shape, t.I32)
    numbers, counts, out = (p.argument(t.Tile((), t.Pointer(t.I32))) for _ in range(3))
    block = p.emit("get_tile_block_id", [], I32, I32, I32)
    iota = p.emit("iota", [], tile)

    def row(number):
        start = p.emit("muli", [number, p.constant(I32, 64)], I32)
        start = p.emit("broadcast", [p.emit("reshape", [start], t.Tile((1,), t.I32))], tile)
        return p.emit("addi", [start, iota], tile)

    mine, other = row(block), row(p.emit("subi", [p.constant(I32, 1), block], I32))
    here = p.addresses(numbers, t.I32, mine)
    written = p.emit("store_ptr_tko", [here, mine], t.TOKEN, memory_ordering_semantics="weak")
    order = {"memory_ordering_semantics": semantics, "memory_scope": "device"}

    def add(i, total):
        zero = p.emit("load_ptr_tko", [p.emit("offset", [numbers, i], numbers.type), None, None,
                      None], I32, t.TOKEN, memory_ordering_semantics="relaxed",
                      memory_scope="device")  # fmt: skip
        return [p.emit("addi", [total, zero], I32)]

    late = p.emit("muli", [block, p.constant(I32, 40)], I32)
    loop = p.region([I32, I32], add, "continue")
    bounds = [p.emit("addi", [late, p.constant(I32, 128)], I32), p.constant(I32, 1)]
    none = p.emit("for", [p.constant(I32, 128), *bounds, (p.constant(I32, 0),)], I32,
                  regions=(loop,))  # fmt: skip
    where = p.addresses(p.emit("offset", [counts, none], counts.type), t.I32, iota)
    old = p.emit("atomic_rmw_tko", [where, p.constant(tile, 1), None, written], tile, t.TOKEN,
                 mode="add", **order)  # fmt: skip
    counted = p.ops[-1].results[1]
    second = p.emit("cmpi", [old, p.constant(tile, 1)], t.Tile(shape, t.I1),
                    comparison_predicate="equal", signedness="signed")  # fmt: skip
    there = p.addresses(numbers, t.I32, other)
    read = p.emit("load_ptr_tko", [there, second, p.constant(tile, -1), counted], tile, t.TOKEN,
                  memory_ordering_semantics="weak")  # fmt: skip
    shown = p.addresses(out, t.I32, mine)
    p.emit("store_ptr_tko", [shown, read], t.TOKEN, memory_ordering_semantics="weak")
    return p


def found_by_second_comers(ptx, schedule):
    numbers, counts, out = (np.zeros(n, np.int32) for n in (256, 64, 128))
    module = tile_sim.Module(ptx)
    report = module.launch(
        "k", (2, 1, 1), None, [numbers, counts, out], check=True, schedule=schedule
    )
    return report.findings, out.reshape(2, 64)


@pytest.mark.parametrize("schedule", ["early", "late", "random"])
def test_an_order_of_many_elements_is_made_by_fences(schedule):
    """One in front and one behind; without either, second comers race with who came first."""
    ptx = second_comers("acq_rel").ptx(**ONE_WARP)
    assert ptx.count("fence.acq_rel.gpu") == 2
    assert "atom.acq_rel" not in ptx
    findings, out = found_by_second_comers(ptx, schedule)
    assert not findings
    either = np.where(out[0] >= 0, out[0], out[1])
    both = np.arange(64)
    assert ((either == both) | (either == both + 64)).all()
    assert ((out >= 0).sum(axis=0) == 1).all()
    for at in (ptx.index("fence.acq_rel.gpu"), ptx.rindex("fence.acq_rel.gpu")):
        without = ptx[:at] + ptx[at:].replace("fence.acq_rel.gpu;", "", 1)
        assert found_by_second_comers(without, schedule)[0]


@pytest.mark.parametrize(("semantics", "before", "behind"), [
    ("relaxed", 0, 0), ("release", 1, 0), ("acquire", 0, 1), ("acq_rel", 1, 1),
])  # fmt: skip
def test_which_fences_an_order_has(semantics, before, behind):
    ptx = second_comers(semantics).ptx(**ONE_WARP)
    first, last = ptx.index("atom.relaxed.gpu"), ptx.rindex("atom.relaxed.gpu")
    assert ptx[:first].count("fence.acq_rel.gpu") == before
    assert ptx[last:].count("fence.acq_rel.gpu") == behind


def add_up(element, *, masked, used=False, shift=0):
    """memory[k + shift] += k % 16, where the mask says so."""
    p, shape = Program(), (2048,)
    tile = t.Tile(shape, t.I32)
    base = p.argument(t.Tile((), t.Pointer(element)))
    base = p.emit("assume", [base], base.type, predicate=DivBy(16))
    places = p.emit("iota", [], tile)
    where = p.addresses(base, element, p.emit("addi", [places, p.constant(tile, shift)], tile))
    low = p.emit("andi", [places, p.constant(tile, 15)], tile)
    x = p.emit(
        "itof", [low], t.Tile(shape, element), signedness="signed", rounding_mode="nearest_even"
    )
    mask = None
    if masked:
        bound = p.constant(tile, 1040)
        mask = p.emit("cmpi", [places, bound], t.Tile(shape, t.I1),
                      comparison_predicate="less_than", signedness="signed")  # fmt: skip
    old = p.emit(
        "atomic_rmw_tko", [where, x, mask], t.Tile(shape, element), t.TOKEN, mode="addf",
        memory_ordering_semantics="relaxed", memory_scope="device",
    )  # fmt: skip
    if used:
        p.store(old, shape, element)
    return p


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize(("element", "width"), [(t.F32, 4), (t.F16, 8), (t.BF16, 8)], ids=str)
def test_sums_of_neighbours_are_added_together(element, width, target, masked):
    """Since sm_90, as many as 16 bytes have; of all blocks."""
    p = add_up(element, masked=masked)
    together = f"global.add{'' if element == t.F32 else '.noftz'}.v{width}."
    assert (together in p.ptx(target)) == (target != "sm_80")
    p.agrees(values((2056,), element, 1), grid=(3, 1, 1), target=target)


@pytest.mark.parametrize(("shift", "used"), [(1, False), (2, False), (0, True)])
def test_sums_that_are_not_aligned_or_are_asked_for(shift, used):
    """Pairs where only those are aligned; each by itself where its former value is wanted."""
    p = add_up(t.F32, masked=False, used=used, shift=shift)
    ptx = p.ptx("sm_90")
    assert ("red." in ptx) == (shift == 2)
    assert (".v2.f32" in ptx) == (shift == 2)
    arrays = [values((2056,), t.F32, 1), np.zeros(2048, "f4")]
    p.agrees(*arrays[: 1 + used], target="sm_90")
