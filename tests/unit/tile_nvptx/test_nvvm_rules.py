"""Each rule of the NVVM verifier, broken and kept: the error is at the operation, and the process
lives on.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.emit_kernels import context, module
from tile_nvptx.emit.floors import INTRINSICS, OPERATIONS, missing_in_ptx
from tile_nvptx.emit.llvm_ir import LlvmIrEmitter
from tile_nvptx.emit.nvvm_rules import check_operations

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir
from tile_core.target import builtin_targets

ONE = "%one = llvm.mlir.constant(1 : i32) : i32\n"
WIDE = "%one = llvm.mlir.constant(1 : i128) : i128\n"
POINTER = "%p: !llvm.ptr<1>"
VOID = "llvm.inline_asm has_side_effects"


def asm(text: str) -> str:
    """Inline PTX without operands."""
    return f'{VOID} "{text};", "" : () -> ()'


def kept(body: str, target: str = "sm_90", arguments: str = POINTER, extra: str = "") -> str:
    """LLVM IR of a kernel whose operations are all right."""
    return LlvmIrEmitter().emit(module(body, arguments=arguments, extra=extra), context(target))


def broken(body: str, target: str = "sm_90", arguments: str = POINTER, extra: str = "") -> str:
    """What is said of a kernel with one operation that is not, and where."""
    with pytest.raises(CompileError) as caught:
        kept(body, target, arguments, extra)
    assert caught.value.message.startswith("'"), "which operation?"
    return caught.value.message


@pytest.mark.parametrize("ordering", ["acquire", "release", "acq_rel", "seq_cst"])
def test_orders_that_llvm_would_lose(ordering: str) -> None:
    text = f'%x = llvm.atomicrmw add %p, %one syncscope("device") {ordering} : !llvm.ptr<1>, i32'
    assert "unsupported ordering for nvvm.atomic.rmw" in broken(ONE + text)
    assert "atomicrmw add" in kept(ONE + text.replace(ordering, "monotonic"))


def test_the_scope_of_the_system_would_be_lost() -> None:
    text = "%x = llvm.atomicrmw add %p, %one monotonic : !llvm.ptr<1>, i32"
    assert "unsupported ordering for nvvm.atomic.rmw" in broken(ONE + text)


@pytest.mark.parametrize(
    ("scope", "target", "message"),
    [
        ("block", "sm_80", None),
        ("device", "sm_80", None),
        ("cluster", "sm_90", None),
        ("cluster", "sm_89", "scope 'cluster' needs sm_90, but the target is sm_89"),
        ("agent", "sm_90", "unknown synchronization scope 'agent'"),
    ],
)
def test_scopes(scope: str, target: str, message: str | None) -> None:
    fence = f'llvm.fence syncscope("{scope}") acq_rel'
    if message is None:
        assert "fence" in kept(fence, target)
    else:
        assert message in broken(fence, target)


def test_local_memory_is_nobody_elses() -> None:
    stack = "%s = llvm.alloca %one x i32 : (i32) -> !llvm.ptr<5>\n"
    text = '%x = llvm.atomicrmw add %s, %one syncscope("device") monotonic : !llvm.ptr<5>, i32'
    message = broken(ONE + stack + text)
    assert message == "'llvm.atomicrmw' op Cannot do atomic on local memory"


def test_wide_atomics() -> None:
    text = "%x = llvm.cmpxchg %p, %one, %one monotonic monotonic : !llvm.ptr<1>, i128"
    assert "128b atomics not supported on this architecture!" in broken(WIDE + text, "sm_89")
    assert "cmpxchg" in kept(WIDE + text, "sm_90")
    wide = asm("atom.global.cas.b128 a, [b], c, d")
    assert "128b atomics not supported on this architecture!" in broken(wide, "sm_80")
    vector = asm("red.global.v2.f32.add [a], {b, c}")
    assert "vector atomics not supported on this architecture!" in broken(vector, "sm_89")
    assert "red.global" in kept(vector, "sm_90")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("llvm.store %one, %c : i32, !llvm.ptr<4>", "cannot write to constant memory"),
        ("%x = llvm.load %q : !llvm.ptr<9> -> i32", "address space 9, which GPUs do not have"),
        ("llvm.store %one, %q : i32, !llvm.ptr<9>", "address space 9, which GPUs do not have"),
    ],
)
def test_spaces(body: str, message: str) -> None:
    assert message in broken(ONE + body, arguments="%c: !llvm.ptr<4>, %q: !llvm.ptr<9>")
    fine = "%x = llvm.load %c : !llvm.ptr<4> -> i32\nllvm.store %x, %p : i32, !llvm.ptr<1>"
    assert "load i32" in kept(fine, arguments=f"%c: !llvm.ptr<4>, {POINTER}")


CALL = "%y = llvm.call @f(%one) : (i32) -> i32"
DECLARE = "llvm.func @f(i32) -> i32"


def test_functions_that_are_defined_nowhere() -> None:
    assert broken(ONE + CALL, extra=DECLARE) == "'llvm.call' op calls 'f', which is defined nowhere"
    define = "llvm.func internal @f(%x: i32) -> i32 { llvm.return %x : i32 }"
    assert "call i32 @f" in kept(ONE + CALL, extra=define)
    known = "llvm.func @malloc(i64) -> !llvm.ptr"
    size = "%s = llvm.mlir.constant(8 : i64) : i64\n%m = llvm.call @malloc(%s) : (i64) -> !llvm.ptr"
    assert "@malloc" in kept(size, extra=known)


def test_printf_is_vprintf_here() -> None:
    declare = "llvm.func @printf(!llvm.ptr, ...) -> i32"
    body = (
        "%f = llvm.mlir.zero : !llvm.ptr\n"
        "%r = llvm.call @printf(%f) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr) -> i32"
    )
    assert "unsupported printf form" in broken(body, extra=declare)


LAUNCH = """
  %g = llvm.mlir.addressof @g : !llvm.ptr
  %r = llvm.call @cudaLaunchDeviceV2(%g, %s) : (!llvm.ptr, SPACE) -> i32
"""


def test_launches_from_the_device() -> None:
    declare = "llvm.func @cudaLaunchDeviceV2(!llvm.ptr, SPACE) -> i32\n"
    child = "llvm.func internal @g() { llvm.return }\n"
    stack = "%s = llvm.alloca %one x i32 : (i32) -> !llvm.ptr<5>"

    def said(kernel: bool, space: str, argument: str) -> str:
        made = child.replace("internal @g() {", "@g() attributes {nvvm.kernel} {")
        return broken(
            ONE + argument + LAUNCH.replace("SPACE", space),
            extra=declare.replace("SPACE", space) + (made if kernel else child),
        )

    null = "%s = llvm.mlir.zero : !llvm.ptr<1>"
    assert "a function that is not __global__ cannot be launched" in said(
        False, "!llvm.ptr<1>", null
    )
    undefined = (
        "A pointer to local memory or memory in 'addrspace(0)' has been used as a launch argument. "
        "Dereferencing this within the launch is undefined"
    )
    assert undefined in said(True, "!llvm.ptr<5>", stack)
    assert "which is not supported" in said(True, "!llvm.ptr<1>", null)


REFLECT = "llvm.func @__nvvm_reflect(!llvm.ptr) -> i32\n"
ASK = """
  %k = llvm.mlir.addressof @key : !llvm.ptr
  %r = llvm.call @__nvvm_reflect(%k) : (!llvm.ptr) -> i32
"""


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (r'llvm.mlir.global internal constant @key("__CUDA_FTZ\00")', None),
        (r'llvm.mlir.global internal @key("__CUDA_FTZ\00")', "argument must be a constant string"),
        (
            "llvm.mlir.global internal constant @key(dense<1> : tensor<4xi8>) : !llvm.array<4xi8>",
            "argument must be a string constant",
        ),
        (
            'llvm.mlir.global internal constant @key("FTZ")',
            "argument must be a null-terminated string",
        ),
        (r'llvm.mlir.global internal constant @key("\00")', "argument cannot be empty"),
    ],
)
def test_reflection(key: str, message: str | None) -> None:
    key = key.replace("4xi8>", "4 x i8>") if "llvm.array" in key else key
    key = key.replace("tensor<4 x i8>", "tensor<4xi8>")
    if message is None:
        assert "__nvvm_reflect" in kept(ASK, extra=REFLECT + key)
    else:
        assert f"__nvvm_reflect {message}" in broken(ASK, extra=REFLECT + key)


def test_reflection_is_a_call_of_one_argument() -> None:
    two = "llvm.func @__nvvm_reflect(i32, i32) -> i32"
    body = "%r = llvm.call @__nvvm_reflect(%one, %one) : (i32, i32) -> i32"
    assert "__nvvm_reflect requires exactly one argument" in broken(ONE + body, extra=two)
    taken = "%f = llvm.mlir.addressof @__nvvm_reflect : !llvm.ptr"
    message = "__nvvm_reflect can only be used in a call instruction"
    assert message in broken(taken, extra=REFLECT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("internal @g(7 : i32) {addr_space = 3 : i32} : i32", "shared memory cannot have"),
        ("internal @g() {addr_space = 5 : i32} : i32", "there are no globals"),
        ("internal thread_local @g(7 : i32) {addr_space = 1 : i32} : i32", "thread-local"),
        ("internal @g() {addr_space = 3 : i32} : !llvm.array<64 x i8>", None),
        ("internal @g(7 : i32) {addr_space = 1 : i32} : i32", None),
    ],
)
def test_globals(text: str, message: str | None) -> None:
    extra = f"llvm.mlir.global {text}"
    if message is None:
        kept("", extra=extra)
    else:
        assert message in broken("", extra=extra)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("wgmma.fence.sync.aligned", "sm_90a"),
        ("multimem.red.relaxed.sys.global.add.f32 [a], b", "sm_90"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {}", "sm_89"),
        ("cvt.rn.satfinite.e4m3x2.f32 a, b, c", "sm_89"),
        ("cvt.rn.satfinite.e2m1x2.f32 a, b, c", "sm_100a"),
        ("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3 {}", "sm_120a"),
        ("barrier.cluster.arrive", "sm_90"),
        ("atom.global.add.noftz.bf16 a, [b], c", "sm_90"),
    ],
)
def test_inline_code(text: str, least: str) -> None:
    """Refused below the target that has it, let through there."""
    targets = builtin_targets()
    chips = {t.chip: name for name, t in targets.items()}
    assert text.split()[0] in broken(asm(text), "sm_80")
    assert f"needs {'an architecture-specific target from ' if '100a' in least else ''}{least}" in (
        broken(asm(text), "sm_80")
    )
    assert "asm sideeffect" in kept(asm(text), chips.get(least, least))
    assert missing_in_ptx("add.f32 a, b, c;", targets["sm_80"]) is None


TENSOR = "%d: !llvm.ptr<6>, %a: i64, %b: i64, %i: i32, %e: i1, %s: !llvm.ptr<6>, %t: !llvm.ptr<6>"
MMA = "nvvm.tcgen05.mma %d, %a, %b, %i, %e {{kind = #nvvm.tcgen05_mma_kind<{kind}>, {rest}}} : (!llvm.ptr<6>, i64, i64, i32, i1)"  # noqa: E501


@pytest.mark.parametrize(
    ("kind", "rest", "target", "message"),
    [
        ("f16", "ctaGroup = #nvvm.cta_group<cta_1>", "sm_100", None),
        ("i8", "ctaGroup = #nvvm.cta_group<cta_1>", "sm_100", None),
        (
            "f16",
            "ctaGroup = #nvvm.cta_group<cta_1>",
            "sm_90",
            "tcgen05.mma supported only on arch-conditional or family-conditional variants from "
            "SM100 onwards.",
        ),
        ("f16", "ctaGroup = #nvvm.cta_group<cta_2>", "sm_120", "from SM100 onwards."),
        ("i8", "ctaGroup = #nvvm.cta_group<cta_1>", "sm_100f", "INT8 type is supported only on"),
    ],
)
def test_tensor_memory_products(kind: str, rest: str, target: str, message: str | None) -> None:
    text = MMA.format(kind=kind, rest=rest)
    source = (
        f"gpu.module @m {{ llvm.func @k({TENSOR}) attributes {{nvvm.kernel}} {{\n{text}\n"
        "llvm.return } }"
    )
    found = builtin_targets()[target.removesuffix("f")]
    if target.endswith("f"):  # what all of a family have
        found = replace(found, chip=target)
    with ir.Context():
        made = ir.Module.parse(_generic(source))
        inner = made.operation.regions[0].blocks[0].operations[0].operation
        if message is None:
            check_operations(inner, found)
        else:
            with pytest.raises(CompileError) as caught:
                check_operations(inner, found)
            assert message in caught.value.message
            assert "nvvm.tcgen05.mma" in caught.value.message


def _generic(text: str) -> str:
    """The product in the generic form, which does not verify what it reads."""
    head, rest = text.split("nvvm.tcgen05.mma ", 1)
    operands, rest = rest.split(" {", 1)
    attributes, rest = rest.split("} : ", 1)
    types, rest = rest.split("\n", 1)
    segments = "operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0>"
    return (
        f'{head}"nvvm.tcgen05.mma"({operands}) <{{{attributes}, {segments}}}> : {types} -> ()\n'
        f"{rest}"
    )


@pytest.mark.parametrize(
    ("attributes", "arguments", "message"),
    [
        ("nvvm.maxnreg = 300 : i32", "", "300 registers a thread, at most 255"),
        ("nvvm.reqntid = array<i32: 0>", "", "0 threads a block"),
        (
            "nvvm.cluster_dim = array<i32: 2>, nvvm.cluster_max_blocks = 4 : i32",
            "",
            "both nvvm.cluster_dim and nvvm.cluster_max_blocks",
        ),
        ("nvvm.maxnreg = 64 : i32", "%p: !llvm.ptr<3>", "points to shared memory"),
        ("nvvm.maxnreg = 64 : i32", "%i: i32, %p: !llvm.ptr<5>", "parameter 1 of 'k' points to"),
        ("nvvm.maxnreg = 64 : i32, nvvm.reqntid = array<i32: 32>", "%p: !llvm.ptr<1>", None),
    ],
)
def test_kernels(attributes: str, arguments: str, message: str | None) -> None:
    text = (
        f"gpu.module @m {{ llvm.func @k({arguments}) attributes {{nvvm.kernel, {attributes}}}"
        " { llvm.return } }"
    )
    made = ir.Module.parse(text, ir.Context())
    if message is None:
        LlvmIrEmitter().emit(made, context())
    else:
        with pytest.raises(CompileError, match=message):
            LlvmIrEmitter().emit(made, context())


def test_kernels_return_nothing() -> None:
    text = (
        "gpu.module @m { llvm.func @k(%x: i32) -> i32 attributes {nvvm.kernel}"
        " { llvm.return %x : i32 } }"
    )
    message = "Kernel functions do not support return with operands"
    with pytest.raises(CompileError, match=message):
        LlvmIrEmitter().emit(ir.Module.parse(text, ir.Context()), context())


@pytest.mark.parametrize("table", [INTRINSICS, OPERATIONS])
def test_no_row_hides_behind_another(table: tuple) -> None:
    """The first match decides, so a longer prefix has to come before a shorter one."""
    prefixes = [row.prefix for row in table]
    for at, prefix in enumerate(prefixes):
        assert not any(prefix.startswith(earlier) for earlier in prefixes[:at]), prefix
