"""Check mode: nothing to report about clean programs, and every planted bug reported."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from tile_sim import LaunchReport, Module, SimError, TensorMap

Cuda = Callable[[str], Module]
Kernel = Callable[..., Module]


def _arguments(name: str, rng: np.random.Generator) -> tuple[str, tuple, tuple, list, int]:
    """Kernel, grid, block, arguments and dynamic shared memory of each clean program."""
    f = lambda *shape: rng.random(shape, np.float32)  # noqa: E731
    i32 = lambda *shape: np.zeros(shape, np.int32)  # noqa: E731
    table: dict[str, tuple[str, tuple, tuple, list, int]] = {
        "saxpy": ("saxpy", (3, 1, 1), (64, 1, 1), [150, 2.0, f(150), f(150)], 0),
        "matmul": (
            "matmul", (2, 2, 1), (16, 16, 1),
            [f(32, 32), f(32, 32), f(32, 32), 32, 32, 32], 0,
        ),
        "reduce": ("reduce_sum", (2, 1, 1), (96, 1, 1), [f(500), 500, f(1)], 0),
        "histogram": (
            "histogram", (2, 1, 1), (64, 1, 1), [np.ones(300, np.uint8), 300, i32(256)], 0,
        ),
        "scan": ("scan", (3, 1, 1), (64, 1, 1), [i32(192), i32(192), 192, i32(6), i32(1)], 256),
        "sort": ("bitonic", (2, 1, 1), (64, 1, 1), [rng.integers(0, 99, (2, 128), np.uint32)], 512),
        "softmax": ("softmax", (2, 1, 1), (64, 1, 1), [f(2, 100), f(2, 100), 100], 0),
        "tensor_sm80": (
            "mma_tile", (2, 1, 1), (32, 1, 1),
            [np.ones((16, 32), np.float16), np.ones((32, 16), np.float16), f(16, 16), 16, 32], 0,
        ),
    }  # fmt: skip
    return table[name]


@pytest.mark.parametrize(
    "name",
    ["saxpy", "matmul", "reduce", "histogram", "scan", "sort", "softmax", "tensor_sm80"],
)
def test_clean_programs(cuda: Cuda, name: str) -> None:
    kernel, grid, block, args, shared = _arguments(name, np.random.default_rng(1))
    report = cuda(name).launch(kernel, grid, block, args, shared_bytes=shared, check=True)
    assert [str(f) for f in report.findings] == []


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize("kernel", ["staged_sum", "groups", "producer_consumer"])
def test_clean_pipelines(cuda: Cuda, kernel: str, schedule: str) -> None:
    x = np.ones(5 * 256, np.float32)
    args: list[Any] = [
        x,
        np.zeros(1280, np.float32),
        {"staged_sum": 5, "groups": 1100}.get(kernel, 5),
    ]
    block = {"staged_sum": 64, "groups": 32, "producer_consumer": 128}[kernel]
    report = cuda("pipeline").launch(
        kernel, (1, 1, 1), (block, 1, 1), args, shared_bytes=2048, check=True, schedule=schedule
    )
    assert [str(f) for f in report.findings] == []


def _without(cuda: Cuda, name: str, text: str, which: int = 0) -> Module:
    """The module with the n-th line that holds `text` left out."""
    lines = cuda(name).source.text.split("\n")
    hits = [i for i, line in enumerate(lines) if text in line]
    lines[hits[which]] = ""
    return Module("\n".join(lines))


def _check(module: Module, name: str) -> LaunchReport:
    kernel, grid, block, args, shared = _arguments(name, np.random.default_rng(1))
    return module.launch(kernel, grid, block, args, shared_bytes=shared, check=True)


@pytest.mark.parametrize(
    ("name", "which"), [("matmul", 0), ("matmul", 1), ("sort", 0), ("softmax", 0)]
)
def test_a_missing_barrier_is_a_race(cuda: Cuda, name: str, which: int) -> None:
    try:
        report = _check(_without(cuda, name, "bar.sync", which), name)
    except SimError as error:
        # Reading before anybody wrote ends the run at once.
        assert error.kind == "uninitialised"  # noqa: PT017
        return
    races = [f for f in report.findings if f.kind == "race"]
    assert races
    assert races[0].where is not None
    assert f"{name}.cu" in str(races[0].where)


def test_plain_increment_of_global_memory_is_a_race(kernel: Kernel) -> None:
    body = "ld.global.u32 %r1, [x]; add.u32 %r1, %r1, 1; st.global.u32 [x], %r1;"
    module = kernel(body, "u64 x")
    report = module.launch("k", (2, 1, 1), (64, 1, 1), [np.zeros(1, np.uint32)], check=True)
    assert {f.kind for f in report.findings} == {"race"}
    clean = kernel("red.global.add.u32 [x], 1;", "u64 x")
    report = clean.launch("k", (2, 1, 1), (64, 1, 1), [np.zeros(1, np.uint32)], check=True)
    assert report.findings == []


def test_flag_with_and_without_acquire(kernel: Kernel) -> None:
    """Warp 1 waits for a flag that warp 0 sets after its data."""
    body = """
    mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 bra CONSUME;
    mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, data, %rd1; st.global.u32 [%rd2], %r1;
    bar.warp.sync 0xffffffff;
    st.release.gpu.global.u32 [flag], 1;
    bra END;
    CONSUME: ld.acquire.gpu.global.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra CONSUME;
    sub.u32 %r3, %r1, 32; mul.wide.u32 %rd1, %r3, 4; add.u64 %rd2, data, %rd1;
    ld.global.u32 %r4, [%rd2]; add.u64 %rd3, out, %rd1; st.global.u32 [%rd3], %r4;
    END:
    """
    for wait, races in ((True, False), (False, True)):
        text = body if wait else body.replace("ld.acquire.gpu.global", "ld.global")
        out = np.zeros(32, np.uint32)
        args = [np.zeros(32, np.uint32), np.zeros(1, np.uint32), out]
        module = kernel(text, "u64 data, u64 flag, u64 out")
        report = module.launch("k", (1, 1, 1), (64, 1, 1), args, check=True)
        assert bool(report.findings) == races


@pytest.mark.parametrize("meets", [True, False])
@pytest.mark.parametrize("size", ["", ", 8"])
def test_copies_read_global_memory(kernel: Kernel, meets: bool, size: str) -> None:
    """`cp.async` of what another warp stored."""
    body = f"""
    .shared .align 16 .b8 buf[1024];
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 16; add.u64 %rd2, data, %rd1;
    st.global.v2.u32 [%rd2], {{%r1, %r1}};
    {"bar.sync 0;" if meets else ""}
    xor.b32 %r2, %r1, 32; mul.wide.u32 %rd3, %r2, 16; add.u64 %rd4, data, %rd3;
    mov.u32 %r3, buf; mad.lo.u32 %r4, %r1, 16, %r3;
    cp.async.cg.shared.global [%r4], [%rd4], 16{size};
    cp.async.wait_all;
    """
    data = np.zeros(256, np.uint32)
    report = kernel(body, "u64 data").launch("k", (1, 1, 1), (64, 1, 1), [data], check=True)
    assert ("race" in {f.kind for f in report.findings}) != meets


TMA = """
.shared .align 1024 .b8 buf[1024];
.shared .align 8 .b64 bar;
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, buf; mov.u32 %r3, bar;
shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4; st.shared.b32 [%r5], %r1;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p1 bra END;
cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [map, {0}], [%r2];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
END: bar.sync 0;
st.shared.b32 [%r5], %r2;
"""


@pytest.mark.parametrize(
    ("old", "kind"),
    [
        ("", None),
        ("fence.proxy.async.shared::cta;", "missing-proxy-fence"),
        ("bar.sync 0;\n@!%p1", "race"),
        ("cp.async.bulk.wait_group.read 0;", "source-overwritten"),
    ],
)
def test_store_through_the_asynchronous_proxy(kernel: Kernel, old: str, kind: str | None) -> None:
    text = TMA.replace(old, "@!%p1" if "@!" in old else "") if old else TMA
    out = np.zeros(128, np.uint32)
    module = kernel(text, "u64 map")
    report = module.launch("k", (1, 1, 1), (128, 1, 1), [TensorMap(out, box=(128,))], check=True)
    kinds = {f.kind for f in report.findings}
    assert (kind in kinds) if kind else kinds == set(), [str(f) for f in report.findings]


TWO_SLOTS = """
.shared .align 1024 .b8 buf[1024];
mov.u32 %r1, %tid.x; mov.u32 %r2, buf; add.u32 %r3, %r2, 512;
shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4; st.shared.b32 [%r5], %r1; st.shared.b32 [%r5+512], %r1;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ge.u32 %p1, %r1, 32; @%p1 bra OTHER;
setp.eq.u32 %p2, %r1, 0;
@%p2 cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [map, {0}], [%r2];
@%p2 cp.async.bulk.commit_group;
@%p2 cp.async.bulk.wait_group.read 0;
bar.warp.sync 0xffffffff;
bar.arrive 1, 128;
@%p2 cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [map, {128}], [%r3];
@%p2 cp.async.bulk.commit_group;
@%p2 cp.async.bulk.wait_group.read 0;
bra END;
OTHER:
bar.sync 1, 128;
mov.u32 %r6, 0;
LATER: add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, 40; @%p3 bra LATER;
st.shared.b32 [%r5], %r2;
END:
"""


@pytest.mark.parametrize("schedule", ["late", "early"])
@pytest.mark.parametrize("waits", [True, False])
def test_a_slot_is_free_after_the_first_wait(kernel: Kernel, schedule: str, waits: bool) -> None:
    """`wait_group.read` of a second slot covers the first group again, whose slot others have."""
    text = TWO_SLOTS
    if not waits:
        text = text.replace("@%p2 cp.async.bulk.wait_group.read 0;\nbar.warp", "bar.warp")
    maps = [TensorMap(np.zeros(256, np.uint32), box=(128,))]
    module = kernel(text, "u64 map")
    report = module.launch("k", (1, 1, 1), (128, 1, 1), maps, check=True, schedule=schedule)
    assert bool(report.findings) != waits, [str(f) for f in report.findings]


@pytest.mark.parametrize("strict", [True, False])
def test_lanes_that_store_the_same_box(kernel: Kernel, strict: bool) -> None:
    """tileiras has all lanes of a warp issue one tensor store; unless `strict`, it is one."""
    text = TMA.replace("%r1, 0;", "%r1, 32;").replace("setp.eq", "setp.lt", 1)
    module = kernel(text, "u64 map")
    report = module.launch(
        "k", (1, 1, 1), (128, 1, 1), [TensorMap(np.zeros(128, np.uint32), box=(128,))],
        check=True, strict=strict,
    )  # fmt: skip
    assert {f.kind for f in report.findings} == ({"destination-in-flight"} if strict else set())


@pytest.mark.parametrize("changed", [False, True])
def test_boxes_that_get_the_same_twice(kernel: Kernel, changed: bool) -> None:
    """tileiras orders stores to one box by the read of their source; with other bytes it shows."""
    first, second = TMA.split("END:")
    change = "st.shared.b32 [%r5], 77; fence.proxy.async.shared::cta;" * changed
    again = "cp.async.bulk.tensor" + first.split("cp.async.bulk.tensor")[1]
    module = kernel(f"{first}{change}{again}END:{second}", "u64 map")
    report = module.launch(
        "k", (1, 1, 1), (128, 1, 1), [TensorMap(np.zeros(128, np.uint32), box=(128,))],
        check=True, strict=False,
    )  # fmt: skip
    assert ("destination-in-flight" in {f.kind for f in report.findings}) == changed


def test_mbarrier_hand_over(kernel: Kernel) -> None:
    """Data passed between warps by an mbarrier; the clean one waits."""
    body = """
    .shared .align 8 .b64 bar;
    .shared .align 4 .b32 s[32];
    mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, bar; mov.u32 %r2, s;
    @%p1 mbarrier.init.shared.b64 [%r3], 32;
    bar.sync 0;
    and.b32 %r4, %r1, 31; shl.b32 %r4, %r4, 2; add.u32 %r5, %r2, %r4;
    setp.ge.u32 %p2, %r1, 32; @%p2 bra WAIT;
    st.shared.b32 [%r5], %r1; mbarrier.arrive.shared.b64 _, [%r3]; bra END;
    WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0; @!%p3 bra WAIT;
    ld.shared.b32 %r6, [%r5];
    END:
    """
    assert kernel(body).launch("k", (1, 1, 1), (64, 1, 1), [], check=True).findings == []
    wait = "mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0; @!%p3 bra WAIT;"
    assert wait in body
    broken = kernel(body.replace(wait, ""))
    report = broken.launch("k", (1, 1, 1), (64, 1, 1), [], check=True, check_uninitialised=False)
    assert {f.kind for f in report.findings} == {"race"}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (
            "mbarrier.init.shared.b64 [%r3], 1; mbarrier.arrive.shared.b64 _, [%r3], 2;",
            "more arrivals",
        ),
        ("mbarrier.arrive.shared.b64 _, [%r3];", "no mbarrier object"),
        ("mbarrier.init.shared.b64 [%r3], 0;", "count"),
        ("mbarrier.init.shared.b64 [%r3], 1; mbarrier.init.shared.b64 [%r3], 1;", "live mbarrier"),
        ("mbarrier.init.shared.b64 [%r3], 1; st.shared.b64 [%r3], 0;", "live mbarrier"),
    ],
)
def test_misuse_of_an_mbarrier(kernel: Kernel, body: str, word: str) -> None:
    text = f".shared .align 8 .b64 bar; mov.u32 %r3, bar; {body}"
    with pytest.raises(SimError, match=word) as caught:
        kernel(text).launch("k", (1, 1, 1), (1, 1, 1), [])
    assert caught.value.kind == "mbarrier"


@pytest.mark.parametrize(
    ("use", "word"),
    [
        ("", None),
        ("mbarrier.arrive.shared.b64 _, [%r3];", "no mbarrier object"),
        ("mbarrier.test_wait.parity.shared.b64 %p1, [%r3], 1;", "no mbarrier object"),
        ("mbarrier.init.shared.b64 [%r3], 0x100000;", "count"),
    ],
)
def test_an_mbarrier_of_count_0_is_for_nobody(kernel: Kernel, use: str, word: str | None) -> None:
    """tileiras makes one in the second CTA of a pair; unless `strict`, only its use is wrong."""
    text = f".shared .align 8 .b64 bar; mov.u32 %r3, bar; mbarrier.init.shared.b64 [%r3], 0; {use}"
    outcome = pytest.raises(SimError, match=word) if word else nullcontext()
    with outcome:
        kernel(text).launch("k", (1, 1, 1), (1, 1, 1), [], check=True, strict=False)


MALLOC = """
.extern .func (.param .b64 found) malloc (.param .b64 size);
"""


@pytest.mark.parametrize(
    ("size", "offset", "strict", "fine"),
    [
        (19, 16, True, False), (19, 16, False, True), (19, 28, False, True),
        (19, 32, False, False), (16, 16, False, False), (20, 16, True, True),
    ],
)  # fmt: skip
def test_what_malloc_rounds_up_to(
    kernel: Kernel, size: int, offset: int, strict: bool, fine: bool
) -> None:
    """tileiras takes 19 bytes for 8 numbers of 4 (random program 60053): unless `strict`, those
    that the heap keeps for it anyway are its own."""
    body = f"""
    {{ .param .b64 size; .param .b64 found;
    st.param.b64 [size], {size}; call.uni (found), malloc, (size); ld.param.b64 %rd1, [found]; }}
    mov.u32 %r1, 7; st.global.u32 [%rd1 + {offset}], %r1; ld.global.u32 %r2, [%rd1 + {offset}];
    st.global.u32 [out], %r2;
    """
    out = np.zeros(1, np.uint32)
    module = kernel(body, "u64 out", outside=MALLOC)
    outcome = nullcontext() if fine else pytest.raises(SimError, match=f"of malloc {size}, ")
    with outcome:
        module.launch("k", (1, 1, 1), (1, 1, 1), [out], check=True, strict=strict)
    assert out[0] == (7 if fine else 0)


def test_a_count_of_0_among_others(kernel: Kernel) -> None:
    """Lanes whose count is not 0 make mbarriers that work."""
    body = """
    .shared .align 8 .b64 bars[2];
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 3; mov.u32 %r3, bars; add.u32 %r3, %r3, %r2;
    mbarrier.init.shared.b64 [%r3], %r1;
    setp.eq.u32 %p1, %r1, 0; @%p1 bra END;
    mbarrier.arrive.shared.b64 _, [%r3];
    mbarrier.test_wait.parity.shared.b64 %p2, [%r3], 0; selp.u32 %r4, 1, 0, %p2;
    st.global.u32 [out], %r4;
    END:
    """
    out = np.zeros(1, np.uint32)
    kernel(body, "u64 out").launch("k", (1, 1, 1), (2, 1, 1), [out], strict=False)
    assert out[0] == 1


def test_memory_that_nobody_wrote_shows(kernel: Kernel) -> None:
    """Where its reads are let pass, what depends on it is far off."""
    body = """
    .shared .align 4 .b32 s; mov.u32 %r3, s; ld.shared.f32 %f1, [%r3];
    max.f32 %f1, %f1, 0f3F800000; st.global.f32 [out], %f1;
    """
    out = np.zeros(1, np.float32)
    broken = kernel(body, "u64 out")
    with pytest.raises(SimError, match="never written"):
        broken.launch("k", (1, 1, 1), (1, 1, 1), [out])
    broken.launch("k", (1, 1, 1), (1, 1, 1), [out], check=True, check_uninitialised=False)
    assert out[0] > 1e38


def test_tensor_memory_left_allocated(kernel: Kernel) -> None:
    body = """.shared .align 4 .b32 t; mov.u32 %r1, t;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64; ld.shared.b32 %r2, [%r1];
    """
    free = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64;"
    for text, leaks in ((body + free, 0), (body, 1)):
        report = kernel(text).launch("k", (1, 1, 1), (32, 1, 1), [], check=True)
        assert len(report.findings) == leaks


def test_deadlocks_name_every_warp(kernel: Kernel) -> None:
    body = """
    mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bra ONE;
    bar.sync 1, 96;
    bra END;
    ONE: bar.sync 0;
    END:
    """
    with pytest.raises(SimError) as caught:
        kernel(body).launch("k", (1, 1, 1), (64, 1, 1), [])
    text = str(caught.value)
    assert caught.value.kind == "deadlock"
    assert "CTA 0 warps 0 (32 threads): waits at bar.sync" in text
    assert "CTA 0 warps 1 (32 threads): waits at bar.sync" in text
    assert caught.value.where is not None
    assert caught.value.where.line > 10


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("ld.global.u32 %r1, [x+16];", "out-of-bounds"),
        ("ld.global.u32 %r1, [x+2];", "misaligned"),
        ("st.global.u32 [x+-4], %r1;", "out-of-bounds"),
        ("ld.shared.u32 %r1, [4096];", "out-of-bounds"),
        (".shared .b32 s; ld.shared.u32 %r1, [s];", "uninitialised"),
        (".local .b32 l; ld.local.u32 %r1, [l];", "uninitialised"),
        ("mov.u64 %rd1, 64; ld.u32 %r1, [%rd1];", "out-of-bounds"),
        ("trap;", "trap"),
    ],
)
def test_bad_accesses(kernel: Kernel, body: str, kind: str) -> None:
    with pytest.raises(SimError) as caught:
        kernel(body, "u64 x").launch("k", (1, 1, 1), (32, 1, 1), [np.zeros(4, np.uint32)])
    assert caught.value.kind == kind
    assert caught.value.where is not None


def test_the_same_value_from_several_warps(kernel: Kernel) -> None:
    """A race by the ISA, and harmless: reported unless the code is not held to the letter."""
    body = """
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shl.b32 %r3, %r2, 2; cvt.u64.u32 %rd1, %r3;
    add.u64 %rd2, out, %rd1; VALUE st.global.b32 [%rd2], %r4;
    """
    for value, same in (("mov.u32 %r4, 5;", True), ("mov.u32 %r4, %r1;", False)):
        module = kernel(body.replace("VALUE", value), "u64 out")
        for strict in (True, False):
            out = np.zeros(32, np.uint32)
            report = module.launch("k", (1, 1, 1), (64, 1, 1), [out], check=True, strict=strict)
            wanted = set() if same and not strict else {"race"}
            assert {finding.kind for finding in report.findings} == wanted


POLL = """
mov.u32 %r1, 0; mov.u32 %r3, 0;
AGAIN: ld.relaxed.sys.global.b32 %r2, [out]; add.u32 %r3, %r3, %r2; COUNT
setp.lt.u32 %p1, %r1, 1000; @%p1 bra AGAIN;
st.global.b32 [out+4], %r1;
"""


def test_a_loop_that_reads_and_counts_is_no_deadlock(kernel: Kernel) -> None:
    out = np.zeros(2, np.uint32)
    module = kernel(POLL.replace("COUNT", "add.u32 %r1, %r1, 1;"), "u64 out")
    module.launch("k", (1, 1, 1), (1, 1, 1), [out])
    assert out[1] == 1000
    with pytest.raises(SimError, match="no thread can go on"):
        kernel(POLL.replace("COUNT", ""), "u64 out").launch("k", (1, 1, 1), (1, 1, 1), [out])


@pytest.mark.parametrize(
    ("offset", "strict", "inside"),
    [(60, True, True), (64, True, False), (124, False, True), (128, False, False)],
)
def test_shared_memory_is_given_out_in_units(
    kernel: Kernel, offset: int, strict: bool, inside: bool
) -> None:
    """tileiras swizzles addresses of 64 bytes within 128 (`pack` of 32 halves)."""
    body = f"""
        .shared .align 128 .b8 part[64];
        mov.b32 %r0, part;
        st.shared.b32 [%r0+{offset}], %r0;
        ld.shared.b32 %r1, [%r0+{offset}];
    """
    expected = nullcontext() if inside else pytest.raises(SimError, match="out-of-bounds")
    with expected:
        kernel(body).launch("k", (1, 1, 1), (1, 1, 1), [], check=True, strict=strict)


@pytest.mark.parametrize(
    ("offset", "size", "inside"),
    [(64, "16", False), (56, "8, 4", True), (64, "16, 0", True), (1024, "16, 0", True)],
)
def test_a_copy_outside_is_named_whole(
    kernel: Kernel, offset: int, size: str, inside: bool
) -> None:
    """Only bytes that are read count, and the message has all of them."""
    body = f"""
        .shared .align 16 .b8 part[16];
        mov.b32 %r0, part;
        cp.async.ca.shared.global [%r0], [x+{offset}], {size};
        cp.async.wait_all;
    """
    said = "16 bytes at offset 64 of argument 0, which has 64 bytes"
    with nullcontext() if inside else pytest.raises(SimError, match=said):
        kernel(body, "u64 x").launch("k", (1, 1, 1), (1, 1, 1), [np.zeros(64, np.uint8)])
