"""The model against the machine's own numbers, and what must hold whatever the numbers are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tile_time.model import load_kernel, time_kernel
from tile_time.occupancy import Demand, occupancy
from tile_time.record import Recorder
from tile_time.result import Result

import tile_core
from tile_core.diagnostics import CompileError
from tile_core.machines import builtin_machines

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module", autouse=True)
def _benchmarks() -> Iterator[None]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield
    sys.path.remove(str(ROOT / "benchmarks"))


NAMES = (
    "mbarrier arrive to its waiter",
    "FFMA latency", "FFMA rate", "ex2 rate", "bar.sync of 8 warps", "shared load latency",
    "shared bandwidth", "L1 hit latency", "DRAM latency", "mma.sync m16n8k16 latency",
    "wgmma m64n32k16 SS interval", "wgmma m64n64k16 RS interval",
    "bulk copy of 1 KB to the waiter", "cp.async of 512 B to the waiter",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_mechanisms_of_h100(name: str) -> None:
    found = import_module("tile_time.mechanisms").every()
    mechanism = next(m for m in found if m.name == name and m.gpu == "h100-sxm")
    assert import_module("timing").measured(mechanism) == pytest.approx(
        mechanism.expected, rel=0.10
    )


@pytest.mark.slow
def test_all_mechanisms() -> None:
    measured = import_module("timing").measured
    for mechanism in import_module("tile_time.mechanisms").every():
        assert measured(mechanism) == pytest.approx(mechanism.expected, rel=0.10), mechanism.name


def _gemm(machine: Any, size: int = 512, **kind: Any) -> Result:
    gemm = import_module("gemm_ptx").Gemm(
        **{"m": 128, "n": 128, "stages": 4, "consumers": 1, **kind}
    )
    grid, arguments = gemm.arguments(size)
    return time_kernel(load_kernel(gemm.ptx, machine), grid, None, arguments)


HALVED = (
    "clock.boost", "memory.dram_bandwidth", "memory.l2_bandwidth", "memory.shared_bandwidth",
    "pipes.fma.rate", "pipes.alu.rate", "chip.sms",
)  # fmt: skip
DOUBLED = (
    "memory.dram_latency",
    "copies.tma_latency",
    "wgmma.clk_per_column",
    "sync.mbarrier_wait",
)


#: Where events fall otherwise, copies may meet reads of shared memory less often.
LUCK = 0.01


@pytest.mark.parametrize("path", [*HALVED, *DOUBLED])
def test_a_worse_machine_is_never_faster(path: str) -> None:
    machine = builtin_machines()["h100-sxm"]
    before = _gemm(machine).seconds
    value: Any = machine
    for name in path.split("."):
        value = getattr(value, name)
    factor = 0.5 if path in HALVED else 2.0
    worse = machine.with_number(path, value * factor)
    if path == "clock.boost":
        worse = worse.with_number("clock.full_tensor", machine.clock.full_tensor / 2)
    assert _gemm(worse).seconds >= before * (1 - LUCK)


def test_fewer_stages_are_never_faster() -> None:
    machine = builtin_machines()["h100-sxm"]
    times = [_gemm(machine, 1024, stages=stages).seconds for stages in (4, 2, 1)]
    assert times[0] <= times[1] * 1.005
    assert times[1] < times[2]


def test_the_ladder_is_climbed() -> None:
    """Specialised warps and larger tiles are faster, at a size that takes little time to model."""
    machine = builtin_machines()["h100-sxm"]
    plain = _gemm(machine, 2048, m=64, n=64, stages=1, consumers=0)
    wide = _gemm(machine, 2048, m=128, n=256, stages=3, consumers=2)
    assert wide.tflops > 1.5 * plain.tflops
    assert wide.tflops < 132 * 4096 * 1.98e9 / 1e12
    assert wide.flops == pytest.approx(2 * 2048**3)
    assert not wide.remarks
    assert sum(wide.causes.values()) == pytest.approx(1.0)


def test_clusters_run_together() -> None:
    machine = builtin_machines()["h100-sxm"]
    found = _gemm(machine, 1024, n=256, stages=3, consumers=2, cluster=2, persistent=True)
    assert found.launch.cluster == 2
    assert not found.remarks
    assert found.flops == pytest.approx(2 * 1024**3)


@pytest.mark.parametrize(
    ("most", "remark"),
    [(20_000, "of an SM's instructions were run"), (50_000, "clusters of an SM")],
)
def test_what_does_not_run_goes_at_the_pace_of_what_did(
    monkeypatch: pytest.MonkeyPatch, most: int, remark: str
) -> None:
    import tile_time.model as model

    kinds = {"n": 64, "m": 64, "stages": 1, "consumers": 0}
    machine = builtin_machines()["h100-sxm"].with_number("chip.sms", 4)
    whole = _gemm(machine, 1024, **kinds)
    monkeypatch.setattr(model, "MOST_ISSUED", most)
    part = _gemm(machine, 1024, **kinds)
    assert not whole.remarks
    assert remark in part.remarks[0]
    assert part.seconds == pytest.approx(whole.seconds, rel=0.1)
    assert part.flops == pytest.approx(whole.flops, rel=0.08)


def test_occupancy_is_that_of_the_programming_guide() -> None:
    h100 = builtin_machines()["h100-sxm"]
    assert occupancy(h100, Demand(128, 128, 16384)).ctas == 4
    assert occupancy(h100, Demand(256, 32, 0)).limit == "warps of an SM"
    assert occupancy(h100, Demand(128, 32, 100_000)).ctas == 2
    assert occupancy(builtin_machines()["b200"], Demand(128, 32, 0, 256)).limit == "tensor memory"
    with pytest.raises(CompileError, match="does not fit"):
        occupancy(h100, Demand(1024, 128, 0))


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import tile_time.model as model

    monkeypatch.setattr(model, "MOST_STEPS", 100)
    with pytest.raises(CompileError, match="too large for the model"):
        _gemm(builtin_machines()["h100-sxm"])


def test_a_recorder_sees_conflicts_and_sectors() -> None:
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) .reqntid 32 {
.reg .b64 %rd<4>; .reg .b32 %r<8>; .shared .align 16 .b8 s[4096];
mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 7; add.u32 %r3, %r3, %r2;
st.shared.u32 [%r3], %r1;
ld.param.u64 %rd1, [p]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
st.global.u32 [%rd2], %r1; ret; }
"""
    from tile_sim import Module

    recorder = Recorder()
    Module(text).launch("k", (1, 1, 1), None, [np.zeros(32, np.int32)], trace=recorder)
    notes = [n for s in recorder.warps[0, 0] for few in (s.notes or {}).values() for n in few]
    assert [type(n).__name__ for n in notes] == ["Shared", "Global"]
    assert notes[0].wavefronts == 32  # type: ignore[union-attr]
    assert notes[1].sectors == (0, 1, 2, 3)  # type: ignore[union-attr]


@pytest.fixture
def _examples() -> Iterator[None]:
    sys.path.insert(0, str(ROOT / "examples"))
    yield
    sys.path.remove(str(ROOT / "examples"))


@pytest.mark.usefixtures("_examples")
def test_blocks_that_take_over_others_are_timed_so() -> None:
    """Those that fit at once have all others to do, and what all of them do is known."""
    machine, case = builtin_machines()["b200"], import_module("cases").case("vector_add_f32")
    code = (ROOT / "examples" / "bytecode" / "vector_add_f32.tileirbc").read_bytes()

    def timed(taken: bool, blocks: int) -> Result:
        options = {"dynamic-persistent": taken}
        made = tile_core.compile(code, "sm_100", options=options, emit="ptx")
        kernel = load_kernel(str(made.output), machine)
        assert kernel.takes_over == taken
        return time_kernel(kernel, (blocks, 1, 1), None, case.flat)

    fit = int(machine.chip.sms) * timed(True, 1).launch.room.ctas
    found, plain, few = timed(True, 3 * fit + 1), timed(False, 3 * fit + 1), timed(True, fit)
    assert not found.remarks
    assert (found.launch.clusters, plain.launch.clusters) == (fit, 3 * fit + 1)
    assert (found.launch.even, plain.launch.even) == ((3 * fit + 1) / (4 * fit), 1)
    assert (few.launch.clusters, few.launch.even) == (fit, 1)
    assert few.cycles < found.cycles
    assert few.issued < found.issued  # of one multiprocessor
