"""Which loads hit in L2: the same whatever instruction makes them, and as often as is right."""

from __future__ import annotations

import numpy as np
import pytest
from tile_time import traffic
from tile_time.model import load_kernel, time_kernel
from tile_time.traffic import Access

from tile_core.machines import Machine, builtin_machines

_HEADS, _TILES, _THREADS = 8, 16, 128
_TILE = 16 * _THREADS  # bytes

_LOADS = {
    "ld": "ld.global.L1::no_allocate.v4.u32 {{%r4, %r5, %r6, %r7}}, [{at}]; xor.b32 %r8, %r8, %r4;",
    "cp.async": """cp.async.cg.shared.global [%r2], [{at}], 16;
cp.async.commit_group; cp.async.wait_group 0;""",
    "bulk": """bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd9, [bar], 2048;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [{whole}], 2048, [bar];
WAIT{n}: mbarrier.try_wait.parity.shared.b64 %p2, [bar], %r9; @!%p2 bra WAIT{n};
xor.b32 %r9, %r9, 1;""",
}


def _kernel(how: str, between: int) -> str:
    """Each CTA reads the K and V of its head, tile by tile, with `between` blocks of PTX from a
    load of K to that of V."""
    load = _LOADS[how]
    return f""".version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 k, .param .u64 .ptr .global .align 16 v,
                  .param .u64 .ptr .global .align 16 out) .reqntid {_THREADS} {{
.reg .b64 %rd<12>; .reg .b32 %r<12>; .reg .pred %p<4>;
.shared .align 128 .b8 s[2048]; .shared .align 8 .b64 bar;
ld.param.u64 %rd1, [k]; ld.param.u64 %rd2, [v]; ld.param.u64 %rd3, [out];
mov.u32 %r1, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r2, %r1, 16, %r2;
mov.u32 %r3, %ctaid.x; and.b32 %r3, %r3, {_HEADS - 1};
mul.wide.u32 %rd4, %r3, {_TILE * _TILES}; add.u64 %rd1, %rd1, %rd4; add.u64 %rd2, %rd2, %rd4;
mul.wide.u32 %rd5, %r1, 16; mov.u32 %r8, 0; mov.u32 %r9, 0; mov.u32 %r10, 0;
setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
LOOP: add.u64 %rd6, %rd1, %rd5; add.u64 %rd7, %rd2, %rd5;
{load.format(at="%rd6", whole="%rd1", n=0)}
mov.u32 %r11, 0;
WORK: add.u32 %r11, %r11, 1; setp.lt.u32 %p3, %r11, {between}; @%p3 bra WORK;
{load.format(at="%rd7", whole="%rd2", n=1)}
add.u64 %rd1, %rd1, {_TILE}; add.u64 %rd2, %rd2, {_TILE};
add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, {_TILES}; @%p3 bra LOOP;
add.u64 %rd3, %rd3, %rd5; st.global.u32 [%rd3], %r8; ret;
}}
"""


def _traffic(
    monkeypatch: pytest.MonkeyPatch, ptx: str, arrays: list[np.ndarray]
) -> traffic.Traffic:
    """What 1024 CTAs find in the L2 of an H100."""
    made: list[traffic.Traffic] = []
    through = traffic._through_l2

    def kept(*args: object) -> traffic.Traffic:
        made.append(through(*args))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(traffic, "_through_l2", kept)
    machine: Machine = builtin_machines()["h100-sxm"]
    time_kernel(load_kernel(ptx, machine), (1024, 1, 1), None, arrays)
    return made[-1]


def _misses(monkeypatch: pytest.MonkeyPatch, how: str, between: int = 1) -> list[float]:
    """Shares of the loads of K and V, in order, that miss in L2."""
    kv = [np.zeros((_HEADS, _TILES, _TILE), np.uint8) for _ in range(2)]
    out = np.zeros(4 * _THREADS, np.uint32)
    found = _traffic(monkeypatch, _kernel(how, between), [*kv, out])
    return [found.miss[pos] for pos in sorted(found.miss)]


# 1024 CTAs of 8 heads: one in 128 is the first to touch its head's tiles.
_FIRST = _HEADS / 1024


@pytest.mark.parametrize("how", list(_LOADS))
@pytest.mark.parametrize("most", [1_000_000, 20_000])
def test_what_ctas_share_hits_however_it_is_loaded(
    monkeypatch: pytest.MonkeyPatch, how: str, most: int
) -> None:
    """`most` accesses go through L2: all of them, or a sample."""
    monkeypatch.setattr(traffic, "_MOST_ACCESSES", most)
    assert _misses(monkeypatch, how) == pytest.approx([_FIRST, _FIRST], abs=1e-3)


def test_arrays_of_several_probes_are_the_same_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "_WAVE_THREADS", 100 * _THREADS)
    assert _misses(monkeypatch, "ld") == pytest.approx([_FIRST, _FIRST], abs=1e-3)


def test_a_load_behind_much_work_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """If not, V would be taken for one head's, which all CTAs share."""
    assert _misses(monkeypatch, "ld", 200) == pytest.approx([_FIRST, _FIRST], abs=1e-3)


@pytest.mark.parametrize("period", [2, 6, 8])
def test_a_sample_has_each_instruction_and_its_share(period: int) -> None:
    """Loads that take turns, in whatever period, are thinned out alike."""
    accesses = [Access(n // period, 0, n % period, 512 * n, 512) for n in range(6000)]
    kept, share = traffic._sampled(accesses, 6)
    assert share == pytest.approx(1 / 6, rel=0.1)
    for pos in range(period):
        assert sum(a.pos == pos for a in kept) == pytest.approx(1000 / period, rel=0.3)


def test_a_sample_keeps_all_uses_of_an_address() -> None:
    accesses = [Access(n, 0, n % 7, 512 * (n % 50), 512) for n in range(1000)]
    kept, _ = traffic._sampled(accesses, 10)
    for address in {a.address for a in kept}:
        assert sum(a.address == address for a in kept) == 20
    assert {a.pos for a in kept} == set(range(7))


def test_a_sample_does_not_depend_on_where_arrays_lie() -> None:
    """Their addresses, and how far they lie apart, are another process's choice."""

    def kept(*bases: int) -> list[tuple[int, int]]:
        accesses = [Access(n, 0, n % 2, bases[n % 2] + 512 * n, 512) for n in range(600)]
        return [(a.step, a.pos) for a in traffic._sampled(accesses, 6)[0]]

    assert kept(0, 1 << 20) == kept(1 << 30, 4096) == kept(0x7F0000000010, 0x7F0001234010)


def _updating(halves: int, apart: int, behind: str) -> str:
    """Each thread reads 32 bytes, or 16 that no other instruction has a part of, and writes as many
    `apart`; `behind`: what is done before.
    """
    words = ("{%r4, %r5, %r6, %r7}", "{%r8, %r9, %r10, %r11}")[:halves]
    loads = "\n".join(
        f"ld.global.v4.u32 {held}, [%rd1 + {16 * n}];" for n, held in enumerate(words)
    )
    stores = "\n".join(
        f"st.global.v4.u32 [%rd1 + {apart + 16 * n}], {held};" for n, held in enumerate(words)
    )
    return f""".version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x) .reqntid {_THREADS} {{
.reg .b64 %rd<4>; .reg .b32 %r<12>; .reg .pred %p<2>;
ld.param.u64 %rd1, [x]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
mad.lo.u32 %r1, %r1, {_THREADS}, %r2; mul.wide.u32 %rd2, %r1, {16 * halves};
add.u64 %rd1, %rd1, %rd2;
{loads}
{behind}
{stores}
ret;
}}
"""


_BRANCH = "setp.eq.u32 %p1, %r4, 0; @%p1 bra NEXT; xor.b32 %r5, %r5, %r4;\nNEXT:"


@pytest.mark.parametrize("behind", ["", _BRANCH], ids=["straight", "branch"])
@pytest.mark.parametrize("apart", [0, 16 * 2 * 1024 * _THREADS], ids=["in place", "elsewhere"])
@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("most", [1_000_000, 2_000])
def test_what_is_written_goes_to_memory_once(
    monkeypatch: pytest.MonkeyPatch, most: int, halves: int, apart: int, behind: str
) -> None:
    """Whether L2 has what was there or not; by two instructions, both halves of a sector."""
    monkeypatch.setattr(traffic, "_MOST_ACCESSES", most)
    array = np.zeros(4 * 16 * 1024 * _THREADS + 128, np.uint8)
    first = -array.ctypes.data % 128
    found = _traffic(monkeypatch, _updating(halves, apart, behind), [array[first:]])
    assert found.write_back == pytest.approx(1 / halves)
    assert set(found.miss.values()) == {1.0}
