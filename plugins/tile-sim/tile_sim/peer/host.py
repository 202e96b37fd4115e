"""Host code of a cubin: callbacks that fill a kernel's hidden parameters before a launch.

The object in `.nv.host` is a relocatable x86-64 file. Its table `__CUDA_TILEIR_CALLBACKS` leads to
an entry for each kernel: the kernel's name and the function that is called when its arguments have
changed. That function is given the packed parameters and writes the hidden ones among them.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tile_core.elf import X86_64, Elf, Relocation, Symbol
from tile_sim.errors import SimError
from tile_sim.peer.process import Code, HostProcess

_CALLBACKS = "__CUDA_TILEIR_CALLBACKS"
# Words of the table, in bytes: size of an entry, the entries' address, their number.
_ENTRY_SIZE, _ENTRIES, _COUNT = 0x20, 0x28, 0x30
# And of an entry: the kernel's name, the callback.
_NAME, _ON_ARGUMENTS = 0, 40
_ABSOLUTE = 1  # R_X86_64_64
_RELATIVE = {2: 4, 4: 4, 24: 8}  # R_X86_64_PC32, PLT32, PC64: bytes
Place = tuple[int, int]  # section, offset


@dataclass(frozen=True)
class HostFilled:
    """Fills the hidden parameters of a module's kernels; `bases` as `Cubin.parameter_base`."""

    code: HostCode
    bases: dict[str, int]

    def fill(
        self, entry: str, visible: bytes, hidden: Sequence[tuple[int, int]], workspace: int = 0
    ) -> list[bytes]:
        """The bytes of the hidden parameters, of the given (size, alignment), in order.

        `workspace` is the address of the device memory that the kernel asked for.

        Raises SimError (`host`) where the callback cannot be run or fails.
        """
        base, end, offsets = self.bases[entry], len(visible), []
        for size, alignment in hidden:
            offsets.append(-(-(end + base) // alignment) * alignment - base)
            end = offsets[-1] + size
        filled = self.code.call(entry, visible.ljust(end, b"\0"), workspace)
        return [filled[at : at + size] for at, (size, _) in zip(offsets, hidden, strict=True)]


class HostCode:
    """The host object of a cubin."""

    def __init__(self, data: bytes) -> None:
        """Raises SimError: `cubin` for a broken object, `host` for one of another machine."""
        self.elf = Elf(
            data, lambda message: SimError("cubin", f"the cubin's host object {message}")
        )
        if self.elf.machine != X86_64:
            raise SimError("host", f"the host code is for machine {self.elf.machine}, not x86-64")

    def call(self, entry: str, parameters: bytes, workspace: int = 0) -> bytes:
        """The parameters after the kernel's callback, which runs in a process of its own."""
        here = f"{sys.platform} on {platform.machine()}"
        if not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "AMD64"):
            raise SimError("host", f"host code of cubins runs on x86-64 Linux only, this is {here}")
        if entry not in self.callbacks:
            known = ", ".join(self.callbacks) or "none"
            raise SimError("host", f"no host callback for kernel {entry!r}; there are: {known}")
        status, filled = HostProcess.shared().call(self.callbacks[entry], parameters, workspace)
        if status:
            raise SimError("host", f"the host callback of {entry!r} failed with status {status}")
        return filled

    @cached_property
    def callbacks(self) -> dict[str, Code]:
        """Kernel name to the code of its callback."""
        table = next((s for s in self.elf.symbols if s.name == _CALLBACKS and s.section), None)
        if table is None:
            raise self.elf.error(f"has no table {_CALLBACKS}")
        start = (table.section, table.value)
        size, count = self._word(start, _ENTRY_SIZE), self._word(start, _COUNT)
        first = self._pointer(start, _ENTRIES)
        if first is None or not 0 < count <= 1 << 16:
            raise self.elf.error(f"has a table of {count} callbacks")
        found: dict[str, Code] = {}
        for i in range(count):
            name = self._pointer(first, i * size + _NAME)
            function = self._pointer(first, i * size + _ON_ARGUMENTS)
            if name is not None and function is not None:
                found[self._text(name)] = self._code(function)
        return found

    # --- reading the tables -----------------------------------------------------------------

    def _contents(self, section: int) -> bytes:
        if not 0 < section < len(self.elf.sections):
            raise self.elf.error(f"points to section {section}, which it has not")
        return self.elf.sections[section].data

    def _word(self, start: Place, offset: int) -> int:
        at = start[1] + offset
        return int.from_bytes(self._contents(start[0])[at : at + 8], "little")

    def _pointer(self, start: Place, offset: int) -> Place | None:
        """Where a word points to: it is filled in by a relocation."""
        for relocation in self.elf.relocations(start[0]):
            if relocation.offset == start[1] + offset:
                return self._target(relocation)
        return None

    def _target(self, relocation: Relocation) -> Place:
        symbol = relocation.symbol
        if not 0 < symbol.section < len(self.elf.sections):
            raise self.elf.error(f"needs {symbol.name!r}, which is defined elsewhere")
        return symbol.section, symbol.value + relocation.addend

    def _text(self, place: Place) -> str:
        data = self._contents(place[0])
        return data[place[1] : data.find(b"\0", place[1])].decode(errors="replace")

    # --- code -------------------------------------------------------------------------------

    def _code(self, function: Place) -> Code:
        """The section of a function, and what has to be filled in within the function."""
        section, start = function
        image = bytearray(self._contents(section))
        absolute: list[tuple[int, int]] = []
        symbol = self._function_at(function)
        end = start + symbol.size if symbol is not None and symbol.size else len(image)
        for relocation in self.elf.relocations(section):
            if not start <= relocation.offset < end:
                continue
            target = self._target(relocation)
            width = _RELATIVE.get(relocation.type, 8)
            if target[0] != section or relocation.type not in (_ABSOLUTE, *_RELATIVE):
                raise SimError(
                    "host", f"the callback refers to {relocation.symbol.name or 'data'!r} "
                    f"(relocation {relocation.type}), which is not supported",
                )  # fmt: skip
            if relocation.type == _ABSOLUTE:
                absolute.append((relocation.offset, target[1]))
            else:
                value = target[1] - relocation.offset
                image[relocation.offset : relocation.offset + width] = value.to_bytes(
                    width, "little", signed=True
                )
        if not start < len(image):
            raise self.elf.error("has a callback outside its code")
        return Code(bytes(image), start, tuple(absolute))

    def _function_at(self, function: Place) -> Symbol | None:
        fits = [s for s in self.elf.symbols if (s.section, s.value) == function and s.size]
        return fits[0] if fits else None
