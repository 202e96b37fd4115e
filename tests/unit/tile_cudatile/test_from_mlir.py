"""From MLIR back to the tree."""

from __future__ import annotations

import pytest
from tile_cudatile import attrs as a
from tile_cudatile import from_mlir, parse_text, print_text, read_bytecode, to_mlir, write_bytecode
from tile_cudatile import types as t
from tile_cudatile.dialect.build import Builder
from tile_cudatile.dialect.read import Reader
from tile_cudatile.tree import Module
from tile_cudatile.versions import SUPPORTED, Version
from unit.tile_cudatile import samples
from unit.tile_cudatile.everything import everything

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir


def back(module: Module) -> Module:
    with ir.Context():
        return from_mlir(to_mlir(module), module.version)


@pytest.mark.parametrize("name", samples.NAMES)
def test_samples_there_and_back(name: str) -> None:
    module = read_bytecode(samples.sample(name))
    again = back(module)
    assert print_text(again) == print_text(module)
    # Debug info included. The second time around nothing changes any more.
    assert write_bytecode(back(again)) == write_bytecode(again)
    assert [op.loc for e in again.entries for op in e.body.walk()] == [
        op.loc for e in module.entries for op in e.body.walk()
    ]


@pytest.mark.parametrize("version", SUPPORTED, ids=str)
def test_every_operation_there_and_back(version: Version) -> None:
    module = everything(version)
    again = back(module)
    assert print_text(again) == print_text(module)
    assert again.producer == module.producer


@pytest.mark.parametrize("element", t.SCALARS.values(), ids=str)
def test_constants_keep_every_bit(element: t.Scalar) -> None:
    size = (element.width + 7) // 8
    mask = (1 << element.width) - 1
    patterns = [(0x9E3779B97F4A7C15 * (i + 1) >> 3) & mask for i in range(255)] + [mask]
    if element == t.I1:
        data = bytes(range(32))
    else:
        data = b"".join(p.to_bytes(size, "little") for p in patterns)
    with ir.Context(), ir.Location.unknown():
        builder, reader = Builder(), Reader()
        for value in (
            a.Dense(t.Tile((256,), element), data),
            a.Dense(t.Tile((2, 2), element), b"\x09" if element == t.I1 else data[: 4 * size]),
            a.Dense(t.Tile((4,), element), b"\xff" if element == t.I1 else data[-size:]),
        ):
            assert reader.dense(builder.dense(value)) == value


def test_other_dialects_are_refused() -> None:
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        module = to_mlir(parse_text("entry @k() { return }"))
        inner = module.body.operations[0].regions[0].blocks[0].operations[0]
        block = inner.regions[0].blocks[0]
        ir.Operation.create("test.op", ip=ir.InsertionPoint.at_block_begin(block))
        with pytest.raises(CompileError, match=r"'test\.op' op has no form in CUDA Tile IR"):
            from_mlir(module)
        with pytest.raises(CompileError, match=r"expected a 'cuda_tile\.module'"):
            from_mlir(inner.operation)


def test_positions_of_other_locations() -> None:
    with ir.Context():
        reader = Reader()
        position = ir.Location.file("k.py", 3, 4)
        named = ir.Location.name("x", position)
        for where in (position, named, ir.Location.fused([ir.Location.unknown(), named])):
            assert str(reader.location(where)).startswith("FileLine(filename='k.py', line=3")
