"""From the `llvm` dialect inside a `gpu.module` to LLVM IR text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from tile_core.diagnostics import CompileError
from tile_core.emit import EmitContext
from tile_core.mlir import ir, llvm
from tile_nvptx.emit.guards import check_intrinsics, check_kernels, check_translatable
from tile_nvptx.emit.llvm_compat import readable_by_codegen

TRIPLE = "nvptx64-nvidia-cuda"

#: LLVM 22's layout string for the triple: 32-bit tensor memory pointers, 128-bit aligned i128.
DATA_LAYOUT = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

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
        module = gpu_module_of(source)
        check_translatable(module)
        check_kernels(module, cx.target)
        text = readable_by_codegen(_translate(module))
        check_intrinsics(text, cx.target)
        return text


def gpu_module_of(source: ir.Module) -> ir.Operation:
    """The only `gpu.module` of `source`.

    Raises:
        CompileError: there is none, or more than one.
    """
    found = [op.operation for op in source.body.operations if op.operation.name == "gpu.module"]
    if len(found) != 1:
        raise CompileError(
            f"LLVM IR is made from one gpu.module, but the module holds {len(found)}",
            hint="the pipeline ends before the kernels are in a gpu.module"
            if not found
            else "compile the modules one by one",
        )
    return found[0]


def _translate(module: ir.Operation) -> str:
    with module.context, ir.Location.unknown(), _attributes(module):
        return llvm.translate_module_to_llvmir(module)


@contextmanager
def _attributes(module: ir.Operation) -> Iterator[None]:
    """Layout and triple on `module` while it is translated: alignments depend on them."""
    before = {
        name: module.attributes[name] for name in _MODULE_ATTRIBUTES if name in module.attributes
    }
    for name, value in _MODULE_ATTRIBUTES.items():
        module.attributes[name] = ir.StringAttr.get(value)
    try:
        yield
    finally:
        for name in _MODULE_ATTRIBUTES:
            if name in before:
                module.attributes[name] = before[name]
            else:
                del module.attributes[name]
