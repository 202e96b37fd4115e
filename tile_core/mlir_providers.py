"""Which installed packages bring MLIR's Python bindings, and what each lacks.

The bindings come in wheels of several makers, under different names and of different ages. A
provider is chosen by what it can do: the first, in the order below, that has every name this
project uses. Only where more than one is installed are they asked, in a process of its own, and the
answer is kept until their files change.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from tile_core.diagnostics import ConfigurationError
from tile_core.snapshot import remembered

#: Names a package to use whatever it lacks, for those who try another provider.
FORCE = "TILEC_MLIR"

#: What the project uses that not every version of the bindings has.
REQUIRED = {
    "ir": (
        "ConditionallySpeculatable", "DynamicType", "IsIsolatedFromAboveTrait", "IsTerminatorTrait",
        "MemoryEffect", "MemoryEffectInstancesList", "MemoryEffectsOpInterface",
        "NoTerminatorTrait", "Speculatability", "WalkOrder", "WalkResult",
    ),
    "dialects.ext": (
        "Attribute", "Dialect", "Operand", "Operation", "Pure", "Region", "Result", "Type",
    ),
    "passmanager": ("PassManager",),
    "rewrite": ("RewritePatternSet",),
    "_mlir_libs._mlirDialectsLLVM": ("translate_module_to_llvmir",),
}  # fmt: skip


@dataclass(frozen=True)
class Provider:
    """A package with the bindings, and the distribution that brings it."""

    package: str
    distribution: str

    @property
    def folder(self) -> Path | None:
        """Where it is; None when it is not installed. Nothing is imported to find out."""
        top, *rest = self.package.split(".")
        spec = importlib.util.find_spec(top)
        for place in spec.submodule_search_locations or () if spec else ():
            folder = Path(place, *rest)
            # PyPI's `mlir` and `mlir-python-bindings` are stubs without `ir`.
            if (folder / "ir.py").is_file() or (folder / "ir" / "__init__.py").is_file():
                return folder
        return None

    @contextmanager
    def importable(self) -> Iterator[None]:
        """Within the context, its modules are imported without the package around them.

        `numba_cuda_mlir` imports a compiler of its own, of which nothing is needed here.
        """
        top, *rest = self.package.split(".")
        if not rest or top in sys.modules:
            yield
            return
        spec = importlib.util.find_spec(top)
        stand_in = ModuleType(top)
        stand_in.__path__ = list(spec.submodule_search_locations or ()) if spec else []
        sys.modules[top] = stand_in
        try:
            yield
        finally:
            # Whoever imports the package itself later gets the real one.
            del sys.modules[top]


#: Best first: a real `mlir` package is what somebody built for the purpose.
PROVIDERS = (
    Provider("mlir", "mlir"),
    Provider("torch_mlir", "torch-mlir"),
    Provider("numba_cuda_mlir._mlir", "numba-cuda-mlir"),
)

HINT = 'pip install "torch-mlir>=20261001" (it needs no torch)'

_PROBE = """
import importlib, json, sys
from tile_core.mlir_providers import PROVIDERS, REQUIRED
(provider,) = [p for p in PROVIDERS if p.package == sys.argv[1]]
lacking = []
with provider.importable():
    for module, names in REQUIRED.items():
        try:
            found = importlib.import_module(f"{provider.package}.{module}")
        except ImportError:
            lacking.append(module)
            continue
        lacking += [f"{module}.{name}" for name in names if not hasattr(found, name)]
print(json.dumps(lacking))
"""


def installed() -> list[Provider]:
    """The providers that are installed, best first."""
    return [provider for provider in PROVIDERS if provider.folder is not None]


def lacking(provider: Provider) -> list[str]:
    """What an installed provider lacks, as "module.name"."""

    def ask() -> tuple[list[str], list[Path]]:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, provider.package], capture_output=True, text=True
        )
        folder = provider.folder
        behind = [] if folder is None else [folder, folder / "_mlir_libs", folder / "dialects"]
        try:
            return json.loads(done.stdout), behind
        except ValueError:
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            return [f"cannot be imported: {reason}"], behind

    return remembered(f"mlir-{provider.package}", ask)


@cache
def chosen() -> Provider:
    """The provider to use.

    Raises:
        ConfigurationError: none is installed, or none of several has all that is needed.
    """
    forced = os.environ.get(FORCE)
    found = installed()
    if forced:
        for provider in found:
            if forced in (provider.package, provider.distribution):
                return provider
        raise ConfigurationError(f"{FORCE}={forced} names no installed bindings of MLIR", hint=HINT)
    if not found:
        raise ConfigurationError("MLIR's Python bindings are not installed", hint=HINT)
    if len(found) == 1:
        return found[0]  # what it may lack, its use will tell
    for provider in found:
        if not lacking(provider):
            return provider
    raise ConfigurationError(
        "none of the installed bindings of MLIR has all that is needed",
        notes=tuple(f"{p.distribution} lacks {', '.join(lacking(p))}" for p in found),
        hint=HINT,
    )
