"""Arbitrary text is read or refused with a LayoutError, in bounded time and depth."""

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_cute.dialect.algebra_ops import INFERRED
from tile_cute.dialect.base import parse_type
from tile_cute.draw import draw
from tile_cute.errors import LayoutError
from tile_cute.infer import RULES
from tile_cute.linear import LinearLayout
from tile_cute.text import (
    parse_basis_group,
    parse_int_tuple,
    parse_layout,
    parse_swizzle,
    parse_tile,
)

READERS = [
    parse_layout,
    parse_int_tuple,
    parse_tile,
    parse_swizzle,
    parse_basis_group,
    LinearLayout.parse,
    draw,
]
ALPHABET = "()<>[],:@_=/ oSx0123456789-lanegistdmwrp"
MANY = settings(max_examples=200, deadline=None)


@MANY
@given(st.text(ALPHABET, max_size=40), st.sampled_from(READERS))
def test_readers(text: str, reader) -> None:  # type: ignore[no-untyped-def]
    with contextlib.suppress(LayoutError):
        reader(text)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "<" * 5000,
        "9" * 5000,
        "lane=[" + "[1] " * 200 + " " * 200 + "x",
        "lane=[[" + "7" * 5000 + "]] : 4",
        "S<" + "1" * 5000,
        "٣:١",
    ],
)
def test_hostile_texts(reader, text: str) -> None:  # type: ignore[no-untyped-def]
    start = time.perf_counter()
    with pytest.raises(LayoutError):
        reader(text)
    assert time.perf_counter() - start < 1


TYPES = [
    '!cute.layout<"(4,8):(1,4)">',
    '!cute.layout<"(999999999999,8):(1,4)">',
    '!cute.composed_layout<"S<3,4,3> o 0 o (999999999999,8):(1,4)">',
    '!cute.layout<"(4,8):(1@0,1@1)">',
    '!cute.tile<"<4:1,_>">',
    '!cute.coord<"(_,1)">',
    '!cute.shape<"(4,(2,2))">',
    '!cute.int_tuple<"3">',
    '!cute.swizzle<"S<1,0,1>">',
    '!cute.memref<f16, "smem", "(8,16):(16,1)">',
    "i32",
]
ATTRIBUTES = ["cotarget", "old_bits", "new_bits", "begin", "end", "window", "dilation", "stride"]


@MANY
@given(
    st.sampled_from(sorted(RULES)),
    st.lists(st.sampled_from(TYPES), min_size=3, max_size=3),
    st.dictionaries(st.sampled_from(ATTRIBUTES), st.integers(-3, 40)),
    st.lists(st.integers(-1, 3), max_size=3),
)
def test_verifiers(
    name: str, types: list[str], attributes: dict[str, int], modes: list[int]
) -> None:
    """Any operands: a result, the diagnostic, or a missing attribute."""
    # the number of operands is checked before a verifier runs
    operands = list(map(parse_type, types[: len(INFERRED[name][0])]))
    with contextlib.suppress(LayoutError, KeyError):
        RULES[name](operands, {"op": name, "modes": modes, **attributes})
