"""What pipes, agents and copies by tensor maps refuse, in their words."""

from __future__ import annotations

import re

import pytest
from support.functions import function

from tile_core.diagnostics import InputError

HEAD = """
#s = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,0]] : 8x16">
#z = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,4],[4,8]] : 8x16">
#other = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,4],[2,8],[4,0]] : 8x16">
#rows = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0]] : 4x16">
#one = #nv_tileas.layout<": 1">
!b = !nv_tileas.buffer<tensor<8x16xf32, #s>, "shared", 3 : i32>
!b2 = !nv_tileas.buffer<tensor<8x16xf32, #s>, "shared", 2 : i32>
!v = !nv_tileas.buffer<tensor<8x16xf32, #s>, "shared", 1 : i32>
!plain = !nv_tileas.buffer<tensor<8x16xf32>, "shared", 1 : i32>
!wrong = !nv_tileas.buffer<tensor<8x16xf32, #other>, "shared", 1 : i32>
!rows = !nv_tileas.buffer<tensor<4x16xf32, #rows>, "shared", 1 : i32>
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
!it = !nv_tileas.pipeline_iterator<!v>
!it2 = !nv_tileas.pipeline_iterator<i1>
!small = !nv_tileas.buffer<tensor<1xi64, #one>, "shared", 1 : i32>
!async = !nv_tileas.async_token
!bar = !nv_tileas.barrier<1 : i32, 3 : i32>
!d = !nv_tileas.tma_desc<tensor<8x16xf32>, "none">
!dz = !nv_tileas.tma_desc<tensor<8x16xf32>, "64B">
!dr = !nv_tileas.tma_desc<tensor<1x16xf32>, "none">
!p = !nv_tileaa.ptr<f32, 1 : i32>
!m = !nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: 64, 1>>
!view = !nv_tileaa.tiled_view<!m, array<i32: 8, 16>, array<i32: 0, 1>, "zero">
!m2 = !nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: 64, 2>>
!view2 = !nv_tileaa.tiled_view<!m2, array<i32: 8, 16>, array<i32: 0, 1>, "zero">
"""
ARGUMENTS = (
    "%i: i32, %l: i64, %h: i16, %b: !b, %b2: !b2, %v: !v, %plain: !plain, %wrong: !wrong, "
    "%rows: !rows, %pt: !pt, %ct: !ct, %it: !it, %it2: !it2, %a: !async, %bar: !bar, %d: !d, "
    "%dz: !dz, %dr: !dr, %p: !p, %view: !view, %view2: !view2, %small: !small"
)
P = "nv_tileas.async_pipeline_"
YIELD = f'"{P}yield"() {{operandSegmentSizes = array<i32: {", ".join(["0"] * 16)}>}} : () -> ()'


def in_function(body: str) -> str:
    return f"{HEAD}func.func @f({ARGUMENTS}) {{\n{body}\nreturn\n}}"


def segments(*sizes: int) -> str:
    return ", ".join(map(str, [*sizes, *[0] * (16 - len(sizes))]))


def create(operands: str, types: str, count: int, stages: int = 3, made: str = "(!pt, !ct)") -> str:
    return (
        f'%x:2 = "{P}create_pipeline"({operands}) {{numStages = {stages} : i32, '
        "producerGroupId = 0 : i8, consumerGroupId = 1 : i8, "
        f"operandSegmentSizes = array<i32: {segments(count)}>}} : ({types}) -> {made}"
    )


def end(
    name: str,
    operands: str = "%pt, %it",
    types: str = "!pt, !it",
    attributes: str = "",
    made: str = "!pt",
) -> str:
    return f'%x = "{P}{name}"({operands}) {{{attributes}}} : ({types}) -> {made}'


def commit(kind: str, rest: str = "") -> str:
    return end("producer_commit", attributes=f'kind = "{kind}"{rest}')


def produce(
    body: str = YIELD,
    arguments: str = "%s: !v",
    types: str = "!v",
    kind: str = ', kind = "generic"',
    name: str = "produce_one",
    made: str = "!pt",
    results: int = 0,
) -> str:
    count = 1 + results + ("async" in name)
    sizes = [1] * (count - results) + ([results] if results else [])
    sizes += [0] * (16 + count - results - len(sizes))
    listed = ", ".join(map(str, sizes))
    return (
        f'%x:{count} = "{P}{name}"(%pt, %it) ({{\n^bb0({arguments}):\n{body}\n}}) '
        f"{{producer_types = [{types}]{kind}, resultSegmentSizes = array<i32: {listed}>}} "
        f": (!pt, !it) -> {made}"
    )


def consume(name: str, kind: str = "", types: str = "!v", made: str = "!ct") -> str:
    count = 1 + ("async" in name)
    sizes = ", ".join(map(str, [1] * count + [0] * 16))
    return (
        f'%x:{count} = "{P}{name}"(%ct, %it2) ({{\n^bb0(%s: !v):\n{YIELD}\n}}) '
        f"{{consumer_types = [{types}], consumer_idx = 0 : i32{kind}, "
        f"resultSegmentSizes = array<i32: {sizes}>}} : (!ct, !it2) -> {made}"
    )


def agents(*texts: str, groups: str = "array<i32: 1, 1>") -> str:
    body = "\n".join(texts)
    return (
        f'"{P}agent_switch"() ({{\n{body}\n}}) {{num_agents_per_group = {groups}, '
        "isolated = false} : () -> ()"
    )


def agent(warps: int = 1, registers: int = 0, body: str = YIELD) -> str:
    attributes = f"num_warps = {warps} : i32, max_regs = {registers} : i32"
    return f'"nv_tileas.agent"() ({{\n{body}\n}}) {{{attributes}}} : () -> ()'


def load(
    desc: str = "%d",
    to: str = "%v",
    coords: str = "%i, %i",
    on: str = "%bar, %i",
    name: str = "async_tiled_tma_load",
    count: int = 512,
    extra: str = "",
    mask: str = "",
    made: str = "!async",
    kind: str = "i32",
) -> str:
    types = {"%bar": "!bar", "%pt": "!pt", "%i": "i32", "%l": "i64", "%v": "!v"}
    number, ends = coords.count("%"), [item.strip() for item in on.split(",")]
    given = [f"!{desc[1:]}", f"!{to[1:]}", *[kind] * number, *(types[item] for item in ends)]
    operands = f"{desc}, {to}, {coords}, {on}"
    if mask:
        operands, given = f"{operands}, {mask}", [*given, "i16" if mask == "%h" else "i32"]
    sizes = f"array<i32: 1, 1, {number}, 1, {len(ends) - 1}, {int(bool(mask))}>"
    return (
        f'%x = "nv_tileas.{name}"({operands}) {{tx_count = {count} : i32, operandSegmentSizes = '
        f"{sizes}{extra}}} : ({', '.join(given)}) -> {made}"
    )


def store(
    name: str = "async_tiled_tma_store",
    desc: str = "%d",
    source: str = "%v",
    count: int = 2,
    attributes: str = "",
) -> str:
    coords, kinds = ", %i" * count, ", i32" * count
    sizes = f"operandSegmentSizes = array<i32: 1, 1, {count}, 0>"
    attributes = f"{sizes}, {attributes}" if attributes else sizes
    return (
        f'%x = "nv_tileas.{name}"({desc}, {source}{coords}) {{{attributes}}} : '
        f"(!{desc[1:]}, !{source[1:]}{kinds}) -> !async"
    )


def make(made: str, view: str = "%view", mode: str = "zero") -> str:
    return (
        f'%x = "nv_tileas.make_tiled_tma_desc"({view}) {{oob_mode = "{mode}"}} : (!{view[1:]}) '
        f"-> {made}"
    )


def desc(tile: str, swizzle: str = "none") -> str:
    return f'!nv_tileas.tma_desc<tensor<{tile}>, "{swizzle}">'


def in_cluster(ctas: int = 2, stage: str = "%i", kind: str = "i32") -> str:
    return (
        f'"nv_tileas.barrier_arrive_in_cluster"(%bar, {stage}) {{ctas = {ctas} : i32}} : '
        f"(!bar, {kind}) -> ()"
    )


def claim(buffer: str = "%v", count: int = 2, result: str = "i32") -> str:
    return (
        f'%x = "nv_tileas.claim_tma_descs"({buffer}) {{count = {count} : i32}} : '
        f"(!{buffer[1:]}) -> {result}"
    )


def fill(extents: int = 2, strides: int = 1, index: int = 0, scratch: str = "%v") -> str:
    operands = ["%i", scratch, "%p", *["%i"] * extents, *["%l"] * strides]
    types = ["i32", f"!{scratch[1:]}", "!p", *["i32"] * extents, *["i64"] * strides]
    return (
        f'%x = "nv_tileas.fill_tma_desc"({", ".join(operands)}) {{element = "f32", '
        f"count = 2 : i32, index = {index} : i32, "
        f"operandSegmentSizes = array<i32: 1, 1, 1, {extents}, {strides}>}} : "
        f"({', '.join(types)}) -> !d"
    )


LEGAL = [
    '%x = "nv_tileas.cta_rank"() : () -> i32',
    in_cluster(),
    claim(),
    fill(),
    '"nv_tileas.release_tma_descs"(%i) {count = 2 : i32} : (i32) -> ()',
    create("%b", "!b", 1),
    create("%b, %b", "!b, !b", 2),
    create("", "", 0),
    f'%x = "{P}create_iterator"(%pt) : (!pt) -> !it',
    f'%x = "{P}create_iterator"(%ct) : (!ct) -> !it2',
    f'%x = "{P}inc_iter"(%it) : (!it) -> !it',
    end("producer_acquire"),
    end("producer_acquire", "%pt, %i, %i", "!pt, i32, i32"),
    commit("cp.async"),
    commit("tma", ", bytes = 512 : i32"),
    end("consumer_wait", "%ct, %it", "!ct, !it", "consumer_idx = 0 : i32", "!ct"),
    end("consumer_release", "%ct, %it", "!ct, !it", 'kind = "generic"', "!ct"),
    produce(),
    produce(name="produce_one_async", made="(!pt, !async)"),
    produce(name="producer_write", kind=""),
    consume("consume_one", ', kind = "generic"'),
    consume("consume_one_async", ', kind = "generic"', made="(!ct, !async)"),
    consume("consumer_read"),
    produce(
        f'"{P}yield"(%i) {{operandSegmentSizes = array<i32: {segments(1)}>}} : (i32) -> ()',
        made="(!pt, i32)",
        results=1,
    ),
    agents(agent(1, 24), agent(4, 240)),
    agents(agent(4), agent(4), groups="array<i32: 2>"),
    load(),
    load(on="%pt"),
    load("%dz", "%plain"),
    load(mask="%h", extra=', cache_hint = "evict_last"'),
    load("%dr", "%rows", ", ".join(["%i"] * 5), name="async_gather_tma_load", count=256),
    store(),
    store("async_tiled_tma_reduce", attributes='rmw_mode = "add"'),
    store("async_scatter_tma_store", "%dr", "%rows", 5),
    make("!d"),
    '"nv_tileas.prefetch_tma_desc"(%d) : (!d) -> ()',
    '"nv_tileas.acquire_tma_desc"(%d) : (!d) -> ()',
]


@pytest.mark.parametrize("line", LEGAL)
def test_what_is_legal_verifies(line: str) -> None:
    with function(in_function(line)) as found:
        assert found.operation.verify()


REFUSED = [
    (
        '%x = "nv_tileas.cta_rank"() : () -> i64',
        "nv_tileas.cta_rank",
        "expects an i32, but got i64",
    ),
    (in_cluster(17), "nv_tileas.barrier_arrive_in_cluster", "expects 2 to 16 blocks, but got 17"),
    (
        in_cluster(stage="%l", kind="i64"),
        "nv_tileas.barrier_arrive_in_cluster",
        "expects stage to be i32, but got i64",
    ),
    (claim(count=0), "nv_tileas.claim_tma_descs", "expects count to be positive, but got 0"),
    (
        claim(result="i64"),
        "nv_tileas.claim_tma_descs",
        "expects a buffer in shared memory and an i32, but got !nv_tileas.buffer<",
    ),
    (
        fill(extents=3),
        "nv_tileas.fill_tma_desc",
        "expects 2 extents and 1 strides, but got (3, 1)",
    ),
    (
        fill(scratch="%small"),
        "nv_tileas.fill_tma_desc",
        "expects 128 bytes of scratch, but got !nv_tileas.buffer<",
    ),
    (fill(index=2), "nv_tileas.fill_tma_desc", "expects an index below 2, but got 2"),
    (create("%b", "!b", 1, 0), "create_pipeline", "expects at least one stage, but got 0"),
    (create("%i", "i32", 1), "create_pipeline", "expects a buffer, but got i32"),
    (create("%b2", "!b2", 1), "create_pipeline", "expects payloads of 3 stages, but got 2"),
    (
        create("", "", 0, made="(!ct, !pt)"),
        "create_pipeline",
        "expects a producer and a consumer token, but got !nv_tileas.pipeline_consumer_token, "
        "!nv_tileas.pipeline_producer_token",
    ),
    (
        f'%x = "{P}create_iterator"(%it) : (!it) -> !it',
        "create_iterator",
        "expects an end of a pipe, but got !nv_tileas.pipeline_iterator<",
    ),
    (
        f'%x = "{P}create_iterator"(%pt) : (!pt) -> i32',
        "create_iterator",
        "expects an iterator, but got i32",
    ),
    (
        f'%x = "{P}inc_iter"(%it) : (!it) -> !it2',
        "inc_iter",
        "cannot step from !nv_tileas.pipeline_iterator<...> to !nv_tileas.pipeline_iterator<i1>",
    ),
    (
        end("producer_acquire", "%ct, %it", "!ct, !it"),
        "producer_acquire",
        "expects a producer token, but got !nv_tileas.pipeline_consumer_token",
    ),
    (
        end("consumer_wait", attributes="consumer_idx = 0 : i32"),
        "consumer_wait",
        "expects a consumer token, but got !nv_tileas.pipeline_producer_token",
    ),
    (
        end("producer_acquire", "%pt, %i", "!pt, i32"),
        "producer_acquire",
        "expects an iterator, or a stage and a phase, but got ['i32']",
    ),
    (
        commit("wgmma"),
        "producer_commit",
        "expects a kind of generic, cp.async, tma, but got 'wgmma'",
    ),
    (commit("tma"), "producer_commit", "expects bytes for commits of kind tma, and for no others"),
    (
        end("consumer_wait", "%ct, %it", "!ct, !it", "consumer_idx = -1 : i32", "!ct"),
        "consumer_wait",
        "expected 'consumer_idx' less than the number of consumer groups, but got -1",
    ),
    (
        produce('%y = "arith.addi"(%i, %i) : (i32, i32) -> i32\n"nv_tileas.yield"() : () -> ()'),
        "produce_one",
        "expects regions to end with 'nv_tileas.async_pipeline_yield'",
    ),
    (
        produce(types="!b"),
        "produce_one",
        "expects region arguement types to match with producer types [<...>], but got: [<...>]",
    ),
    (
        produce(made="(!pt, i32)", results=1),
        "produce_one",
        "expects region result types to be match with operation result types ['i32'], but got: []",
    ),
    (
        produce(name="produce_one_async", made="(!pt, !pt)"),
        "produce_one_async",
        "expects an async token, but got !nv_tileas.pipeline_producer_token",
    ),
    (
        consume("consumer_read", types="i32"),
        "consumer_read",
        "expects region arguement types to match with producer types ['i32'], but got",
    ),
    (
        consume("consume_one_async", ', kind = "generic"', made="(!ct, !ct)"),
        "consume_one_async",
        "expects an async token, but got !nv_tileas.pipeline_consumer_token",
    ),
    (
        agents('%y = "arith.addi"(%i, %i) : (i32, i32) -> i32'),
        "agent_switch",
        "expects a region of 'nv_tileas.agent' operations",
    ),
    (
        f'"{P}agent_switch"() ({{\n}}) {{num_agents_per_group = array<i32: 1>, isolated = false}} '
        ": () -> ()",
        "agent_switch",
        "expects one block of agents",
    ),
    (
        agents(agent()),
        "agent_switch",
        "expects num_agents_per_group to count 1 agents, but got array<i32: 1, 1>",
    ),
    (
        agents(agent(1), agent(2), groups="array<i32: 2>"),
        "agent_switch",
        "agent regions disagree on warp count",
    ),
    (agent(), "nv_tileas.agent", f"expects parent op '{P}agent_switch'"),
    (
        agents(agent(body='"nv_tileas.yield"() : () -> ()'), agent()),
        "nv_tileas.agent",
        "expects regions to end with 'nv_tileas.async_pipeline_yield'",
    ),
    (agents(agent(0), agent()), "nv_tileas.agent", "expects at least one warp, but got 0"),
    (
        agents(agent(1, 20), agent()),
        "nv_tileas.agent",
        "expects max_regs to be 0 or a multiple of 8 from 24 to 256, but got 20",
    ),
    (make("!it"), "nv_tileas.make_tiled_tma_desc", "expects a tma descriptor, but got !nv_tileas."),
    (
        make(desc("8x16xf32", "16B")),
        "nv_tileas.make_tiled_tma_desc",
        "expects a swizzle_mode of none, 32B, 64B, 128B, 128B_32B_atom, but got '16B'",
    ),
    (
        make(desc("1x1x1x1x8x16xf32")),
        "nv_tileas.make_tiled_tma_desc",
        "expects a box of 1 to 5 axes, but got 6",
    ),
    (
        make(desc("512x16xf32")),
        "nv_tileas.make_tiled_tma_desc",
        "expects a box of extents up to 256, but got [512, 16]",
    ),
    (
        make(desc("8x2xf32")),
        "nv_tileas.make_tiled_tma_desc",
        "tma leading box-dim bit-width is not 16 bytes aligned",
    ),
    (
        make(desc("8x16xf32", "32B")),
        "nv_tileas.make_tiled_tma_desc",
        "expects rows of up to 32 bytes for swizzle 32B, but got 64",
    ),
    (
        make("!d", "%v"),
        "nv_tileas.make_tiled_tma_desc",
        "expects a tiled view, but got !nv_tileas.buffer<",
    ),
    (
        make(desc("16xf32")),
        "nv_tileas.make_tiled_tma_desc",
        "tma box-dim and copy atom box-dim mismatch: tensor<16xf32> of !nv_tileaa.memref<",
    ),
    (
        make("!d").replace("{oob", "{axes = array<i32: 0, 0>, oob"),
        "nv_tileas.make_tiled_tma_desc",
        "expects axes of !nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: 64, 1>>, each at "
        "most once, but got array<i32: 0, 0>",
    ),
    (
        make("!d", "%view2"),
        "nv_tileas.make_tiled_tma_desc",
        "expects unit element stride along the last axis, but got [64, 2]",
    ),
    (
        make("!d").replace("{oob", "{joined = 3 : i32, oob"),
        "nv_tileas.make_tiled_tma_desc",
        "expects 2 to 2 dimensions to be joined, but got 3",
    ),
    (
        make(desc("8x8xf32", "32B")).replace("{oob", "{joined = 2 : i32, oob"),
        "nv_tileas.make_tiled_tma_desc",
        "expects no swizzle of joined axes, but got 32B",
    ),
    (
        make("!d", mode="one"),
        "nv_tileas.make_tiled_tma_desc",
        "expects an oob_mode of zero, nan, constant, but got 'one'",
    ),
    (
        make("!d", mode="constant"),
        "nv_tileas.make_tiled_tma_desc",
        "TmaLoad only support zero padding now",
    ),
    (
        load(to="%b"),
        "nv_tileas.async_tiled_tma_load",
        "expects one stage of shared memory as destination, but got !nv_tileas.buffer<",
    ),
    (
        load(name="async_gather_tma_load"),
        "nv_tileas.async_gather_tma_load",
        "expects a descriptor of one row, but got [8, 16]",
    ),
    (
        load(to="%rows"),
        "nv_tileas.async_tiled_tma_load",
        "tma box-dim and copy atom box-dim mismatch: [8, 16] and tensor<4x16xf32",
    ),
    (
        load(to="%wrong"),
        "nv_tileas.async_tiled_tma_load",
        "expects a TMA-compatible layout for swizzle none, but got offset=",
    ),
    (load(coords="%i"), "nv_tileas.async_tiled_tma_load", "expects 2 coordinates, but got 1"),
    (
        load(coords="%l, %l", kind="i64"),
        "nv_tileas.async_tiled_tma_load",
        "expects coordinates to be i32, but got i64",
    ),
    (
        load(on="%pt, %i"),
        "nv_tileas.async_tiled_tma_load",
        "expects no stage beside a producer token",
    ),
    (
        load(on="%v, %i"),
        "nv_tileas.async_tiled_tma_load",
        "expects a barrier, but got !nv_tileas.buffer<",
    ),
    (
        load(on="%bar, %l"),
        "nv_tileas.async_tiled_tma_load",
        "expects the i32 stage of its barrier",
    ),
    (
        load(count=256),
        "nv_tileas.async_tiled_tma_load",
        "expects tx_count to be 512 bytes, but got 256",
    ),
    (
        load(mask="%i"),
        "nv_tileas.async_tiled_tma_load",
        "expects a mask of blocks in i16, but got i32",
    ),
    (
        load(extra=', cache_hint = "evict"'),
        "nv_tileas.async_tiled_tma_load",
        "expects a cache_hint of evict_first, evict_last, no_allocate, but got 'evict'",
    ),
    (
        load(made="!pt"),
        "nv_tileas.async_tiled_tma_load",
        "expects an async token, but got !nv_tileas.pipeline_producer_token",
    ),
    (
        store("async_tiled_tma_reduce", attributes='rmw_mode = "addf"'),
        "nv_tileas.async_tiled_tma_reduce",
        "expects an rmw_mode of add, min, max, inc, dec, and, or, xor, but got 'addf'",
    ),
]


@pytest.mark.parametrize(("line", "name", "message"), REFUSED)
def test_refusals(line: str, name: str, message: str) -> None:
    name = name if "." in name else P + name
    with pytest.raises(InputError) as caught, function(in_function(line)):
        pass
    pattern = re.escape(f"'{name}' op {message}").replace(re.escape("<...>"), ".*")
    assert re.match(pattern, caught.value.message), caught.value.message


def test_agents_fit_the_kernel() -> None:
    head = "func.func @f() attributes {nv_tileaa.kernel_spec = {num_warps = 4 : i32}} {\n"
    with function(f"{head}{agents(agent(1), agent(3))}\nreturn\n}}"):
        pass
    with (
        pytest.raises(InputError, match="agent warp count exceeds module budget"),
        function(f"{head}{agents(agent(1), agent(4))}\nreturn\n}}"),
    ):
        pass
