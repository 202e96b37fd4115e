"""Data that a launch leaves out: none that a branch or an address goes by, wherever it lay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tile_sim import Module, TensorMap
from tile_sim.machine.unmade import Wanted

Kernel = Callable[..., Module]
MEMORY = frozenset({"values", "products", "memory"})
WAY = frozenset({"addresses", "copies"})


def _kept(module: Module, skipped: frozenset[str] = MEMORY) -> set[str]:
    """Spellings of the instructions that stay."""
    program = module.program("k")
    left = program.left(skipped)
    assert left is not None
    return {
        ins.spelling
        for block, code in zip(program.blocks, left.code, strict=True)
        for run, full, ins in zip(code, block.code, block.instrs, strict=True) if run is full
    }  # fmt: skip


def _steps(module: Module, args: list[Any], skipped: frozenset[str] = frozenset()) -> int:
    """How many instructions ran, after as many attempts as are needed."""
    for _ in range(8):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        try:
            return module.launch(
                "k", (1, 1, 1), (32, 1, 1), copies, skipped=skipped
            ).warp_instructions
        except Wanted:
            continue
    raise AssertionError("what is wanted is noted once")


SHARED = ".shared .align 16 .b8 s[256];\n"
#: Loops as often as %r3 says, then stores.
LOOP = """mov.u32 %r2, 0; LOOP: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r3; @%p1 bra LOOP;
st.global.u32 [out], %r2;"""
COUNTED = {
    "shared memory": f"""{SHARED}mov.u32 %r4, %tid.x; mul.lo.u32 %r4, %r4, 5;
and.b32 %r4, %r4, 0; xor.b32 %r4, %r4, 7; st.shared.u32 [s], %r4; bar.sync 0;
ld.shared.u32 %r3, [s]; {LOOP}""",
    "half of a word": f"""{SHARED}mov.u32 %r4, 7; xor.b32 %r4, %r4, 2; cvt.u16.u32 %h1, %r4;
st.shared.u16 [s+2], %h1; bar.sync 0; ld.shared.u16 %h2, [s+2]; cvt.u32.u16 %r3, %h2; {LOOP}""",
    "halves of a word": f"""{SHARED}mov.u32 %r4, 7; xor.b32 %r4, %r4, 2; cvt.u16.u32 %h1, %r4;
st.shared.u16 [s], %h1; mov.u16 %h2, 0; st.shared.u16 [s+2], %h2; ld.shared.u32 %r3, [s]; {LOOP}""",
    "global memory": f"""mov.u32 %r4, 7; xor.b32 %r4, %r4, 2; st.global.u32 [out+4], %r4;
ld.global.u32 %r3, [out+4]; {LOOP}""",
    "local memory": f""".local .align 16 .b8 l[16];
mov.u32 %r4, 7; xor.b32 %r4, %r4, 2; mov.u64 %rd1, l; cvta.local.u64 %rd1, %rd1;
st.u32 [%rd1+4], %r4; ld.u32 %r3, [%rd1+4]; {LOOP}""",
    "cp.async": f"""{SHARED}mov.u32 %r4, s; cp.async.ca.shared.global [%r4], [out], 4;
cp.async.wait_all; ld.shared.u32 %r3, [s]; {LOOP}""",
    "what was copied": f"""{SHARED}mov.u32 %r4, 7; xor.b32 %r4, %r4, 2;
st.global.u32 [out], %r4; mov.u32 %r4, s; cp.async.ca.shared.global [%r4], [out], 4;
cp.async.wait_all; ld.shared.u32 %r3, [s]; {LOOP}""",
    "a matrix": f"""{SHARED}mov.u32 %r4, 7; xor.b32 %r4, %r4, 2; mov.u32 %r5, s;
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {{%r4}}; bar.sync 0;
ld.shared.u32 %r3, [s]; and.b32 %r3, %r3, 15; {LOOP}""",
    "a sum": f"""{SHARED}mov.u32 %r4, 0; st.shared.u32 [s], %r4; bar.sync 0; mov.u32 %r4, 1;
red.shared.add.u32 [s], %r4; bar.sync 0; ld.shared.u32 %r3, [s]; {LOOP}""",
    "through global memory and by threads": f"""{SHARED}
mov.u32 %r1, %tid.x; setp.eq.u32 %p2, %r1, 0; mov.u32 %r4, 7; xor.b32 %r4, %r4, 2;
st.shared.v4.u32 [s], {{%r4, %r4, %r4, %r4}}; bar.sync 0; mov.u32 %r5, s;
@%p2 cp.async.bulk.global.shared::cta.bulk_group [out], [%r5], 16;
@%p2 cp.async.bulk.commit_group; @%p2 cp.async.bulk.wait_group 0; ld.global.u32 %r3, [out];
{LOOP}""",
    "through global memory and back by engines": f"""{SHARED}
.shared .align 8 .b64 bar; mov.u32 %r1, %tid.x; setp.eq.u32 %p2, %r1, 0;
@%p2 mbarrier.init.shared.b64 [bar], 1; mov.u32 %r4, 7; xor.b32 %r4, %r4, 2;
st.shared.v4.u32 [s], {{%r4, %r4, %r4, %r4}}; bar.sync 0; mov.u32 %r5, s;
@%p2 cp.async.bulk.global.shared::cta.bulk_group [out], [%r5], 16;
@%p2 cp.async.bulk.commit_group; @%p2 cp.async.bulk.wait_group 0;
@%p2 mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 16;
@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+32], [out], 16, [bar];
WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT;
ld.shared.u32 %r3, [s+32]; {LOOP}""",
}


@pytest.mark.parametrize("how", COUNTED)
def test_what_counts_is_made_however_it_comes(kernel: Kernel, how: str) -> None:
    args: list[Any] = [np.array([6, 6, 6, 6], np.uint32)]
    module = kernel(COUNTED[how], "u64 out")
    whole = _steps(module, args)
    assert _steps(module, args, MEMORY) == whole
    assert _steps(module, args, MEMORY | {"addresses"}) == whole


@pytest.mark.parametrize("skipped", [MEMORY, MEMORY | WAY])
def test_what_engines_store_is_wanted_where_it_is_read(
    kernel: Kernel, skipped: frozenset[str]
) -> None:
    """Whether addresses count or the way alone does."""
    module = kernel(COUNTED["through global memory and by threads"], "u64 out")
    with pytest.raises(Wanted):
        module.launch("k", (1, 1, 1), (32, 1, 1), [np.zeros(4, np.uint32)], skipped=skipped)


@pytest.mark.parametrize("skipped", [MEMORY, MEMORY | WAY])
def test_what_engines_store_and_nobody_reads_stays(kernel: Kernel, skipped: frozenset[str]) -> None:
    module = kernel(f"""{SHARED}mov.u32 %r5, s; mov.u32 %r1, %tid.x; setp.eq.u32 %p2, %r1, 0;
mov.u32 %r4, 9; st.shared.v4.u32 [s], {{%r4, %r4, %r4, %r4}}; bar.sync 0;
@%p2 cp.async.bulk.global.shared::cta.bulk_group [out+16], [%r5], 16;
@%p2 cp.async.bulk.commit_group; @%p2 cp.async.bulk.wait_group 0; mov.u32 %r3, 3; {LOOP}""",
        "u64 out")  # fmt: skip
    out = np.zeros(8, np.uint32)
    module.launch("k", (1, 1, 1), (32, 1, 1), [out], skipped=skipped)
    assert not out[4:].any()
    module.launch("k", (1, 1, 1), (32, 1, 1), [out])
    assert (out[4:] == 9).all()


def test_an_address_in_shared_memory_keeps_no_arithmetic(kernel: Kernel) -> None:
    """One word of shared memory counts; floats that lie in others do not."""
    module = kernel(f"""{SHARED}mov.u32 %r1, %tid.x; mov.u32 %r3, 4; st.shared.u32 [s], %r3;
mov.f32 %f1, 0f3F800000; ex2.approx.f32 %f2, %f1; shl.b32 %r4, %r1, 2; mov.u32 %r5, s;
add.u32 %r5, %r5, %r4; st.shared.f32 [%r5+64], %f2; bar.sync 0;
ld.shared.f32 %f3, [%r5+64]; fma.rn.f32 %f3, %f3, %f3, %f3; st.global.f32 [out+4], %f3;
ld.shared.u32 %r3, [s]; {LOOP}""", "u64 out")  # fmt: skip
    args: list[Any] = [np.zeros(4, np.float32)]
    assert _steps(module, args, MEMORY) == _steps(module, args)
    kept = _kept(module)
    assert not kept & {"ex2.approx.f32", "fma.rn.f32", "mov.f32"}
    assert {"st.shared.f32", "ld.shared.f32", "add.u32"} <= kept  # these touch memory
    control = _kept(module, MEMORY | {"addresses"})
    assert not control & {"st.shared.f32", "ld.shared.f32", "shl.b32", "ex2.approx.f32"}
    assert {"ld.shared.u32", "st.shared.u32"} <= control


def test_what_is_wanted_is_told_at_once(kernel: Kernel) -> None:
    module = kernel(COUNTED["shared memory"], "u64 out")
    with pytest.raises(Wanted):
        module.launch("k", (1, 1, 1), (32, 1, 1), [np.zeros(4, np.uint32)], skipped=MEMORY)
    assert len(module.program("k").made) == 1
    module.launch("k", (1, 1, 1), (32, 1, 1), [np.zeros(4, np.uint32)], skipped=MEMORY)


def test_a_store_over_a_mark_takes_it_away(kernel: Kernel) -> None:
    module = kernel(f"""{SHARED}mov.u32 %r4, 7; xor.b32 %r4, %r4, 2; mov.u32 %r6, 3;
st.shared.u32 [s], %r4; ld.shared.u32 %r3, [s]; add.u32 %r5, %r4, %r6; st.shared.u32 [s], %r5;
st.global.u32 [out], %r5; {LOOP}""", "u64 out")  # fmt: skip
    args: list[Any] = [np.zeros(4, np.uint32)]
    assert _steps(module, args, MEMORY) == _steps(module, args)
    assert len(module.program("k").made) == 1  # the second store goes nowhere


def test_what_marks_do_not_follow_keeps_every_store(kernel: Kernel) -> None:
    """A bulk copy that adds."""
    module = kernel(f""".shared .align 128 .b8 s[128];
mov.u32 %r4, 7; xor.b32 %r4, %r4, 2; st.shared.u32 [s], %r4; mov.u32 %r5, s;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [out], [%r5], 16;
ld.shared.u32 %r3, [s]; {LOOP}""", "u64 out")  # fmt: skip
    assert "xor.b32" in _kept(module)


@pytest.mark.parametrize("skipped", [MEMORY, MEMORY | WAY])
def test_a_map_that_a_kernel_makes_is_all_there(kernel: Kernel, skipped: frozenset[str]) -> None:
    """Threads copy it to shared memory, change it and bring it to global memory; a copy by it then
    ends, and no data of others are made."""
    out = np.zeros(64, np.uint32)
    module = kernel(f""".shared .align 128 .b8 m[128]; .shared .align 128 .b8 s[256];
mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; cvt.u64.u32 %rd1, %r2; add.u64 %rd2, map, %rd1;
ld.global.u32 %r3, [%rd2]; mov.u32 %r4, m; add.u32 %r5, %r4, %r2; st.shared.u32 [%r5], %r3;
bar.sync 0; setp.eq.u32 %p2, %r1, 0; mov.f32 %f1, 0f3F800000; ex2.approx.f32 %f2, %f1;
st.shared.v4.f32 [s], {{%f2, %f2, %f2, %f2}};
@%p2 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r4], out;
bar.sync 0; add.u64 %rd3, out, 128;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
[%rd3], [%r4], 128; mov.u32 %r6, s; mov.u32 %r7, 0;
@%p2 cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd3, {{%r7}}], [%r6];
@%p2 cp.async.bulk.commit_group; @%p2 cp.async.bulk.wait_group 0; mov.u32 %r3, 3; {LOOP}""",
        "u64 map, u64 out")  # fmt: skip
    tensor = np.frombuffer(TensorMap(out, (4,)).encode(0), np.uint32)
    args: list[Any] = [tensor, out]
    assert _steps(module, args, skipped) == _steps(module, args)
    assert "ex2.approx.f32" not in _kept(module)
