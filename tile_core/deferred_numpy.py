"""NumPy for modules that every compilation loads and few need it in: `np` loads it on first use.

The `ir` module of MLIR's bindings is one of them; importing NumPy is 50 of the 75 ms it takes.
While it runs, its own `import numpy` gives a stand-in; nobody else's does, and `sys.modules` never
holds anything but the real NumPy.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any


class _LazyNumpy(ModuleType):
    """NumPy, imported when something is asked of it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("numpy"), name)


if TYPE_CHECKING:
    from importlib.abc import Loader

    import numpy as np
else:
    Loader = object  # that module loads many others
    np = _LazyNumpy("numpy")

__all__ = ["np", "numpy_deferred_in"]


def _import(name: str, *rest: Any, **named: Any) -> ModuleType:
    if name == "numpy" and "numpy" not in sys.modules:
        return np
    return builtins.__import__(name, *rest, **named)


class _Loader(Loader):
    """Runs a module with an `import` of its own."""

    def __init__(self, real: Loader) -> None:
        self.real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
        module.__loader__ = self.real
        assert module.__spec__ is not None
        module.__spec__.loader = self.real
        self.real.exec_module(module)


class _Finder:
    """Finds one module, as Python would, and has it loaded by `_Loader`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


@contextmanager
def numpy_deferred_in(name: str) -> Iterator[None]:
    """Within the context, module `name` loads without loading NumPy."""
    finder = _Finder(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
