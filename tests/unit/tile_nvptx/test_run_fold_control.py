"""Reductions and scans with control flow in their region, against the reference evaluator."""

import numpy as np
import pytest
from support.programs import I32, Program, number
from tile_cudatile import types as t

from tile_core.diagnostics import InputError

SHAPE = (8, 32)


def scalar(p, value):
    return p.constant(I32, value)


def compare(p, predicate, a, b):
    return p.emit(
        "cmpi", [a, b], t.Tile((), t.I1), comparison_predicate=predicate, signedness="signed"
    )


def with_if(p):
    """max(element, accumulator), by a branch."""

    def body(element, total):
        larger = compare(p, "greater_than", element, total)
        regions = (p.region([], lambda: [element]), p.region([], lambda: [total]))
        return [p.emit("if", [larger], I32, regions=regions)]

    return body, -(1 << 31)


def nested(p):
    """The element that is nearer to 3; of two as near, the smaller."""

    def distance(x):
        return p.emit("absi", [p.emit("subi", [x, scalar(p, 3)], I32)], I32)

    def body(element, total):
        one, other = distance(element), distance(total)
        tie = compare(p, "equal", one, other)
        nearer = compare(p, "less_than", one, other)

        def of_equals():
            less = compare(p, "less_than", element, total)
            regions = (p.region([], lambda: [element]), p.region([], lambda: [total]))
            return [p.emit("if", [less], I32, regions=regions)]

        def of_others():
            return [p.emit("select", [nearer, element, total], I32)]

        regions = (p.region([], of_equals), p.region([], of_others))
        return [p.emit("if", [tie], I32, regions=regions)]

    return body, 1 << 20


def with_casts(p):
    """The minimum, with a division and a way through i4 in a branch."""

    def body(element, total):
        less = compare(p, "less_than", element, total)

        def narrow():
            small = p.emit("trunci", [element], t.Tile((), t.I4), overflow="none")
            wide = p.emit("exti", [small], I32, signedness="signed")
            twice = p.emit("addi", [wide, wide], I32)
            return [
                p.emit("divi", [twice, scalar(p, 2)], I32, signedness="signed", rounding="zero")
            ]

        regions = (p.region([], narrow), p.region([], lambda: [total]))
        return [p.emit("if", [less], I32, regions=regions)]

    return body, 100


CASES = [(with_if, "reduce"), (nested, "reduce"), (with_if, "scan"), (with_casts, "scan")]


@pytest.mark.parametrize(("make", "kind"), CASES)
def test_control_flow(make, kind):
    p = Program()
    body, start = make(p)
    x = p.load(SHAPE, t.I32)
    attrs = {"dim": 1, "identities": (number(t.I32, start),)}
    result = SHAPE[:1]
    if kind == "scan":
        attrs["reverse"], result = False, SHAPE
    found = p.emit(
        kind, [(x,)], t.Tile(result, t.I32), regions=(p.region([I32, I32], body),), **attrs
    )
    p.store(found, result, t.I32)
    data = np.random.default_rng(1).integers(-8, 8, SHAPE).astype(np.int32)
    p.agrees(data, np.zeros(result, np.int32), strategy="blocked")


@pytest.mark.parametrize("strategy", ["first-legal", 0, 1])
def test_other_layouts(strategy):
    p = Program()
    body, start = with_if(p)
    x = p.load((4, 64), t.I32)
    found = p.emit(
        "reduce", [(x,)], t.Tile((64,), t.I32), regions=(p.region([I32, I32], body),), dim=0,
        identities=(number(t.I32, start),),
    )  # fmt: skip
    p.store(found, (64,), t.I32)
    data = np.random.default_rng(1).integers(-9, 9, (4, 64)).astype(np.int32)
    p.agrees(data, np.zeros(64, np.int32), strategy=strategy)


def test_memory_is_not_touched_in_a_region():
    """The language says so, and so does the next dialect of text that did not come from it."""
    from support.tiles import Kernel

    kernel = Kernel()
    pointer = kernel.param("!nv_tileaa.ptr<i32, 1 : i32>")
    kernel.load("%x", (64,), "i32")
    kernel.op(
        '%y = "nv_tileaa.reduce"(%x) ({ ^bb0(%a: i32, %b: i32): '
        f'%t = "nv_tileaa.store"({pointer}, %a) {{mem_semantic = "weak", '
        "operandSegmentSizes = array<i32: 1, 1, 0, 0>} : "
        "(!nv_tileaa.ptr<i32, 1 : i32>, i32) -> !nv_tileaa.mem_token "
        '"nv_tileaa.yield"(%a) : (i32) -> () }) {axis = 0 : i32, identities = [0 : i32]} : '
        "(tensor<64xi32>) -> i32"
    )
    message = "'nv_tileaa.reduce' op expects a region without effects, but it has 'nv_tileaa.store'"
    with pytest.raises(InputError, match=message):
        kernel.ptx()
