"""What operations on buffers, barriers and asynchronous copies refuse, in their words."""

from __future__ import annotations

import re

import pytest
from support.functions import function

from tile_core.diagnostics import InputError
from tile_core.mlir import ir

ROW = '#nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,0]] : 8x16">'
HEAD = """
#s = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,0]] : 8x16">
#z = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,4],[2,8],[4,0]] : 8x16">
#short = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0]] : 8x16">
#half = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0]] : 4x16">
#r = #nv_tileas.layout<"register=[[0,1],[0,2]] lane=[[0,4],[0,8],[1,0],[2,0],[4,0]] : 8x16">
#part = #nv_tileas.layout<"register=[[0,1]] lane=[[0,4],[0,8],[1,0],[2,0],[4,0]] : 8x16">
#tm = #nv_tileas.layout<"column=[[0,1],[0,2],[0,4],[0,8]] row=[[1,0],[2,0],[4,0]] : 8x16">
#one = #nv_tileas.layout<": 1">
!f = tensor<8x16xf32>
!t = tensor<8x16xf32, #r>
!b = !nv_tileas.buffer<tensor<8x16xf32, #s>, "shared", 3 : i32>
!v = !nv_tileas.buffer<tensor<8x16xf32, #s>, "shared", 1 : i32>
!z = !nv_tileas.buffer<tensor<8x16xf32, #z>, "shared", 1 : i32>
!plain = !nv_tileas.buffer<tensor<8x16xf32>, "shared", 1 : i32>
!h = !nv_tileas.buffer<tensor<4x16xf32, #half>, "shared", 1 : i32>
!tm = !nv_tileas.buffer<tensor<8x16xf32, #tm>, "tensor", 1 : i32>
!w = !nv_tileas.buffer<tensor<1xi64, #one>, "shared", 3 : i32>
!bar = !nv_tileas.barrier<4 : i32, 3 : i32>
!async = !nv_tileas.async_token
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
!m = !nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: 64, 1>>
!view = !nv_tileaa.tiled_view<!m, array<i32: 8, 16>, array<i32: 0, 1>, "zero">
!ps = tensor<8x16x!p>
!ms = tensor<8x16xi1>
"""
ARGUMENTS = (
    "%i: i32, %l: i64, %t: !t, %f: !f, %b: !b, %v: !v, %z: !z, %plain: !plain, %h: !h, %tm: !tm, "
    "%w: !w, %bar: !bar, %a: !async, %p: !p, %tok: !tok, %ps: !ps, %ms: !ms, %given: !view"
)
VIEW = """
%m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
%view = "nv_tileaa.block_tile"(%m) : (!m) -> !view
"""


def in_function(body: str) -> str:
    return f"{HEAD}func.func @f({ARGUMENTS}) {{\n{body}\nreturn\n}}"


def refusal(body: str) -> str:
    with pytest.raises(InputError) as caught, function(in_function(body)):
        pass
    assert caught.value.where is not None
    return caught.value.message


def alloc(type_: str, attributes: str = "alignment = 16 : i32") -> str:
    return f'%x = "nv_tileas.alloc_tensor"() {{{attributes}}} : () -> {type_}'


def buffer(tile: str = "tensor<8x16xf32, #s>", space: str = "shared", stages: int = 1) -> str:
    return f'!nv_tileas.buffer<{tile}, "{space}", {stages} : i32>'


def view(operands: str, types: str, result: str) -> str:
    return f'%x = "nv_tileas.buffer_view"({operands}) : ({types}) -> {result}'


def copy_to(source: str, kind: str, target: str, target_kind: str, atom: str = "") -> str:
    named = f' {{atom = "{atom}"}}' if atom else ""
    return f'"nv_tileas.copy"({source}, {target}){named} : ({kind}, {target_kind}) -> ()'


def copy_from(source: str, kind: str, result: str) -> str:
    return f'%x = "nv_tileas.copy"({source}) : ({kind}) -> {result}'


def arrive(by: str, kind: str = "generic", at: str = "%bar, %i", types: str = "!bar, i32") -> str:
    return f'"nv_tileas.barrier_arrive"({at}) {{by = "{by}", kind = "{kind}"}} : ({types}) -> ()'


def load(
    operands: str,
    types: str,
    segments: str = "1, 0, 1, 0, 0",
    attributes: str = 'mem_semantic = "weak"',
    results: str = "(!async, !tok)",
) -> str:
    sizes = f"operandSegmentSizes = array<i32: {segments}>"
    head = f'%x:2 = "nv_tileas.async_load"({operands})'
    return f"{head} {{{attributes}, {sizes}}} : ({types}) -> {results}"


def tiled(operands: str, types: str, segments: str = "1, 2, 1, 0, 0") -> str:
    attributes = f'mem_semantic = "weak", operandSegmentSizes = array<i32: {segments}>'
    return (
        f'{VIEW}%x:2 = "nv_tileas.async_tiled_load"({operands}) {{{attributes}}} : ({types}) -> '
        "(!async, !tok)"
    )


def bulk(operands: str, types: str, segments: str, size: int = 512, result: str = "!async") -> str:
    attributes = f"bytes = {size} : i32, operandSegmentSizes = array<i32: {segments}>"
    return f'%x = "nv_tileas.async_copy"({operands}) {{{attributes}}} : ({types}) -> {result}'


def commit(group: str, operands: str = "%a", types: str = "!async", result: str = "!async") -> str:
    head = f'%x = "nv_tileas.async_commit_group"({operands})'
    return f'{head} {{group = "{group}"}} : ({types}) -> {result}'


def wait(pending: int = 0, group: str = "cp.async") -> str:
    attributes = f'pending = {pending} : i32, group = "{group}"'
    return f'"nv_tileas.async_wait"(%a) {{{attributes}}} : (!async) -> ()'


LEGAL = [
    '%x = "nv_tileas.create_none"() : () -> !async',
    alloc("!b"),
    alloc("!plain"),
    alloc("!tm"),
    alloc("!b", "alignment = 128 : i32, shared_offset = 256 : i32"),
    view("%b, %i", "!b, i32", "!v"),
    view("%b, %i, %i, %i", "!b, i32, i32, i32", "!h"),
    view("%plain, %i, %i, %i", "!plain, i32, i32, i32", buffer("tensor<4x4xf32>")),
    copy_to("%t", "!t", "%v", "!v"),
    copy_to("%t", "!t", "%v", "!v", "st.shared.v4.b32"),
    copy_to("%v", "!v", "%tm", "!tm"),
    copy_from("%v", "!v", "!t"),
    copy_from("%tm", "!tm", "!t"),
    '"nv_tileas.dealloc"(%b) : (!b) -> ()',
    '"nv_tileas.sync"() : () -> ()',
    '"nv_tileas.sync"() {agent = 1 : i32, id = 15 : i32} : () -> ()',
    '"nv_tileas.fence"() {proxy = "async"} : () -> ()',
    '%x = "nv_tileas.barrier_init"(%w) : (!w) -> !bar',
    '"nv_tileas.barrier_expect"(%bar, %i) {bytes = 1024 : i32} : (!bar, i32) -> ()',
    arrive("thread"),
    arrive("thread", "cp.async"),
    arrive("warp"),
    '"nv_tileas.barrier_wait"(%bar, %i, %i) : (!bar, i32, i32) -> ()',
    '"nv_tileas.barrier_invalidate"(%bar) : (!bar) -> ()',
    load("%ps, %v", "!ps, !v"),
    load("%ps, %ms, %v, %tok", "!ps, !ms, !v, !tok", "1, 1, 1, 1, 0"),
    load("%ps, %v", "!ps, !v", attributes='layout = #r, mem_semantic = "weak"'),
    tiled("%view, %i, %i, %v", "!view, i32, i32, !v"),
    bulk("%p, %v, %bar, %i", "!p, !v, !bar, i32", "1, 1, 1, 1"),
    bulk("%v, %p", "!v, !p", "1, 1, 0, 0"),
    commit("cp.async"),
    commit("bulk", "%a, %a", "!async, !async"),
    wait(),
    wait(3, "bulk.read"),
]


@pytest.mark.parametrize("line", LEGAL)
def test_what_is_legal_verifies(line: str) -> None:
    with function(in_function(line)) as found:
        assert found.operation.verify()


REFUSED = [
    (
        '"nv_tileas.count"(%t, %b) : (!t, !b) -> ()',
        "count",
        "expects a buffer of i32 of one axis, but got "
        '!nv_tileas.buffer<tensor<8x16xf32, #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],'
        '[1,0],[2,0],[4,0]] : 8x16">>, "shared", 3 : i32>',
    ),
    (
        '"nv_tileas.count"(%t, %i) : (!t, i32) -> ()',
        "count",
        "expects a buffer, but got i32",
    ),
    (
        '%x = "nv_tileas.create_none"() : () -> i32',
        "create_none",
        "expects the type of a token, but got i32",
    ),
    (alloc("!t"), "alloc_tensor", "expects a buffer, but got tensor<8x16xf32, #nv_tileas.layout<"),
    (
        alloc(buffer(space="far")),
        "alloc_tensor",
        "expects a buffer in 'shared' or 'tensor' memory, but got 'far'",
    ),
    (
        alloc(buffer(stages=0)),
        "alloc_tensor",
        "expects a buffer of at least one stage, but got 0",
    ),
    (
        alloc(buffer("tensor<4x32xf32, #s>")),
        "alloc_tensor",
        "expects a layout of [4, 32], but got one of [8, 16]",
    ),
    (
        alloc(buffer("tensor<8x16xf32, #r>")),
        "alloc_tensor",
        "expects a layout over offset, but got register=",
    ),
    (
        alloc(buffer("tensor<8x16xf32, #s>", "tensor")),
        "alloc_tensor",
        "expects a layout over column and element and row, but got offset=",
    ),
    (
        alloc(buffer("tensor<8x16xf32, #short>")),
        "alloc_tensor",
        "expects a layout with a place for every element, but got offset=",
    ),
    (
        alloc("!b", "alignment = 12 : i32"),
        "alloc_tensor",
        "expects alignment to be a power of two, but got 12",
    ),
    (
        alloc("!b", "alignment = 16 : i32, shared_offset = 8 : i32"),
        "alloc_tensor",
        "expects shared_offset 8 to be a multiple of the alignment 16",
    ),
    (
        f'%r = "nv_tileas.buffer_reinterpret"(%b) : (!b) -> {buffer("tensor<8x8xf32>")}',
        "buffer_reinterpret",
        f'cannot reinterpret !nv_tileas.buffer<tensor<8x16xf32, {ROW}>, "shared", 3 : i32> as '
        "!nv_tileas.buffer<tensor<8x8xf32>",
    ),
    (view("%b, %i", "!b, i32", "!b"), "buffer_view", "expects a view of one stage, but got 3"),
    (view("%b, %i", "!b, i32", "!tm"), "buffer_view", "cannot view !nv_tileas.buffer<"),
    (
        view("%b, %l", "!b, i64", "!v"),
        "buffer_view",
        "expects stage and indices to be i32, but got i64",
    ),
    (
        view("%b, %i, %i", "!b, i32, i32", "!h"),
        "buffer_view",
        "expects no indices or 2, but got 1",
    ),
    (
        view("%b, %i", "!b, i32", "!h"),
        "buffer_view",
        f"cannot view a stage of tensor<8x16xf32, {ROW}> as tensor<4x16xf32, #nv_tileas.layout<",
    ),
    (
        '%x = "nv_tileas.buffer_reinterpret"(%b) : (!b) -> !h',
        "buffer_reinterpret",
        f'cannot reinterpret !nv_tileas.buffer<tensor<8x16xf32, {ROW}>, "shared", 3 : i32> as !nv_',
    ),
    (
        view("%h, %i, %i, %i", "!h, i32, i32, i32", "!v"),
        "buffer_view",
        "cannot cut [4, 16] into tiles of [8, 16]",
    ),
    (
        view("%plain, %i, %i, %i", "!plain, i32, i32, i32", "!h"),
        "buffer_view",
        "cannot know offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0]] : 4x16 without a layout",
    ),
    (
        view("%z, %i, %i, %i", "!z, i32, i32, i32", buffer("tensor<8x4xf32>")),
        "buffer_view",
        "cannot view tiles of [8, 4] in offset=[[0,1],[0,2],[0,4],[0,8],[1,4],[2,8],[4,0]] : 8x16: "
        "each must be one run",
    ),
    (
        view("%b, %i, %i, %i", "!b, i32, i32, i32", buffer("tensor<4x16xf32>")),
        "buffer_view",
        "expects a view of layout offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0]] : 4x16, but got "
        "None",
    ),
    (
        '%x = "nv_tileas.copy"(%t, %v) : (!t, !v) -> !t',
        "copy",
        "expects a destination buffer or a result, and not both",
    ),
    (copy_to("%v", "!v", "%z", "!z"), "copy", "cannot copy from !nv_tileas.buffer<...> to !nv"),
    (copy_to("%t", "!t", "%h", "!h"), "copy", "cannot copy from tensor<...> to !nv_tileas.buffer<"),
    (copy_to("%t", "!t", "%b", "!b"), "copy", "expects one stage to copy, but got 3"),
    (
        copy_from("%v", "!v", "tensor<8x16xf32, #part>"),
        "copy",
        "expects registers for every element, but got register=[[0,1]] lane=",
    ),
    (
        copy_to("%t", "!t", "%v", "!v", "ld.shared.b32"),
        "copy",
        "expects atom 'ld.shared.b32' to be a copy from registers to shared",
    ),
    ('"nv_tileas.dealloc"(%t) : (!t) -> ()', "dealloc", "expects a buffer, but got tensor<"),
    (
        '"nv_tileas.sync"() {agent = -1 : i32} : () -> ()',
        "sync",
        "expects agent to be the index of a region, but got -1 : i32",
    ),
    (
        '"nv_tileas.sync"() {id = 16 : i32} : () -> ()',
        "sync",
        "expects id to be a named barrier, 0 to 15, but got 16",
    ),
    (
        '"nv_tileas.fence"() {proxy = "alias"} : () -> ()',
        "fence",
        "expects a proxy of async, async.global, mbarrier_init, but got 'alias'",
    ),
    (
        '%x = "nv_tileas.barrier_init"(%b) : (!b) -> !bar',
        "barrier_init",
        "expects a buffer of one i64 in shared memory, but got !nv_tileas.buffer<tensor<8x16xf32",
    ),
    (
        '%x = "nv_tileas.barrier_init"(%w) : (!w) -> !nv_tileas.barrier<1 : i32, 2 : i32>',
        "barrier_init",
        "expects 3 stages, but got 2",
    ),
    (
        '%x = "nv_tileas.barrier_init"(%w) : (!w) -> !nv_tileas.barrier<0 : i32, 3 : i32>',
        "barrier_init",
        "expects 1 to 1048575 arrivals, but got 0",
    ),
    (
        '%x = "nv_tileas.barrier_init"(%w) : (!w) -> !nv_tileas.barrier<1 : i32, 0 : i32>',
        "barrier_init",
        "expects a barrier of at least one stage, but got 0",
    ),
    (
        '"nv_tileas.barrier_invalidate"(%w) : (!w) -> ()',
        "barrier_invalidate",
        "expects a barrier, but got !nv_tileas.buffer<",
    ),
    (
        arrive("thread", at="%bar, %l", types="!bar, i64"),
        "barrier_arrive",
        "expects stage to be i32, but got i64",
    ),
    (
        '"nv_tileas.barrier_expect"(%bar, %i) {bytes = 1048576 : i32} : (!bar, i32) -> ()',
        "barrier_expect",
        "expects 1 to 1048575 bytes, but got 1048576",
    ),
    (
        arrive("lane"),
        "barrier_arrive",
        "expects by to be one of thread, warp, agent, but got 'lane'",
    ),
    (
        arrive("warp", "tma"),
        "barrier_arrive",
        "expects kind to be one of generic, cp.async, tcgen05, but got 'tma'",
    ),
    (
        arrive("warp", "cp.async"),
        "barrier_arrive",
        "expects every thread to arrive for its own copies, but got 'warp'",
    ),
    (
        '"nv_tileas.barrier_wait"(%bar, %i, %l) : (!bar, i32, i64) -> ()',
        "barrier_wait",
        "expects phase to be i32, but got i64",
    ),
    (
        load("%ps, %b", "!ps, !b"),
        "async_load",
        "expects one stage of shared memory to copy to, but got !nv_tileas.buffer<",
    ),
    (
        load("%ps, %v, %i", "!ps, !v, i32", "1, 0, 1, 1, 0"),
        "async_load",
        "expects a memory token, but got i32",
    ),
    (
        load("%ps, %v", "!ps, !v", results="(!tok, !tok)"),
        "async_load",
        "expects an async token and a memory token, but got !nv_tileaa.mem_token, "
        "!nv_tileaa.mem_token",
    ),
    (
        load("%ps, %v", "!ps, !v", attributes='mem_semantic = "acquire"'),
        "async_load",
        "unsupported mem_semantic: acquire",
    ),
    (
        load("%ps, %v", "!ps, !v", attributes='mem_semantic = "weak", layout = "r"'),
        "async_load",
        'expects layout to be a distributed layout, but got "r"',
    ),
    (
        load("%ps, %v", "!ps, !v", attributes='mem_semantic = "weak", layout = #part'),
        "async_load",
        "expects a layout for every element of [8, 16], but got register=[[0,1]] lane=",
    ),
    (load("%t, %v", "!t, !v"), "async_load", "expects pointers, but got tensor<8x16xf32, "),
    (
        load("%ps, %h", "!ps, !h"),
        "async_load",
        "cannot copy what tensor<8x16x!nv_tileaa.ptr<f32, 1 : i32>> points to to "
        "!nv_tileas.buffer<tensor<4x16xf32",
    ),
    (
        load("%ps, %f, %v", "!ps, !f, !v", "1, 1, 1, 0, 0"),
        "async_load",
        "expects a mask of i1 of shape [8, 16], but got tensor<8x16xf32>",
    ),
    (
        tiled("%given, %i, %i, %v", "!view, i32, i32, !v"),
        "async_tiled_load",
        "tiled_load's tiled_view type must be produced by block_tile directly",
    ),
    (
        tiled("%view, %i, %i, %h", "!view, i32, i32, !h"),
        "async_tiled_load",
        "cannot copy a tile of !nv_tileaa.tiled_view<...> to !nv_tileas.buffer<",
    ),
    (
        tiled("%view, %i, %v", "!view, i32, !v", "1, 1, 1, 0, 0"),
        "async_tiled_load",
        "expects 2 coordinates, but got 1",
    ),
    (
        tiled("%view, %i, %i, %v, %i", "!view, i32, i32, !v, i32", "1, 2, 1, 0, 1"),
        "async_tiled_load",
        "expects exists to be i1, but got i32",
    ),
    (
        bulk("%v, %v", "!v, !v", "1, 1, 0, 0"),
        "async_copy",
        "cannot copy from !nv_tileas.buffer<...> to !nv_tileas.buffer<",
    ),
    (
        bulk("%v, %p", "!v, !p", "1, 1, 0, 0", size=40),
        "async_copy",
        "expects bytes to be a positive multiple of 16, but got 40",
    ),
    (
        bulk("%p, %v", "!p, !v", "1, 1, 0, 0"),
        "async_copy",
        "expects a barrier and its stage for copies to shared memory, and for no others",
    ),
    (
        bulk("%v, %p", "!v, !p", "1, 1, 0, 0", result="!tok"),
        "async_copy",
        "expects an async token, but got !nv_tileaa.mem_token",
    ),
    (
        commit("cp.async", "%tok", "!tok"),
        "async_commit_group",
        "expects async tokens, but got !nv_tileaa.mem_token",
    ),
    (
        commit("mma"),
        "async_commit_group",
        "expects a group of cp.async, bulk, bulk.read, wgmma, but got 'mma'",
    ),
    (commit("bulk.read"), "async_commit_group", "cannot commit groups of 'bulk.read'"),
    (commit("wgmma"), "async_commit_group", "cannot commit groups of 'wgmma'"),
    (wait(-1), "async_wait", "expects pending to be at least 0, but got -1"),
]


@pytest.mark.parametrize(("line", "name", "message"), REFUSED)
def test_refusals(line: str, name: str, message: str) -> None:
    pattern = re.escape(f"'nv_tileas.{name}' op {message}").replace(re.escape("<...>"), "<.*>")
    assert re.match(pattern, refusal(line)), refusal(line)


def test_a_large_tile_is_refused() -> None:
    big = '!nv_tileaa.tiled_view<!m, array<i32: 8192, 4096>, array<i32: 0, 1>, "zero">'
    room = '!nv_tileas.buffer<tensor<8192x4096xf32>, "shared", 1 : i32>'
    lines = [
        '%m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m',
        f'%view = "nv_tileaa.block_tile"(%m) : (!m) -> {big}',
        alloc(room),
        '%y:2 = "nv_tileas.async_tiled_load"(%view, %i, %i, %x) {mem_semantic = "weak", '
        f"operandSegmentSizes = array<i32: 1, 2, 1, 0, 0>}} : ({big}, i32, i32, {room}) -> "
        "(!async, !tok)",
    ]
    assert refusal("\n".join(lines)).endswith(
        "tile would exceed the maximum of 16777216 elements, got [8192, 4096]"
    )


def test_effects_are_on_the_buffers() -> None:
    from tile_tileas.dialect.effects import buffer_effects

    text = in_function(f"{copy_to('%t', '!t', '%v', '!v')}\n{copy_from('%v', '!v', '!t')}")
    with function(text) as found:
        stored, loaded, _ = found.regions[0].blocks[0].operations
        tile, stage = stored.operands
        assert buffer_effects(stored) == [("read", tile), ("write", stage)]
        assert buffer_effects(loaded) == [("read", stage)]
        assert isinstance(stored, ir.OpView)
