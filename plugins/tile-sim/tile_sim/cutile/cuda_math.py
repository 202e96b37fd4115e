"""Functions of CUDA's mathematical library, element by element, in the simulator.

Suites compare some results bit for bit with what torch computes on a GPU, and there it calls this
library (libdevice). Its last places are neither those of the CPU's libraries nor the correctly
rounded ones. Here a small kernel calls the library directly: its way through the compiler has
nothing in common with that of a tile program but LLVM's code generator.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tile_core.api import compile as compile_program
from tile_sim.module import Module

#: torch's name of a function => libdevice's, of one f32.
FUNCTIONS = {
    "sqrt": "__nv_sqrtf", "rsqrt": "__nv_rsqrtf", "exp": "__nv_expf", "exp2": "__nv_exp2f",
    "log": "__nv_logf", "log2": "__nv_log2f", "sin": "__nv_sinf", "cos": "__nv_cosf",
    "tan": "__nv_tanf", "sinh": "__nv_sinhf", "cosh": "__nv_coshf", "tanh": "__nv_tanhf",
}  # fmt: skip
_BLOCK = 128
_KERNEL = """
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare float @{function}(float)
define ptx_kernel void @map(ptr addrspace(1) %from, ptr addrspace(1) %to, i32 %count) {{
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %start = mul i32 %block, {block}
  %at = add i32 %start, %thread
  %inside = icmp ult i32 %at, %count
  br i1 %inside, label %body, label %end
body:
  %source = getelementptr float, ptr addrspace(1) %from, i32 %at
  %value = load float, ptr addrspace(1) %source
  %result = call float @{function}(float %value)
  %target = getelementptr float, ptr addrspace(1) %to, i32 %at
  store float %result, ptr addrspace(1) %target
  br label %end
end:
  ret void
}}
"""


@cache
def _module(name: str) -> Module:
    text = _KERNEL.format(function=FUNCTIONS[name], block=_BLOCK)
    made = compile_program(text, "sm_80", start_at="ptx", emit="ptx", keep_stages=False).output
    return Module(made.decode() if isinstance(made, bytes) else str(made))


def evaluate(name: str, values: np.ndarray) -> np.ndarray:
    """A function of `FUNCTIONS` of f32 values, of any shape."""
    source = np.ascontiguousarray(values, np.float32)
    result = np.zeros_like(source)
    blocks = -(-source.size // _BLOCK)
    if blocks:
        arguments = [source, result, source.size]
        _module(name).launch("map", (blocks, 1, 1), (_BLOCK, 1, 1), arguments)
    return result
