"""What LLVM leaves behind in the worker, which compiles thousands of kernels in one process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_MEASURE = """
from tile_nvptx.emit import codegen

IR = '''
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr addrspace(1) %p) {
  %a = load float, ptr addrspace(1) %p
  %b = call float @__nv_expf(float %a)
  store float %b, ptr addrspace(1) %p
  ret void
}
declare float @__nv_expf(float)
'''
codegen.initialize(LIBDEVICE)

def run(times):
    for level in (0, 3) * (times // 2):
        codegen.generate(codegen.Request(IR, "sm_80", "+ptx80", level, LIBDEVICE))
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

before = run(20)
print(run(240) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc/self/statm")
def test_compiling_more_kernels_takes_no_more_memory() -> None:
    from tile_nvptx.emit import toolchain

    library = toolchain.find("libdevice")
    assert library is not None
    program = f"LIBDEVICE = {str(library.path)!r}\n{_MEASURE}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1 << 20
