"""Which installed packages bring MLIR's Python bindings, and what each lacks.

The bindings come in wheels of several makers, under different names and of different ages. A
provider is chosen by what it can do: the first, in the order below, that has every name this
project uses, else the first of those for whose gaps there are substitutes. Only where more than one
is installed are they asked, in a process of its own, and the answer is kept until their files
change.
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
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from tile_core.diagnostics import ConfigurationError
from tile_core.snapshot import remembered

#: Names a package to use whatever it lacks, for those who try another provider.
FORCE = "TILEC_MLIR"

#: What the project uses that not every version of the bindings has.
REQUIRED = {
    "ir": (
        "DynamicAttr", "DynamicOpTrait", "DynamicType", "IsTerminatorTrait",
        "MemoryEffectInstancesList", "MemoryEffectsOpInterface", "NoTerminatorTrait", "WalkOrder",
        "WalkResult",
    ),
    "passmanager": ("PassManager",),
    "rewrite": ("RewritePatternSet",),
    "_mlir_libs._mlirDialectsIRDL": ("load_dialects",),
    "_mlir_libs._mlirDialectsLLVM": ("translate_module_to_llvmir",),
}  # fmt: skip

#: What it uses, too, and has something for that stands in (`mlir_substitutes`).
SUBSTITUTED = {
    "ir": (
        "ConditionallySpeculatable", "Float8E5M3FNUType", "IsIsolatedFromAboveTrait",
        "MemoryEffect", "Speculatability",
    ),
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
        spec = importlib.util.find_spec(top) if rest and top not in sys.modules else None
        if spec is not None:
            # It stays: the bindings import further modules of their own at any time.
            sys.modules[top] = _Unexecuted(spec)
        yield


class _Unexecuted(ModuleType):
    """A package whose own code runs when somebody asks it for something."""

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec.name)
        self.__spec__ = spec
        self.__path__ = list(spec.submodule_search_locations or ())
        self.__file__ = spec.origin

    def __getattr__(self, name: str) -> Any:
        loader = self.__spec__.loader if self.__spec__ is not None else None
        # The machinery of imports looks for names with underscores, and can do without.
        if loader is None or name.startswith("__") or type(self) is not _Unexecuted:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        object.__setattr__(self, "__class__", ModuleType)
        loader.exec_module(self)
        return getattr(self, name)


#: Best first: a real `mlir` package is what somebody built for the purpose.
PROVIDERS = (
    Provider("mlir", "mlir"),
    Provider("torch_mlir", "torch-mlir"),
    Provider("numba_cuda_mlir._mlir", "numba-cuda-mlir"),
)

HINT = 'pip install "torch-mlir>=20261001" (it needs no torch)'

_PROBE = """
import importlib, json, sys
from tile_core.mlir_providers import PROVIDERS, REQUIRED, SUBSTITUTED
(provider,) = [p for p in PROVIDERS if p.package == sys.argv[1]]
def lacking(wanted):
    for module, names in wanted.items():
        try:
            found = importlib.import_module(f"{provider.package}.{module}")
        except ImportError:
            yield module
            continue
        yield from (f"{module}.{name}" for name in names if not hasattr(found, name))
with provider.importable():
    print(json.dumps([list(lacking(REQUIRED)), list(lacking(SUBSTITUTED))]))
"""


def installed() -> list[Provider]:
    """The providers that are installed, best first."""
    return [provider for provider in PROVIDERS if provider.folder is not None]


@dataclass(frozen=True)
class Lacks:
    """What an installed provider lacks, as "module.name"."""

    needed: tuple[str, ...] = ()  # and cannot be used without
    substituted: tuple[str, ...] = ()  # `mlir_substitutes` stands in

    @property
    def everything(self) -> tuple[str, ...]:
        return self.needed + self.substituted


def lacking(provider: Provider) -> Lacks:
    """What an installed provider lacks; asked for in a process of its own."""

    def ask() -> tuple[list[list[str]], list[Path]]:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, provider.package], capture_output=True, text=True
        )
        folder = provider.folder
        behind = [] if folder is None else [folder, folder / "_mlir_libs", folder / "dialects"]
        try:
            return json.loads(done.stdout), behind
        except ValueError:
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            return [[f"cannot be imported: {reason}"], []], behind

    needed, substituted = remembered(f"mlir-lacks-{provider.package}", ask)
    return Lacks(tuple(needed), tuple(substituted))


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
    whole = [p for p in found if not lacking(p).everything]
    usable = whole or [p for p in found if not lacking(p).needed]
    if usable:
        return usable[0]
    raise ConfigurationError(
        "none of the installed bindings of MLIR has all that is needed",
        notes=tuple(f"{p.distribution} lacks {', '.join(lacking(p).needed)}" for p in found),
        hint=HINT,
    )
