"""SASS of a cubin: instructions with the schedule that ptxas gave them.

Since Volta an instruction has 128 bits, and the compiler puts its schedule into the upper ones:
how many clk until the next instruction of the warp may issue, which of six scoreboards it sets
when its result is there (or its operands are read), and which it waits for. `nvdisasm -hex` prints
the words, `-gp` the line of the PTX that each instruction comes from.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tile_nvptx.emit.process import run_tool

from tile_core.diagnostics import CompileError, ConfigurationError

NO_SCOREBOARD = 7
NEVER = "@!PT"  # the guard of instructions that fill a slot and do nothing
_STALL, _WRITE, _READ, _WAIT = 41, 46, 49, 52  # bits of the upper word
_SECTION = re.compile(r"^\s*\.section\s+\.text\.(\S+?),")
_LINE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_INSTRUCTION = re.compile(
    r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:\{\s*)?(@!?\w+\s+)?([A-Z][A-Z0-9_.a-z]*)\s*([^;]*);?.*?"
    r"/\* 0x([0-9a-f]{16}) \*/\s*$"
)
_UPPER = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_LABEL = re.compile(r"^(\.L\w+|\$[\w$]+):")
_TARGET = re.compile(r"`\((\.L\w+|\$[\w$]+)\)")


@dataclass
class Sass:
    """One instruction. `line` is that of the PTX, 0 where ptxas names none."""

    address: int
    opcode: str
    guard: str
    operands: str
    line: int
    stall: int = 1
    write: int = NO_SCOREBOARD
    read: int = NO_SCOREBOARD
    wait: int = 0

    @property
    def name(self) -> str:
        return self.opcode.partition(".")[0]

    @property
    def text(self) -> str:
        return f"{self.guard} {self.opcode} {self.operands}".strip()


@dataclass
class SassKernel:
    """A kernel's instructions in order of their addresses; labels are indices."""

    name: str
    code: list[Sass] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    @property
    def has_lines(self) -> bool:
        return any(sass.line for sass in self.code)

    def target(self, sass: Sass) -> int | None:
        """Index of the instruction that a branch goes to."""
        found = _TARGET.search(sass.operands)
        return self.labels.get(found[1]) if found else None


def disassemble(cubin: bytes, nvdisasm: Path, timeout: float = 120.0) -> dict[str, SassKernel]:
    """The kernels of a cubin by their names.

    Raises:
        CompileError: nvdisasm does not read it, or prints what is not known.
        ConfigurationError: nvdisasm cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="tilec-") as folder:
        path = Path(folder, "kernels.cubin")
        path.write_bytes(cubin)
        try:
            done = run_tool([str(nvdisasm), "-c", "-gp", "-hex", str(path)], timeout)
        except OSError as error:
            raise ConfigurationError(f"cannot run {nvdisasm}: {error.strerror or error}") from error
        if done.status != 0 or done.timed_out:
            notes = tuple(done.output.replace(f"{folder}/", "").splitlines()[:5])
            raise CompileError(f"nvdisasm failed ({done.ending})", notes=notes)
    return parse(done.output)


def parse(text: str) -> dict[str, SassKernel]:
    """The listing of `nvdisasm -c -gp -hex`."""
    kernels: dict[str, SassKernel] = {}
    kernel: SassKernel | None = None
    line = 0
    for row in text.splitlines():
        if found := _SECTION.match(row):
            kernel, line = SassKernel(found[1]), 0
            kernels[found[1]] = kernel
        elif kernel is None:
            continue
        elif found := _LINE.match(row):
            line = int(found[2])
        elif found := _INSTRUCTION.match(row):
            guard = (found[2] or "").strip()
            operands = found[4].strip()
            kernel.code.append(Sass(int(found[1], 16), found[3], guard, operands, line))
        elif (found := _UPPER.match(row)) and kernel.code:
            _schedule(kernel.code[-1], int(found[1], 16))
        elif found := _LABEL.match(row):
            kernel.labels[found[1]] = len(kernel.code)
    for found_kernel in kernels.values():
        _drop_padding(found_kernel)
    return kernels


def _schedule(sass: Sass, upper: int) -> None:
    sass.stall = max(upper >> _STALL & 0xF, 1)
    sass.write, sass.read = upper >> _WRITE & 7, upper >> _READ & 7
    sass.wait = upper >> _WAIT & 0x3F


def _drop_padding(kernel: SassKernel) -> None:
    """The branch to itself and the NOPs behind a kernel."""
    while kernel.code and kernel.code[-1].name in ("NOP", "BRA"):
        last = kernel.code[-1]
        if last.name == "BRA" and kernel.target(last) != len(kernel.code) - 1:
            return
        kernel.code.pop()
