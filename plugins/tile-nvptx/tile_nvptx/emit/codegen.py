"""LLVM IR to PTX with llvmlite. Runs inside the worker process only."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as llvm

from tile_nvptx.emit import libdevice, llvm_passes
from tile_nvptx.emit.runtime import DEVICE_RUNTIME
from tile_nvptx.host.compile import object_file

TRIPLE = "nvptx64-nvidia-cuda"

#: Options that LLVM has on its command line only.
_LLVM_OPTIONS = (
    # Loop strength reduction keeps an address per access through the loop, to save an addition or a
    # multiplication in each turn: registers are scarcer than either.
    "-disable-lsr",
    # The most that one instruction takes are two halves, or two floats. Looking for longer vectors
    # finds none, in time that grows with the square of a tile's registers.
    "-slp-max-vf=2",
)


class CodegenFailure(Exception):
    """LLVM refused the module, in its own words."""

    def __init__(self, message: str, notes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.notes = notes


@dataclass(frozen=True)
class Request:
    """One compilation."""

    ir: str  # LLVM IR text
    chip: str  # "sm_90a"
    features: str  # "+ptx90"
    opt_level: int  # 0..3
    libdevice: str | None = None  # path of the bitcode, needed when `__nv_*` is called
    reflect: dict[str, int] = field(default_factory=dict)  # __nvvm_reflect key -> value


def initialize(preload: str | None = None) -> None:
    """Load LLVM's targets, once per process, and the libdevice at `preload` if there is one."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for option in _LLVM_OPTIONS:
        llvm.set_option("tile_nvptx", option)
    if preload is not None:
        libdevice.preload(preload)


def generate(request: Request) -> dict[str, Any]:
    """PTX text under "ptx", seconds per stage under "seconds".

    Raises:
        CodegenFailure: the module does not parse or verify, or calls what does not exist.
    """
    clock = _Clock()
    with ExitStack() as kept:  # freed in reverse order: what refers to the module, it, its context
        # Types, constants and names live as long as their context, and the global one for ever.
        context = kept.enter_context(llvm.create_context())
        module = kept.enter_context(_parse(request.ir, context))
        clock.lap("llvm-parse")
        machine = kept.enter_context(_target_machine(request))
        tuning = _tuning(request.opt_level)
        builder = kept.enter_context(llvm.create_pass_builder(machine, tuning))
        linked = _link_libdevice(module, request, context, machine)
        clock.lap("llvm-libdevice")
        _optimize(module, builder, linked, request.opt_level)
        clock.lap("llvm-optimize")
        ptx = machine.emit_assembly(module)
        clock.lap("llvm-codegen")
    _check(ptx)
    return {"ptx": ptx, "seconds": clock.laps}


def host_object(text: str, triple: str) -> bytes:
    """The object file of host code, LLVM IR `text`, for `triple`.

    Raises:
        CodegenFailure: the module does not parse, or LLVM has no such target.
    """
    try:
        return object_file(text, triple)
    except RuntimeError as error:
        raise CodegenFailure(f"LLVM makes no host code for {triple}", _lines(str(error))) from error


def _target_machine(request: Request) -> llvm.TargetMachine:
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=request.chip, features=request.features, opt=request.opt_level
    )
    machine.set_asm_verbosity(False)
    return machine


class _Clock:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now


def _parse(text: str, context: llvm.ContextRef) -> llvm.ModuleRef:
    try:
        module = llvm.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        raise CodegenFailure("LLVM cannot read the module", _lines(str(error))) from error
    return module


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.splitlines() if line.strip())


def _tuning(opt_level: int) -> llvm.PipelineTuningOptions:
    """A GPU thread has no wide registers: no loop vectoriser; SLP packs halves into pairs."""
    tuning = llvm.create_pipeline_tuning_options(speed_level=opt_level)
    tuning.loop_vectorization = False
    tuning.loop_interleaving = False
    tuning.slp_vectorization = opt_level >= 2
    return tuning


def _link_libdevice(
    module: llvm.ModuleRef,
    request: Request,
    context: llvm.ContextRef,
    machine: llvm.TargetMachine,
) -> bool:
    wanted = sorted(
        f.name for f in module.functions if f.is_declaration and f.name.startswith("__nv_")
    )
    if not wanted:
        return False
    if request.libdevice is None:
        raise CodegenFailure(f"no libdevice to take {', '.join(wanted)} from")
    try:
        source = libdevice.specialized(request.libdevice, wanted, request.reflect, machine)
    except KeyError as missing:
        raise CodegenFailure(f"libdevice has no function {missing.args[0]}") from missing
    except ValueError as error:
        raise CodegenFailure(
            f"libdevice ({request.libdevice}) cannot be read as LLVM bitcode", _lines(str(error))
        ) from error
    library = _parse(source, context)
    library.triple, library.data_layout = module.triple, module.data_layout
    defined = {f.name for f in library.functions if not f.is_declaration}
    module.link_in(library)
    for function in module.functions:
        if function.name in defined:
            function.linkage = llvm.Linkage.internal
    return True


def _optimize(
    module: llvm.ModuleRef, builder: llvm.PassBuilder, linked: bool, opt_level: int
) -> None:
    # Needed at every level: without it, calls of the library and of helpers stay calls.
    first = llvm.create_new_module_pass_manager()
    first.add_always_inliner_pass()
    if linked:  # branches on what `__nvvm_reflect` was
        first.add_simplify_cfg_pass()
        first.add_sccp_pass()
        first.add_instruction_combine_pass()
    first.add_global_dead_code_eliminate_pass()
    llvm_passes.run(first, module, builder)
    if opt_level > 0:
        llvm_passes.run(builder.getModulePassManager(), module, builder)


_EXTERN = re.compile(r"^\.extern \.func\s*(?:\(.*\)\s*)?([\w$.]+)", re.MULTILINE)


def _check(ptx: str) -> None:
    unknown = [name for name in _EXTERN.findall(ptx) if name not in DEVICE_RUNTIME]
    if unknown:
        raise CodegenFailure(f"undefined function {', '.join(unknown)}")
