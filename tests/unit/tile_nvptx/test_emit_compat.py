"""Instructions of later lowerings, through both LLVMs and ptxas: what each becomes in PTX."""

import re

import pytest
from support.emit_kernels import context, module
from tile_nvptx.emit.cubin import CubinEmitter
from tile_nvptx.emit.llvm_ir import LlvmIrEmitter
from tile_nvptx.emit.ptx import PtxEmitter

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir

ARGUMENTS = "%p: !llvm.ptr<1>, %g: !llvm.ptr, %i: i32, %f: f32, %b: i1"
#: Memory of a block has no address before the launch, so none can be an argument.
PLACES = "".join(
    f"%{name} = llvm.inttoptr %i : i32 to !llvm.ptr<{space}>\n"
    for name, space in (("s", 3), ("c", 7), ("t", 6))
)


def kernel(body: str) -> ir.Module:
    return module(PLACES + body, arguments=ARGUMENTS)


def keep(kind: str) -> str:
    return f"\nllvm.store %r, %p : {kind}, !llvm.ptr<1>"


QUAD = "!llvm.struct<(i32, i32, i32, i32)>"
HALVES = "!llvm.struct<(vector<2xf16>, vector<2xf16>)>"

CASES = {
    "shuffle": (
        "sm_80",
        "%r = nvvm.shfl.sync bfly %i, %f, %i, %i : f32 -> f32" + keep("f32"),
        r"shfl\.sync\.bfly\.b32",
    ),
    "redux": (
        "sm_80",
        "%r = nvvm.redux.sync add %i, %i : i32 -> i32" + keep("i32"),
        r"redux\.sync\.add\.s32",
    ),
    "moved matrix": (
        "sm_80",
        "%r = nvvm.movmatrix %i {shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
        "layout = #nvvm.mma_layout<col>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : i32"
        + keep("i32"),
        r"movmatrix\.sync\.aligned\.m8n8\.trans\.b16",
    ),
    "vote": (
        "sm_80",
        "%r = nvvm.vote.sync ballot %i, %b -> i32" + keep("i32"),
        r"vote\.sync\.ballot\.b32",
    ),
    "barrier": ("sm_80", "nvvm.barrier", r"(barrier|bar)(\.cta)?\.sync"),
    "warp-barrier": ("sm_80", "nvvm.bar.warp.sync %i : i32", r"bar\.warp\.sync"),
    "cp-async": (
        "sm_80",
        "nvvm.cp.async.shared.global %s, %p, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>\n"
        "nvvm.cp.async.commit.group\nnvvm.cp.async.wait.group 1",
        r"cp\.async\.cg\.shared\.global[^;]*;[\s\S]*cp\.async\.wait_group\s+1",
    ),
    "ldmatrix": (
        "sm_80",
        "%q = nvvm.ldmatrix %s {num = 4 : i32, layout = #nvvm.mma_layout<row>, "
        "shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
        f"eltType = #nvvm.ld_st_matrix_elt_type<b16>}} : (!llvm.ptr<3>) -> {QUAD}\n"
        f"%r = llvm.extractvalue %q[0] : {QUAD}" + keep("i32"),
        r"ldmatrix\.sync\.aligned\.m8n8\.x4\.shared\.b16",
    ),
    "mma": (
        "sm_80",
        "%x = llvm.load %p : !llvm.ptr<1> -> vector<2xf16>\n"
        "%q = nvvm.mma.sync A[%x, %x, %x, %x] B[%x, %x] C[%x, %x] "
        "{layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, "
        "shape = #nvvm.shape<m = 16, n = 8, k = 16>} : "
        f"(vector<2xf16>, vector<2xf16>, vector<2xf16>) -> {HALVES}\n"
        f"%r = llvm.extractvalue %q[0] : {HALVES}" + keep("vector<2xf16>"),
        r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f16\.f16\.f16\.f16",
    ),
    "mbarrier": (
        "sm_90",
        "nvvm.mbarrier.init %s, %i : !llvm.ptr<3>, i32\n"
        "nvvm.mbarrier.arrive.expect_tx %s, %i : !llvm.ptr<3>, i32\n"
        "nvvm.mbarrier.try_wait.parity %s, %i, %i : !llvm.ptr<3>, i32, i32",
        r"mbarrier\.init[\s\S]*expect_tx[\s\S]*mbarrier\.try_wait\.parity",
    ),
    "tensor-load": (
        "sm_90",
        "nvvm.cp.async.bulk.tensor.shared.cluster.global %c, %g, %s, box[%i, %i] "
        "{isCTAOnly = false} : !llvm.ptr<7>, !llvm.ptr",
        r"cp\.async\.bulk\.tensor\.2d\.shared::cluster\.global\.tile",
    ),
    "tensor-reduce": (
        "sm_90",
        "nvvm.cp.async.bulk.tensor.reduce %g, %s, box[%i, %i] "
        "{redKind = #nvvm.tma_redux_kind<max>} : !llvm.ptr, !llvm.ptr<3>",
        r"cp\.reduce\.async\.bulk\.tensor\.2d\.global\.shared::cta\.max\.tile",
    ),
    "wgmma-fences": (
        "sm_90",
        "nvvm.wgmma.fence.aligned\nnvvm.wgmma.commit.group.sync.aligned\n"
        "nvvm.wgmma.wait.group.sync.aligned 0",
        r"wgmma\.fence[\s\S]*wgmma\.commit_group[\s\S]*wgmma\.wait_group",
    ),
    "cluster": (
        "sm_90",
        "nvvm.cluster.arrive {aligned}\nnvvm.cluster.wait {aligned}",
        r"barrier\.cluster\.arrive[\s\S]*barrier\.cluster\.wait",
    ),
    "registers": ("sm_90", "nvvm.setmaxregister increase 232", r"setmaxnreg\.inc"),
    "tensor-memory": (
        "sm_100",
        "nvvm.tcgen05.alloc %s, %i : !llvm.ptr<3>, i32\n"
        "%r = nvvm.tcgen05.ld %t {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<2xi32>\n"
        "nvvm.tcgen05.wait <load>\nnvvm.tcgen05.dealloc %t, %i : !llvm.ptr<6>, i32"
        + keep("vector<2xi32>"),
        r"tcgen05\.alloc[\s\S]*tcgen05\.ld\.sync[\s\S]*tcgen05\.dealloc",
    ),
    "intrinsic-by-name": (
        "sm_80",
        '%r = llvm.call_intrinsic "llvm.nvvm.ex2.approx.f"(%f) : (f32) -> f32' + keep("f32"),
        r"ex2\.approx\.f32",
    ),
    "intrinsic-that-only-the-older-llvm-has": (
        "sm_80",
        '%r = llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"(%f) : (f32) -> f32' + keep("f32"),
        r"lg2\.approx\.ftz\.f32",
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_instruction_survives_both_llvms_and_ptxas(case: str) -> None:
    target, body, expected = CASES[case]
    cx = context(target)
    ptx = PtxEmitter().emit(LlvmIrEmitter().emit(kernel(body), cx), cx)
    assert re.search(expected, ptx), ptx
    assert CubinEmitter().emit(ptx, cx)[:4] == b"\x7fELF"


@pytest.mark.parametrize("name", ["llvm.nvvm.no.such.thing", "llvm.nvvm.fma.rn.oob.f16"])
def test_an_intrinsic_that_codegen_lacks_is_refused_by_name(name: str) -> None:
    body = f'%r = llvm.call_intrinsic "{name}"(%f) : (f32) -> f32' + keep("f32")
    text = LlvmIrEmitter().emit(kernel(body), context())
    with pytest.raises(CompileError) as caught:
        PtxEmitter().emit(text, context())
    assert f"'{name}'" in "\n".join(caught.value.notes)


def test_one_intrinsic_with_two_signatures_is_refused() -> None:
    body = (
        '%x = llvm.call_intrinsic "llvm.nvvm.ex2.approx"(%f) : (f32) -> f32\n'
        "%h = llvm.fptrunc %f : f32 to f16\n"
        '%r = llvm.call_intrinsic "llvm.nvvm.ex2.approx"(%h) : (f16) -> f16' + keep("f16")
    )
    with pytest.raises(CompileError, match="two signatures"):
        LlvmIrEmitter().emit(kernel(body), context())


LOCATED = """
gpu.module @m {
  llvm.func internal @twice(%x: f32) -> f32 {
    %y = llvm.fadd %x, %x : f32 loc("helper.py":2:3)
    llvm.return %y : f32
  } loc("helper.py":1:1)
  llvm.func @k(%p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    %x = llvm.load volatile %p : !llvm.ptr<1> -> f32 loc("k.py":5:3)
    %y = llvm.call @twice(%x) : (f32) -> f32 loc(CALL)
    llvm.store volatile %y, %p : f32, !llvm.ptr<1> loc("k.py":6:3)
    llvm.return loc("k.py":7:3)
  } loc("k.py":3:1)
}
"""


def located(call: str, **options: object) -> tuple[str, bytes]:
    cx = context("sm_90", **options)
    source = ir.Module.parse(LOCATED.replace("CALL", call), ir.Context())
    ptx = PtxEmitter().emit(LlvmIrEmitter().emit(source, cx), cx)
    return ptx, CubinEmitter().emit(ptx, cx)


@pytest.mark.parametrize("call", ['"k.py":5:9', "unknown"])
def test_line_information_reaches_ptx_and_cubin(call: str) -> None:
    ptx, cubin = located(call, lineinfo=True)
    assert re.search(r"\.loc\s+\d 5 3", ptx)
    assert re.search(r'\.file\s+\d "(.*/)?k\.py"', ptx)
    assert "debug\n" not in ptx.split(".address_size")[0]
    assert b".debug_line" in cubin


def test_device_debug_makes_debuggable_code() -> None:
    ptx, cubin = located('"k.py":5:9', device_debug=True, opt_level=0)
    assert re.search(r"^\.target sm_90a, debug$", ptx, re.MULTILINE)
    assert b".debug_info" in cubin


def test_without_options_there_are_no_lines() -> None:
    ptx, _ = located('"k.py":5:9')
    assert ".loc" not in ptx
