"""Rules of whole programs, types and debug information."""

from __future__ import annotations

from typing import Any

import pytest
from tile_cudatile import VerifyError, read_bytecode, verify
from tile_cudatile import types as t
from tile_cudatile.attrs import Dense
from tile_cudatile.locations import CallSite, CompileUnit, DebugLoc, File, LexicalBlock, Subprogram
from tile_cudatile.rules.types import type_problem
from tile_cudatile.tree import Block, Entry, Global, Module, Region, Value
from tile_cudatile.versions import SUPPORTED
from unit.tile_cudatile import samples
from unit.tile_cudatile.apply import operation
from unit.tile_cudatile.everything import everything
from unit.tile_cudatile.rule_support import ITENSOR, SCALAR, TENSOR, F4x4


@pytest.mark.parametrize("version", SUPPORTED, ids=str)
def test_valid_programs_are_accepted(version) -> None:
    verify(everything(version))


@pytest.mark.parametrize("name", samples.NAMES)
def test_samples_are_accepted(name: str) -> None:
    verify(read_bytecode(samples.sample(name)))


TYPES: list[tuple[t.Type, str | None]] = [
    (t.Tile((4096, 4096), t.F32), None),
    (t.Tile((), t.F32), None),
    (t.Tile((4096, 8192), t.F32), "tile would exceed the maximum of 16777216 elements"),
    (t.Tile((5, 5), t.F32), "all dimensions must be powers of two, got 5, 5"),
    (t.Tile((0,), t.F32), "all dimensions must be positive constants, got 0"),
    (t.Tile((1, 1), t.F4E2M1FN), "F4E2M1FN tiles must have an even number of elements"),
    (t.Tile((), t.F4E2M1FN), "F4E2M1FN tiles must have an even number of elements"),
    (
        t.Tile((2,), t.Pointer(t.F4E2M1FN)),
        "tiles of ptr<f4E2M1FN> must have rank 0; use an f4 tile view for element access",
    ),
    (
        t.TensorView(t.F32, (4,), ()),
        "expected shape and stride to be of same rank but got shape of rank 1 and stride of rank 0",
    ),
    (
        t.TensorView(t.F32, (0, None), (1, 1)),
        "dimensions must have strictly positive constant sizes but got [0, ?]",
    ),
    (
        t.TensorView(t.F32, (4,), (-1,)),
        "dimensions must have strictly positive constant strides but got [-1]",
    ),
    (
        t.PartitionView((), t.TensorView(t.F32, (), ()), ()),
        "0-dimension tile shape is not supported",
    ),
    (
        t.PartitionView((4,), TENSOR, (0,)),
        "expected tensor_view rank and tile rank to match, got "
        "tensor_view of rank 2 and tiles of rank 1",
    ),
    (
        t.PartitionView((4, 4), TENSOR, (0,)),
        "expected dim_map to map exactly all 2 dimensions of the tile, got 1 mappings",
    ),
    (
        t.PartitionView((4, -4), TENSOR, (0, 1)),
        "tile shape dimensions must have positive length but got [4, -4]",
    ),
    (
        t.PartitionView((4, 3), TENSOR, (0, 1)),
        "tile shape dimensions must have power of two length but got [4, 3]",
    ),
    (t.PartitionView((4, 4), TENSOR, (0, -1)), "target dimension must not be negative, got -1"),
    (
        t.PartitionView((4, 4), TENSOR, (0, 2)),
        "target dimension is outside of tensor view "
        "dimensions, expected strictly less than 2, got 2",
    ),
    (
        t.PartitionView((4, 4), TENSOR, (1, 1)),
        "target dimension 1 mapped at least twice (for tile dimensions 0 and 1)",
    ),
    (
        t.PartitionView((4, 4), ITENSOR, (0, 1), "nan"),
        "padding_value nan can only be used with floating point element types, got 'i32'",
    ),
    (t.PartitionView((4, 4), ITENSOR, (0, 1), "zero"), None),
    (t.StridedView((4, 4), (1,), TENSOR, (0, 1)), "expected 2 traversal strides, got 1"),
    (
        t.StridedView((4, 4), (1, 0), TENSOR, (0, 1)),
        "traversal strides must be strictly positive but got [1, 0]",
    ),
    (
        t.GatherScatterView((4, 4), TENSOR, 2),
        "gather dimension is outside of tensor view "
        "dimensions, expected strictly less than 2, got 2",
    ),
]


@pytest.mark.parametrize(("type_", "problem"), TYPES, ids=lambda v: str(v)[:60])
def test_types(type_: t.Type, problem: str | None) -> None:
    assert type_problem(type_) == problem


def _entry(name: str = "k", inputs: tuple[t.Type, ...] = (), **fields: Any) -> Entry:
    block = Block(tuple(map(Value, inputs)), [operation("return", [()], [])])
    return Entry(name, t.Function(inputs, ()), Region([block]), **fields)


def _module_problem(module: Module) -> str:
    with pytest.raises(VerifyError) as caught:
        verify(module)
    return caught.value.lines[0]


FILE = File("a.py", "/a")
SUBPROGRAM = Subprogram(FILE, 1, "k", "k", CompileUnit(FILE), 1)
OTHER = Subprogram(FILE, 2, "h", "h", CompileUnit(FILE), 2)
AT = DebugLoc(SUBPROGRAM, "a.py", 1, 2)


def test_modules() -> None:
    twice = Module(entries=[_entry(), _entry()])
    assert _module_problem(twice) == "redefinition of symbol named 'k'"
    square = Global("g", Dense(F4x4, bytes(4)))
    assert _module_problem(Module(globals=[square])) == (
        "'cuda_tile.global' op type must have rank 1"
    )


def test_kernels() -> None:
    wide = Module(entries=[_entry(inputs=(F4x4,))])
    assert _module_problem(wide) == (
        "'cuda_tile.entry' op entry op must have scalar types (rank 0 !cuda_tile.tile)"
    )
    token = Module(entries=[_entry(inputs=(SCALAR, t.TOKEN))])
    assert _module_problem(token) == (
        "unsupported type in bytecode for entry argument #1: '!cuda_tile.token'; expected a "
        "rank-0 !cuda_tile.tile type"
    )


@pytest.mark.parametrize(
    ("where", "inside", "text"),
    [
        (CallSite(AT, AT), None, "Function location must not be a CallSiteLoc."),
        (
            DebugLoc(LexicalBlock(SUBPROGRAM, FILE, 1, 1), "a.py", 1, 1),
            None,
            "Function location must have cuda_tile.di_subprogram debug info scope.",
        ),
        (
            DebugLoc(OTHER, "a.py", 1, 1),
            None,
            'Function name "k" does not match subprogram scope linkage name "h".',
        ),
        (None, AT, "Operation has debug info scope, but function debug info scope is undefined."),
        (
            AT,
            DebugLoc(OTHER, "a.py", 1, 1),
            "Operation debug info scope does not match function debug info scope: "
            '#cuda_tile.di_subprogram<file = <"a.py" in "/a">, line = 1, name = "k", linkageName = '
            '"k", compileUnit = <file = <"a.py" in "/a">>, scopeLine = 1>.',
        ),
    ],
)
def test_debug_information(where: Any, inside: Any, text: str) -> None:
    entry = _entry(**({"loc": where} if where else {}))
    if inside:
        entry.body.block.ops[0].loc = inside
    assert _module_problem(Module(entries=[entry])).endswith(text)


def test_inlined_code_counts_by_its_caller() -> None:
    entry = _entry(loc=AT)
    inlined = CallSite(DebugLoc(OTHER, "a.py", 2, 1), AT)
    entry.body.block.ops[0].loc = inlined
    verify(Module(entries=[entry]))
    entry.body.block.ops[0].loc = DebugLoc(LexicalBlock(SUBPROGRAM, FILE, 1, 1), "a.py", 1, 1)
    verify(Module(entries=[entry]))
