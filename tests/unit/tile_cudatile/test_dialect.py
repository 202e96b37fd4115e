"""The MLIR form of programs."""

from __future__ import annotations

import gc
import weakref

import pytest
from support.bindings import needs_effects
from tile_cudatile import read_bytecode, to_mlir
from tile_cudatile import types as t
from tile_cudatile.attrs import Dense
from tile_cudatile.dialect import (
    TileType,
    build_type,
    describe,
    load,
    operand_groups,
    ops,
    pointee,
    tile_element,
    tile_shape,
)
from tile_cudatile.dialect.build import Builder
from tile_cudatile.ops import ALL_OPS
from unit.tile_cudatile import samples

from tile_core.mlir import ir, passmanager

VIEW = t.TensorView(t.F32, (None, 16), (16, 1))
TYPES = [
    t.Tile((4, 8), t.F32),
    t.Tile((), t.Pointer(t.BF16)),
    t.Tile((2,), t.I4),
    VIEW,
    t.Tile((), t.Pointer(t.F32, "multicast")),
    t.TensorView(t.I8, (), ()),
    t.TOKEN,
    t.PartitionView((4, 8), VIEW, (1, 0), "nan"),
    t.StridedView((4, 8), (2, 3), VIEW, (0, 1), None),
    t.GatherScatterView((4, 8), VIEW, 1, "zero"),
    t.Function((t.Tile((), t.I32),), ()),
    *t.SCALARS.values(),
]


@pytest.fixture
def context():
    with ir.Context() as context, ir.Location.unknown():
        load()
        yield context


@pytest.mark.parametrize("name", samples.NAMES)
def test_samples_verify_and_reparse(name: str, context: ir.Context) -> None:
    module = read_bytecode(samples.sample(name))
    mlir = to_mlir(module)
    assert mlir.operation.verify()
    text = mlir.operation.get_asm(enable_debug_info=True)
    again = ir.Module.parse(text)
    assert again.operation.get_asm(enable_debug_info=True) == text


def test_every_operation_keeps_its_fields(context: ir.Context) -> None:
    module = read_bytecode(samples.sample("matmul.13.4"))
    entry = module.entry("matmul")
    mlir = to_mlir(module)
    mlir_entry = mlir.body.operations[0].regions[0].blocks[0].operations[0]

    def compare(block, mlir_block) -> None:
        for op, made in zip(block.ops, mlir_block.operations, strict=True):
            assert made.operation.name == f"cuda_tile.{op.name}"
            assert len(made.operation.operands) == len(op.values())
            assert [describe(r.type) for r in made.operation.results] == [
                r.type for r in op.results
            ]
            assert set(op.attrs) <= set(made.operation.attributes)
            for region, inner in zip(op.regions, made.operation.regions, strict=True):
                compare(region.block, inner.blocks[0])

    compare(entry.body.block, mlir_entry.regions[0].blocks[0])


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_types_there_and_back(type_: t.Type, context: ir.Context) -> None:
    made = build_type(type_)
    assert describe(made) == type_
    assert ir.Type.parse(str(made)) == made


def test_reading_tiles(context: ir.Context) -> None:
    tile = build_type(t.Tile((4, 8), t.Pointer(t.F16)))
    assert isinstance(tile, TileType)
    assert tile_shape(tile) == (4, 8)
    assert pointee(tile_element(tile)) == ir.F16Type.get()
    with pytest.raises(TypeError):
        tile_shape(ir.F16Type.get())


def test_describing_types_keeps_no_context_alive() -> None:
    with ir.Context() as context, ir.Location.unknown():
        load()
        describe(build_type(t.Tile((2,), t.F32)))
    reference = weakref.ref(context)
    del context
    with ir.Context(), ir.Location.unknown():
        load()  # the bindings remember the context that a dialect was last loaded in
    gc.collect()
    assert reference() is None


def test_classes_have_properties(context: ir.Context) -> None:
    assert set(ops.CLASSES) == {spec.name for spec in ALL_OPS}
    mlir = to_mlir(read_bytecode(samples.sample("matmul.13.4")))
    entry = mlir.body.operations[0].regions[0].blocks[0].operations[0]
    loop = next(o for o in entry.regions[0].blocks[0].operations if isinstance(o, ops.ForOp))  # pyright: ignore[reportAttributeAccessIssue]
    assert len(loop.init_values) == 1
    assert len(loop.result_values) == 1
    assert describe(loop.lower_bound.type) == t.Tile((), t.I32)
    load_op = loop.region.blocks[0].operations[0]
    assert isinstance(load_op, ops.LoadViewTkoOp)  # pyright: ignore[reportAttributeAccessIssue]
    assert len(load_op.index) == 2
    assert load_op.token is not None
    assert ir.StringAttr(load_op.memory_ordering_semantics).value == "weak"


def test_operand_groups_by_name(context: ir.Context) -> None:
    module = read_bytecode(samples.sample("scan_rows.13.5"))
    mlir = to_mlir(module)
    (entry,) = module.entries
    made = mlir.body.operations[0].regions[0].blocks[0].operations[0]
    pairs = zip(entry.body.block.ops, made.regions[0].blocks[0].operations, strict=True)
    for op, other in pairs:
        groups = operand_groups(other)
        assert list(groups) == [operand.name for operand in op.spec.operands]
        for group, values in zip(op.operands, groups.values(), strict=True):
            expected = group if isinstance(group, tuple) else () if group is None else (group,)
            assert [describe(v.type) for v in values] == [v.type for v in expected]


@needs_effects
def test_upstream_passes_work(context: ir.Context) -> None:
    mlir = to_mlir(read_bytecode(samples.sample("matmul.13.4")))
    before = str(mlir).count("get_tile_block_id")
    pm = passmanager.PassManager.parse("builtin.module(any(cse,canonicalize))")
    pm.run(mlir.operation)
    text = str(mlir)
    assert before == 2
    assert text.count("get_tile_block_id") == 1  # merged
    assert text.count("cuda_tile.load_view_tko") == 2  # kept
    assert mlir.operation.verify()


@needs_effects
def test_dead_weak_loads_go_and_stores_stay(context: ir.Context) -> None:
    mlir = to_mlir(read_bytecode(samples.sample("vector_add.13.5")))
    entry = mlir.body.operations[0].regions[0].blocks[0].operations[0]
    addition = next(o for o in entry.regions[0].blocks[0].operations if o.name == "cuda_tile.addf")
    addition.operation.results[0].replace_all_uses_with(addition.operation.operands[0])
    passmanager.PassManager.parse("builtin.module(any(canonicalize))").run(mlir.operation)
    text = str(mlir)
    assert text.count("cuda_tile.addf") == 0
    assert text.count("cuda_tile.load_view_tko") == 1
    assert text.count("cuda_tile.store_view_tko") == 1


def test_groups_may_mix_types(context: ir.Context) -> None:
    # argmin: a reduction of a float and an integer tile.
    mlir = to_mlir(read_bytecode(samples.sample("scan_rows.13.5")))
    entry = mlir.body.operations[0].regions[0].blocks[0].operations[0]
    reductions = [o for o in entry.regions[0].blocks[0].operations if isinstance(o, ops.ReduceOp)]  # pyright: ignore[reportAttributeAccessIssue]
    reduction = reductions[-1]
    last = list(reduction.body.blocks[0].operations)[-1]
    for values, texts in (
        (reduction.operands, ["tile<4x32xf32>", "tile<4x32xi32>"]),
        (reduction.results, ["tile<4xf32>", "tile<4xi32>"]),
        (last.operands, ["tile<f32>", "tile<i32>"]),
    ):
        assert [str(describe(value.type)) for value in values] == texts


@pytest.mark.parametrize(
    ("type_", "data", "text"),
    [
        (t.Tile((), t.F32), "0000803f", "dense<1.000000e+00> : tensor<f32>"),
        (t.Tile((2,), t.I32), "01000000ffffffff", "dense<[1, -1]> : tensor<2xi32>"),
        (t.Tile((4,), t.I1), "05", "dense<[true, false, true, false]> : tensor<4xi1>"),
        (t.Tile((16,), t.I1), "ff", "dense<true> : tensor<16xi1>"),
        (
            t.Tile((2,), t.TF32),
            "00fc01000000",
            "dense<[1.000000e+00, 0.000000e+00]> : tensor<2xtf32>",
        ),
        (t.Tile((2,), t.F8E4M3FN), "38", "dense<1.000000e+00> : tensor<2xf8E4M3FN>"),
        (
            t.Tile((2,), t.F4E2M1FN),
            "0203",
            "dense<[1.000000e+00, 1.500000e+00]> : tensor<2xf4E2M1FN>",
        ),
        (t.Tile((2,), t.I4), "0f", "dense<-1> : tensor<2xi4>"),
        (t.Tile((2,), t.BF16), "803f", "dense<1.000000e+00> : tensor<2xbf16>"),
    ],
)
def test_constants(type_: t.Tile, data: str, text: str, context: ir.Context) -> None:
    assert str(Builder().dense(Dense(type_, bytes.fromhex(data)))) == text
