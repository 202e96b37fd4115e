"""Passes over the llvm dialect: what they are worth in PTX, and what LLVM does by itself.

Where LLVM does what the specification has a pass for, the test holds it to that: if it stops, the
pass has to be written.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tile_sim
from support.emit_kernels import context
from tile_nvptx.emit.llvm_ir import LlvmIrEmitter
from tile_nvptx.emit.ptx import PtxEmitter
from tile_nvptx.passes.llvm.memory_spaces import POISON, UNDETERMINED, meet

import tile_core
from tile_core.mlir import ir
from tile_core.opt import OptJob, OptResult, Selection, optimize
from tile_core.registry import default_registry

EXAMPLES = Path(__file__).parents[3] / "examples" / "bytecode"


def run(text: str, passes: str) -> OptResult:
    return optimize(text, 0, OptJob(default_registry(), Selection(passes=passes, target="sm_90")))


def ptx(text: str, passes: str = "") -> str:
    """PTX of a module at -O3, after some passes over it."""
    text = run(text, passes).text if passes else text
    cx = context("sm_90", opt_level=3)
    return PtxEmitter().emit(LlvmIrEmitter().emit(ir.Module.parse(text, ir.Context()), cx), cx)


#: A function that is called with global and with shared memory, and must not be inlined.
HELPER = """
gpu.module @m {
  llvm.mlir.global internal @s() {addr_space = 3 : i32} : !llvm.array<128 x f32>
  llvm.func internal @sum(%p: !llvm.ptr, %i: i32) -> f32 attributes {no_inline} {
    %q = llvm.getelementptr %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %x = llvm.load %q : !llvm.ptr -> f32
    %r = llvm.getelementptr %q[1] : (!llvm.ptr) -> !llvm.ptr, f32
    %y = llvm.load %r : !llvm.ptr -> f32
    %z = llvm.fadd %x, %y : f32
    llvm.return %z : f32
  }
  llvm.func @k(%g: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
    %i = nvvm.read.ptx.sreg.tid.x : i32
    %a = llvm.addrspacecast %g : !llvm.ptr<1> to !llvm.ptr
    %x = llvm.call @sum(%a, %i) : (!llvm.ptr, i32) -> f32
    SHARED
    llvm.store %x, %g : f32, !llvm.ptr<1>
    llvm.return
  }
}
"""
SHARED = """
    %s = llvm.mlir.addressof @s : !llvm.ptr<3>
    %b = llvm.addrspacecast %s : !llvm.ptr<3> to !llvm.ptr
    %y = llvm.call @sum(%b, %i) : (!llvm.ptr, i32) -> f32
    llvm.store %y, %s : f32, !llvm.ptr<3>
"""


def test_spaces_cross_calls_with_ipmsp_alone() -> None:
    """Two generic loads become two of global memory; LLVM stops at the call."""
    text = HELPER.replace("SHARED", "")
    assert not re.findall(r"ld\.global", ptx(text))
    assert len(re.findall(r"ld\.(?:v2\.)?(?:b32|f32)", ptx(text))) == 2
    assert len(re.findall(r"ld\.global", ptx(text, "ipmsp"))) == 2


#: A function that returns an address in what it was given, and one that does so by way of itself.
RETURNED = """
gpu.module @m {
  llvm.func internal @at(%p: !llvm.ptr, %i: i32) -> !llvm.ptr attributes {no_inline} {
    %q = llvm.getelementptr %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %n = llvm.mlir.constant(9 : i32) : i32
    %c = llvm.icmp "sgt" %i, %n : i32
    llvm.cond_br %c, ^bb1, ^bb2
  ^bb1:
    %j = llvm.sub %i, %n : i32
    %r = llvm.call @at(%q, %j) : (!llvm.ptr, i32) -> !llvm.ptr
    llvm.return %r : !llvm.ptr
  ^bb2:
    llvm.return %q : !llvm.ptr
  }
  llvm.mlir.global internal @s() {addr_space = SPACE : i32} : !llvm.array<128 x f32>
  llvm.func @k(%g: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %i = nvvm.read.ptx.sreg.tid.x : i32
    %h = llvm.mlir.addressof @s : !llvm.ptr<SPACE>
    %a = llvm.addrspacecast %g : !llvm.ptr<1> to !llvm.ptr
    %b = llvm.addrspacecast %h : !llvm.ptr<SPACE> to !llvm.ptr
    %p = llvm.call @at(%a, %i) : (!llvm.ptr, i32) -> !llvm.ptr
    %q = llvm.call @at(%b, %i) : (!llvm.ptr, i32) -> !llvm.ptr
    %x = llvm.load %p : !llvm.ptr -> f32
    llvm.store %x, %q : f32, !llvm.ptr
    llvm.return
  }
}
"""


@pytest.mark.parametrize(("where", "known"), [(1, True), (3, False)])
def test_spaces_come_back_from_calls(where: int, known: bool) -> None:
    """Where all calls are of one space; with two, a function that calls itself is not copied."""
    text = RETURNED.replace("SPACE", str(where))
    assert not re.findall(r"(?:ld|st)\.global", ptx(text))
    accesses = re.findall(r"(?:ld|st)\.global", ptx(text, "ipmsp"))
    assert accesses == (["ld.global", "st.global"] if known else [])
    assert run(text, "ipmsp").artifact.statistics.get(("ipmsp", "returned"), 0) == known


def test_a_copy_for_each_space() -> None:
    text = ptx(HELPER.replace("SHARED", SHARED), "ipmsp")
    assert len(re.findall(r"ld\.global", text)) == 2
    assert len(re.findall(r"ld\.shared", text)) == 2


def test_no_copies_where_none_are_allowed() -> None:
    text = HELPER.replace("SHARED", SHARED)
    assert "sum.3" not in run(text, "ipmsp{do-clone-for-ip-msp=0}").text
    kept = run(text, "ipmsp{do-clone-for-ip-msp=0}").text
    assert "addrspacecast %arg0 : !llvm.ptr to" not in kept
    assert run(text, "ipmsp{do-clone-for-ip-msp=1}").artifact.statistics[("ipmsp", "cloned")] == 1


def test_what_was_found_is_said() -> None:
    said = [r.message for r in run(HELPER.replace("SHARED", SHARED), "ipmsp").artifact.remarks]
    assert said == [
        "@sum is cloned: @sum.3",
        "@sum.3 : changed in argument memory space (3)",
        "@sum : changed in argument memory space (1)",
    ]


def test_barriers_that_go_are_said() -> None:
    text = """gpu.module @m { llvm.func @k() attributes {nvvm.kernel} {
      nvvm.barrier
      llvm.return } }"""
    (said,) = run(text, "dead-sync-elim").artifact.remarks
    assert said.message == "Removed dead synch: 0 accesses above, 0 below"


@pytest.mark.parametrize("a", [UNDETERMINED, 1, 3, 5, POISON])
@pytest.mark.parametrize("b", [UNDETERMINED, 1, 3, 5, POISON])
def test_the_lattice(a: int, b: int) -> None:
    """Nothing known gives way, equal stays, anything else is several; in either order."""
    assert meet(a, b) == meet(b, a)
    wanted = b if a == UNDETERMINED else a if b in (UNDETERMINED, a) else POISON
    assert meet(a, b) == wanted
    assert meet(meet(a, b), b) == meet(a, b)


def test_limits_of_inlining() -> None:
    text = """gpu.module @m { llvm.func @f(%a: !llvm.array<20 x f32>) -> !llvm.array<20 x f32> {
      llvm.return %a : !llvm.array<20 x f32> } }"""
    assert "always_inline" not in run(text, "nv-inline-must").text
    assert "always_inline" in run(text, "nv-inline-must{parameter-bytes=79}").text
    assert "always_inline" in run(text, "nv-inline-must{result-bytes=79}").text


def test_barriers_that_stay_are_named() -> None:
    text = """gpu.module @m { llvm.func @k(%p: !llvm.ptr<1>, %v: f32) attributes {nvvm.kernel} {
      llvm.store %v, %p : f32, !llvm.ptr<1>
      nvvm.barrier
      %x = llvm.load %p : !llvm.ptr<1> -> f32
      llvm.return } }"""
    assert not run(text, "dead-sync-elim").artifact.remarks
    (said,) = run(text, "dead-sync-elim{print-dead-sync-elim=true}").artifact.remarks
    assert said.message == "the barrier stays"


def test_printf_reaches_ptx() -> None:
    text = r"""gpu.module @m {
      llvm.mlir.global internal constant @t("%d %f\0A\00") {addr_space = 4 : i32}
      llvm.func @printf(!llvm.ptr, ...) -> i32
      llvm.func @k(%i: i32, %f: f32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
        %t = llvm.mlir.addressof @t : !llvm.ptr<4>
        %g = llvm.addrspacecast %t : !llvm.ptr<4> to !llvm.ptr
        %0 = llvm.call @printf(%g, %i, %f) vararg(!llvm.func<i32 (ptr, ...)>)
             : (!llvm.ptr, i32, f32) -> i32
        llvm.return } }"""
    made = ptx(text, "printf-lowering")
    assert "vprintf" in made
    assert re.search(r"st\.local\.b64\s+\[%rd\d+\+8\]", made) or "cvt.f64.f32" in made


# --- what LLVM does by itself --------------------------------------------------------------------

KERNEL = "attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>}"


def test_llvm_reads_structs_from_parameter_memory() -> None:
    """lower-struct-args: a field of a parameter by value is one ld.param, and nothing is copied."""
    made = ptx(f"""gpu.module @m {{
      llvm.func @k(%a: !llvm.ptr {{llvm.byval = !llvm.struct<(f64, i8, array<4 x i32>)>}},
                   %o: !llvm.ptr<1>) {KERNEL} {{
        %p = llvm.getelementptr %a[0, 2, 3]
             : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(f64, i8, array<4 x i32>)>
        %x = llvm.load %p : !llvm.ptr -> i32
        llvm.store %x, %o : i32, !llvm.ptr<1>
        llvm.return }} }}""")
    assert re.search(r"ld\.param\.b32\s+%r\d+, \[k_param_0\+24\]", made)
    assert "local" not in made


def test_llvm_infers_spaces_within_functions() -> None:
    """memory-space-opt: casts to generic memory are seen through, small functions inlined."""
    made = ptx(HELPER.replace("SHARED", SHARED).replace("attributes {no_inline}", ""))
    assert "call" not in made
    assert len(re.findall(r"ld\.global", made)) == 2
    assert len(re.findall(r"ld\.shared", made)) == 2


@pytest.mark.parametrize(("restrict", "nc"), [("", False), ("{llvm.noalias}", True)])
def test_llvm_reads_restrict(restrict: str, nc: bool) -> None:
    """process-restrict: what noalias pointers lead to and nobody writes is read by ld.global.nc."""
    made = ptx(f"""gpu.module @m {{
      llvm.func @k(%a: !llvm.ptr<1> {restrict}, %o: !llvm.ptr<1> {restrict}) {KERNEL} {{
        %x = llvm.load %a : !llvm.ptr<1> -> f32
        llvm.store %x, %o : f32, !llvm.ptr<1>
        llvm.return }} }}""")
    assert ("ld.global.nc" in made) == nc


def test_llvm_shares_bases_of_addresses() -> None:
    """common-base-elim: addresses that differ by constants are offsets of one register."""
    body = "\n".join(
        f"""%j{n} = llvm.add %i, %c{n} overflow<nsw> : i64
        %p{n} = llvm.getelementptr %a[%j{n}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
        llvm.store %v, %p{n} : f32, !llvm.ptr<1>"""
        for n in range(4)
    )
    constants = "\n".join(f"%c{n} = llvm.mlir.constant({16 * n} : i64) : i64" for n in range(4))
    made = ptx(f"""gpu.module @m {{
      llvm.func @k(%a: !llvm.ptr<1>, %i: i64, %v: f32) {KERNEL} {{
        {constants}
        {body}
        llvm.return }} }}""")
    bases = re.findall(r"st\.global\.b32\s+\[(%rd\d+)(\+\d+)?\]", made)
    assert len(bases) == 4
    assert len({base for base, _ in bases}) == 1
    assert [offset for _, offset in bases] == ["", "+64", "+128", "+192"]


def test_a_warp_turns_a_matrix() -> None:
    """nvvm.movmatrix, for which the LLVM that makes code has no intrinsic."""
    made = ptx(f"""gpu.module @m {{
      llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) {KERNEL.replace("128", "32")} {{
        %t = nvvm.read.ptx.sreg.tid.x : i32
        %p = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %x = llvm.load %p : !llvm.ptr<1> -> i32
        %y = nvvm.movmatrix %x {{shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>,
          layout = #nvvm.mma_layout<col>, eltType = #nvvm.ld_st_matrix_elt_type<b16>}} : i32
        %q = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %y, %q : i32, !llvm.ptr<1>
        llvm.return }} }}""")
    given, out = np.arange(64, dtype=np.int16).reshape(8, 8), np.zeros((8, 8), np.int16)
    report = tile_sim.Module(made).launch("k", (1, 1, 1), None, [given, out], check=True)
    assert not report.findings
    np.testing.assert_array_equal(out, given.T)


_STORES = "llvm.store %n, %a : i32, !llvm.ptr<1>\nllvm.return"
_STORES_X = "llvm.store %x, %a : i32, !llvm.ptr<1>\nllvm.return"
_COPIES = (
    '"llvm.intr.memcpy"(%a, %a, %c) <{isVolatile = false}> : '
    f"(!llvm.ptr<1>, !llvm.ptr<1>, i64) -> ()\n{_STORES}"
)
_INDEX = "%t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32\n"
_STORES_WIDE = "llvm.store %w, %a : i64, !llvm.ptr<1>\nllvm.return"
_CHOICE = """%z = llvm.mlir.constant(0 : i32) : i32
%o = llvm.mlir.constant(1 : i32) : i32
"""
_LOOP = """llvm.br ^bb1(%n : i32)
^bb1(%i: i32):
%o = llvm.mlir.constant(1 : i32) : i32
%z = llvm.mlir.constant(0 : i32) : i32
%j = llvm.sub %i, %o : i32
llvm.store volatile %j, %a : i32, !llvm.ptr<1>
%c = llvm.icmp "ne" %j, %z : i32
llvm.cond_br %c, ^bb1(%j : i32), ^bb2 """
_NOTE = "{loop_annotation = #llvm.loop_annotation<vectorize = <disable = true>>}"

#: Clean-up of page 104 -> a form, and that which it becomes. The others are about metadata,
#: placeholders and lists of constructors that MLIR's llvm dialect does not have.
PRETREATED = {
    "chains of bitcasts": (
        "%y = llvm.bitcast %n : i32 to f32\n%x = llvm.bitcast %y : f32 to i32\n" + _STORES_X,
        _STORES,
    ),
    "casts of address spaces there and back": (
        "%g = llvm.addrspacecast %a : !llvm.ptr<1> to !llvm.ptr\n"
        "%b = llvm.addrspacecast %g : !llvm.ptr to !llvm.ptr<1>\n"
        "llvm.store %n, %b : i32, !llvm.ptr<1>\nllvm.return",
        _STORES,
    ),
    "lifetimes": (
        "%c = llvm.mlir.constant(1 : i32) : i32\n%s = llvm.alloca %c x i32 : (i32) -> !llvm.ptr\n"
        "llvm.intr.lifetime.start %s : !llvm.ptr\nllvm.store %n, %s : i32, !llvm.ptr\n"
        "%x = llvm.load %s : !llvm.ptr -> i32\nllvm.intr.lifetime.end %s : !llvm.ptr\n" + _STORES_X,
        _STORES,
    ),
    "copies of nothing": ("%c = llvm.mlir.constant(0 : i64) : i64\n" + _COPIES, _STORES),
    "copies of an undefined length": ("%c = llvm.mlir.undef : i64\n" + _COPIES, _STORES),
    "casts of constants": (
        "%c = llvm.mlir.constant(1.0 : f32) : f32\n%x = llvm.bitcast %c : f32 to i32\n" + _STORES_X,
        "%x = llvm.mlir.constant(0x3f800000 : i32) : i32\n" + _STORES_X,
    ),
    "addresses moved by zero": (
        "%p = llvm.getelementptr %a[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n"
        "llvm.store %n, %p : i32, !llvm.ptr<1>\nllvm.return",
        _STORES,
    ),
    "signs of what is not negative": (
        _INDEX + "%w = llvm.sext %t : i32 to i64\n" + _STORES_WIDE,
        _INDEX + "%w = llvm.zext %t : i32 to i64\n" + _STORES_WIDE,
    ),
    "choices between constants": (
        _CHOICE + '%c = llvm.icmp "eq" %n, %z : i32\n%x = llvm.select %c, %z, %o : i1, i32\n'
        + _STORES_X,
        _CHOICE + '%c = llvm.icmp "ne" %n, %z : i32\n%x = llvm.select %c, %o, %z : i1, i32\n'
        + _STORES_X,
    ),
    "assumptions that hold": (
        "%c = llvm.mlir.constant(true) : i1\nllvm.intr.assume %c : i1\n" + _STORES, _STORES,
    ),
    "notes on loops that the back end does not read": (
        _LOOP + _NOTE + "\n^bb2:\nllvm.return", _LOOP + "\n^bb2:\nllvm.return",
    ),
    "blocks that nothing leads to": (
        _STORES + "\n^bb1:\nllvm.store %n, %a : i32, !llvm.ptr<1>\nllvm.br ^bb1", _STORES,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PRETREATED)
def test_llvm_pretreats(name: str) -> None:
    """nvvm-pretreat: what its clean-ups bring into one form is one in PTX."""
    first, second = (
        ptx(f"gpu.module @m {{ llvm.func @k(%a: !llvm.ptr<1>, %n: i32) {KERNEL} {{\n{body}\n}} }}")
        for body in PRETREATED[name]
    )
    assert first == second


# --- what the compiler's own code leaves them ----------------------------------------------------


@cache
def lowered(name: str) -> str:
    """An example in the llvm dialect, as it goes to LLVM."""
    program = (EXAMPLES / f"{name}.tileirbc").read_bytes()
    return str(tile_core.compile(program, "sm_90", opt_level=3, emit="mlir").stage("mlir"))


@pytest.mark.parametrize("name", ["matmul_f16", "layer_norm_f32", "softmax_f32"])
def test_our_own_code_leaves_them_nothing(name: str) -> None:
    """Why they are in no level."""
    passes = "nv-inline-must,ipmsp,dead-sync-elim,printf-lowering"
    assert run(lowered(name), passes).artifact.statistics == {}
