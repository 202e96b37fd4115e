"""Globals, printing and assertions, compiled and run, against the reference evaluator."""

import re

import numpy as np
import pytest
import tile_cudatile
from support.programs import I32, Program
from tile_cudatile import types as t
from tile_cudatile.attrs import Dense
from tile_cudatile.evaluator.formats import dtype_of, encode
from tile_cudatile.tree import Global
from tile_sim import SimError

STRATEGIES = ("blocked", "first-legal", 0, 1)


@pytest.mark.parametrize(
    "element", [t.I1, t.I8, t.I32, t.I64, t.F16, t.BF16, t.F32, t.F64, t.F8E4M3FN], ids=str
)
@pytest.mark.parametrize("splat", [False, True])
def test_a_global_is_filled_and_can_be_written(element, splat):
    p, count = Program(), 16
    tile = t.Tile((count,), element)
    values = np.arange(count) % 2 if element == t.I1 else np.arange(count) - 7
    values = np.full(count, 1) if splat else values
    data = encode(values.astype(dtype_of(element)), element)
    raw = np.ascontiguousarray(data).tobytes()
    if element == t.I1:
        raw = np.packbits(values.astype(bool), bitorder="little").tobytes()
    size = 1 if element == t.I1 else len(raw) // count
    p.globals.append(Global("numbers", Dense(tile, raw[:size] if splat else raw), 16))
    if splat and element == t.I1:
        p.globals[0] = Global("numbers", Dense(tile, b"\xff"), 16)
    base = p.emit("get_global", [], t.Tile((), t.Pointer(element)), name="numbers")
    where = p.addresses(base, element, p.emit("iota", [], t.Tile((count,), t.I32)))
    order = {"memory_ordering_semantics": "weak"}
    x = p.emit("load_ptr_tko", [where], tile, t.TOKEN, **order)
    p.store(x, (count,), element)
    p.agrees(np.zeros(count, dtype_of(element)))


def printed(p, *args, **settings):
    """What the compiled program prints, and what the evaluator says it should."""
    expected = tile_cudatile.evaluate(p.module(), "k", (1,), list(args))
    report = p.run(*args, **settings)
    return "".join(report.output), "".join(expected.printed)


def test_scalars_of_all_types_print():
    p = Program()
    kinds = (t.I1, t.I8, t.I16, t.I32, t.I64, t.F16, t.BF16, t.F32, t.F64, t.F8E5M2)
    values = [p.constant(t.Tile((), kind), 1.5 if kind.is_float else -1) for kind in kinds]
    form = "%d %u %x %i %lld %f %5.2f %g %e %f 100%%\n"
    p.emit("print_tko", [tuple(values)], t.TOKEN, str=form)
    found, expected = printed(p)
    assert found == expected


def test_text_alone_prints_once():
    p = Program()
    p.emit("print_tko", [()], t.TOKEN, str="hello\n")
    assert printed(p) == ("hello\n", "hello\n")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_tiles_print_as_lists(strategy):
    p = Program()
    x, y = p.load((4, 16), t.I32), p.load((8,), t.F16)
    p.emit("print_tko", [(x, y, p.constant(I32, 7))], t.TOKEN, str="x = %d, y = %.2f, n = %i\n")
    a = np.arange(64, dtype=np.int32).reshape(4, 16) - 9
    found, expected = printed(p, a, np.arange(8).astype(np.float16), strategy=strategy)
    assert found == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("shape", [(), (1,), (256,), (8, 8)])
def test_assertions(shape, strategy):
    """A false element ends the kernel after one line that says which it is."""
    p = Program()
    x = p.load(shape or (1,), t.I32)
    if not shape:
        x = p.emit("reshape", [x], I32)
    limit = p.constant(t.Tile(shape, t.I32), 100)
    holds = p.emit("cmpi", [x, limit], t.Tile(shape, t.I1), comparison_predicate="less_than",
                   signedness="signed")  # fmt: skip
    p.emit("assert", [holds], message="50% below 100")
    p.store(x, shape or (1,), t.I32)
    a = np.zeros(shape or (1,), np.int32)
    p.agrees(a, np.ones_like(a))
    a.reshape(-1)[-1] = 100
    with pytest.raises(SimError, match="trap") as failure:
        p.run(a, np.ones_like(a), strategy=strategy)
    place = ", ".join(str(extent - 1) for extent in shape)
    line = rf"\S+:\d+: tile block: \[0, 0, 0\], position: \[{place}\]: 50% below 100\n"
    assert re.fullmatch(line, failure.value.printed)


@pytest.mark.parametrize("shape", [(2048,), (8, 2, 128)])
def test_large_tiles_print_in_loops(shape):
    """The code stays small: one call for the elements."""
    p = Program()
    x = p.load(shape, t.I16)
    p.emit("print_tko", [(x, p.constant(I32, 7))], t.TOKEN, str="x = %d, n = %i\n")
    data = np.arange(2048, dtype=np.int16).reshape(shape) - 9
    found, expected = printed(p, data)
    assert found == expected
    assert p.ptx().count("vprintf") < 40


def test_four_bit_integers_print_with_their_sign():
    p = Program()
    x = p.emit("unpack", [p.load((8,), t.I8)], t.Tile((16,), t.I4))
    p.emit("print_tko", [(x, x)], t.TOKEN, str="%d %u\n")
    found, expected = printed(p, np.arange(-100, 60, 20).astype(np.int8))
    assert found == expected
