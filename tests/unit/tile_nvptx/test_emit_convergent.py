"""What a warp does together is not copied into the arms of a branch that part of it takes."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from tile_nvptx.emit.codegen import Request, generate, initialize
from tile_nvptx.emit.convergent import marked

#: The second branch asks what the first one did: LLVM threads one through the other.
TEXT = """
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(i32 %n, i32 %z) #1 {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp eq i32 %t, 0
  br i1 %c, label %a, label %b
a:
  call void asm sideeffect "mbarrier.arrive.shared.b64 _, [$0];", "r,~{memory}"(i32 %n)
  br label %b
b:
  call void @store(i32 %z)
  br i1 %c, label %d, label %e
d:
  call void asm sideeffect "mbarrier.inval.shared.b64 [$0];", "r,~{memory}"(i32 %n)
  br label %e
e:
  ret void
}
define internal void @store(i32 %z) #0 {
  call void @inner(i32 %z)
  ret void
}
define internal void @inner(i32 %z) #0 {
  call void asm sideeffect "tcgen05.wait::st.sync.aligned; // $0", "r,~{memory}"(i32 %z), !srcloc !0
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
attributes #0 = { alwaysinline }
attributes #1 = { "nvvm.reqntid"="128" }
!0 = !{i32 0}
"""


def copies(text: str) -> int:
    initialize()
    made = generate(Request(text, "sm_100a", "+ptx90", 3))["ptx"]
    return made.count("tcgen05.wait::st")


def test_llvm_copies_what_it_knows_nothing_of() -> None:
    """Else nothing below shows anything."""
    assert copies(TEXT) == 2


def test_marked_it_stands_once() -> None:
    assert copies(marked(TEXT)) == 1


def test_callers_are_marked_and_nothing_else() -> None:
    found = [line for line in marked(TEXT).splitlines() if " convergent" in line]
    assert [line.split("@")[1].split("(")[0] for line in found[:-1]] == ["k", "store", "inner"]
    assert found[-1].endswith("(i32 %z) convergent, !srcloc !0")
    llvm.parse_assembly(marked(TEXT))


@pytest.mark.parametrize("asm", ["mbarrier.init.shared.b64 [$0], 1;", "tcgen05.commit [$0];"])
def test_what_single_threads_do_is_left(asm: str) -> None:
    text = TEXT.replace("tcgen05.wait::st.sync.aligned; // $0", asm)
    assert marked(text) == text
