"""What hooks return: names, and where the objects behind them are.

Beside `tile_core.hookspecs`, which plugins import them from, since whoever only looks names up
needs no machinery of hooks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Lazy:
    """A named object that is imported when first asked for."""

    name: str
    target: str  # "package.module:attribute"
    summary: str = ""

    def load(self) -> Any:
        """Import the module and return the attribute."""
        from importlib import import_module

        module, _, attribute = self.target.partition(":")
        return getattr(import_module(module), attribute)


@dataclass(frozen=True)
class LazyFrontend(Lazy):
    """A reader of an input format; `target` is `read(data: bytes, cx) -> ir.Module`."""

    magic: bytes = b""  # how the format starts
    words: tuple[str, ...] = ()  # or, of text, its first words, which no MLIR starts with
    #: A function from `data` to whether it is a right program without anything to compile, which no
    #: pass has to see. None: nobody can tell before it is read.
    empty: Lazy | None = None


@dataclass(frozen=True)
class LazyEmitter(Lazy):
    """A step of code generation after the passes; `target` is an `Emitter` class."""

    consumes: str = ""  # artifact kind: "mlir", or what another emitter produces
    produces: str = ""  # artifact kind: "llvm", "ptx", "cubin", ...
    #: Files that it runs or links, for the key of the artifact cache: a function from what the user
    #: names (tool name -> path) to what will be used (likewise). None: nothing but Python.
    tools: Lazy | None = None
    #: Of what consumes MLIR: a function from an `EmitContext` to what it makes of a program without
    #: anything to compile. None: such a program goes the way of all others.
    empty: Lazy | None = None


@dataclass(frozen=True)
class LazyPatterns(Lazy):
    """A `RuleSet` that a plugin adds to a conversion pass of somebody else."""

    extends: str = ""  # name of the pass
