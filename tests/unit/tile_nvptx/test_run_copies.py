"""Copies of every kind between global and shared memory, one small kernel each, in check mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.pipe_kernels import TYPES, passes, placed, ptx_of
from tile_sim import LaunchReport, Module, TensorMap

from tile_core.diagnostics import CompileError

HEAD = f"""{TYPES}
#one = #nv_tileas.layout<": 1">
#rows = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[0,32],[1,0],[2,0]] : 4x64">
#long = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64],[128],[256]] : 512">
#lane = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
!w = !nv_tileas.buffer<tensor<1xi64, #one>, "shared", 1 : i32>
!bar = !nv_tileas.barrier<1 : i32, 1 : i32>
!dr = !nv_tileas.tma_desc<tensor<1x64xf32>, "none">
!four = !nv_tileas.buffer<tensor<4x64xf32, #rows>, "shared", 1 : i32>
!line = !nv_tileas.buffer<tensor<512xf32, #long>, "shared", 1 : i32>
!tl = tensor<512xf32, #lane>
!il = tensor<512xi32, #lane>
!bl = tensor<512xi1, #lane>
!pl = tensor<512x!p, #lane>
!sm = !nv_tileaa.memref<f32, array<i64: 512>, array<i64: 1>>
!sv = !nv_tileaa.tiled_view<!sm, array<i32: 512>, array<i32: 0>, "zero">
"""  # noqa: E501
BARRIER = """
%w = "nv_tileas.alloc_tensor"() {alignment = 8 : i32} : () -> !w
%bar = "nv_tileas.barrier_init"(%w) : (!w) -> !bar
"nv_tileas.fence"() {proxy = "mbarrier_init"} : () -> ()
"nv_tileas.sync"() : () -> ()
"""
DONE = """
%h = "nv_tileas.async_commit_group"(%e) {group = "bulk"} : (!async) -> !async
"nv_tileas.async_wait"(%h) {pending = 0 : i32, group = "bulk"} : (!async) -> ()
"""


def alloc(type_: str) -> str:
    return f'%s = "nv_tileas.alloc_tensor"() {{alignment = 128 : i32}} : () -> {type_}'


def expect(size: int) -> str:
    return f'"nv_tileas.barrier_expect"(%bar, %zero) {{bytes = {size} : i32}} : (!bar, i32) -> ()'


WAIT = '"nv_tileas.barrier_wait"(%bar, %zero, %zero) : (!bar, i32, i32) -> ()'


def compile_(params: str, body: str, target: str = "sm_90") -> str:
    text = (
        f"{HEAD}module {{ gpu.module @kernels {{\nfunc.func @kernel({params}) attributes "
        "{nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {\n"
        f"%zero = arith.constant 0 : i32\n{body}\nreturn\n}}\n}} }}"
    )
    return ptx_of(placed(passes(text, "tileas-plan-accesses", target)), target, 1)


def launch(ptx: str, *args: Any) -> LaunchReport:
    for schedule in ("late", "early"):
        report = Module(ptx).launch(
            "kernel", (1, 1, 1), None, list(args), check=True, schedule=schedule, max_steps=20000
        )
        assert not report.findings, "\n".join(map(str, report.findings))
    return report


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1


def test_runs_of_bytes() -> None:
    body = f"""{alloc("!v")}{BARRIER}{expect(2048)}
%d = "nv_tileas.async_copy"(%x, %s, %bar, %zero) {{bytes = 2048 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1>}} : (!p, !v, !bar, i32) -> !async
{WAIT}
%e = "nv_tileas.async_copy"(%s, %y) {{bytes = 2048 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : (!v, !p) -> !async
{DONE}
"nv_tileas.sync"() : () -> ()
"nv_tileas.barrier_invalidate"(%bar) : (!bar) -> ()
"nv_tileas.dealloc"(%s) : (!v) -> ()
"""  # noqa: E501
    x, y = numbers(8, 64), np.zeros((8, 64), np.float32)
    launch(compile_("%x: !p, %y: !p", body), x, y)
    np.testing.assert_array_equal(x, y)


def tma_load(name: str, desc: str, to: str, coords: list[str], size: int, extra: str = "") -> str:
    kinds = ", ".join(["i32"] * len(coords))
    sizes = f"array<i32: 1, 1, {len(coords)}, 1, 1, 0>"
    return (
        f'%d = "nv_tileas.{name}"(%dx, %s, {", ".join(coords)}, %bar, %zero) {{tx_count = {size} '
        f": i32, operandSegmentSizes = {sizes}{extra}}} : ({desc}, {to}, {kinds}, !bar, i32) -> "
        "!async"
    )


@pytest.mark.parametrize("hint", ["", "evict_first", "evict_last", "no_allocate"])
def test_reductions_and_hints(hint: str) -> None:
    extra = f', cache_hint = "{hint}"' if hint else ""
    alone = f'cache_hint = "{hint}", ' if hint else ""
    body = f"""{alloc("!v")}{BARRIER}
"nv_tileas.prefetch_tma_desc"(%dx) : (!d) -> ()
"nv_tileas.acquire_tma_desc"(%dy) : (!d) -> ()
{expect(2048)}
{tma_load("async_tiled_tma_load", "!d", "!v", ["%zero", "%zero"], 2048, extra)}
{WAIT}
%e = "nv_tileas.async_tiled_tma_reduce"(%dy, %s, %zero, %zero) {{{alone}rmw_mode = "add", operandSegmentSizes = array<i32: 1, 1, 2, 0>}} : (!d, !v, i32, i32) -> !async
{DONE}"""  # noqa: E501
    ptx = compile_("%dx: !d, %dy: !d", body)
    assert "prefetch.tensormap" in ptx
    assert "fence.proxy.tensormap::generic.acquire.gpu" in ptx
    assert ptx.count("createpolicy") == (2 if hint else 0)
    x, y = numbers(8, 64), np.full((8, 64), 100, np.float32)
    module, maps = Module(ptx), [TensorMap(x, (64, 8)), TensorMap(y, (64, 8))]
    report = module.launch("kernel", (1, 1, 1), None, maps, check=True)
    assert not report.findings
    np.testing.assert_array_equal(y, x + 100)


def test_rows_by_index() -> None:
    rows = ["%zero", "%a", "%b", "%c", "%e0"]
    kinds = ", ".join(["i32"] * 5)
    body = f"""{alloc("!four")}{BARRIER}{expect(1024)}
{tma_load("async_gather_tma_load", "!dr", "!four", rows, 1024)}
{WAIT}
%e = "nv_tileas.async_scatter_tma_store"(%dy, %s, %zero, %e0, %c, %b, %a) {{operandSegmentSizes = array<i32: 1, 1, 5, 0>}} : (!dr, !four, {kinds}) -> !async
{DONE}"""  # noqa: E501
    ptx = compile_("%dx: !dr, %dy: !dr, %a: i32, %b: i32, %c: i32, %e0: i32", body, "sm_100")
    x, y = numbers(16, 64), np.zeros((16, 64), np.float32)
    launch(ptx, TensorMap(x, (64, 1)), TensorMap(y, (64, 1)), 9, 2, 14, 5)
    wanted = np.zeros_like(x)
    wanted[[5, 14, 2, 9]] = x[[9, 2, 14, 5]]
    np.testing.assert_array_equal(y, wanted)


def test_several_blocks_receive_one_copy() -> None:
    """What the simulator decodes; clusters are not launched by kernels yet."""
    body = f"""{alloc("!v")}{BARRIER}{expect(2048)}
%mask = arith.constant 3 : i16
%d = "nv_tileas.async_tiled_tma_load"(%dx, %s, %zero, %zero, %bar, %zero, %mask) {{tx_count = 2048 : i32, operandSegmentSizes = array<i32: 1, 1, 2, 1, 1, 1>}} : (!d, !v, i32, i32, !bar, i32, i16) -> !async
{WAIT}"""  # noqa: E501
    ptx = compile_("%dx: !d", body)
    assert ".multicast::cluster" in ptx
    Module(ptx)


def test_copies_through_pointers() -> None:
    """Each thread for itself: neighbours together where alignment is known, masked off as zeros."""
    body = f"""{alloc("!line")}
%i = "nv_tileaa.make_range"() : () -> !il
%base = "nv_tileaa.splat"(%x) : (!p) -> !pl
%ps = "nv_tileaa.addptr"(%base, %i) : (!pl, !il) -> !pl
%n512 = "nv_tileaa.splat"(%n) : (i32) -> !il
%inside = arith.cmpi slt, %i, %n512 : !il
%l:2 = "nv_tileas.async_load"(%ps, %inside, %s) {{mem_semantic = "weak", layout = #lane, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}} : (!pl, !bl, !line) -> (!async, !tok)
%g = "nv_tileas.async_commit_group"(%l#0) {{group = "cp.async"}} : (!async) -> !async
"nv_tileas.async_wait"(%g) {{pending = 0 : i32, group = "cp.async"}} : (!async) -> ()
%t = "nv_tileas.copy"(%s) : (!line) -> !tl
%my = "nv_tileaa.make_memref"(%y) {{operandSegmentSizes = array<i32: 1, 0, 0>}} : (!p) -> !sm
%vy = "nv_tileaa.block_tile"(%my) : (!sm) -> !sv
%o = "nv_tileas.tiled_store"(%vy, %t, %zero) {{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 0>}} : (!sv, !tl, i32) -> !tok
"""  # noqa: E501
    for target in ("sm_80", "sm_90"):
        x, y = numbers(300), np.full(512, -1, np.float32)
        launch(compile_("%x: !p, %y: !p, %n: i32", body, target), x, y, 300)
        np.testing.assert_array_equal(y[:300], x)
        assert not y[300:].any()


@pytest.mark.parametrize(("by", "arrivals"), [("thread", 128), ("warp", 4), ("agent", 1)])
def test_who_arrives(by: str, arrivals: int) -> None:
    """Subtiles are filled by all threads, and read by others after everybody has arrived."""
    body = f"""{alloc("!v")}
%w = "nv_tileas.alloc_tensor"() {{alignment = 8 : i32}} : () -> !w
%bar = "nv_tileas.barrier_init"(%w) : (!w) -> !nv_tileas.barrier<{arrivals} : i32, 1 : i32>
"nv_tileas.sync"() : () -> ()
%one = arith.constant 1 : i32
%lo = "nv_tileas.buffer_view"(%s, %zero, %zero, %zero) : (!v, i32, i32, i32) -> !four
%hi = "nv_tileas.buffer_view"(%s, %zero, %one, %zero) : (!v, i32, i32, i32) -> !four
%a = arith.constant dense<1.0> : tensor<4x64xf32, #quarter>
%b = arith.constant dense<2.0> : tensor<4x64xf32, #quarter>
"nv_tileas.copy"(%a, %lo) : (tensor<4x64xf32, #quarter>, !four) -> ()
"nv_tileas.copy"(%b, %hi) : (tensor<4x64xf32, #quarter>, !four) -> ()
"nv_tileas.barrier_arrive"(%bar, %zero) {{by = "{by}", kind = "generic"}} : (!nv_tileas.barrier<{arrivals} : i32, 1 : i32>, i32) -> ()
"nv_tileas.barrier_wait"(%bar, %zero, %zero) : (!nv_tileas.barrier<{arrivals} : i32, 1 : i32>, i32, i32) -> ()
%t = "nv_tileas.copy"(%s) : (!v) -> !u
%my = "nv_tileaa.make_memref"(%y, %n) {{operandSegmentSizes = array<i32: 1, 1, 0>}} : (!p, i32) -> !m
%vy = "nv_tileaa.block_tile"(%my) : (!m) -> !view
%o = "nv_tileas.tiled_store"(%vy, %t, %zero, %zero) {{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>}} : (!view, !u, i32, i32) -> !tok
"""  # noqa: E501
    quarter = "register=[[0,1]] lane=[[0,2],[0,4],[0,8],[0,16],[0,32]] warp=[[1,0],[2,0]] : 4x64"
    body = body.replace("#quarter", f'#nv_tileas.layout<"{quarter}">')
    y = np.zeros((8, 64), np.float32)
    launch(compile_("%y: !p, %n: i32", body), y, 8)
    assert (y[:4] == 1).all()
    assert (y[4:] == 2).all()


def test_tensor_maps_are_not_made_by_this_pass() -> None:
    body = """
%my = "nv_tileaa.make_memref"(%y, %n) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!p, i32) -> !m
%vy = "nv_tileaa.block_tile"(%my) : (!m) -> !view
%d = "nv_tileas.make_tiled_tma_desc"(%vy) {oob_mode = "zero"} : (!view) -> !d
"nv_tileas.prefetch_tma_desc"(%d) : (!d) -> ()
"""
    with pytest.raises(CompileError, match="expect lower MakeTiledTMADescOp"):
        compile_("%y: !p, %n: i32", body)
