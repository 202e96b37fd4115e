"""From LLVM IR text to PTX, in the worker process."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tile_core.diagnostics import CompileError, ConfigurationError
from tile_core.emit import EmitContext
from tile_core.options import option
from tile_core.target import Target
from tile_nvptx.emit import (
    empty,
    intermediate_source,
    library_calls,
    map_notes,
    ptx_text,
    reflect,
    toolchain,
)
from tile_nvptx.emit.options import EmitOptions
from tile_nvptx.emit.pool import POOL, WorkerFailure
from tile_nvptx.emit.ptx_parameters import with_hidden

#: The newest PTX ISA version (x10) that llvmlite's LLVM writes.
LLVM_PTX = 90

_KERNEL = re.compile(r"^define .*?\bptx_kernel\b.*?@([\w.$]+)\(", re.MULTILINE)


@dataclass
class PtxEmitter:
    """LLVM IR text => PTX text.

    `metadata` holds, after `emit`, "seconds" (per stage of LLVM), "warnings" (lines that LLVM
    printed) and "ptx-version".
    """

    name: ClassVar[str] = "ptx"
    consumes: ClassVar[str] = "llvm"
    produces: ClassVar[str] = "ptx"
    #: Under which its time is reported, with that of the emitter before it.
    scope: ClassVar[str] = "CompileNVVM"

    tile_launch: bool = option(
        True,
        "mark kernels as Tile IR, so that the driver takes a block of (1, 1, 1)",
    )
    ptx_version: int = option(0, "lowest .version, times ten; 0 is what the kernel needs")
    nvvm_reflect_add: str = option(
        "",
        "answers to __nvvm_reflect besides the usual, NAME=INT with commas between them",
    )
    timeout: float = option(600.0, "seconds that LLVM may take for one module")
    metadata: dict[str, Any] = field(default_factory=dict, init=False)

    @classmethod
    def prewarm(cls) -> None:
        """Start the worker, so that LLVM loads while the front end works. Returns at once."""
        POOL.prewarm()

    def emit(self, source: str, cx: EmitContext) -> str:
        """The PTX of `source`.

        Raises:
            CompileError: LLVM cannot read or compile the module; in LLVM's words.
            ConfigurationError: libdevice is needed and missing, or ptxas too old for the target.
        """
        options = EmitOptions.of(cx.options)
        ptxas_reads = None if self.tile_launch else _highest_ptx(cx)
        version = _llvm_version(cx.target, ptxas_reads)
        nothing = empty.ptx(source, cx.target.chip, version)
        if nothing is not None:
            return self._finish(nothing)
        request = {
            "ir": source,
            "chip": cx.target.chip,
            "features": f"+ptx{version}",
            "opt_level": options.opt_level,
            "libdevice": _libdevice(source, cx),
            "reflect": reflect.values(cx.target, options, self.nvvm_reflect_add),
        }
        try:
            reply = POOL.ask(request, self.timeout)
        except WorkerFailure as failure:
            raise _located(failure, source, cx.target) from None
        _check_known(reply["warnings"], cx.target)
        ptx = _with_maps(self._finish(reply["ptx"]), source)
        if options.wants_lines:
            ptx = intermediate_source.with_source(ptx, source, _highest_ptx(cx))
        self.metadata = {
            "seconds": reply["seconds"],
            "warnings": reply["warnings"],
            "ptx-version": ptx_text.version_of(ptx),
        }
        return ptx

    def _finish(self, ptx: str) -> str:
        if self.tile_launch:  # whatever ptxas is installed: the cubin emitter refuses an old one
            ptx = ptx_text.as_tile_kernels(ptx)
        return ptx_text.with_version(ptx, self.ptx_version)


def _highest_ptx(cx: EmitContext) -> int | None:
    """The newest PTX the chosen ptxas reads, x10; None when there is no ptxas."""
    found = toolchain.find("ptxas", cx.toolchain)
    return toolchain.ptxas_version(found).highest_ptx if found else None


def _llvm_version(target: Target, ptxas_reads: int | None) -> int:
    version = min(LLVM_PTX, ptxas_reads or LLVM_PTX)
    if version < target.ptx:
        raise ConfigurationError(
            f"{target.chip} needs PTX {target.ptx / 10}, but ptxas reads only {version / 10}",
            hint=f'pip install "{toolchain.TOOLS["ptxas"].wheel}", or say --ptxas=FILE',
        )
    return version


def _libdevice(source: str, cx: EmitContext) -> str | None:
    if not library_calls.in_text(source):
        return None
    try:
        return str(toolchain.require("libdevice", cx.toolchain).path)
    except ConfigurationError as error:
        raise library_calls.located(error, source) from None


def _check_known(warnings: tuple[str, ...], target: Target) -> None:
    # LLVM only warns about a chip or feature that it does not know, and goes on with another.
    unknown = [line for line in warnings if "not a recognized" in line]
    if unknown:
        raise CompileError(f"LLVM does not know the chip {target.chip}", notes=tuple(unknown))


def _with_maps(ptx: str, source: str) -> str:
    """`ptx` with the tensor maps that `source` tells of: their parameters and their recipes."""
    recipes = map_notes.recipes_of(source, "llvm")
    if not recipes:
        return ptx
    hidden = {kernel: [r.parameter for r in listed] for kernel, listed in recipes.items()}
    return with_hidden(ptx, hidden) + map_notes.written(recipes)


def _located(failure: WorkerFailure, source: str, target: Target) -> CompileError:
    kernels = ", ".join(_KERNEL.findall(source)) or "a module without kernels"
    return CompileError(
        f"LLVM cannot compile {kernels} for {target.chip}: {failure.message}", notes=failure.notes
    )
