"""How fast the simulator executes: thread-instructions a second on one core, by kind of code.

    python benchmarks/sim.py

Aims, for one core: 50 million thread-instructions a second of straight-line f32 code with 4,096
threads, and a 512x512x512 f16 matrix product of this compiler in less than 20 seconds. Exits with
1 if one is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from tile_sim import Module
from tile_sim.arguments import with_shape

from tile_core.api import compile as compile_program

CUDA = Path(__file__).resolve().parents[1] / "tests" / "unit" / "tile_sim" / "cuda"
BYTECODE = Path(__file__).resolve().parents[1] / "examples" / "bytecode"
HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out_p, .param .u32 n_p) {
.reg .pred %p<4>; .reg .b32 %r<12>; .reg .f32 %f<8>; .reg .b64 %rd<4>; .reg .u64 out; .reg .u32 n;
.shared .align 4 .b32 s[1024];
ld.param.u64 out, [out_p]; ld.param.u32 n, [n_p];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
cvt.rn.f32.u32 %f1, %r4; mov.f32 %f2, 0f3F000000; mov.f32 %f3, 0f3F800000; mov.u32 %r5, 0;
shl.b32 %r6, %r1, 2; mov.u32 %r7, s; add.u32 %r6, %r6, %r7; st.shared.f32 [%r6], %f1;
"""
TAIL = """
add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, n; @%p1 bra LOOP;
mul.wide.u32 %rd1, %r4, 4; add.u64 %rd1, out, %rd1; st.global.f32 [%rd1], %f1; ret; }
"""
STRAIGHT = "fma.rn.f32 %f1, %f1, %f2, %f3; add.f32 %f3, %f3, %f1; mul.f32 %f2, %f2, %f3;\n" * 40
DIVERGENT = """
xor.b32 %r8, %r1, %r5; and.b32 %r8, %r8, 7; setp.lt.u32 %p2, %r8, 3; @%p2 bra ONE;
add.f32 %f1, %f1, %f2; mul.f32 %f2, %f2, %f3; add.f32 %f1, %f1, %f2; bra BOTH;
ONE: sub.f32 %f1, %f1, %f3; fma.rn.f32 %f3, %f1, %f2, %f3; add.f32 %f1, %f1, %f3;
BOTH: add.f32 %f2, %f2, 0f3F800000;
"""
SHARED = """
xor.b32 %r8, %r6, 64; ld.shared.f32 %f4, [%r8]; add.f32 %f1, %f1, %f4; bar.sync 0;
st.shared.f32 [%r6], %f1; bar.sync 0;
"""


@dataclass
class Measurement:
    """`rate` in million thread-instructions a second."""

    name: str
    threads: int
    seconds: float
    rate: float
    aim: str = ""
    met: bool = True


def _loop(name: str, body: str, threads: int, iterations: int, aim: float = 0.0) -> Measurement:
    module = Module(HEAD + "LOOP:" + body + TAIL)
    out = np.zeros(threads, np.float32)
    best = None
    for _ in range(3):
        start = time.perf_counter()
        grid, block = (threads // 256, 1, 1), (256, 1, 1)
        report = module.launch("k", grid, block, [out, iterations])
        seconds = time.perf_counter() - start
        if best is None or seconds < best[0]:
            best = seconds, report.thread_instructions
    assert best is not None
    rate = best[1] / best[0] / 1e6
    text = f"{aim:.0f} M/s" if aim else ""
    return Measurement(name, threads, best[0], rate, text, rate >= aim)


def _matmul(size: int) -> Measurement:
    """`mma.sync` and `ldmatrix`, a warp for each 16x8 tile."""
    module = Module((CUDA / "tensor_sm80.ptx").read_text())
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    c = np.zeros((size, size), np.float32)
    start = time.perf_counter()
    grid = (size // 8, size // 16, 1)
    report = module.launch("mma_tile", grid, (32, 1, 1), [a, b, c, size, size])
    seconds = time.perf_counter() - start
    if not np.allclose(c, a.astype(np.float64) @ b, rtol=1e-3, atol=1e-2):
        raise SystemExit("the matrix product is wrong")
    rate = report.thread_instructions / seconds / 1e6
    threads = grid[0] * grid[1] * 32
    return Measurement(f"mma {size}^3 f16", threads, seconds, rate, "20 s", seconds < 20)


def _compiled(size: int, target: str) -> Measurement:
    """This compiler's kernel for the matrix product of the examples, tiles of 64x64."""
    source = (BYTECODE / "matmul_f16.tileirbc").read_bytes()
    ptx = compile_program(source, target, emit="ptx", keep_stages=False).output
    module = Module(ptx if isinstance(ptx, str) else ptx.decode())
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    c = np.zeros((size, size), np.float16)
    blocks = size // 64
    start = time.perf_counter()
    arguments = with_shape([a, b, c])
    report = module.launch("matmul_f16", (blocks, blocks, 1), None, arguments)
    seconds = time.perf_counter() - start
    if not np.allclose(c, a.astype(np.float64) @ b, rtol=2e-3, atol=5e-2):
        raise SystemExit("the compiled matrix product is wrong")
    rate = report.thread_instructions / seconds / 1e6
    threads = blocks * blocks * report.block[0]
    name = f"tilec {size}^3 {target}"
    return Measurement(name, threads, seconds, rate, "20 s", seconds < 20)


CASES: tuple[Callable[[], Measurement], ...] = (
    lambda: _loop("straight f32", STRAIGHT, 256, 20),
    lambda: _loop("straight f32", STRAIGHT, 4096, 20, aim=50.0),
    lambda: _loop("straight f32", STRAIGHT, 16384, 10),
    lambda: _loop("divergent", DIVERGENT, 4096, 200),
    lambda: _loop("shared + barrier", SHARED, 4096, 200),
    lambda: _matmul(512),
    lambda: _compiled(512, "sm_80"),
    lambda: _compiled(512, "sm_90"),
)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="keep the numbers")
    options = parser.parse_args()
    found = []
    for case in CASES:
        one = case()
        found.append(one)
        mark = "" if not one.aim else f"   aim {one.aim}: {'met' if one.met else 'MISSED'}"
        print(
            f"{one.name:18} {one.threads:7} threads {one.seconds:7.2f} s "
            f"{one.rate:8.1f} M thread-instructions/s{mark}"
        )
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(m) for m in found], indent=1) + "\n")
    return 0 if all(m.met for m in found) else 1


if __name__ == "__main__":
    sys.exit(main())
