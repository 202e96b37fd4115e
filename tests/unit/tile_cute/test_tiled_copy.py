"""Tiled copies: every element once, and fragments in the registers that products expect."""

from __future__ import annotations

import pytest
from tile_cute import int_tuple as it
from tile_cute.atoms.tiled_copy import tiled_copy
from tile_cute.atoms.tiled_mma import Part, partition_of
from tile_cute.errors import LayoutError
from tile_cute.infer import RULES
from tile_cute.layout import Layout
from tile_cute.text import parse_layout
from tile_cute.values import View

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WARPS = "(2,2,1):(1,2,4)"
CP_ASYNC, VECTOR = "cp.async.cg.shared.global", "ld.global.v4.b32"
#: Operand, instruction, threads and values, tile.
FRAGMENTS = [
    ("A", "x4", "((4,8,2,2),(2,2,2)):((64,1,16,0),(32,8,256))", "(32,16)"),
    ("A", "x2", "((4,8,2,2),(2,2,2)):((64,1,16,0),(32,8,256))", "(32,16)"),
    ("B", "x4", "((4,8,2,2),((2,2),2)):((64,1,0,8),((32,256),16))", "(32,16)"),
    ("B", "x2", "((4,8,2,2),(2,2)):((32,1,0,8),(16,128))", "(16,16)"),
]


def _tensor(text: str) -> Layout:
    found = parse_layout(text)
    assert isinstance(found, Layout)
    return found


def _first(part: Part, thread: int) -> int:
    """Where the part of a thread of a tiled MMA begins."""
    total = sum(int(w) for bit, w in enumerate(part.lane) if thread >> bit & 1)  # type: ignore[call-overload]
    for step, extent, stride in part.warps:
        total += thread // (32 * step) % extent * int(stride)  # type: ignore[call-overload]
    return total


@pytest.mark.parametrize(("operand", "count", "layout", "tile"), FRAGMENTS)
def test_fragments_are_what_products_expect(
    operand: str, count: str, layout: str, tile: str
) -> None:
    """A register has the same element by the product's partition and by the copy's."""
    tensor = _tensor("(64,32):(40,1)")
    copy = tiled_copy(f"ldmatrix.sync.aligned.m8n8.{count}.shared.b16", layout, tile, 16)
    part = partition_of(MMA, WARPS, operand, tensor)
    fragment = RULES["make_fragment_like"]([View("f16", "smem", part.layout)], {})
    assert isinstance(fragment, View)
    registers = fragment.layout
    assert isinstance(registers, Layout)
    threads, own = copy.part(tensor, "target", 16)
    retiled = copy.retiled(registers, 16)
    assert retiled.size == own.size == registers.size
    for thread in range(128):
        first = _first(part, thread)
        expected = {registers(at): first + part.layout(at) for at in range(registers.size)}  # type: ignore[operator]
        copied = {retiled(at): threads(thread) + own(at) for at in range(own.size)}  # type: ignore[operator]
        assert copied == expected


@pytest.mark.parametrize(("operand", "count", "layout", "tile"), FRAGMENTS)
def test_lanes_name_rows_of_matrices(operand: str, count: str, layout: str, tile: str) -> None:
    """Lane 8 j + r has the address of row r of matrix j: of what lanes 4 r to 4 r + 3 get in
    register j.
    """
    tensor = _tensor("(64,32):(40,1)")
    copy = tiled_copy(f"ldmatrix.sync.aligned.m8n8.{count}.shared.b16", layout, tile, 16)
    sources, rows = copy.part(tensor, "source", 16)
    targets, own = copy.part(tensor, "target", 16)
    for matrix in range(int(count[1:])):
        for row in range(8):
            start = sources(8 * matrix + row)
            assert [start + rows(at) for at in range(8)] == [  # type: ignore[operator]
                targets(4 * row + at // 2) + own(2 * matrix + at % 2)  # type: ignore[operator]
                for at in range(8)
            ]


@pytest.mark.parametrize(
    ("instruction", "layout", "tile", "tensor", "bits"),
    [
        (CP_ASYNC, "((4,32),8):((256,1),32)", "(32,32)", "(64,64):(72,1)", 16),
        (CP_ASYNC, "((8,16),8):((8,64),1)", "(64,16)", "(64,64):(1,64)", 16),
        (VECTOR, "(32,8):(8,1)", "(256)", "1024:1", 32),
        (VECTOR, "((2,16),(4,2)):((8,16),(1,4))", "(16,16)", "(32,(16,2)):(1,(32,512))", 32),
    ],
)
def test_each_element_once(
    instruction: str, layout: str, tile: str, tensor: str, bits: int
) -> None:
    source = _tensor(tensor)
    threads, own = tiled_copy(instruction, layout, tile, bits).part(source, "source", bits)
    found = sorted(
        threads(thread) + own(at)  # type: ignore[operator]
        for thread in range(_tensor(layout)[0].size)
        for at in range(own.size)
    )
    assert found == sorted(source.indices())  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("instruction", "layout", "tile", "tensor", "words"),
    [
        (CP_ASYNC, "(32,4):(4,1)", "(128)", "128:1", "takes 8 values"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "(16,8):(8,1)", "(128)", "128:1",
         "takes 32 threads"),
        (CP_ASYNC, "(32,8):(8,1)", "(256)", "(16,16):(1,16)", "expects a tensor of 1 modes"),
        (CP_ASYNC, "(32,8):(8,1)", "(256)", "300:1", "failed to perform a valid division"),
        (CP_ASYNC, "(32,8):(1,32)", "(256)", "256:1", "static strides must match"),
        (CP_ASYNC, "256:1", "(256)", "256:1", "expects a layout of threads and values"),
        ("cp.async.nowhere", "(32,8):(8,1)", "(256)", "256:1", "is no copy instruction"),
        ("tcgen05.ld.sync.aligned.32x32b.x8.b32", "(32,8):(8,1)", "(256)", "256:1",
         "does not copy tiles thread by thread"),
    ],
)  # fmt: skip
def test_copies_that_cannot_be(
    instruction: str, layout: str, tile: str, tensor: str, words: str
) -> None:
    with pytest.raises(LayoutError, match=words):
        tiled_copy(instruction, layout, tile, 16).part(_tensor(tensor), "source", 16)


def test_fragments_that_cannot_be_retiled() -> None:
    copy = tiled_copy(CP_ASYNC, "(32,8):(8,1)", "(256)", 16)
    with pytest.raises(LayoutError, match="expects a fragment of 2 modes"):
        copy.retiled(_tensor("(8,2,2):(1,8,16)"), 16)
    with pytest.raises(LayoutError, match="to fill the tile"):
        tiled_copy(CP_ASYNC, "(16,8):(8,1)", "(256)", 16).retiled(_tensor("(8,2):(1,8)"), 16)


def test_open_strides_stay_open() -> None:
    copy = tiled_copy(CP_ASYNC, "((4,32),8):((256,1),32)", "(32,32)", 16)
    _, own = copy.part(_tensor("(64,32):(?{div=32},1)"), "source", 16)
    assert str(own) == "(8,2,1):(1,?{div=1024},0)"
    assert not it.is_static(own.stride)
    with pytest.raises(LayoutError, match="static strides must match"):
        copy.part(_tensor("(64,32):(?,1)"), "source", 16)
