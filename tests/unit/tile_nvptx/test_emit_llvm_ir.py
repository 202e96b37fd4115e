"""From the llvm dialect to LLVM IR text, and what is refused on the way."""

import pytest
from support.emit_kernels import (
    DECLARE_EXP,
    LIBDEVICE_EXP,
    VECTOR_ADD,
    VECTOR_ADD_ARGUMENTS,
    context,
    module,
    unary,
)
from tile_nvptx.emit.guards import type_bytes
from tile_nvptx.emit.llvm_ir import LlvmIrEmitter
from tile_nvptx.emit.translation import DATA_LAYOUT, TRIPLE

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir


def test_a_kernel_becomes_llvm_ir_with_layout_and_triple() -> None:
    source = module(VECTOR_ADD, arguments=VECTOR_ADD_ARGUMENTS)
    before = str(source)
    text = LlvmIrEmitter().emit(source, context())
    assert "define ptx_kernel void @k(" in text
    assert f'target datalayout = "{DATA_LAYOUT}"' in text
    assert f'target triple = "{TRIPLE}"' in text
    assert "declare" not in text
    assert str(source) == before


def test_alignment_of_plain_accesses_is_that_of_the_gpu() -> None:
    text = LlvmIrEmitter().emit(
        module(unary("%y = llvm.add %x, %x : i64", "i64"), arguments="%p: !llvm.ptr<1>"), context()
    )
    assert "load i64, ptr addrspace(1) %0, align 8" in text


def test_declarations_of_functions_stay() -> None:
    text = LlvmIrEmitter().emit(
        module(LIBDEVICE_EXP, arguments="%p: !llvm.ptr<1>", extra=DECLARE_EXP), context()
    )
    assert "declare float @__nv_expf(float)" in text


def test_a_leftover_operation_is_named() -> None:
    source = ir.Module.parse(
        "gpu.module @m { func.func @f(%x: f32) -> f32 {"
        " %y = arith.addf %x, %x : f32 return %y : f32 } }",
        ir.Context(),
    )
    with pytest.raises(CompileError, match=r"'func\.func' op is left over"):
        LlvmIrEmitter().emit(source, context())


def test_an_invalid_module_is_refused() -> None:
    source = module("%x = llvm.mlir.constant(1 : i32) : i32")
    kernel = source.body.operations[0].regions[0].blocks[0].operations[0]
    list(kernel.regions[0].blocks[0].operations)[-1].detach_from_parent()
    with pytest.raises(CompileError, match="does not verify") as caught:
        LlvmIrEmitter().emit(source, context())
    assert caught.value.notes


@pytest.mark.parametrize("count", [0, 2])
def test_exactly_one_gpu_module_is_wanted(count: int) -> None:
    text = "\n".join(f"gpu.module @m{i} {{ }}" for i in range(count))
    with pytest.raises(CompileError, match=f"holds {count}"):
        LlvmIrEmitter().emit(ir.Module.parse(text, ir.Context()), context())


def launch(attributes: str, arguments: str = "") -> ir.Module:
    return ir.Module.parse(
        f"gpu.module @m {{ llvm.func @k({arguments}) attributes {{nvvm.kernel, {attributes}}}"
        " { llvm.return } }",
        ir.Context(),
    )


@pytest.mark.parametrize(
    ("attributes", "target", "message"),
    [
        ("nvvm.reqntid = array<i32: 2048>", "sm_90", "2048 threads a block, at most 1024"),
        (
            "nvvm.reqntid = array<i32: 32>, nvvm.maxntid = array<i32: 32>",
            "sm_90",
            "both nvvm.reqntid and nvvm.maxntid",
        ),
        ("nvvm.cluster_dim = array<i32: 4, 4, 2>", "sm_90", "32 blocks a cluster, at most 16"),
        ("nvvm.cluster_dim = array<i32: 2, 1, 1>", "sm_80", "needs clusters"),
    ],
)
def test_launch_attributes_are_checked(attributes: str, target: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        LlvmIrEmitter().emit(launch(attributes), context(target))


def test_parameter_space_has_a_ceiling() -> None:
    fits = "%p: !llvm.ptr {llvm.byval = !llvm.array<32764 x i8>}"
    LlvmIrEmitter().emit(launch("nvvm.minctasm = 1 : i32", fits), context())
    with pytest.raises(
        CompileError,
        match=r"Formal parameter space overflowed \(32768 bytes required, "
        r"max 32764 bytes allowed\) in function k",
    ):
        LlvmIrEmitter().emit(
            launch(
                "nvvm.minctasm = 1 : i32", f"%i: i8, {fits}".replace("32764 x i8", "8191 x i32")
            ),
            context(),
        )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i1", (1, 1)),
        ("!llvm.ptr<1>", (8, 8)),
        ("vector<4xf32>", (16, 16)),
        ("!llvm.array<3 x i16>", (6, 2)),
        ("!llvm.struct<(f64, i8, array<4 x i32>)>", (32, 8)),
        ("!llvm.struct<(ptr, struct<(i8, i16)>, i8)>", (16, 8)),
    ],
)
def test_sizes_of_parameters(text: str, expected: tuple[int, int]) -> None:
    with ir.Context():
        assert type_bytes(ir.Type.parse(text)) == expected


@pytest.mark.parametrize(
    ("body", "target", "needs"),
    [
        ("nvvm.wgmma.fence.aligned", "sm_100", "sm_90a"),
        ("nvvm.cluster.arrive", "sm_89", "sm_90"),
        ("nvvm.setmaxregister increase 128", "sm_80", "sm_90a"),
    ],
)
def test_instructions_that_the_target_lacks_are_refused(body: str, target: str, needs: str) -> None:
    with pytest.raises(CompileError, match=needs):
        LlvmIrEmitter().emit(module(body), context(target))


#: The verifier passes it; its translation is a call that LLVM's verifier refuses, and MLIR's
#: bindings do not look at what came of it.
FENCE = "nvvm.fence.proxy.acquire #nvvm.mem_scope<gpu> %p, %n"


def test_a_translation_that_crashes_is_an_error_of_ours() -> None:
    doomed = module(FENCE, "doomed", "%p: !llvm.ptr, %n: i32")
    with pytest.raises(CompileError, match="MLIR cannot translate doomed to LLVM IR") as caught:
        LlvmIrEmitter().emit(doomed, context())
    assert any("immarg operand has non-immediate" in note for note in caught.value.notes)
    # and the next compilation works
    fine = module("%y = llvm.fadd %x, %x : f32", arguments="%x: f32")
    assert "fadd float" in LlvmIrEmitter().emit(fine, context())


def test_the_module_is_left_as_it_was() -> None:
    source = module("%y = llvm.fadd %x, %x : f32", arguments="%x: f32")
    before = str(source)
    first = LlvmIrEmitter().emit(source, context())
    assert str(source) == before
    assert LlvmIrEmitter().emit(source, context()) == first
