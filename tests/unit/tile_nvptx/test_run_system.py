"""Allocation, dependences between grids and fences, compiled and run."""

import numpy as np
import pytest
from support.programs import I32, Program
from tile_cudatile import types as t

WEAK = {"memory_ordering_semantics": "weak"}


def turn_round(p, shape, element, memory):
    """A new argument stored to `memory` and read back from its end."""
    count = shape[0]
    tile = t.Tile(shape, t.I32)
    iota = p.emit("iota", [], tile)
    x = p.load(shape, element)
    stored = p.emit("store_ptr_tko", [p.addresses(memory, element, iota), x], t.TOKEN, **WEAK)
    back = p.emit("subi", [p.constant(tile, count - 1), iota], tile)
    there = p.addresses(memory, element, back)
    return p.emit(
        "load_ptr_tko", [there, None, None, stored], t.Tile(shape, element), t.TOKEN, **WEAK
    )


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("opt_level", [0, 2])
@pytest.mark.parametrize(("alignment", "whole"), [(4, False), (256, True)])
def test_memory_of_a_block(alignment, whole, opt_level, target):
    """Each block has its own, aligned as asked for."""
    p, shape = Program(), (256,)
    attrs = {"global": True} if whole else {}
    memory = p.emit(
        "alloca", [], t.Tile((), t.Pointer(t.F32)), num_elem=256, alignment=alignment, **attrs
    )
    y = turn_round(p, shape, t.F32, memory)
    p.store(y, shape, t.F32)
    address = p.emit("ptr_to_int", [memory], t.Tile((), t.I64))
    p.store(address, (1,), t.I64)
    x, out, where = np.arange(256, dtype=np.float32), np.zeros(256, np.float32), np.ones(1, int)
    p.run(x, out, where, target=target, opt_level=opt_level)
    np.testing.assert_array_equal(out, x[::-1])
    assert where[0] % alignment == 0


def test_memory_in_a_loop_is_new_each_time():
    """More rounds than the heap would hold if nothing were given back; nobody reads too early."""
    p, shape = Program(), (64,)
    base = p.argument(t.Tile((), t.Pointer(t.I32)))
    bounds = [p.constant(I32, n) for n in (0, 5, 1)]
    start = p.constant(t.Tile(shape, t.I32), 0)

    def body(i, total):
        memory = p.emit("alloca", [], t.Tile((), t.Pointer(t.I32)), num_elem=64, alignment=16)
        tile = t.Tile(shape, t.I32)
        iota = p.emit("iota", [], tile)
        wide = p.emit("broadcast", [p.emit("reshape", [i], t.Tile((1,), t.I32))], tile)
        mine = p.emit("muli", [iota, wide], tile)
        stored = p.emit("store_ptr_tko", [p.addresses(memory, t.I32, iota), mine], t.TOKEN, **WEAK)
        back = p.emit("subi", [p.constant(tile, 63), iota], tile)
        y = p.emit(
            "load_ptr_tko", [p.addresses(memory, t.I32, back), None, None, stored], tile, t.TOKEN,
            **WEAK,
        )  # fmt: skip
        return [p.emit("addi", [total, y], tile)]

    region = p.region([I32, t.Tile(shape, t.I32)], body, "continue")
    found = p.emit("for", [*bounds, (start,)], t.Tile(shape, t.I32), regions=(region,))
    p.emit(
        "store_ptr_tko",
        [p.addresses(base, t.I32, p.emit("iota", [], t.Tile(shape, t.I32))), found],
        t.TOKEN,
        **WEAK,
    )
    p.agrees(np.zeros(64, np.int32))


def ordered(*names):
    """store, the operations called `names`, and a load of what other threads have stored."""
    p, shape = Program(), (512,)
    tile = t.Tile(shape, t.I32)
    base = p.argument(t.Tile((), t.Pointer(t.I32)))
    iota = p.emit("iota", [], tile)
    token = p.emit("store_ptr_tko", [p.addresses(base, t.I32, iota), iota], t.TOKEN, **WEAK)
    for name in names:
        token = p.emit(name, [token], t.TOKEN)
    back = p.emit("subi", [p.constant(tile, 511), iota], tile)
    there = p.addresses(base, t.I32, back)
    x = p.emit("load_ptr_tko", [there, None, None, token], tile, t.TOKEN, **WEAK)
    p.store(x, shape, t.I32)
    return p


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_tokens_pass_through(target):
    p = ordered("gdc_launch_dependents_tko", "memory_fence_alias_tko", "gdc_wait_tko")
    p.agrees(np.zeros(512, np.int32), np.zeros(512, np.int32), target=target)


def test_their_instructions():
    """Dependent grids came with sm_90; before that, a grid begins when the last one is over."""
    names = ("gdc_launch_dependents_tko", "gdc_wait_tko", "memory_fence_alias_tko")
    new, old = ordered(*names).ptx("sm_90"), ordered(*names).ptx("sm_89")
    assert new.index("griddepcontrol.launch_dependents") < new.index("griddepcontrol.wait")
    assert "griddepcontrol" not in old
    assert "fence.proxy.alias" in new
    assert "fence.proxy.alias" in old


def test_without_a_token():
    p = Program()
    p.emit("gdc_wait_tko", [None], t.TOKEN)
    p.emit("gdc_launch_dependents_tko", [None], t.TOKEN)
    p.store(p.constant(t.Tile((64,), t.I32), 7), (64,), t.I32)
    p.agrees(np.zeros(64, np.int32))
