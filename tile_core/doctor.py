"""What `tilec doctor` looks at: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import importlib_metadata

from tile_core.diagnostics import TileError
from tile_core.plugins import core_version
from tile_core.registry import Registry


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    what: str
    ok: bool
    detail: str
    hint: str = ""  # how to put it right
    needed: bool = True  # whether the compiler can do nothing without it


def check_core() -> Iterable[Finding]:
    """Python, this package and MLIR's bindings."""
    version = platform.python_version()
    yield Finding("python", sys.version_info >= (3, 11), f"{version} at {sys.executable}")
    yield Finding("tilec", True, core_version())
    yield from _bindings()


def _bindings() -> Iterator[Finding]:
    """The provider of MLIR's bindings that is used, and what others that are installed lack."""
    from tile_core import mlir, mlir_providers

    try:
        used = mlir_providers.chosen()
    except TileError as error:
        yield Finding("mlir", False, error.message, error.hint or "")
        return
    for provider in mlir_providers.installed():
        try:
            version = importlib_metadata.version(provider.distribution)
        except importlib_metadata.PackageNotFoundError:
            version = "unknown version"
        lacks = mlir_providers.lacking(provider)
        detail = f"{provider.distribution} {version}"
        if lacks.needed:
            detail += f" lacks {', '.join(lacks.needed)}"
        if lacks.substituted:
            detail += f" is without {', '.join(lacks.substituted)}: code is optimized less"
        if provider != used:
            yield Finding("mlir", not lacks.needed, f"{detail}; not used", needed=False)
            continue
        try:
            mlir.ir.Context()
        except Exception as error:
            yield Finding("mlir", False, f"{detail} does not work: {error}")
        else:
            yield Finding("mlir", not lacks.needed, detail, mlir_providers.HINT)


def findings(registry: Registry) -> list[Finding]:
    """The findings of all checks; a check that fails is a finding itself."""
    found: list[Finding] = []
    for entry in registry.entries("check"):
        try:
            found += list(registry.load("check", entry.lazy.name)())
        except Exception as error:
            message = error.message if isinstance(error, TileError) else str(error)
            found.append(Finding(entry.lazy.name, False, f"check of {entry.plugin}: {message}"))
    found += [Finding(f"plugin {p.name}", True, str(p)) for p in registry.plugins[1:]]
    for broken in registry.broken:
        hint = broken.error.hint or ""
        found.append(Finding(f"plugin {broken.name}", False, broken.error.message, hint))
    if not registry.plugins[1:]:
        hint = "pip install tilec, or in a checkout: pip install ."
        found.append(Finding("plugins", False, "none is installed", hint))
    return found
