"""The module that code is made from."""

from __future__ import annotations

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir


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
