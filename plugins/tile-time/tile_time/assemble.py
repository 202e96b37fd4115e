"""PTX to SASS for a GPU: what the model needs to know of a kernel's code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from tile_nvptx.emit import toolchain
from tile_nvptx.emit.ptxas import KernelResources, assemble

from tile_core.diagnostics import CompileError, UsageError
from tile_core.machines import Machine
from tile_time.sass.code import SassKernel, disassemble

_TARGET = re.compile(r"^\s*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)
_TIMEOUT = 300.0


@dataclass(frozen=True)
class Code:
    """A module's kernels, assembled."""

    kernels: dict[str, SassKernel]
    resources: dict[str, KernelResources]
    arch: str


def architecture(ptx: str, machine: Machine) -> str:
    """What to assemble PTX for, so that it runs on a machine.

    Raises:
        UsageError: its `.target` does not run there.
    """
    found = _TARGET.search(ptx)
    if found is None:
        raise UsageError("the PTX has no .target")
    number, suffix = int(found[1]), found[2]
    own = int(machine.target.removeprefix("sm_"))
    if number == own or (suffix == "f" and number // 10 == own // 10 and number <= own):
        return f"sm_{number}{suffix}" if number == own else machine.target
    if not suffix and number <= own:
        return machine.target
    raise UsageError(
        f"PTX for sm_{number}{suffix} does not run on {machine.title} ({machine.target})",
        hint=f"compile for {machine.target}, or choose another --gpu",
    )


@lru_cache(maxsize=16)
def make_code(ptx: str, arch: str, level: int = 3) -> Code:
    """Assemble PTX with its line table and read the SASS.

    Raises:
        CompileError: ptxas or nvdisasm fails, or there is no line table.
        ConfigurationError: one of them is missing.
    """
    ptxas = toolchain.require("ptxas").path
    nvdisasm = toolchain.require("nvdisasm").path
    arguments = ["-v", "-arch", arch, "--opt-level", str(level), "-lineinfo"]
    made = assemble(ptx, ptxas, arguments, _TIMEOUT)
    kernels = disassemble(made.cubin, nvdisasm)
    for kernel in kernels.values():
        if kernel.code and not kernel.has_lines:
            raise CompileError(
                f"the SASS of '{kernel.name}' has no line table",
                hint="the PTX must not be compiled without -lineinfo",
            )
    return Code(kernels, {r.name: r for r in made.kernels}, arch)
