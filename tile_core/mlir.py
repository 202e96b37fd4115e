"""The one place that imports MLIR's Python bindings.

A real `mlir` package is used when one is installed, else the bindings inside the `torch-mlir`
wheel (torch itself is not needed). Attributes are loaded on first use, so importing this module
costs nothing: `from tile_core.mlir import ir` loads the bindings, `import tile_core.mlir` does not.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from tile_core.diagnostics import ConfigurationError

if TYPE_CHECKING:
    from torch_mlir import ir, passmanager, rewrite
    from torch_mlir.dialects import arith, cf, ext, func, gpu, llvm, math, nvvm, scf, ub, vector

__all__ = [
    "arith",
    "bindings_name",
    "cf",
    "ext",
    "func",
    "gpu",
    "ir",
    "llvm",
    "math",
    "nvvm",
    "passmanager",
    "rewrite",
    "scf",
    "ub",
    "vector",
]

_MODULES = {"ir": "ir", "passmanager": "passmanager", "rewrite": "rewrite"} | {
    name: f"dialects.{name}"
    for name in ("arith", "cf", "ext", "func", "gpu", "llvm", "math", "nvvm", "scf", "ub", "vector")
}


@cache
def bindings_name() -> str:
    """The package that holds the bindings: "mlir" or "torch_mlir".

    Raises:
        ConfigurationError: neither is installed.
    """
    # PyPI's `mlir` and `mlir-python-bindings` are stubs without `ir`.
    for package in ("mlir", "torch_mlir"):
        if importlib.util.find_spec(package) and importlib.util.find_spec(f"{package}.ir"):
            return package
    raise ConfigurationError(
        "MLIR's Python bindings are not installed",
        hint="pip install torch-mlir==20261001 (it needs no torch)",
    )


def __getattr__(name: str) -> ModuleType:
    if name not in _MODULES:
        raise AttributeError(f"module 'tile_core.mlir' has no attribute '{name}'")
    module = importlib.import_module(f"{bindings_name()}.{_MODULES[name]}")
    globals()[name] = module
    return module
