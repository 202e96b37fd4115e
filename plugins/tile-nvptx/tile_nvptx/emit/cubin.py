"""From PTX text to a cubin."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tile_core.diagnostics import ConfigurationError
from tile_core.emit import EmitContext
from tile_core.options import option
from tile_core.remarks import Remark
from tile_nvptx.emit import ptx_text, toolchain
from tile_nvptx.emit.large_shared import with_shared_sizes, without_large_arrays
from tile_nvptx.emit.options import EmitOptions
from tile_nvptx.emit.ptxas import assemble, ptxas_arguments
from tile_nvptx.emit.resource_remarks import block_sizes, losses_in, remarks_on
from tile_nvptx.host.object import HOST_TRIPLES, check_parameters, host_object


def _unbalanced(text: str) -> str | None:
    try:
        shlex.split(text)
    except ValueError as error:
        return f"cannot be split: {error}"
    return None


@dataclass
class CubinEmitter:
    """PTX text => cubin bytes, with ptxas.

    After `emit`, `remarks` says what the kernels take of an SM, and `metadata` holds "kernels" (a
    `KernelResources` each), "ptxas" (where it is and how it was found), "log" and "seconds".
    """

    name: ClassVar[str] = "cubin"
    consumes: ClassVar[str] = "ptx"
    produces: ClassVar[str] = "cubin"

    ptxas_options: str = option(
        "", "further arguments for ptxas, as a shell would split them", check=_unbalanced
    )
    timeout: float = option(600.0, "seconds that ptxas may take for one module")
    host_triple: str = option(
        "x86_64-unknown-linux-gnu",
        "what the code that fills in tensor maps runs on",
        choices=HOST_TRIPLES,
    )
    metadata: dict[str, Any] = field(default_factory=dict, init=False)
    remarks: list[Remark] = field(default_factory=list, init=False)

    def emit(self, source: str, cx: EmitContext) -> bytes:
        """The cubin of `source`.

        Raises:
            CompileError: ptxas fails; with everything it printed.
            ConfigurationError: there is no ptxas, or it is too old for the PTX.
        """
        options = EmitOptions.of(cx.options)
        ptxas = toolchain.require("ptxas", cx.toolchain)
        _check_marks(source, ptxas)
        start = time.perf_counter()
        extra = shlex.split(self.ptxas_options)
        arguments = [*ptxas_arguments(cx.target, options), *extra]
        large = without_large_arrays(source, cx.target.static_shared)
        host = host_object(source, cx.target, self.host_triple, self.timeout)
        made = assemble(large.ptx, ptxas.path, arguments, self.timeout, host)
        if host is not None:
            check_parameters(made.cubin, source, cx.target)
        self.metadata = {
            "kernels": tuple(map(large.counted, made.kernels)),
            "ptxas": ptxas,
            "log": made.log,
            "seconds": {"ptxas": time.perf_counter() - start},
        }
        threads = block_sizes(source)
        self.remarks = [
            remark
            for kernel in self.metadata["kernels"]
            for remark in remarks_on(kernel, cx.target, threads.get(kernel.name))
        ]
        self.remarks += losses_in(made.log)
        return with_shared_sizes(made.cubin, large.sizes)


def _check_marks(ptx: str, ptxas: toolchain.Found) -> None:
    """Refuse a ptxas that cannot mark kernels as Tile IR.

    Launched with a block of (1, 1, 1), a kernel without the mark runs with one thread, and says
    nothing.
    """
    if not ptx_text.has_tile_kernels(ptx):
        return
    version = toolchain.ptxas_version(ptxas)
    if version.highest_ptx < ptx_text.LANGUAGE_SINCE:
        raise ConfigurationError(
            f"ptxas {version.full} ({ptxas.path}, {ptxas.origin}) cannot mark kernels as Tile IR, "
            "which needs 13.2 or later",
            notes=("without the mark, a launch with a block of (1, 1, 1) runs one thread",),
            hint=f'pip install "{toolchain.TOOLS["ptxas"].wheel}", or -D ptx.tile-launch=false for '
            "unmarked kernels, to be launched with a block of .reqntid threads",
        )
