"""From the `llvm` dialect inside a `gpu.module` to LLVM IR text."""

from __future__ import annotations

import io
from typing import ClassVar

from tile_core.diagnostics import CompileError
from tile_core.emit import EmitContext
from tile_core.mlir import ir
from tile_nvptx.emit import (
    convergent,
    intermediate_source,
    library_calls,
    library_places,
    map_notes,
)
from tile_nvptx.emit.guards import (
    by_name,
    check_intrinsics,
    check_kernels,
    check_translatable,
    kernel_name,
    kernels_of,
)
from tile_nvptx.emit.llvm_compat import readable_by_codegen
from tile_nvptx.emit.modules import gpu_module_of
from tile_nvptx.emit.nvvm_rules import check_operations
from tile_nvptx.emit.options import EmitOptions
from tile_nvptx.emit.pool import POOL, WorkerFailure

#: Seconds that MLIR may take for one module.
_TIMEOUT = 600.0


class LlvmIrEmitter:
    """`builtin.module { gpu.module { llvm.func ... } }` => LLVM IR text."""

    name: ClassVar[str] = "llvm-ir"
    consumes: ClassVar[str] = "mlir"
    produces: ClassVar[str] = "llvm"
    #: Under which its time is reported, with that of the emitter behind it.
    scope: ClassVar[str] = "CompileNVVM"

    @classmethod
    def prewarm(cls) -> None:
        """Start the worker, so that it loads while the front end works. Returns at once."""
        POOL.prewarm(translate=True)

    def emit(self, source: ir.Module, cx: EmitContext) -> str:
        """The LLVM IR of the one `gpu.module` in `source`, which is left as it was.

        Raises:
            CompileError: there is not exactly one `gpu.module`, it holds operations that are not
                of the `llvm` and `nvvm` dialects, or the target cannot run it.
        """
        options = EmitOptions.of(cx.options)
        module = gpu_module_of(source.operation)
        operations = by_name(module)
        check_translatable(module, operations)
        check_kernels(module, cx.target)
        check_operations(module, cx.target, operations)
        text = convergent.marked(readable_by_codegen(_translate(source, options)))
        check_intrinsics(text, cx.target)
        if library_calls.in_text(text):
            calls = operations.get(library_places.CALL, [])
            text += "".join(library_places.comments(calls))
        return text + map_notes.notes(module) + intermediate_source.note(source.operation)


def _translate(source: ir.Module, options: EmitOptions) -> str:
    """LLVM IR of `source`, made in the worker process, which a failed translation may end."""
    bytecode = io.BytesIO()
    source.operation.write_bytecode(bytecode)
    request = {
        "mlir": bytecode.getvalue(),
        "lineinfo": options.lineinfo,
        "device_debug": options.device_debug,
    }
    try:
        return str(POOL.ask(request, _TIMEOUT)["llvm-ir"])
    except WorkerFailure as failure:
        kernels = ", ".join(map(kernel_name, kernels_of(gpu_module_of(source.operation))))
        raise CompileError(
            f"MLIR cannot translate {kernels or 'a module without kernels'} to LLVM IR: "
            f"{failure.message}",
            notes=failure.notes,
            hint="an operation of the llvm or nvvm dialect is not what the translation expects",
        ) from None
