"""From the `llvm` dialect inside a `gpu.module` to LLVM IR text."""

from __future__ import annotations

from typing import ClassVar

from tile_core.diagnostics import CompileError
from tile_core.emit import EmitContext
from tile_core.mlir import ir, passmanager, translate_module_to_llvmir
from tile_nvptx.emit import debug_info, intrinsic_calls, library_calls, library_places, map_notes
from tile_nvptx.emit.guards import check_intrinsics, check_kernels, check_translatable
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
        if library_calls.in_text(text):
            text += "".join(library_places.comments(module))
        return text + map_notes.notes(module)


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


def _translate(source: ir.Module, options: EmitOptions) -> str:
    with source.context, ir.Location.unknown():
        copy = source.operation.clone().operation
        helpers = frozenset[str]()
        if options.wants_lines:
            helpers = debug_info.functions_from_nowhere(copy)
            debug_info.locate_calls(copy)
        passmanager.PassManager.parse(_pipeline(options)).run(copy)
        module = gpu_module_of(copy)
        debug_info.forget_scopes(module, helpers)
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
