"""The one place that imports MLIR's Python bindings.

Which package they come from, `mlir_providers` decides. Attributes are loaded on first use, so
importing this module costs nothing: `from tile_core.mlir import ir` loads the bindings, `import
tile_core.mlir` does not.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tile_core.deferred_numpy import numpy_deferred_in
from tile_core.mlir_providers import chosen
from tile_core.mlir_substitutes import complete

if TYPE_CHECKING:
    from torch_mlir import ir, passmanager, rewrite
    from torch_mlir.dialects import arith, cf, func, gpu, llvm, math, nvvm, scf, ub, vector

__all__ = [
    "arith",
    "bindings_name",
    "cf",
    "func",
    "gpu",
    "ir",
    "llvm",
    "load_irdl",
    "math",
    "nvvm",
    "passmanager",
    "registrar",
    "rewrite",
    "scf",
    "translate_module_to_llvmir",
    "ub",
    "vector",
]

_MODULES = {"ir": "ir", "passmanager": "passmanager", "rewrite": "rewrite"} | {
    name: f"dialects.{name}"
    for name in ("arith", "cf", "func", "gpu", "llvm", "math", "nvvm", "scf", "ub", "vector")
}


def bindings_name() -> str:
    """The package that holds the bindings, e.g. "torch_mlir".

    Raises:
        ConfigurationError: none is installed, or none of several has all that is needed.
    """
    return chosen().package


def _imported(module: str) -> ModuleType:
    """A module of the bindings."""
    with chosen().importable():
        return importlib.import_module(f"{bindings_name()}.{module}")


def registrar() -> Any:
    """The extension with the registers of classes that stand for dialects and their operations."""
    return _imported("_mlir_libs._mlir")


def load_irdl(module: ir.Module) -> None:
    """Declare the dialects that a module of the `irdl` dialect defines, in its context.

    Straight from the extension: `dialects.irdl` would import its operation classes.
    """
    _imported("_mlir_libs._mlirDialectsIRDL").load_dialects(module)


def translate_module_to_llvmir(module: ir.Operation) -> str:
    """LLVM IR of a module of the `llvm` dialect.

    Straight from the extension: `dialects.llvm` would import 0.1 s worth of operation classes.
    """
    return _imported("_mlir_libs._mlirDialectsLLVM").translate_module_to_llvmir(module)


def __getattr__(name: str) -> ModuleType:
    if name not in _MODULES:
        raise AttributeError(f"module 'tile_core.mlir' has no attribute '{name}'")
    if name == "ir":
        _do_without_operation_classes()
    with numpy_deferred_in(f"{bindings_name()}.ir"):
        module = _imported(_MODULES[name])
    if name == "ir":
        complete(module)
    globals()[name] = module
    return module


#: Upstream dialects of which passes meet operations and types, but need no Python classes.
_CLASSLESS = (
    "arith",
    "builtin",
    "cf",
    "func",
    "gpu",
    "llvm",
    "math",
    "nvvm",
    "scf",
    "ub",
    "vector",
)


def _do_without_operation_classes() -> None:
    """Keep the bindings from importing a dialect's Python module when they meet its operations.

    They do so once per dialect, 0.15 s for those of `_CLASSLESS`. An empty module stands in while
    the bindings take note of the dialect; whoever imports the real one later gets it as ever.
    """
    bindings = bindings_name()
    known = _imported("_mlir_libs._mlir").globals
    for dialect in _CLASSLESS:
        module = f"{bindings}.dialects.{dialect}"
        if module in sys.modules:
            continue
        sys.modules[module] = ModuleType(module)
        try:
            known._check_dialect_module_loaded(dialect)
        finally:
            del sys.modules[module]
