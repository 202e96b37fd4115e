"""Emitters: the steps from the last MLIR to what leaves the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from tile_core.target import Target


@dataclass(frozen=True)
class EmitContext:
    """What an emitter knows besides its input."""

    target: Target
    options: Mapping[str, Any]  # resolved pipeline options, names with dashes
    toolchain: Mapping[str, Path] = field(default_factory=dict)  # --ptxas and friends


class Emitter(Protocol):
    """One step of code generation.

    `consumes` and `produces` are artifact kinds: "mlir" (an `ir.Module`), "llvm" and "ptx"
    (text), "cubin" (bytes).
    """

    name: ClassVar[str]
    consumes: ClassVar[str]
    produces: ClassVar[str]

    # Optional: `prewarm()`, a class method that starts what will take long and returns at once.
    # It is called before the passes run. And what `emit` fills: `metadata`, a mapping, which
    # `Artifact.metadata` hands on, and `remarks`, a list of `tile_core.remarks.Remark`.

    def emit(self, source: Any, cx: EmitContext) -> Any:
        """The artifact made from `source`.

        Raises:
            CompileError: the input cannot be compiled, with the tool's own words.
            ConfigurationError: a tool is missing.
        """
        ...
