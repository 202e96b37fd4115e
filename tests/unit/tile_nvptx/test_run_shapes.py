"""Reductions, broadcasts, reshapes, ranges and layout conversions, compiled and run."""

import numpy as np
import pytest
import support.strategies
from support.programs import Program
from support.tiles import DTYPES, Kernel, tile
from tile_cudatile import types as t

STRATEGIES = ["blocked", "first-legal", *range(3)]  # numbers: seeds of random layouts


def settings(strategy) -> dict:
    """Options that choose the strategy."""
    if isinstance(strategy, int):
        support.strategies.RandomStrategy.seed = strategy
        strategy = "random"
    return {"options": {"layout-strategy": strategy}}


def numbers(shape, element, seed=0):
    """Small integers, whose sums are exact in every type and any order."""
    rng = np.random.default_rng(seed)
    return rng.integers(-4, 5, shape).astype(DTYPES[element])


SHAPES = [(1,), (8,), (1024,), (1, 256), (16, 64), (64, 16), (4, 8, 32)]


def reduce_text(source: str, shape, axis: int, element: str, body: str, identity: str) -> str:
    """A reduction of one tile; `body` combines %e and %acc into %r."""
    rest = shape[:axis] + shape[axis + 1 :]
    return (
        f'%r0 = "nv_tileaa.reduce"({source}) ({{\n^bb0(%e: {element}, %acc: {element}):\n{body}\n'
        f'"nv_tileaa.yield"(%r) : ({element}) -> ()\n}}) {{axis = {axis} : i32, '
        f"identities = [{identity}]}} : ({tile(shape, element)}) -> {tile(rest, element)}"
    )


def store_reduced(kernel: Kernel, shape, axis: int, element: str):
    """Write the result; a scalar goes through a tile of one element."""
    rest = shape[:axis] + shape[axis + 1 :]
    if not rest:
        kernel.op(f'%out = "nv_tileaa.splat"(%r0) : ({element}) -> {tile((1,), element)}')
        kernel.store("%out", (1,), element)
        return (1,)
    kernel.store("%r0", rest, element)
    return rest


CASES = [(shape, axis) for shape in SHAPES for axis in range(len(shape))]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("shape", "axis"), CASES)
def test_sum(shape, axis, strategy):
    kernel = Kernel()
    kernel.load("%x", shape, "f32")
    body = '%r = "nv_tileaa.addf"(%e, %acc) : (f32, f32) -> f32'
    kernel.op(reduce_text("%x", shape, axis, "f32", body, "0.0 : f32"))
    rest = store_reduced(kernel, shape, axis, "f32")
    x, out = numbers(shape, "f32"), np.zeros(rest, np.float32)
    kernel.run(x.ravel(), out.ravel(), **settings(strategy))
    np.testing.assert_array_equal(out, x.sum(axis).reshape(rest))


@pytest.mark.parametrize("element", ["f16", "bf16", "f64", "i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("num_warps", [1, 2, 8])
def test_max_in_every_type(element, num_warps):
    shape = (8, 64)
    kernel = Kernel(num_warps=num_warps)
    kernel.load("%x", shape, element)
    name = "arith.maxsi" if element.startswith("i") else "arith.maxnumf"
    zero = "0" if element.startswith("i") else "0.0"
    body = f"%r = {name} %e, %acc : {element}"
    kernel.op(reduce_text("%x", shape, 1, element, body, f"{zero} : {element}"))
    rest = store_reduced(kernel, shape, 1, element)
    x, out = numbers(shape, element, 3), np.zeros(rest, DTYPES[element])
    kernel.run(x.ravel(), out)
    np.testing.assert_array_equal(out, x.max(1))


def test_reduction_with_a_constant_and_an_outer_value():
    shape = (4, 64)
    kernel = Kernel()
    scale = kernel.param("f32")
    kernel.load("%x", shape, "f32")
    body = (
        "%one = arith.constant 1.0 : f32\n"
        '%s = "nv_tileaa.addf"(%e, %acc) : (f32, f32) -> f32\n'
        f'%z = "nv_tileaa.mulf"(%s, {scale}) : (f32, f32) -> f32\n'
        '%r = "nv_tileaa.mulf"(%z, %one) : (f32, f32) -> f32'
    )
    kernel.op(reduce_text("%x", shape, 1, "f32", body, "0.0 : f32"))
    rest = store_reduced(kernel, shape, 1, "f32")
    x, out = numbers(shape, "f32", 5), np.zeros(rest, np.float32)
    kernel.run(np.float32(1.0), x.ravel(), out)
    np.testing.assert_array_equal(out, x.sum(1))


def test_reductions_in_a_loop_do_not_meet():
    """Scratch is reused from one iteration to the next, so barriers must keep them apart."""
    shape = (1024,)
    kernel = Kernel()
    kernel.load("%x", shape, "f32")
    body = '%r = "nv_tileaa.addf"(%e, %acc) : (f32, f32) -> f32'
    inner = reduce_text("%now", shape, 0, "f32", body, "0.0 : f32")
    kernel.op("%lo = arith.constant 0 : i32\n%hi = arith.constant 5 : i32")
    kernel.op("%step = arith.constant 1 : i32")
    kernel.op(
        f"%end = scf.for %i = %lo to %hi step %step iter_args(%now = %x) -> (tensor<1024xf32>)"
        f" : i32 {{\n{inner}\n"
        '%b = "nv_tileaa.splat"(%r0) : (f32) -> tensor<1024xf32>\n'
        '%c = "nv_tileaa.subf"(%now, %b) : (tensor<1024xf32>, tensor<1024xf32>) -> '
        "tensor<1024xf32>\n"
        "scf.yield %c : tensor<1024xf32>\n}"
    )
    kernel.store("%end", shape, "f32")
    x, out = (np.arange(1024) % 2).astype(np.float32), np.zeros(1024, np.float32)
    x[512:] -= 1
    kernel.run(x, out)
    expected = x.astype(np.float64)
    for _ in range(5):
        expected = expected - expected.sum()
    np.testing.assert_array_equal(out, expected.astype(np.float32))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("source", "target"), [((1, 64), (32, 64)), ((32, 1), (32, 64)), ((1, 1), (8, 128))]
)
def test_broadcast(source, target, strategy):
    kernel = Kernel()
    kernel.load("%x", source, "f16")
    kernel.op(f'%y = "nv_tileaa.broadcast"(%x) : ({tile(source, "f16")}) -> {tile(target, "f16")}')
    kernel.store("%y", target, "f16")
    x, out = numbers(source, "f16", 1), np.zeros(target, np.float16)
    kernel.run(x.ravel(), out.ravel(), **settings(strategy))
    np.testing.assert_array_equal(out, np.broadcast_to(x, target))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("source", "target"), [((2048,), (32, 64)), ((8, 16, 4), (64, 8)), ((16, 32), (1, 512, 1))]
)
def test_view(source, target, strategy):
    kernel = Kernel()
    kernel.load("%x", source, "i32")
    kernel.op(f'%y = "nv_tileaa.view"(%x) : ({tile(source, "i32")}) -> {tile(target, "i32")}')
    kernel.store("%y", target, "i32")
    x, out = np.arange(np.prod(source), dtype=np.int32), np.zeros(np.prod(target), np.int32)
    kernel.run(x, out, **settings(strategy))
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
def test_range(element, strategy):
    extent = 64 if element == "i8" else 1024
    kernel = Kernel()
    kernel.op(f'%x = "nv_tileaa.make_range"() : () -> {tile((extent,), element)}')
    kernel.store("%x", (extent,), element)
    out = np.zeros(extent, DTYPES[element])
    kernel.run(out, **settings(strategy))
    np.testing.assert_array_equal(out, np.arange(extent))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_dense_constant(strategy):
    values = [(7 * i) % 64 - 32 for i in range(64)]
    kernel = Kernel()
    kernel.op(f"%x = arith.constant dense<{values}> : tensor<64xi32>")
    kernel.store("%x", (64,), "i32")
    out = np.zeros(64, np.int32)
    kernel.run(out, **settings(strategy))
    np.testing.assert_array_equal(out, values)


@pytest.mark.parametrize("element", ["i1", "i8", "f16", "f32", "f64"])
@pytest.mark.parametrize("seed", range(6))
def test_random_layout_conversions_move_every_element(element, seed):
    shape = [(64, 64), (16, 8, 8), (4096,)][seed % 3]
    kernel = Kernel(num_warps=[4, 1, 8][seed % 3])
    kernel.load("%x", shape, element)
    kernel.store("%x", shape, element)
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2 if element == "i1" else 100, shape).astype(DTYPES[element])
    out = np.zeros(shape, DTYPES[element])
    kernel.run(x.ravel(), out.ravel(), **settings(seed))
    np.testing.assert_array_equal(out, x)


def test_select_and_compare():
    shape = (32, 32)
    kernel = Kernel()
    kernel.load("%a", shape, "i32")
    kernel.load("%b", shape, "i32")
    kernel.op("%c = arith.cmpi slt, %a, %b : tensor<32x32xi32>")
    kernel.op("%d = arith.select %c, %a, %b : tensor<32x32xi1>, tensor<32x32xi32>")
    kernel.store("%d", shape, "i32")
    kernel.store("%c", shape, "i1")
    a, b = (np.random.default_rng(s).integers(-9, 9, shape).astype(np.int32) for s in (1, 2))
    low, less = np.zeros(shape, np.int32), np.zeros(shape, np.bool_)
    kernel.run(a.ravel(), b.ravel(), low.ravel(), less.ravel())
    np.testing.assert_array_equal(low, np.minimum(a, b))
    np.testing.assert_array_equal(less, a < b)


@pytest.mark.parametrize("strategy", [0, pytest.param(1, marks=pytest.mark.slow), "transposed"])
def test_conversions_beyond_shared_memory_go_in_passes(strategy):
    """128 KiB through 48 KiB of shared memory; a transpose lets warps take turns."""
    shape = (256, 128)
    kernel = Kernel()
    kernel.load("%x", shape, "f32")
    kernel.store("%x", shape, "f32")
    x, out = np.arange(256 * 128, dtype=np.float32), np.zeros(256 * 128, np.float32)
    kernel.run(x, out, **settings(strategy))
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("target", ["sm_90", "sm_100", "sm_120"])
def test_broadcast_of_one_register(target):
    """On sm_100, LLVM cannot select what comes of shuffled vectors of one element."""
    p = Program()
    x = p.load((16, 1), t.F32)
    p.store(p.emit("broadcast", [x], t.Tile((16, 64), t.F32)), (16, 64), t.F32)
    a = np.arange(16, dtype=np.float32).reshape(16, 1)
    p.agrees(a, np.zeros((16, 64), np.float32), target=target, strategy="blocked")
