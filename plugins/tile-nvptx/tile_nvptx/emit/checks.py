"""What `tilec doctor` says about code generation: LLVM, ptxas, libdevice."""

from __future__ import annotations

from collections.abc import Iterable

import importlib_metadata

from tile_core.diagnostics import TileError
from tile_core.doctor import Finding
from tile_core.emit import EmitContext
from tile_core.target import builtin_targets
from tile_nvptx.emit import ptx_text, toolchain
from tile_nvptx.emit.ptx import PtxEmitter

_PROBE = "define ptx_kernel void @probe() { ret void }"


def check_toolchain() -> Iterable[Finding]:
    """One finding for each tool."""
    yield _llvm()
    yield _ptxas()
    yield _libdevice()


def _llvm() -> Finding:
    try:
        version = importlib_metadata.version("llvmlite")
    except importlib_metadata.PackageNotFoundError:
        return Finding("llvm", False, "llvmlite is not installed", 'pip install "llvmlite>=0.50"')
    try:
        PtxEmitter().emit(_PROBE, EmitContext(builtin_targets()["sm_90"], {}))
    except TileError as error:
        return Finding("llvm", False, f"llvmlite {version}: {error.message}", error.hint or "")
    return Finding("llvm", True, f"llvmlite {version}, worker process answers")


def _ptxas() -> Finding:
    try:
        found = toolchain.require("ptxas")
        version = toolchain.ptxas_version(found)
    except TileError as error:
        return Finding("ptxas", False, error.message, error.hint or "")
    detail = f"{version.full} at {found.path} ({found.origin})"
    if version.highest_ptx < ptx_text.LANGUAGE_SINCE:
        detail += "; too old to mark kernels as Tile IR, which needs 13.2"
        return Finding("ptxas", False, detail, f'pip install "{toolchain.TOOLS["ptxas"].wheel}"')
    return Finding("ptxas", True, detail)


def _libdevice() -> Finding:
    try:
        found = toolchain.require("libdevice")
    except TileError as error:
        return Finding("libdevice", False, error.message, error.hint or "")
    return Finding("libdevice", True, f"{found.path} ({found.origin})")
