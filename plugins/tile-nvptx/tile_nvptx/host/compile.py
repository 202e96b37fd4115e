"""LLVM IR of the host to an object file, with llvmlite. Runs inside the worker process only."""

from __future__ import annotations

from contextlib import ExitStack

import llvmlite.binding as llvm

from tile_nvptx.emit import llvm_passes

#: A launch runs this code once: shifts by nothing go, and no more is worth the time that it takes.
_LEVEL = 0


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
        passes = llvm.create_new_module_pass_manager()
        passes.add_instruction_combine_pass()
        llvm_passes.run(passes, module, builder)
        return machine.emit_object(module)
