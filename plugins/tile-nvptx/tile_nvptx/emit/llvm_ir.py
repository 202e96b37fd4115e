"""From the `llvm` dialect inside a `gpu.module` to LLVM IR text."""

from __future__ import annotations

from typing import ClassVar

from tile_core.diagnostics import CompileError, ConfigurationError, SourceLocation
from tile_core.emit import EmitContext
from tile_core.locations import source_location
from tile_core.mlir import ir, passmanager, translate_module_to_llvmir
from tile_nvptx.emit import debug_info, intrinsic_calls, toolchain
from tile_nvptx.emit.guards import check_intrinsics, check_kernels, check_translatable, kernel_name
from tile_nvptx.emit.llvm_compat import readable_by_codegen
from tile_nvptx.emit.nvvm_rules import check_operations
from tile_nvptx.emit.options import EmitOptions

TRIPLE = "nvptx64-nvidia-cuda"

#: LLVM 22's layout string for the triple: 32-bit tensor memory pointers, 128-bit aligned i128.
DATA_LAYOUT = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

# Alignments of plain loads and stores depend on the layout.
_MODULE_ATTRIBUTES = {"llvm.data_layout": DATA_LAYOUT, "llvm.target_triple": TRIPLE}


class LlvmIrEmitter:
    """`builtin.module { gpu.module { llvm.func ... } }` => LLVM IR text."""

    name: ClassVar[str] = "llvm-ir"
    consumes: ClassVar[str] = "mlir"
    produces: ClassVar[str] = "llvm"

    def emit(self, source: ir.Module, cx: EmitContext) -> str:
        """The LLVM IR of the one `gpu.module` in `source`, which is left as it was.

        Raises:
            CompileError: there is not exactly one `gpu.module`, it holds operations that are not
                of the `llvm` and `nvvm` dialects, or the target cannot run it.
        """
        options = EmitOptions.of(cx.options)
        module = gpu_module_of(source.operation)
        check_translatable(module)
        check_kernels(module, cx.target)
        check_operations(module, cx.target)
        text = readable_by_codegen(_translate(source, options))
        check_intrinsics(text, cx.target)
        if _LIBRARY in text and toolchain.find("libdevice", cx.toolchain) is None:
            _require_library(module, cx)
        return text


def gpu_module_of(source: ir.Operation) -> ir.Operation:
    """The only `gpu.module` of `source`, a `builtin.module`.

    Raises:
        CompileError: there is none, or more than one.
    """
    inside = [op.operation for op in source.regions[0].blocks[0].operations]
    found = [op for op in inside if op.name == "gpu.module"]
    if len(found) != 1:
        raise CompileError(
            f"LLVM IR is made from one gpu.module, but the module holds {len(found)}",
            hint="the pipeline ends before the kernels are in a gpu.module"
            if not found
            else "compile the modules one by one",
        )
    return found[0]


#: What functions of libdevice start with.
_LIBRARY = "__nv_"


def _require_library(module: ir.Operation, cx: EmitContext) -> None:
    """Say which operation needs libdevice, now that its place in the source is known.

    Raises:
        ConfigurationError: libdevice is missing.
    """
    try:
        toolchain.require("libdevice", cx.toolchain)
    except ConfigurationError as error:
        calls = _calls(module)
        first = next((call for call in calls if _callee(call).startswith(_LIBRARY)), None)
        if first is not None:
            error.message = f"'llvm.call' op calls {_callee(first)} of libdevice: {error.message}"
            error.where = _place(first, calls)
        raise


def _calls(module: ir.Operation) -> list[ir.Operation]:
    """Every call of a function by its name, in order."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "llvm.call" and "callee" in op.attributes:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _callee(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _place(call: ir.Operation, calls: list[ir.Operation]) -> SourceLocation | None:
    """Where a call comes from; our own helper functions have no place, so who calls them counts."""
    place = source_location(call.location)
    function = call.parent
    if place is None and function is not None and "sym_name" in function.attributes:
        name = kernel_name(function)
        callers = [other for other in calls if _callee(other) == name]
        found = (source_location(other.location) for other in callers)
        place = next((where for where in found if where is not None), None)
    return place


def _translate(source: ir.Module, options: EmitOptions) -> str:
    with source.context, ir.Location.unknown():
        copy = source.operation.clone().operation
        if options.wants_lines:
            debug_info.locate_calls(copy)
        passmanager.PassManager.parse(_pipeline(options)).run(copy)
        module = gpu_module_of(copy)
        for name, value in _MODULE_ATTRIBUTES.items():
            module.attributes[name] = ir.StringAttr.get(value)
        intrinsic_calls.hide(module)
        return intrinsic_calls.restore(translate_module_to_llvmir(module))


def _pipeline(options: EmitOptions) -> str:
    # Some operations of nvvm have no intrinsic and no translation: they become inline PTX.
    passes = ["gpu.module(convert-nvvm-to-llvm)"]
    if options.wants_lines:
        passes.insert(0, debug_info.scopes_pass(options))
    return f"builtin.module({','.join(passes)})"
