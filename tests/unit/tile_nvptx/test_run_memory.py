"""Views with bounds and padding, pointers with masks, tokens: compiled and run."""

import re
from itertools import groupby

import numpy as np
import pytest
import support.strategies
import tile_sim
from support.tiles import DTYPES, Kernel, tile
from tile_tileas.prepare.loops import MOST_TRIPS

DYNAMIC = -(1 << 63)


def settings(strategy) -> dict:
    """Options that choose the strategy; a number is the seed of random layouts."""
    if isinstance(strategy, int):
        support.strategies.RandomStrategy.seed = strategy
        strategy = "random"
    return {"options": {"layout-strategy": strategy}}


def dynamic_view(kernel: Kernel, name: str, shape, element: str, padding: str, dim_map, align: int):
    """A view with run-time sizes and row stride: pointer, sizes, strides but the last as i32."""
    rank = len(shape)
    pointer = kernel.param(f"!nv_tileaa.ptr<{element}, 1 : i32>")
    sizes = [kernel.param("i32") for _ in range(rank)]
    strides = [kernel.param("i32") for _ in range(rank - 1)]
    predicate = f'{{predicate = {{kind = "div_by", divisor = {align} : i64}}}}'
    kernel.op(
        f'{name}p = "nv_tileaa.assume"({pointer}) {predicate} : '
        f"(!nv_tileaa.ptr<{element}, 1 : i32>) -> !nv_tileaa.ptr<{element}, 1 : i32>"
    )
    for at, stride in enumerate(strides):
        kernel.op(f'{name}s{at} = "nv_tileaa.assume"({stride}) {predicate} : (i32) -> i32')
    memref = (
        f"!nv_tileaa.memref<{element}, array<i64: {', '.join([str(DYNAMIC)] * rank)}>, "
        f"array<i64: {', '.join([str(DYNAMIC)] * (rank - 1) + ['1'])}>>"
    )
    view = (
        f"!nv_tileaa.tiled_view<{memref}, array<i32: {', '.join(map(str, shape))}>, "
        f'array<i32: {", ".join(map(str, dim_map))}>, "{padding}">'
    )
    operands = [f"{name}p", *sizes, *[f"{name}s{at}" for at in range(rank - 1)]]
    types = [f"!nv_tileaa.ptr<{element}, 1 : i32>", *["i32"] * (2 * rank - 1)]
    kernel.op(
        f'{name}m = "nv_tileaa.make_memref"({", ".join(operands)}) {{operandSegmentSizes = '
        f"array<i32: 1, {rank}, {rank - 1}>}} : ({', '.join(types)}) -> {memref}"
    )
    kernel.op(f'{name} = "nv_tileaa.block_tile"({name}m) : ({memref}) -> {view}')
    return view


def program_ids(kernel: Kernel, rank: int) -> list[str]:
    for axis in range(rank):
        kernel.op(f'%id{axis} = "nv_tileaa.get_program_id"() {{axis = {axis} : i32}} : () -> i32')
    return [f"%id{axis}" for axis in range(rank)]


def copy_kernel(
    shape, element: str, padding: str = "zero", dim_map=None, align: int = 16
) -> Kernel:
    """out[tile] = in[tile] for every tile of the grid; the output has its own bounds."""
    rank = len(shape)
    dim_map = dim_map or tuple(range(rank))
    kernel = Kernel()
    ids = program_ids(kernel, rank)
    source = dynamic_view(kernel, "%in", shape, element, padding, dim_map, align)
    target = dynamic_view(kernel, "%out", shape, element, "", tuple(range(rank)), align)
    types = ", ".join([source, *["i32"] * rank])
    kernel.op(
        f'%x, %t = "nv_tileaa.tiled_load"(%in, {", ".join(ids)}) {{mem_semantic = "weak", '
        f"operandSegmentSizes = array<i32: 1, {rank}, 0>}} : ({types}) -> "
        f"({tile(shape, element)}, !nv_tileaa.mem_token)"
    )
    types = ", ".join([target, tile(shape, element), *["i32"] * rank])
    kernel.op(
        f'%u = "nv_tileaa.tiled_store"(%out, %x, {", ".join(ids)}) {{mem_semantic = "weak", '
        f"operandSegmentSizes = array<i32: 1, 1, {rank}, 0>}} : ({types}) -> "
        "!nv_tileaa.mem_token"
    )
    return kernel


PADDED = {"zero": 0.0, "neg_zero": -0.0, "nan": np.nan, "pos_inf": np.inf, "neg_inf": -np.inf}


@pytest.mark.parametrize("opt_level", [0, 2])
@pytest.mark.parametrize("padding", PADDED)
@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_padding_beyond_the_end(element, padding, opt_level):
    """A 2-D tile that sticks out below and to the right; the output is large enough for all."""
    kernel = copy_kernel((8, 64), element, padding)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((10, 104)).astype(DTYPES[element])  # rows 104 apart, 100 wide
    out = np.zeros((16, 128), DTYPES[element])
    kernel.run(
        x.ravel(), 10, 100, 104, out.ravel(), 16, 128, 128, grid=(2, 2, 1), opt_level=opt_level
    )
    expected = np.full((16, 128), PADDED[padding], DTYPES[element])
    expected[:10, :100] = x[:, :100]
    np.testing.assert_array_equal(out.astype(np.float64), expected.astype(np.float64))
    assert (
        np.signbit(out.astype(np.float32)) == np.signbit(expected.astype(np.float32))
    ).all() or (padding == "nan")


@pytest.mark.parametrize("strategy", ["blocked", "first-legal", 0, 1, 2])
@pytest.mark.parametrize("size", [1, 63, 64, 65, 100, 128])
def test_stores_stay_inside(size, strategy):
    """Nothing is written past `size`, whatever the layout."""
    kernel = copy_kernel((64,), "f32")
    x, out = np.arange(1, 129, dtype=np.float32), np.zeros(128, np.float32)
    kernel.run(x, 128, out, size, grid=(2, 1, 1), **settings(strategy))
    np.testing.assert_array_equal(out, np.where(np.arange(128) < size, x, 0))


@pytest.mark.parametrize("strategy", ["blocked", "first-legal", 0, 1])
def test_transposed_view(strategy):
    """dim_map [1, 0]: tile axis 0 runs along memref axis 1."""
    kernel = copy_kernel((16, 32), "i32", dim_map=(1, 0))
    x, out = np.arange(24 * 12, dtype=np.int32), np.full((16, 32), -1, np.int32)
    kernel.run(x, 24, 12, 12, out.ravel(), 16, 32, 32, **settings(strategy))
    expected = np.zeros((16, 32), np.int32)
    expected[:12, :24] = x.reshape(24, 12).T
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("element", ["i1", "i8", "i16", "i64", "f16"])
def test_every_width_of_element(element):
    kernel = copy_kernel((4, 256), element)
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2, (7, 304)).astype(DTYPES[element])
    out = np.zeros((8, 512), DTYPES[element])
    kernel.run(x.ravel(), 7, 300, 304, out.ravel(), 8, 512, 512, grid=(2, 2, 1))
    expected = np.zeros((8, 512), DTYPES[element])
    expected[:7, :300] = x[:, :300]
    np.testing.assert_array_equal(out, expected)


def test_unaligned_memory_is_read_element_by_element():
    assert "v4" in copy_kernel((1024,), "f32", align=16).ptx()
    kernel = copy_kernel((1024,), "f32", align=4)
    assert "v4" not in kernel.ptx()
    x, out = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    kernel.run(x, 1000, out, 1024)
    np.testing.assert_array_equal(out, np.where(np.arange(1024) < 1000, x, 0))


def pointer_kernel(
    element: str, *, masked: bool, other: bool, extent: int = 1024, pad: str = "9"
) -> Kernel:
    """out[i] = in[i] through pointers, i < n by mask; with `other`, out[i] = `pad` elsewhere."""
    kernel = Kernel()
    t, pt = tile((extent,), element), tile((extent,), f"!nv_tileaa.ptr<{element}, 1 : i32>")
    ptr = f"!nv_tileaa.ptr<{element}, 1 : i32>"
    source, target, n = kernel.param(ptr), kernel.param(ptr), kernel.param("i32")
    div = '{predicate = {kind = "div_by", divisor = 16 : i64}}'
    i32s = tile((extent,), "i32")
    kernel.op(f'%src = "nv_tileaa.assume"({source}) {div} : ({ptr}) -> {ptr}')
    kernel.op(f'%dst = "nv_tileaa.assume"({target}) {div} : ({ptr}) -> {ptr}')
    kernel.op(f'%n = "nv_tileaa.assume"({n}) {div} : (i32) -> i32')
    kernel.op(f'%i = "nv_tileaa.make_range"() : () -> {i32s}')
    for name in ("src", "dst"):
        kernel.op(f'%{name}b = "nv_tileaa.splat"(%{name}) : ({ptr}) -> {pt}')
        kernel.op(f'%{name}p = "nv_tileaa.addptr"(%{name}b, %i) : ({pt}, {i32s}) -> {pt}')
    kernel.op(f'%nb = "nv_tileaa.splat"(%n) : (i32) -> {i32s}')
    kernel.op(f"%mask = arith.cmpi slt, %i, %nb : {i32s}")
    flag = "f" in element
    kernel.op(f"%pad = arith.constant dense<{pad + '.0' if flag else pad}> : {t}")
    operands, types, sizes = ["%srcp"], [pt], [1, int(masked), int(other), 0]
    if masked:
        operands, types = [*operands, "%mask"], [*types, tile((extent,), "i1")]
    if other:
        operands, types = [*operands, "%pad"], [*types, t]
    segments = f"operandSegmentSizes = array<i32: {', '.join(map(str, sizes))}>"
    kernel.op(
        f'%x, %k = "nv_tileaa.load"({", ".join(operands)}) {{mem_semantic = "weak", {segments}}} '
        f": ({', '.join(types)}) -> ({t}, !nv_tileaa.mem_token)"
    )
    kernel.op(
        '%u = "nv_tileaa.store"(%dstp, %x, %mask) {mem_semantic = "weak", '
        "operandSegmentSizes = array<i32: 1, 1, 1, 0>} : "
        f"({pt}, {t}, {tile((extent,), 'i1')}) -> !nv_tileaa.mem_token"
        if not other
        else '%u = "nv_tileaa.store"(%dstp, %x) {mem_semantic = "weak", '
        f"operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : ({pt}, {t}) -> !nv_tileaa.mem_token"
    )
    return kernel


@pytest.mark.parametrize("strategy", ["blocked", "first-legal", 0, 1])
@pytest.mark.parametrize("element", ["f32", "f16", "i64", "i8"])
def test_masked_pointers(element, strategy):
    x = (np.arange(1024) % 100).astype(DTYPES[element])
    for other in (False, True):
        out = np.full(1024, 5, DTYPES[element])
        kernel = pointer_kernel(element, masked=True, other=other)
        kernel.run(x, out, 992, **settings(strategy))
        expected = np.where(np.arange(1024) < 992, x, DTYPES[element](9 if other else 5))
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("element", "pad"), [("f32", "0"), ("f16", "-0"), ("i8", "0"), ("f16", "7")]
)
def test_what_is_masked_off_costs_no_test_of_each_element(element, pad):
    """What pads comes from the access itself, and is not chosen behind it."""
    kernel = pointer_kernel(element, masked=True, other=True, pad=pad)
    ptx = kernel.ptx(opt_level=3)
    loads, tests = ptx.count("ld.global"), len(re.findall(r"\bsetp\.", ptx))
    assert tests <= loads
    assert "selp" not in ptx
    x, out = (np.arange(1024) % 100 + 1).astype(DTYPES[element]), np.zeros(1024, DTYPES[element])
    kernel.run(x, out, 992)
    expected = np.where(np.arange(1024) < 992, x, DTYPES[element](pad))
    assert out.tobytes() == expected.tobytes()


def test_contiguous_pointers_are_vectorised():
    ptx = pointer_kernel("f32", masked=True, other=False).ptx()
    assert "ld.global.v4.b32" in ptx
    assert "st.global.v4.b32" in ptx


def steps_kernel(trips: int, *, chained: bool) -> Kernel:
    """to[i + 1] = 1 + from[i] by rows of 256; `chained`: each load waits for the store before.

    Elements of two bytes and unknown alignment are nothing that cp.async copies.
    """
    kernel, t, ptr = Kernel(), tile((256,), "f16"), "!nv_tileaa.ptr<f16, 1 : i32>"
    pt, i32s, token = tile((256,), ptr), tile((256,), "i32"), "!nv_tileaa.mem_token"
    for name in ("from", "to"):
        kernel.op(f'%{name} = "nv_tileaa.splat"({kernel.param(ptr)}) : ({ptr}) -> {pt}')
    for line in (
        '%start = "nv_tileaa.create_mem_token"() : () -> !nv_tileaa.mem_token',
        f'%range = "nv_tileaa.make_range"() : () -> {i32s}',
        f"%ones = arith.constant dense<1.0> : {t}",
        *(f"%c{v} = arith.constant {v} : i32" for v in (0, 1, 256)),
        f"%end = arith.constant {trips} : i32",
        f"%e = scf.for %i = %c0 to %end step %c1 iter_args(%k = %start) -> ({token}) : i32 {{",
        "%row = arith.muli %i, %c256 : i32",
        f'%rows = "nv_tileaa.splat"(%row) : (i32) -> {i32s}',
        f"%at = arith.addi %rows, %range : {i32s}",
        f'%source = "nv_tileaa.addptr"(%from, %at) : ({pt}, {i32s}) -> {pt}',
        f'%v, %read = "nv_tileaa.load"(%source, {"%k" if chained else "%start"}) '
        '{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 1>} : '
        f"({pt}, {token}) -> ({t}, {token})",
        f"%next = arith.addf %v, %ones : {t}",
        f'%skip = "nv_tileaa.splat"(%c256) : (i32) -> {i32s}',
        f"%there = arith.addi %at, %skip : {i32s}",
        f'%target = "nv_tileaa.addptr"(%to, %there) : ({pt}, {i32s}) -> {pt}',
        '%done = "nv_tileaa.store"(%target, %next, %k) {mem_semantic = "weak", '
        f"operandSegmentSizes = array<i32: 1, 1, 0, 1>}} : ({pt}, {t}, {token}) -> {token}",
        f"scf.yield %done : {token}",
        "}",
    ):
        kernel.op(line)
    return kernel


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("trips", [2, 4, 5])
def test_loads_of_short_loops_keep_the_order_of_tokens(trips, target):
    """Those that wait for a store read what it wrote; others come before it."""
    rows = np.arange(256 * (trips + 1), dtype=np.float16).reshape(trips + 1, 256)
    chained, apart = (steps_kernel(trips, chained=flag).ptx(target) for flag in (True, False))
    if trips <= MOST_TRIPS:
        kinds = [re.findall(r"(ld|st)\.global", text) for text in (chained, apart)]
        runs = [[kind for kind, _ in groupby(found)] for found in kinds]
        assert runs == [["ld", "st"] * trips, ["ld", "st"]]
    for schedule in ("late", "early", "random"):
        place, out = rows.copy(), np.zeros_like(rows)
        _launch(chained, [place, place], schedule)
        np.testing.assert_array_equal(place[1:], rows[0] + np.arange(1, trips + 1)[:, None])
        _launch(apart, [rows, out], schedule)
        np.testing.assert_array_equal(out[1:], rows[:-1] + 1)


def _launch(ptx: str, arrays: list, schedule: str) -> None:
    module = tile_sim.Module(ptx)
    module.launch("kernel", (1, 1, 1), None, arrays, check=True, schedule=schedule)


ROUND_TRIP = """
    %m = "nv_tileaa.make_memref"(%arg0) {operandSegmentSizes = array<i32: 1, 0, 0>} :
      (!nv_tileaa.ptr<f32, 1 : i32>) -> MEMREF
    %v = "nv_tileaa.block_tile"(%m) : (MEMREF) -> VIEW
    %z = arith.constant 0 : i32
    %c = "nv_tileaa.tiled_store"(%v, %x, %z) {mem_semantic = "weak",
      operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (VIEW, tensor<512xf32>, i32)
      -> !nv_tileaa.mem_token
    %y, %d = "nv_tileaa.tiled_load"(%v, %z, %c) {mem_semantic = "weak",
      operandSegmentSizes = array<i32: 1, 1, 1>} : (VIEW, i32, !nv_tileaa.mem_token)
      -> (tensor<512xf32>, !nv_tileaa.mem_token)
"""


@pytest.mark.parametrize("strategy", ["blocked", 0, 1, 2])
def test_a_token_orders_threads(strategy):
    """store, then load through the token: other threads' elements must have arrived."""
    memref = "!nv_tileaa.memref<f32, array<i64: 512>, array<i64: 1>>"
    view = f'!nv_tileaa.tiled_view<{memref}, array<i32: 512>, array<i32: 0>, "">'
    kernel = Kernel()
    kernel.param("!nv_tileaa.ptr<f32, 1 : i32>")
    kernel.load("%x", (512,), "f32")
    kernel.op(ROUND_TRIP.replace("MEMREF", memref).replace("VIEW", view))
    kernel.store("%y", (512,), "f32")
    scratch, x, out = (
        np.zeros(512, np.float32),
        np.arange(512, dtype=np.float32),
        np.zeros(512, np.float32),
    )
    report = kernel.run(scratch, x, out, **settings(strategy))
    np.testing.assert_array_equal(out, x)
    assert not report.findings
    has_barrier = "bar" in kernel.ptx(**settings(strategy))
    assert has_barrier == (strategy != "blocked"), "same layout: each thread reads its own"


@pytest.mark.parametrize(("semantic", "scope", "text"), [
    ("relaxed", "gpu", "relaxed.gpu"), ("relaxed", "sys", "relaxed.sys"),
    ("acquire", "tl_blk", "acquire.cta"),
])  # fmt: skip
def test_ordered_loads_say_so(semantic, scope, text):
    memref = "!nv_tileaa.memref<f32, array<i64: 512>, array<i64: 1>>"
    view = f'!nv_tileaa.tiled_view<{memref}, array<i32: 512>, array<i32: 0>, "">'
    kernel = Kernel()
    kernel.param("!nv_tileaa.ptr<f32, 1 : i32>")
    load = ROUND_TRIP.split("    %c =")[0] + "    %y, %d" + ROUND_TRIP.split("    %y, %d")[1]
    load = load.replace(", %c)", ")").replace("array<i32: 1, 1, 1>", "array<i32: 1, 1, 0>")
    load = load.replace("i32, !nv_tileaa.mem_token)\n", "i32)\n")
    load = load.replace('"weak"', f'"{semantic}", mem_scope = "{scope}"')
    kernel.op(load.replace("MEMREF", memref).replace("VIEW", view))
    kernel.store("%y", (512,), "f32")
    assert f"ld.{text}.global" in kernel.ptx()
    x, out = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    kernel.run(x, out)
    np.testing.assert_array_equal(out, x)
