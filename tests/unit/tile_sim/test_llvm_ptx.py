"""What LLVM's NVPTX back end makes of one module, at several targets and levels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tile_sim import Module

pytest.importorskip("llvmlite")

IR = r"""
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
declare float @llvm.nvvm.ex2.approx.f(float)
declare <2 x half> @llvm.maxnum.v2f16(<2 x half>, <2 x half>)
declare float @llvm.maximum.f32(float, float)
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare float @llvm.sqrt.f32(float)
@smem = internal addrspace(3) global [1024 x float] undef, align 16
@dynamic = external addrspace(3) global [0 x i8], align 16
define internal i128 @square(i64 %a) noinline {
  %x = zext i64 %a to i128
  %r = mul i128 %x, %x
  ret i128 %r
}
define ptx_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %h,
                          ptr addrspace(1) %w, i1 %flag, half %hs) "nvvm.reqntid"="64" {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %b64 = mul i32 %b, 64
  %i = add i32 %t, %b64
  %p = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %i
  %v = load <4 x float>, ptr addrspace(1) %p, align 16
  %q = getelementptr <4 x float>, ptr addrspace(1) %y, i32 %i
  %u = load <4 x float>, ptr addrspace(1) %q, align 16
  %half = insertelement <4 x float> zeroinitializer, float 0.5, i32 2
  %f = call <4 x float> @llvm.fma.v4f32(<4 x float> %v, <4 x float> %u, <4 x float> %half)
  %e0 = extractelement <4 x float> %f, i32 0
  %e1 = call float @llvm.nvvm.ex2.approx.f(float %e0)
  %e2 = call float @llvm.maximum.f32(float %e1, float 1.5)
  %sp = getelementptr [1024 x float], ptr addrspace(3) @smem, i32 0, i32 %t
  store float %e2, ptr addrspace(3) %sp
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %o = xor i32 %t, 33
  %sq = getelementptr [1024 x float], ptr addrspace(3) @smem, i32 0, i32 %o
  %s = load float, ptr addrspace(3) %sq
  %dp = getelementptr i8, ptr addrspace(3) @dynamic, i32 %t
  %t8 = trunc i32 %t to i8
  store i8 %t8, ptr addrspace(3) %dp
  %z8 = load i8, ptr addrspace(3) %dp
  %z32 = sext i8 %z8 to i32
  %sh = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %z32, i32 1, i32 31)
  %fz = sitofp i32 %sh to float
  %f3 = fadd float %s, %fz
  %g = insertelement <4 x float> %f, float %f3, i32 0
  %root = call float @llvm.sqrt.f32(float %f3)
  %g1 = insertelement <4 x float> %g, float %root, i32 1
  store <4 x float> %g1, ptr addrspace(1) %q, align 16
  %hp = getelementptr <2 x half>, ptr addrspace(1) %h, i32 %i
  %hv = load <2 x half>, ptr addrspace(1) %hp
  %hb = insertelement <2 x half> undef, half %hs, i32 0
  %hc = insertelement <2 x half> %hb, half 0xH3C00, i32 1
  %ha = fadd <2 x half> %hv, %hc
  %hm = call <2 x half> @llvm.maxnum.v2f16(<2 x half> %ha, <2 x half> %hv)
  %hsel = select i1 %flag, <2 x half> %hm, <2 x half> %hv
  store <2 x half> %hsel, ptr addrspace(1) %hp
  %i64 = sext i32 %i to i64
  %m1 = mul i64 %i64, 1234567890123457
  %m = call i128 @square(i64 %m1)
  %wp = getelementptr i128, ptr addrspace(1) %w, i32 %i
  store i128 %m, ptr addrspace(1) %wp
  %cnt = getelementptr i128, ptr addrspace(1) %w, i32 128
  %old = atomicrmw add ptr addrspace(1) %cnt, i32 3 monotonic
  %c2 = getelementptr i32, ptr addrspace(1) %cnt, i32 1
  %old2 = atomicrmw fadd ptr addrspace(1) %c2, float 1.0 monotonic
  ret void
}
"""
# In a process of its own: LLVM ends the process when it meets what it cannot select.
COMPILE = r"""
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
cpu, feature, level = sys.argv[1], sys.argv[2], int(sys.argv[3])
module = llvm.parse_assembly(sys.stdin.read())
target = llvm.Target.from_triple(module.triple)
machine = target.create_target_machine(cpu=cpu, features=feature, opt=level)
if level:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
print(machine.emit_assembly(module))
"""


def compile_ir(cpu: str, feature: str, level: int) -> str:
    command = [sys.executable, "-c", COMPILE, cpu, feature, str(level)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        command, input=IR, capture_output=True, text=True, check=False, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("cpu", "feature", "level"),
    [
        ("sm_80", "+ptx80", 0),
        ("sm_80", "+ptx80", 3),
        ("sm_90a", "+ptx86", 2),
        ("sm_100a", "+ptx88", 3),
        ("sm_120a", "+ptx88", 1),
    ],
)
def test_every_target(cpu: str, feature: str, level: int) -> None:
    module = Module(compile_ir(cpu, feature, level))
    rng = np.random.default_rng(0)
    x, y = rng.random((128, 4), np.float32), rng.random((128, 4), np.float32)
    h, w = rng.random((128, 2)).astype(np.float16), np.zeros((129, 4), np.uint32)
    y0, h0 = y.copy(), h.copy()
    args = [x, y, h, w, True, np.float16(-0.25)]
    module.launch("k", (2, 1, 1), None, args, shared_bytes=64)
    f = (x.astype(np.float64) * y0 + [0, 0, 0.5, 0]).astype(np.float32)
    e = np.maximum(np.exp2(f[:, 0]), np.float32(1.5))
    i = np.arange(128)
    f3 = e[i // 64 * 64 + (i % 64 ^ 33)] + (i % 64 ^ 1).astype(np.float32)
    expected = f.copy()
    expected[:, 0], expected[:, 1] = f3, np.sqrt(f3)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    np.testing.assert_array_equal(h, np.maximum(h0 + np.array([-0.25, 1], np.float16), h0))
    assert w[128, 0] == 3 * 128
    assert w[128, 1:2].view(np.float32)[0] == 128
    for k in range(128):
        assert w[k].tobytes() == ((k * 1234567890123457) ** 2).to_bytes(16, "little")
