"""From MLIR bytecode to LLVM IR text. Runs inside the worker process only.

MLIR's bindings have no checks where a translation goes wrong: an operation that its verifier
passes and its translation does not expect ends the process.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir, passmanager, translate_module_to_llvmir
from tile_core.session import PROGRAMS_PER_CONTEXT, from_mlir
from tile_nvptx.emit import debug_info, debug_scopes, intrinsic_calls
from tile_nvptx.emit.modules import gpu_module_of
from tile_nvptx.emit.options import EmitOptions

TRIPLE = "nvptx64-nvidia-cuda"

#: LLVM 22's layout string for the triple: 32-bit tensor memory pointers, 128-bit aligned i128.
DATA_LAYOUT = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

# Alignments of plain loads and stores depend on the layout.
_MODULE_ATTRIBUTES = {"llvm.data_layout": DATA_LAYOUT, "llvm.target_triple": TRIPLE}


@dataclass(frozen=True)
class Request:
    """One translation."""

    mlir: bytes  # bytecode of a `builtin.module` with one `gpu.module`
    lineinfo: bool = False
    device_debug: bool = False


class Translator:
    """A context for many translations; renewed from time to time, as it keeps what it ever saw."""

    def __init__(self) -> None:
        self._context = _context()
        self._programs = 0

    def llvm_ir(self, request: Request) -> str:
        """The LLVM IR text of the module.

        Raises:
            CompileError: MLIR refuses it, in its own words.
        """
        self._programs += 1
        if self._programs > PROGRAMS_PER_CONTEXT:
            self._context, self._programs = _context(), 1
        options = EmitOptions(lineinfo=request.lineinfo, device_debug=request.device_debug)
        with self._context, ir.Location.unknown():
            try:
                return _translated(ir.Module.parse(request.mlir).operation, options)
            except ir.MLIRError as error:
                raise from_mlir(error, CompileError, "the module cannot be translated") from None


def _context() -> ir.Context:
    # Reading loads the dialects that a module has; to load all of them takes 5 ms.
    context = ir.Context(load_on_create_dialects=[])
    context.enable_multithreading(False)
    # Attributes of the stages before are on the module and its kernels still.
    context.allow_unregistered_dialects = True
    return context


def _translated(source: ir.Operation, options: EmitOptions) -> str:
    helpers = frozenset[str]()
    if options.wants_lines:
        helpers = debug_info.functions_from_nowhere(source)
        debug_info.locate_calls(source)
        debug_scopes.describe(source, options)
    passmanager.PassManager.parse(_pipeline(options)).run(source)
    module = gpu_module_of(source)
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
