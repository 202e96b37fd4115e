"""The bytes that a timed run asks for are those of the record, whatever ptxas made of the code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tile_sim.ptx.parser import parse
from tile_sim.ptx.syntax import Instr
from tile_time import model
from tile_time.accesses import Made, accesses
from tile_time.engine.compile import make_load
from tile_time.engine.run import Load
from tile_time.model import load_kernel, time_kernel
from tile_time.result import Result
from tile_time.sass.code import Sass

from tile_core.diagnostics import CompileError
from tile_core.machines import builtin_machines

H100 = builtin_machines()["h100-sxm"]
ROW = 32 * 16  # bytes of the sectors that a warp touches at once, 16 bytes a thread
_HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr .global .align 16 b,
.param .u32 n)
.reqntid 32 {
.shared .align 16 .b8 sm[4096];
.reg .b32 %r<30>; .reg .f32 %f<30>; .reg .b64 %rd<9>; .reg .pred %p<9>;
ld.param.u64 %rd1, [a]; ld.param.u64 %rd3, [b]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
mul.wide.u32 %rd2, %r2, 16; add.u64 %rd1, %rd1, %rd2; add.u64 %rd3, %rd3, %rd2;
mov.f32 %f0, 0f00000000;
"""
#: Loads of a loop that ptxas unrolls, scheduled among other SASS of their line: a row of a norm.
_LOOP = """mov.u32 %r3, 0; cvt.u64.u32 %rd4, %r1; mul.lo.u64 %rd4, %rd4, 256;
mul.lo.u32 %r8, %r2, 8;
mov.f32 %f5, %f0; mov.f32 %f6, %f0; mov.f32 %f7, %f0;
L: mul.wide.u32 %rd5, %r3, 256; sub.s64 %rd6, %rd4, %rd5; max.s64 %rd6, %rd6, 0;
min.s64 %rd6, %rd6, 256; cvt.u32.u64 %r9, %rd6; mul.wide.u32 %rd7, %r3, 512;
add.s64 %rd8, %rd1, %rd7; setp.lt.u32 %p1, %r8, %r9;
mov.b32 %r4, 0; mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b32 %r7, 0;
@%p1 ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd8];
mov.b32 %f1, %r4; mov.b32 %f2, %r5; mov.b32 %f3, %r6; mov.b32 %f4, %r7;
fma.rn.f32 %f0, %f1, %f1, %f0; fma.rn.f32 %f5, %f2, %f2, %f5;
fma.rn.f32 %f6, %f3, %f3, %f6; fma.rn.f32 %f7, %f4, %f4, %f7;
add.s32 %r3, %r3, 1; setp.ne.b32 %p2, %r3, %r1; @%p2 bra L;
add.f32 %f0, %f0, %f5; add.f32 %f0, %f0, %f6; add.f32 %f0, %f0, %f7;
st.global.f32 [%rd3], %f0; ret; }
"""
_SHARED = """mov.u32 %r4, sm; mad.lo.u32 %r5, %r2, 16, %r4; mov.f32 %f1, 0f3f800000;
st.shared.f32 [%r5], %f1; st.shared.f32 [%r5+4], %f1; st.shared.f32 [%r5+8], %f0;
st.shared.f32 [%r5+12], %f1; ret; }
"""
#: A load that nobody reads.
_DEAD = "ld.global.f32 %f1, [%rd1]; st.global.f32 [%rd3], %f0; ret; }\n"


def _timed(body: str, count: int = 4) -> Result:
    arguments = [np.zeros(1 << 16, np.float32), np.zeros(1 << 16, np.float32), np.uint32(count)]
    return time_kernel(load_kernel(_HEAD + body, H100), (1, 1, 1), None, arguments)


@pytest.mark.parametrize("count", [1, 3, 4, 7, 8])
def test_copies_of_a_loop_load_a_row_once(count: int) -> None:
    assert _timed(_LOOP, count).bytes_l2 == (count + 1) * ROW


def test_what_is_merged_is_asked_for_once() -> None:
    found = _timed(_SHARED)
    assert found.roofs["shared memory"] * found.cycles == pytest.approx(4)  # one STS.128
    assert not found.remarks


def test_what_has_no_sass_is_asked_for_and_said() -> None:
    found = _timed(_DEAD)
    assert found.bytes_l2 == 2 * ROW
    assert "no SASS makes the accesses of PTX lines" in found.remarks[0]


@pytest.mark.parametrize("fault", ["dropped", "shared by too many"])
def test_a_difference_is_refused(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: object) -> Load:
        load = make_load(*given)  # pyright: ignore[reportArgumentType]
        for op in (op for ops in load.ops for op in ops if op.kind == "load"):
            if fault == "dropped":
                op.pos = -1
            else:
                op.share = 3
        return load

    monkeypatch.setattr(model, "make_load", wrong)
    with pytest.raises(CompileError, match=r"bytes at line \d+ of the PTX \(ld\.global\.v4\.b32"):
        _timed(_LOOP)


def test_actions_that_leave_out_accesses_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: object) -> Load:
        load = make_load(*given)  # pyright: ignore[reportArgumentType]
        kinds = [[[warp[:-1] for warp in cta] for cta in kind] for kind in load.kinds]
        return replace(load, kinds=kinds)

    monkeypatch.setattr(model, "make_load", wrong)
    with pytest.raises(CompileError, match=r"asks for 0 bytes at line \d+ .*st\.global"):
        _timed(_LOOP)


def _instruction(text: str) -> Instr:
    syntax, _ = parse(f".version 8.0\n.target sm_90\n.entry k() {{ .reg .b32 %r<9>; {text} }}\n")
    body = next(iter(syntax.functions.values())).body
    assert body is not None
    return next(one for one in body.body if isinstance(one, Instr))


_V4 = "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r5];"
_ONE = "ld.shared.b32 %r1, [%r5];"


@pytest.mark.parametrize(
    ("text", "opcodes", "unroll", "made"),
    [
        (_V4, "LDS.128 LDS.128", 2, [(0, 0, 1), (1, 0, 1)]),
        (_V4, "LDS.128 LDS.128", 1, [(0, 0, 1), (0, 0, 0)]),  # on two ways: one of them is taken
        (_V4, "LDS.64 LDS.64", 1, [(0, 0, 2), (0, 1, 2)]),  # two parts
        (_V4, "LDS.64 LDS.64 LDS.64 LDS.64", 2, [(0, 0, 2), (0, 1, 2), (1, 0, 2), (1, 1, 2)]),
        (_V4, "LDS", 1, [(0, 0, 1)]),  # the rest is not read
        (_ONE, "LDS.128", 4, [(0, 0, 1)]),  # four copies at once
        (_ONE, "LDS LDS LDS", 2, [(0, 0, 1), (0, 0, 0), (1, 0, 1)]),
        (_ONE, "MOV LDS ATOMS", 1, [None, (0, 0, 1), (0, 0, 0)]),
    ],
)  # fmt: skip
def test_makers(text: str, opcodes: str, unroll: int, made: list[tuple[int, int, int]]) -> None:
    sass = [Sass(16 * n, opcode, "", "", 1) for n, opcode in enumerate(opcodes.split())]
    found = accesses(_instruction(text), sass, unroll)
    assert [found.of[n][:3] if n in found.of else None for n in range(len(sass))] == made
    covered = {one.copy for one in found.of.values() if one.share}
    assert set(found.left) == set(range(unroll)) - covered


def test_what_is_wider_than_its_ptx_is_spare() -> None:
    found = accesses(_instruction(_ONE), [Sass(0, "LDS.128", "", "", 1)], 2)
    assert (found.spare, found.left) == (12, (1,))
    assert found.of == {0: Made(0, 0, 1, 16)}
