"""Check mode for copies from and to global memory that threads and other copies access, too: each
program as it should be, and without one of the things that order it."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from tile_sim import Module, SimError, TensorMap

Kernel = Callable[..., Module]
SCHEDULES = ("late", "early")
#: Two warps; each thread has a word of `buf`, and one of `data`. Thread 0 is %p1, warp 1 %p2.
START = """
.shared .align 128 .b8 buf[256];
.shared .align 8 .b64 bar;
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; setp.ge.u32 %p2, %r1, 32;
mov.u32 %r2, buf; mov.u32 %r3, bar; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, data, %rd1;
shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4;
@%p1 mbarrier.init.shared.b64 [%r3], 1; @%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
"""
STORES = "st.global.b32 [%rd2], %r1;"
FILLS = "st.shared.b32 [%r5], %r1; fence.proxy.async.shared::cta; bar.sync 1;"
FENCE = "fence.proxy.async.global;"
MEETS = "bar.sync 0;"
EXPECTS = "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;"
LOADS = {
    "tensor": f"{EXPECTS} cp.async.bulk.tensor.1d.shared::cluster.global.tile."
    "mbarrier::complete_tx::bytes [%r2], [map, {0}], [%r3];",
    "bulk": f"{EXPECTS} cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[%r2], [data], 256, [%r3];",
}
COPIES_OUT = {
    "tensor": "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [map, {0}], [%r2];",
    "bulk": "cp.async.bulk.global.shared::cta.bulk_group [data], [%r2], 256;",
    "tensor sum": "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group "
    "[map, {0}], [%r2];",
    "sum": "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [data], [%r2], 256;",
}
GROUP = "cp.async.bulk.commit_group; WAITS"
DONE, READ = "cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;"
ARRIVES = "AGAIN: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0; @!%p3 bra AGAIN;"


def _by(predicate: str, text: str, label: str) -> str:
    """Only the threads of a predicate run it."""
    return f"@!{predicate} bra {label}; {text} {label}:"


def _findings(kernel: Kernel, body: str, schedule: str = "late", ctas: int = 1) -> list[str]:
    data = np.zeros(64, np.uint32)
    flag = np.zeros(1, np.uint32)
    module = kernel(START + body, "u64 data, u64 map, u64 flag")
    arguments = [data, TensorMap(data, box=(64,)), flag]
    try:
        report = module.launch(
            "k", (ctas, 1, 1), (64, 1, 1), arguments, check=True, schedule=schedule
        )
    except SimError as error:
        return [error.kind]
    found = [f for f in report.findings if not f.kind.endswith("-abandoned")]
    for finding in found:
        if "global memory" in finding.message:
            assert finding.where is not None, str(finding)
            assert finding.other is not None, str(finding)
    return sorted({finding.kind for finding in found})


def _loaded_after(load: str, fence: str = FENCE, meets: str = MEETS) -> str:
    """Threads store what warp 1 loads then by the asynchronous proxy."""
    one = "setp.eq.u32 %p4, %r1, 32;" + _by("%p4", f"{LOADS[load]}", "GO")
    return f"{STORES} {fence} {meets} {one} {ARRIVES}"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("load", LOADS)
def test_loads_of_what_threads_stored(kernel: Kernel, load: str, schedule: str) -> None:
    assert _findings(kernel, _loaded_after(load), schedule) == []
    behind = _loaded_after(load, fence="", meets=f"{MEETS} {FENCE}")
    assert _findings(kernel, behind, schedule) == []
    for other in ("", "fence.proxy.async.shared::cta;"):
        unfenced = _loaded_after(load, fence=other)
        assert _findings(kernel, unfenced, schedule) == ["missing-proxy-fence"]
    assert "race" in _findings(kernel, _loaded_after(load, meets=""), schedule)


def _overwritten(load: str, warp: str = "%p2", waits: str = ARRIVES, meets: str = MEETS) -> str:
    """Warp 0 loads what a warp overwrites then."""
    loads = _by("%p1", LOADS[load], "GO")
    waits = f"@%p2 bra PAST; {waits} PAST:" if waits else ""
    return f"{loads} {waits} {meets} @{warp} {STORES} {ARRIVES.replace('AGAIN', 'LAST')}"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("load", LOADS)
def test_threads_overwrite_what_is_loaded(kernel: Kernel, load: str, schedule: str) -> None:
    for warp in ("%p2", "!%p2"):
        assert _findings(kernel, _overwritten(load, warp), schedule) == []
        unknown = _overwritten(load, warp, waits="")
        assert _findings(kernel, unknown, schedule) == ["source-overwritten"]
    found = _findings(kernel, _overwritten(load, meets=""), schedule)
    assert found in (["race"], ["source-overwritten"])


@pytest.mark.parametrize("late", [False, True])
def test_a_load_of_memory_that_is_seen_later(kernel: Kernel, late: bool) -> None:
    """Reads, by threads and by a second load, change nothing about the first."""
    again = "ld.global.b32 %r9, [%rd2]; bar.sync 0;"
    body = _overwritten("tensor", waits="" if late else ARRIVES, meets=again)
    assert _findings(kernel, body) == (["source-overwritten"] if late else [])


def _seen(store: str, waits: str = DONE, meets: str = MEETS, reads: str = "") -> str:
    """Thread 0 copies to what warp 1 reads then."""
    store = COPIES_OUT[store] + GROUP.replace("WAITS", waits)
    reads = reads or "ld.global.b32 %r9, [%rd2];"
    return f"{FILLS} {_by('%p1', store, 'GO')} {meets} {_by('%p2', reads, 'END')}"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("store", COPIES_OUT)
def test_threads_read_what_is_copied(kernel: Kernel, store: str, schedule: str) -> None:
    assert _findings(kernel, _seen(store), schedule) == []
    for wait in ("", READ):
        assert _findings(kernel, _seen(store, wait), schedule) == ["destination-in-flight"]
    found = _findings(kernel, _seen(store, meets=""), schedule)
    assert found in (["race"], ["destination-in-flight"])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("store", COPIES_OUT)
def test_loads_of_what_is_copied(kernel: Kernel, store: str, load: str, schedule: str) -> None:
    """Both of the asynchronous proxy, which needs no fence between them."""
    reads = "setp.eq.u32 %p4, %r1, 32; @%p4 bra ONE; bra END; ONE:" + LOADS[load]
    right = _seen(store, reads=reads) + ARRIVES
    assert _findings(kernel, right, schedule) == []
    for wait in ("", READ):
        # The load fills what the copy may still read as well.
        wrong = right.replace(DONE, wait)
        assert "destination-in-flight" in _findings(kernel, wrong, schedule)
    wrong = right.replace(f"GO: {MEETS}", "GO:")
    assert wrong != right
    assert set(_findings(kernel, wrong, schedule)) & {"race", "destination-in-flight"}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("store", ["tensor", "bulk"])
def test_sums_into_what_is_copied(kernel: Kernel, store: str, schedule: str) -> None:
    """The same thread starts both; sums alone are in no need of an order."""
    sums = COPIES_OUT["sum"] + GROUP
    flying = ["destination-in-flight"]
    for first, waits, wanted in (
        (store, DONE, []), (store, READ, flying), (store, "", flying),
        ("sum", READ, []), ("tensor sum", "", []),
    ):  # fmt: skip
        text = COPIES_OUT[first] + GROUP.replace("WAITS", waits) + sums.replace("WAITS", DONE)
        body = f"{FILLS} {_by('%p1', text, 'GO')}"
        assert _findings(kernel, body, schedule) == wanted, (first, waits)


@pytest.mark.parametrize("store", ["tensor", "bulk"])
def test_threads_add_to_what_is_copied(kernel: Kernel, store: str) -> None:
    adds = "red.global.add.u32 [%rd2], 1;"
    assert _findings(kernel, _seen(store, reads=adds)) == []
    assert _findings(kernel, _seen(store, READ, reads=adds)) == ["destination-in-flight"]
    polls = "ld.relaxed.gpu.global.b32 %r9, [%rd2];"
    assert _findings(kernel, _seen(store, READ, reads=polls)) == ["destination-in-flight"]


def _threads_copy(waits: str, meets: str, behind: str) -> str:
    """Threads copy by `cp.async` what the other warp stores, and it reads what they copied."""
    other = "xor.b32 %r6, %r4, 128; cvt.u64.u32 %rd3, %r6; add.u64 %rd4, data, %rd3;"
    copy = "cp.async.ca.shared.global [%r5], [%rd2], 4; cp.async.commit_group;"
    return f"{other} add.u32 %r7, %r2, %r6; {copy} {waits} {meets} {behind}"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("behind", ["st.global.b32 [%rd4], 1;", "ld.shared.b32 %r8, [%r7];"])
def test_copies_of_threads_are_under_way(kernel: Kernel, behind: str, schedule: str) -> None:
    wait = "cp.async.wait_group 0;"
    kind = "source-overwritten" if "global" in behind else "destination-in-flight"
    assert _findings(kernel, _threads_copy(wait, MEETS, behind), schedule) == []
    assert _findings(kernel, _threads_copy(wait, "", behind), schedule) == ["race"]
    for found in (
        _findings(kernel, _threads_copy("", MEETS, behind), schedule),
        _findings(kernel, _threads_copy("", "", behind), schedule),
        _findings(kernel, _threads_copy("cp.async.wait_group 1;", MEETS, behind), schedule),
    ):
        assert found in ([kind], ["pending"])
    late = _threads_copy(MEETS, wait, behind)
    assert _findings(kernel, late, schedule) == ["race"]


@pytest.mark.parametrize("own", ["st.global.b32 [%rd2], 1;", "ld.shared.b32 %r8, [%r5];"])
def test_a_thread_waits_for_its_own_copies(kernel: Kernel, own: str) -> None:
    assert _findings(kernel, _threads_copy("cp.async.wait_all;", "", own)) == []
    assert _findings(kernel, _threads_copy("", "", own)) in (["source-overwritten"], ["pending"])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_of_threads_that_signal(kernel: Kernel, schedule: str) -> None:
    """Warp 1 overwrites what warp 0 copied, behind the mbarrier that learns of the copies' end."""
    copies = """
    cp.async.ca.shared.global [%r5], [%rd2], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r3];
    """
    writes = "xor.b32 %r6, %r4, 128; cvt.u64.u32 %rd3, %r6; add.u64 %rd4, data, %rd3;"
    writes += "st.global.b32 [%rd4], 1; ld.shared.b32 %r8, [%r5+-128];"
    right = f"@%p2 bra OTHER; {copies} bra END; OTHER: {ARRIVES} {writes} END:"
    counted = START.replace("[%r3], 1;", "[%r3], 32;")
    build = lambda body, *rest: kernel(body.replace(START, counted), *rest)  # noqa: E731
    assert _findings(build, right, schedule) == []
    found = _findings(build, right.replace(ARRIVES, ""), schedule)
    assert set(found) & {"race", "source-overwritten", "destination-in-flight", "pending"}
    assert found != []


def _across(there: str, here: str) -> str:
    """CTA 0 does one thing, sets a flag, and CTA 1 that saw it the other."""
    sets = f"{MEETS} {_by('%p1', 'red.release.gpu.global.add.u32 [flag], 1;', 'SET')} bra END;"
    polls = "POLL: ld.acquire.gpu.global.b32 %r9, [flag]; setp.eq.u32 %p6, %r9, 0; @%p6 bra POLL;"
    return f"""mov.u32 %r10, %ctaid.x; setp.ne.u32 %p5, %r10, 0; @%p5 bra SECOND;
    {there} {sets} SECOND: {polls} {here} END:"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("store", ["tensor", "bulk"])
def test_copies_that_another_block_sees(kernel: Kernel, store: str, schedule: str) -> None:
    out = FILLS + _by("%p1", COPIES_OUT[store] + GROUP, "GO")
    loads = _by("%p1", LOADS["tensor"], "ONE") + ARRIVES
    for here in ("ld.global.b32 %r9, [%rd2];", loads):
        right = _across(out.replace("WAITS", DONE), here)
        assert _findings(kernel, right, schedule, 2) == []
        for wait in ("", READ):
            wrong = _across(out.replace("WAITS", wait), here)
            assert "destination-in-flight" in _findings(kernel, wrong, schedule, 2)
        for strong, weak in ((".acquire", ".relaxed"), ("red.release", "red.relaxed")):
            wrong = right.replace(strong, weak)
            assert wrong != right


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stores_that_another_block_loads(kernel: Kernel, schedule: str) -> None:
    loads = _by("%p1", LOADS["tensor"], "ONE") + ARRIVES
    assert _findings(kernel, _across(f"{STORES} {FENCE}", loads), schedule, 2) == []
    found = _findings(kernel, _across(STORES, loads), schedule, 2)
    assert found == ["missing-proxy-fence"]


@pytest.mark.parametrize("waits", [True, False])
def test_loads_that_another_block_overwrites(kernel: Kernel, waits: bool) -> None:
    loads = _by("%p1", LOADS["tensor"], "ONE")
    end = ARRIVES if waits else ""
    found = _findings(kernel, _across(f"{loads} {end}", STORES), ctas=2)
    assert found == ([] if waits else ["source-overwritten"])


@pytest.mark.parametrize(("mask", "seen"), [(0x000F, False), (0x00F0, True)])
def test_bytes_that_a_mask_leaves_out(kernel: Kernel, mask: int, seen: bool) -> None:
    """Thread 33 reads bytes 4 to 7 of each 16, of a copy that nobody waits for."""
    store = "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [data], [%r2], 256, %h1;"
    text = f"mov.b16 %h1, {mask}; {store} cp.async.bulk.commit_group;"
    reads = "setp.eq.u32 %p4, %r1, 33; @%p4 ld.global.b32 %r9, [%rd2];"
    body = f"{FILLS} {_by('%p1', text, 'GO')} {MEETS} {reads}"
    found = _findings(lambda *args: kernel(*args, target="sm_100a"), body)
    assert found == (["destination-in-flight"] if seen else [])


@pytest.mark.parametrize("width", [8, 16])
def test_granules_become_bytes_while_copies_are_under_way(kernel: Kernel, width: int) -> None:
    """Narrow accesses are looked for in bytes; what was noted of words before is kept."""
    narrow = f"ld.global.u{width} %r9, [%rd2];"
    out = COPIES_OUT["bulk"] + f"cp.async.bulk.commit_group; ld.global.u{width} %r9, [data+-0]; "
    right = f"{narrow} {MEETS} {FENCE} {_seen('bulk', reads=narrow)}"
    assert _findings(kernel, right) == []
    assert re.search("destination", str(_findings(kernel, f"{FILLS} {_by('%p1', out, 'GO')}")))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("fence", [FENCE, ""])
def test_elements_of_every_size(kernel: Kernel, dtype: type, fence: str) -> None:
    """A box of rows that lie apart, of which threads store some before it is loaded."""
    data = np.zeros((8, 512 // np.dtype(dtype).itemsize), dtype)
    box = (32 // np.dtype(dtype).itemsize, 8)
    one = "setp.eq.u32 %p4, %r1, 32;" + _by("%p4", LOADS["tensor"], "GO")
    body = f"{STORES} {fence} {MEETS} {one} {ARRIVES}".replace(".1d.", ".2d.")
    module = kernel(START + body.replace("{0}", "{0, 0}"), "u64 data, u64 map, u64 flag")
    arguments = [data, TensorMap(data, box=box), np.zeros(1, np.uint32)]
    report = module.launch("k", (1, 1, 1), (64, 1, 1), arguments, check=True)
    assert {f.kind for f in report.findings} == (set() if fence else {"missing-proxy-fence"})


@pytest.mark.parametrize("copies", ["load", "store"])
def test_maps_of_more_than_there_is(kernel: Kernel, copies: str) -> None:
    """A map says 128 words of memory that has 64."""
    store = COPIES_OUT["tensor"] + GROUP.replace("WAITS", DONE)
    text = LOADS["tensor"].replace("256;", "512;") if copies == "load" else store
    body = f"{FILLS} {_by('%p1', text, 'GO')} {ARRIVES if copies == 'load' else ''}"
    start = START.replace("buf[256]", "buf[512]").replace("mov.u32 %r1,", "LENGTH mov.u32 %r1,")
    longer = "tensormap.replace.tile.global_dim.global.b1024.b32 [map], 0, 128;"
    module = kernel(start.replace("LENGTH", longer) + body, "u64 data, u64 map, u64 flag")
    data = np.zeros(64, np.uint32)
    arguments = [data, TensorMap(data, box=(128,)), np.zeros(1, np.uint32)]
    with pytest.raises(SimError, match="outside every buffer"):
        module.launch("k", (1, 1, 1), (64, 1, 1), arguments, check=True, check_uninitialised=False)
