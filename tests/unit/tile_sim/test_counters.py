"""Cost counters on kernels whose counts are known by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tile_sim import Module
from tile_sim.machine.counters import Cost

from .conftest import ptx_text

IN = "u64 in"


def _cost(body: str, args: list, block: int = 32, grid: int = 1, params: str = IN) -> Cost:
    report = Module(ptx_text(body, params)).launch(
        "k", (grid, 1, 1), (block, 1, 1), args, stats=True
    )
    assert report.cost is not None
    assert report.cost.total.warps == report.warp_instructions
    assert report.cost.total.threads == report.thread_instructions
    return report.cost.total


# Thread i reads 4 bytes at stride * i (the buffer is aligned to 256 bytes).
STRIDED = """
mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, {stride}; add.u64 %rd2, in, %rd1;
add.u64 %rd2, %rd2, {offset}; ld.global.u32 %r2, [%rd2];
"""


@pytest.mark.parametrize(("stride", "offset", "sectors", "distinct"), [
    (4, 0, 4, 128), (4, 16, 5, 128), (8, 0, 8, 128), (32, 0, 32, 128), (128, 0, 32, 128),
    (0, 0, 1, 4),
])  # fmt: skip
def test_sectors_of_strided_loads(stride: int, offset: int, sectors: int, distinct: int) -> None:
    data = np.zeros(16384, np.uint8)
    cost = _cost(STRIDED.format(stride=stride, offset=offset), [data], block=64)
    # The second warp reads what comes behind the first's.
    assert cost.global_requests == 2
    assert cost.global_sectors == 2 * sectors
    assert cost.global_bytes == 2 * distinct
    assert cost.lsu_global_bytes == 64 * 4
    assert cost.coalescing == distinct / (32 * sectors)


def test_vectors_and_guards() -> None:
    body = """
    mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 16; add.u64 %rd2, in, %rd1;
    setp.lt.u32 %p1, %r1, 8; @%p1 ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd2];
    """
    cost = _cost(body, [np.zeros(512, np.uint8)])
    assert (cost.global_requests, cost.global_sectors, cost.global_bytes) == (1, 4, 128)
    assert cost.coalescing == 1


# Thread i writes and reads `width` bytes at stride * i of shared memory.
SHARED = """
.shared .align 128 .b8 s[8192];
mov.u32 %r1, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, {stride}, %r2;
st.shared.{kind} [%r3], {value};
"""
VALUES = {"u32": "%r1", "v2.u32": "{%r1, %r1}", "v4.u32": "{%r1, %r1, %r1, %r1}", "u8": "%h1"}


@pytest.mark.parametrize(("kind", "stride", "wavefronts", "ideal"), [
    ("u32", 4, 1, 1), ("u32", 8, 2, 1), ("u32", 16, 4, 1), ("u32", 128, 32, 1), ("u32", 132, 1, 1),
    ("u32", 0, 1, 1), ("u8", 1, 1, 1), ("v2.u32", 8, 2, 2), ("v4.u32", 16, 4, 4),
    ("v4.u32", 128, 32, 4), ("v2.u32", 128, 32, 2), ("v4.u32", 0, 1, 1),
])  # fmt: skip
def test_bank_conflicts(kind: str, stride: int, wavefronts: int, ideal: int) -> None:
    body = "mov.u16 %h1, 0;" + SHARED.format(stride=stride, kind=kind, value=VALUES[kind])
    cost = _cost(body, [np.zeros(4, np.uint8)], grid=3)
    assert cost.shared_requests == 3
    assert (cost.shared_wavefronts, cost.shared_ideal) == (3 * wavefronts, 3 * ideal)
    assert cost.bank_conflicts == 3 * (wavefronts - ideal)


def test_matrix_loads_and_products() -> None:
    body = """
    .shared .align 128 .b8 s[2048];
    mov.u32 %r1, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 16, %r2;
    st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1}; bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r3];
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r3];
    mov.b32 %f1, 0; mov.b32 %f2, 0; mov.b32 %f3, 0; mov.b32 %f4, 0;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4},
      {%r4, %r5, %r6, %r7}, {%r4, %r5}, {%f1, %f2, %f3, %f4};
    """
    cost = _cost(body, [np.zeros(4, np.uint8)], block=64)
    assert cost.macs == 2 * 16 * 8 * 16
    assert cost.barrier_waits == 2
    # Each warp: a store of 4 wavefronts, ldmatrix.x1 of one, ldmatrix.x4 of four.
    assert cost.shared_wavefronts == 2 * 9
    assert cost.bank_conflicts == 0


def test_bytes_by_path() -> None:
    body = """
    .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 16, %r2;
    mul.wide.u32 %rd1, %r1, 16; add.u64 %rd2, in, %rd1;
    cp.async.cg.shared.global [%r3], [%rd2], 16; cp.async.wait_all; bar.sync 0;
    mov.u32 %r4, bar; setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
    mbarrier.init.shared.b64 [%r4], 1; fence.proxy.async;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r4], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [in], 256, [%r4];
    WAIT: mbarrier.try_wait.shared.b64 %p2, [%r4], %rd3; @!%p2 bra WAIT;
    END:
    """
    cost = _cost(body, [np.zeros(512, np.uint8)])
    assert cost.cp_async_bytes == 512
    assert (cost.global_sectors, cost.global_bytes) == (16, 512)
    assert cost.tma_bytes == 256
    assert cost.lsu_global_bytes == 0


LOOP = """.loc 1 {line} 0
LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 10; @%p1 bra LOOP;
.loc 1 9 0
ld.global.u32 %r2, [in];
"""


def test_report_by_line_and_class() -> None:
    text = ptx_text("mov.u32 %r1, 0;" + LOOP.format(line=7), IN, outside='.file 1 "a.py"')
    data = np.zeros(4, np.uint8)
    report = Module(text).launch("k", (4, 1, 1), (64, 1, 1), [data], stats=True)
    assert report.cost is not None
    assert report.cost.lines["a.py:7"].warps == 3 * 10 * 8
    assert report.cost.lines["a.py:9"].global_sectors == 8
    assert report.cost.classes["control"].warps == 8 * 11
    whole = json.loads(json.dumps(report.cost.json))
    assert whole["total"]["warps"] == report.warp_instructions
    assert sum(i["warps"] for i in whole["instructions"]) == report.warp_instructions
    assert whole["lines"]["a.py:9"]["coalescing"] == 0.125
    assert "a.py:7" in report.cost.text
    assert "global sectors" in report.cost.text


def test_off_by_default() -> None:
    report = Module(ptx_text("", IN)).launch("k", (1, 1, 1), (32, 1, 1), [np.zeros(4, np.uint8)])
    assert report.cost is None


def test_counts_do_not_depend_on_waves() -> None:
    body = STRIDED.format(stride=36, offset=0)
    module, data = Module(ptx_text(body, IN)), np.zeros(8192, np.uint8)
    found = [
        module.launch("k", (8, 1, 1), (96, 1, 1), [data], stats=True, wave_threads=n).cost
        for n in (96, 16384)
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].json == found[1].json
