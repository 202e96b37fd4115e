"""Which instructions a record may leave out: none that decides a branch or an address."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tile_sim import Module

Kernel = Callable[..., Module]


def _kept(module: Module) -> set[str]:
    """Spellings of the instructions that stay."""
    program = module.program("k")
    return {
        ins.spelling
        for block, code in zip(program.blocks, program.way, strict=True)
        for run, full, ins in zip(code, block.code, block.instrs, strict=True) if run is full
    }  # fmt: skip


def _steps(module: Module, args: list[object], *skipped: str) -> tuple[int, list[bytes]]:
    """Blocks that ran, and what the arrays hold afterwards."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    report = module.launch("k", (1, 1, 1), (32, 1, 1), copies, skipped=frozenset(skipped))
    return report.warp_instructions, [c.tobytes() for c in copies if isinstance(c, np.ndarray)]


FLOATS = """mov.f32 %f1, 0f3F800000; mov.u32 %r1, 0;
LOOP: fma.rn.f32 %f1, %f1, %f1, %f1; ex2.approx.f32 %f2, %f1;
shl.b32 %r2, %r1, 2; cvt.u64.u32 %rd1, %r2; add.u64 %rd2, out, %rd1;
st.global.f32 [%rd2], %f2;
add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, n; @%p1 bra LOOP;"""


def test_arithmetic_that_only_goes_to_memory_is_left_out(kernel: Kernel) -> None:
    module = kernel(FLOATS, "u64 out, u32 n")
    kept = _kept(module)
    assert not kept & {"fma.rn.f32", "ex2.approx.f32", "mov.f32"}
    assert {"shl.b32", "cvt.u64.u32", "add.u64", "add.u32", "setp.lt.u32"} <= kept
    args = [np.zeros(8, np.float32), 5]
    assert _steps(module, args)[0] == _steps(module, args, "values")[0]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        # A float decides a branch.
        ("mov.f32 %f1, 0f3F800000; ld.global.f32 %f2, [out]; mul.f32 %f2, %f2, %f1; "
         "setp.gt.f32 %p1, %f2, 0f00000000; @%p1 bra END; add.u32 %r1, %r1, 1; END:", "mul.f32"),
        # It goes through shared memory to an address.
        ("mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, 4; st.shared.u32 [s], %r2; bar.sync 0; "
         "ld.shared.u32 %r3, [s]; cvt.u64.u32 %rd1, %r3; add.u64 %rd2, out, %rd1; "
         "st.global.u32 [%rd2], %r1;", "mul.lo.u32"),
        # It passes lanes.
        ("mov.u32 %r1, %tid.x; sub.u32 %r4, 31, %r1; shfl.sync.bfly.b32 %r2, %r4, 1, 31, -1; "
         "shl.b32 %r2, %r2, 2; cvt.u64.u32 %rd1, %r2; add.u64 %rd2, out, %rd1; "
         "st.global.u32 [%rd2], %r1;", "sub.u32"),
        # A carry has no name.
        ("mov.u32 %r1, %tid.x; add.cc.u32 %r2, %r1, -1; addc.u32 %r3, 0, 0; shl.b32 %r3, %r3, 2; "
         "cvt.u64.u32 %rd1, %r3; add.u64 %rd2, out, %rd1; st.global.u32 [%rd2], %r1;",
         "add.cc.u32"),
        # A guard of what decides.
        ("mov.u32 %r1, %tid.x; and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; mov.u32 %r2, 4; "
         "@%p1 mov.u32 %r2, 8; cvt.u64.u32 %rd1, %r2; add.u64 %rd2, out, %rd1; "
         "st.global.u32 [%rd2], %r1;", "and.b32"),
    ],
)  # fmt: skip
def test_what_reaches_a_branch_or_an_address_stays(kernel: Kernel, body: str, name: str) -> None:
    module = kernel(".shared .align 4 .b8 s[64];\n" + body, "u64 out")
    assert name in _kept(module)


def test_values_are_computed_unless_they_are_skipped(kernel: Kernel) -> None:
    module = kernel(FLOATS, "u64 out, u32 n")
    args = [np.zeros(8, np.float32), 2]
    assert np.frombuffer(_steps(module, args)[1][0], np.float32)[0] == 4.0
    assert np.frombuffer(_steps(module, args, "values")[1][0], np.float32)[0] != 4.0


def test_who_counts_blocks_needs_no_accesses(kernel: Kernel) -> None:
    module = kernel(FLOATS, "u64 out, u32 n")
    program = module.program("k")
    kept = {
        ins.spelling
        for block, code in zip(program.blocks, program.control, strict=True)
        for run, full, ins in zip(code, block.code, block.instrs, strict=True) if run is full
    }  # fmt: skip
    assert not kept & {"st.global.f32", "shl.b32", "cvt.u64.u32", "fma.rn.f32"}
    assert {"add.u32", "setp.lt.u32"} <= kept
    args = [np.zeros(8, np.float32), 5]
    every = ("values", "addresses")
    assert _steps(module, args)[0] == _steps(module, args, *every)[0]
    assert not np.frombuffer(_steps(module, args, *every)[1][0], np.float32).any()


@pytest.mark.parametrize(
    "body",
    [
        # What a loop's end is loaded from has been stored before.
        ".shared .align 4 .b8 s[64];\nmov.u32 %r1, %tid.x; mov.u32 %r4, 3; st.shared.u32 [s], %r4; "
        "bar.sync 0; ld.shared.u32 %r3, [s]; mov.u32 %r2, 0; "
        "LOOP: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r3; @%p1 bra LOOP; "
        "st.global.u32 [out], %r2;",
        # The end of a loop comes from global memory, by an address that was computed.
        "mov.u32 %r1, 4; cvt.u64.u32 %rd1, %r1; add.u64 %rd1, out, %rd1; ld.global.u32 %r3, "
        "[%rd1]; mov.u32 %r2, 0; LOOP: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r3; "
        "@%p1 bra LOOP; "
        "st.global.u32 [out], %r2;",
        # Lanes vote on what one of them had.
        "mov.u32 %r1, %tid.x; shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1; mov.u32 %r2, 0; "
        "LOOP: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r3; @%p1 bra LOOP; "
        "st.global.u32 [out], %r2;",
    ],
)
def test_what_a_branch_goes_by_is_still_moved(kernel: Kernel, body: str) -> None:
    module = kernel(body, "u64 out")
    args: list[object] = [np.array([0, 6, 0, 0], np.uint32)]
    assert _steps(module, args)[0] == _steps(module, args, "values", "addresses")[0]
