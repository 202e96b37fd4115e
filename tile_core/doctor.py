"""What `tilec doctor` looks at: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import importlib_metadata

from tile_core import defaults
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


@dataclass(frozen=True)
class GpuAnswer:
    """What a GPU did when it was asked."""

    findings: tuple[Finding, ...]
    about: Mapping[str, str] = field(default_factory=dict)  # its name, driver, ...
    #: Values of pipeline options to use instead of the pipelines' own (`tile_core.defaults`).
    instead: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: Whether it is worth keeping: a GPU answered, and no simulator.
    settled: bool = False


def ask_gpu(registry: Registry, driver: str) -> GpuAnswer:
    """The answers of all checks that plugins make on a GPU, taken together.

    Args:
        driver: Python module with the functions of the CUDA driver.
    """
    answers: list[GpuAnswer] = []
    for entry in registry.entries("gpu-check"):
        try:
            answers.append(registry.load("gpu-check", entry.lazy.name)(driver, registry))
        except Exception as error:
            message = error.message if isinstance(error, TileError) else str(error)
            finding = Finding(entry.lazy.name, False, f"check of {entry.plugin}: {message}")
            answers.append(GpuAnswer((finding,)))
    if not answers:
        return GpuAnswer((Finding("gpu", False, "no plugin asks a GPU", "pip install tile-time"),))
    return GpuAnswer(
        tuple(finding for answer in answers for finding in answer.findings),
        {key: value for answer in answers for key, value in answer.about.items()},
        {option: table for answer in answers for option, table in answer.instead.items()},
        all(answer.settled for answer in answers),
    )


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
    kept = defaults.instead()
    if kept:
        said = "; ".join(f"{o}: {v} instead of {k}" for o, t in kept.items() for k, v in t.items())
        found.append(Finding("defaults", True, f"{said} ({defaults.path()})"))
    found += [Finding(f"plugin {p.name}", True, str(p)) for p in registry.plugins[1:]]
    for broken in registry.broken:
        hint = broken.error.hint or ""
        found.append(Finding(f"plugin {broken.name}", False, broken.error.message, hint))
    if not registry.plugins[1:]:
        hint = "pip install tilec, or in a checkout: pip install ."
        found.append(Finding("plugins", False, "none is installed", hint))
    return found
