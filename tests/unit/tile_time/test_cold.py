"""Code that ptxas set aside: for warps that have diverged, for operands near the range's ends."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tile_time.model import load_kernel, time_kernel
from tile_time.sass.code import Sass, SassKernel
from tile_time.sass.cold import cold_code

from tile_core.machines import builtin_machines


def _kernel(*rows: str) -> SassKernel:
    """Rows of "label: guard opcode operands"; a label stands alone before its instruction."""
    kernel = SassKernel("k")
    for row in rows:
        if row.endswith(":"):
            kernel.labels[row[:-1]] = len(kernel.code)
            continue
        guard, _, rest = row.rpartition("| ")
        opcode, _, operands = rest.partition(" ")
        kernel.code.append(Sass(16 * len(kernel.code), opcode, guard, operands, 1))
    return kernel


def test_copies_for_diverged_warps_are_cold() -> None:
    kernel = _kernel(
        "BRA.DIV UR4, `(.L_2)", "SHFL.BFLY R1", ".L_1:", "EXIT",
        ".L_2:", "WARPSYNC.COLLECTIVE R2, `(.L_3)", ".L_3:", "SHFL.BFLY R1", "BRA `(.L_1)",
    )  # fmt: skip
    assert cold_code(kernel) == {3, 4, 5}


def test_calls_of_slow_paths_and_what_they_call_are_cold() -> None:
    slow = "$__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath"
    kernel = _kernel(
        "FCHK P0", "@!P0| BRA `(.L_1)", "MOV R3", f"CALL.REL.NOINC `({slow})", "MOV R4", ".L_1:",
        "FADD R1", "EXIT", f"{slow}:", "FMUL R0", "RET.REL.NODEC R2 `(k)",
    )  # fmt: skip
    kernel.labels[slow] = 7
    found = cold_code(kernel)
    assert {2, 3, 4} <= found
    assert not found & {0, 1, 5, 6}


def test_what_others_reach_as_well_is_not_cold() -> None:
    kernel = _kernel(
        "BRA.DIV UR4, `(.L_2)", "@P0| BRA `(.L_2)", ".L_1:", "EXIT",
        ".L_2:", "FADD R1", "BRA `(.L_1)",
    )  # fmt: skip
    assert cold_code(kernel) == frozenset()
    assert cold_code(SassKernel("empty")) == frozenset()


_HEAD = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n) .reqntid 64 {
.reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %rd<4>; .reg .pred %p<4>;
ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.f32 %f1, 0f3F800000;
setp.eq.u32 %p1, %r2, 77; @%p1 bra AFTER;
"""
_TAIL = "AFTER: st.global.f32 [%rd1], %f1; ret; }"


@pytest.fixture
def clk() -> Callable[[str], float]:
    machine = builtin_machines()["h100-sxm"]

    def timed(body: str) -> float:
        kernel = load_kernel(_HEAD + body + _TAIL, machine)
        return time_kernel(kernel, (1, 1, 1), None, [np.zeros(64, np.float32), 3]).cycles

    return timed


def test_a_division_does_not_go_the_slow_way(clk: Callable[[str], float]) -> None:
    start = "cvt.rn.f32.u32 %f2, %r1; cvt.rn.f32.u32 %f1, %r2;"
    one = "div.rn.f32 %f1, %f1, %f2;"
    spent = (clk(start + 9 * one) - clk(start + one)) / 8
    assert spent < 55  # 67 with what stands by the call
