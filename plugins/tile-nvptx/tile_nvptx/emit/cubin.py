"""From PTX text to a cubin."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from tile_core.emit import EmitContext
from tile_nvptx.emit import toolchain
from tile_nvptx.emit.options import EmitOptions
from tile_nvptx.emit.ptxas import assemble


class CubinEmitter:
    """PTX text => cubin bytes, with ptxas.

    `metadata` holds, after `emit`, "kernels" (a `KernelResources` each), "ptxas" (where it is and
    how it was found), "log" and "seconds".
    """

    name: ClassVar[str] = "cubin"
    consumes: ClassVar[str] = "ptx"
    produces: ClassVar[str] = "cubin"

    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {}

    def emit(self, source: str, cx: EmitContext) -> bytes:
        """The cubin of `source`.

        Raises:
            CompileError: ptxas fails; with everything it printed.
            ConfigurationError: there is no ptxas.
        """
        options = EmitOptions.of(cx.options)
        ptxas = toolchain.require("ptxas", cx.toolchain)
        start = time.perf_counter()
        made = assemble(source, ptxas.path, cx.target, options)
        self.metadata = {
            "kernels": made.kernels,
            "ptxas": ptxas,
            "log": made.log,
            "seconds": {"ptxas": time.perf_counter() - start},
        }
        return made.cubin
