"""LLVM IR of the host to an object file, with llvmlite. Runs inside the worker process only."""

from __future__ import annotations

from contextlib import ExitStack

import llvmlite.binding as llvm

from tile_nvptx.emit import llvm_passes

#: Speed matters little, and size less; 2 leaves no redundant loads of arguments.
_LEVEL = 2


def object_file(text: str, triple: str) -> bytes:
    """The relocatable object of LLVM IR `text` for `triple`, to be loaded anywhere in memory.

    Raises:
        RuntimeError: LLVM does not know the triple or cannot read the text.
    """
    with ExitStack() as kept:  # freed in reverse order
        context = kept.enter_context(llvm.create_context())
        module = kept.enter_context(llvm.parse_assembly(text, context))
        module.triple = triple
        module.name = "tile-host"
        module.verify()
        # What the driver loads may lie further from its tables than 2 GiB.
        machine = kept.enter_context(
            llvm.Target.from_triple(triple).create_target_machine(
                opt=_LEVEL, reloc="pic", codemodel="large"
            )
        )
        tuning = llvm.create_pipeline_tuning_options(speed_level=_LEVEL)
        builder = kept.enter_context(llvm.create_pass_builder(machine, tuning))
        llvm_passes.run(builder.getModulePassManager(), module, builder)
        return machine.emit_object(module)
