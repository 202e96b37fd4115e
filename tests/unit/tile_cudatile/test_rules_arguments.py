"""Attributes of kernel arguments (since 13.5), and all kinds of attributes in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tile_cudatile import VerifyError, parse_text, print_text, read_bytecode, verify
from tile_cudatile import attrs as a
from tile_cudatile import types as t
from tile_cudatile.bytecode.writer import write_bytecode
from tile_cudatile.tree import Module
from unit.tile_cudatile.peer import disassemble, needs_disassembler

TEXT = """cuda_tile.module @m { entry @k(%p: tile<ptr<f32>>, %q: tile<i32>) { return } }"""
TRUE = {"cuda_tile.t": True}
#: Attributes, and how the first and the second argument are printed.
GOOD: list[tuple[tuple[Any, ...], str, str]] = [
    ((), "", ""),
    (({}, {}), "", ""),
    (({},), "", ""),
    (({}, {}, {}), "", ""),
    (
        ({"x.b": True, "x.a": a.Integer(t.I32, 3)}, {"cuda_tile.s": "hi"}),
        " {x.a = 3 : i32, x.b = true}",
        ' {cuda_tile.s = "hi"}',
    ),
    (
        ({"x.y": a.TypeRef(t.F32)}, {"x.y": a.TypeRef(t.Tile((4,), t.F32))}),
        " {x.y = f32}",
        " {x.y = !cuda_tile.tile<4xf32>}",
    ),
    (
        ({"x.d": a.DivBy(4), "x.e": (a.Integer(t.I64, 3),)}, {"x.h": a.Hints({})}),
        " {x.d = #cuda_tile.div_by<4>, x.e = [3]}",
        " {x.h = #cuda_tile.optimization_hints<>}",
    ),
    (
        ({"x.b": a.Bounded(1, 2)}, {"x.s": a.SameElements((1,)), "x.d": {"a": True}}),
        " {x.b = #cuda_tile.bounded<1, 2>}",
        " {x.d = {a = true}, x.s = #cuda_tile.same_elements<[1]>}",
    ),
    (
        ({"x.m": a.MultimemReduction("umax")}, {"x.f": a.Float(t.F16, 0x3C00)}),
        " {x.m = #cuda_tile.multimem_reduction_kind<umax>}",
        " {x.f = 1.000000e+00 : f16}",
    ),
    (({"x.": True}, {".y": True}), " {x. = true}", ' {".y" = true}'),
]  # fmt: skip
BAD: list[tuple[tuple[Any, ...], str]] = [
    (
        ("x", {}),
        "attribute 'arg_attrs' failed to satisfy constraint: Array of dictionary attributes",
    ),
    (({"t": True}, {}), "arguments may only have dialect attributes"),
    (
        (TRUE,),
        "expects argument attribute array to have the same number of elements as the number of "
        "function arguments, got 1, but expected 2",
    ),
    (
        ({}, {}, TRUE),
        "expects argument attribute array to have the same number of elements as the number of "
        "function arguments, got 3, but expected 2",
    ),
]


def program(attrs: tuple[Any, ...]) -> Module:
    module = parse_text(TEXT)
    module.entries[0].arg_attrs = attrs
    return module


@pytest.mark.parametrize(("attrs", "first", "second"), GOOD)
def test_they_are_read_written_and_printed(attrs: tuple[Any, ...], first: str, second: str) -> None:
    again = read_bytecode(write_bytecode(program(attrs)))
    verify(again)
    assert again.entries[0].arg_attrs == attrs
    text = print_text(again)
    head = f"entry @k(%arg0: tile<ptr<f32>>{first}, %arg1: tile<i32>{second}) {{"
    assert text.split("\n")[0] == head
    parsed = parse_text(f"cuda_tile.module @m {{ {text} }}").entries[0].arg_attrs
    assert parsed == (attrs if any(attrs) else ())


@pytest.mark.parametrize(("attrs", "complaint"), BAD)
def test_what_they_must_be(attrs: tuple[Any, ...], complaint: str) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(read_bytecode(write_bytecode(program(attrs))))
    assert complaint in str(caught.value)


@needs_disassembler
@pytest.mark.parametrize("attrs", [case[0] for case in (*GOOD, *BAD)])
def test_the_released_reader_says_the_same(attrs: tuple[Any, ...], tmp_path: Path) -> None:
    module = program(attrs)
    try:
        verify(module)
        expected = print_text(module)
    except VerifyError as error:
        expected = str(error).split("\n")[0]
    theirs = disassemble(write_bytecode(module), tmp_path)
    assert (theirs.stdout or theirs.stderr.split("\n")[0]) == expected


def test_an_unknown_kind_of_reduction() -> None:
    data = write_bytecode(program(({"x.m": a.MultimemReduction("umax")}, {})))
    at = data.index(b"\x0d\x07")
    with pytest.raises(Exception, match="invalid enum value for value: 8"):
        read_bytecode(data[:at] + b"\x0d\x08" + data[at + 2 :])
