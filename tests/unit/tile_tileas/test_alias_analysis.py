"""Where pointers come from, and which elements share addresses."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.functions import function
from tile_tileas.analysis.alias import AliasAnalysis, Root, injective, may_alias

A, B = frozenset([Root("argument", 0)]), frozenset([Root("argument", 1)])
G, H = frozenset([Root("global", "g")]), frozenset([Root("global", "h")])
M, N = frozenset([Root("allocation", 0)]), frozenset([Root("allocation", 1)])


@pytest.mark.parametrize(
    ("left", "right", "meet"),
    [
        (A, A, True),
        (A, B, True),  # a caller may pass one array twice
        (A, G, True),  # or the address of a global
        (G, G, True),
        (G, H, False),
        (A, M, False),
        (G, M, False),
        (M, N, False),
        (M, M, True),
        (None, M, True),  # an address out of memory
        (A | M, N, False),
        (A | M, M, True),
    ],
)
def test_roots(left: frozenset[Root] | None, right: frozenset[Root] | None, meet: bool) -> None:
    assert may_alias(left, right) == may_alias(right, left) == meet


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 20)), max_size=3))
def test_injective_is_sound(axes: list[tuple[int, int]]) -> None:
    places = [
        sum(at * stride for at, (_, stride) in zip(index, axes, strict=True))
        for index in product(*(range(extent) for extent, _ in axes))
    ]
    if injective(axes):
        assert len(set(places)) == len(places)


@pytest.mark.parametrize(
    ("axes", "apart"),
    [
        ([], True),
        ([(None, 1)], True),
        ([(None, 0)], False),
        ([(None, None)], False),
        ([(8, 1), (None, 8)], True),
        ([(None, 8), (8, 1)], True),
        ([(9, 1), (None, 8)], False),
        ([(None, 1), (8, 64)], False),  # rows of unknown length
        ([(1, None), (8, 2)], True),  # nothing moves along the first axis
        ([(4, 8), (None, None)], False),
        ([(None, 8), (None, 8)], False),
    ],
)
def test_injective(axes: list[tuple[int | None, int | None]], apart: bool) -> None:
    assert injective(axes) == apart


POINTER = "!nv_tileaa.ptr<f32, 1 : i32>"
TEXT = f"""func.func @f(%a: {POINTER}, %b: {POINTER}, %n: i32, %c: i1) {{
  %m, %t = "nv_tileaa.alloca"() {{size = 64 : i64, alignment = 16 : i64}} : () -> ({POINTER}, i64)
  %s = arith.select %c, %a, %m : {POINTER}
  %l = scf.for %i = %n to %n step %n iter_args(%p = %a) -> ({POINTER}) : i32 {{
    %q = "nv_tileaa.addptr"(%p, %i) : ({POINTER}, i32) -> {POINTER}
    %z = arith.select %c, %q, %b : {POINTER}
    scf.yield %z : {POINTER}
  }}
  %u = "nv_tileaa.int_to_ptr"(%t) : (i64) -> {POINTER}
  return
}}"""


def test_pointers_are_followed() -> None:
    with function(TEXT) as func:
        known = AliasAnalysis(func.operation)
        ops = list(func.regions[0].blocks[0].operations)
        assert [known[op.results[0]] for op in ops[:4]] == [M, A | M, A | B, None]
