"""From a cubin to an object file of the host's, for programs that link their kernels in.

Specification page 004 has the tool write a host relocatable object that holds the cubin; the
released ones, 13.1.80 to 13.5.37, write the cubin itself. This is the former: section `.nv_cubin`
with the cubin, 64-byte aligned, and for each kernel K two symbols, the bytes `cubin_of_K` and their
number, `unsigned long cubin_size_of_K`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tile_core.diagnostics import CompileError
from tile_core.elf import Elf, ElfError
from tile_core.emit import EmitContext
from tile_core.options import option
from tile_nvptx.emit.pool import POOL, WorkerFailure
from tile_nvptx.host.object import HOST_TRIPLES

SECTION = ".nv_cubin"
#: Prefix of the sections of kernels in a cubin.
_CODE = ".text."


@dataclass
class ObjectEmitter:
    """Cubin bytes => bytes of a relocatable object file for the host."""

    name: ClassVar[str] = "object"
    consumes: ClassVar[str] = "cubin"
    produces: ClassVar[str] = "obj"

    host_triple: str = option(
        "x86_64-unknown-linux-gnu", "the host that the object is for", choices=HOST_TRIPLES
    )
    timeout: float = option(120.0, "seconds that LLVM may take")

    def emit(self, source: bytes, _cx: EmitContext) -> bytes:
        """The object file with `source` in it.

        Raises:
            CompileError: the cubin has no kernel to name it by, or LLVM fails.
        """
        request = {"host-ir": host_data(source), "triple": self.host_triple}
        try:
            return POOL.ask(request, self.timeout)["object"]
        except WorkerFailure as failure:
            message = f"no host object for the cubin: {failure.message}"
            raise CompileError(message, notes=failure.notes) from None


def host_data(cubin: bytes) -> str:
    """LLVM IR of a module that is nothing but `cubin` and its symbols.

    Raises:
        CompileError: it has no kernel.
    """
    try:
        names = [s.name for s in Elf(cubin).sections]
    except ElfError as error:
        raise CompileError(f"the cubin {error}") from error
    kernels = sorted(name.removeprefix(_CODE) for name in names if name.startswith(_CODE))
    if not kernels:
        raise CompileError(
            "an object file has symbols named after kernels, and the program has none",
            hint="--emit=cubin needs none",
        )
    text = "".join(f"\\{byte:02X}" for byte in cubin)
    kind = f"[{len(cubin)} x i8]"
    lines = [
        f'@cubin = private constant {kind} c"{text}", section "{SECTION}", align 64',
        f'@size = private constant i64 {len(cubin)}, section "{SECTION}", align 8',
    ]
    for kernel in kernels:
        lines.append(f'@"cubin_of_{kernel}" = alias {kind}, ptr @cubin')
        lines.append(f'@"cubin_size_of_{kernel}" = alias i64, ptr @size')
    return "\n".join(lines) + "\n"
