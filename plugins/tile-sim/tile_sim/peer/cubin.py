"""A cubin with PTX inside: its kernels' text, and the host code that fills hidden parameters."""

from __future__ import annotations

import re
from functools import cached_property

from tile_core.elf import Elf
from tile_sim.errors import SimError
from tile_sim.module import Module
from tile_sim.peer.host import HostCode, HostFilled

_PTX, _HOST = ".nv_debug_ptx_txt", ".nv.host"
_CUDA_MACHINE = 190
_TARGET = re.compile(r"^\.target\s+sm_(\d+)", re.MULTILINE)


class Cubin:
    """What tileiras (or a compiler that writes the same sections) made of a program."""

    def __init__(self, data: bytes) -> None:
        """Raises SimError (`cubin`) for what is no cubin."""
        self.data = data
        self.elf = Elf(data, lambda message: SimError("cubin", f"the cubin {message}"))
        if self.elf.machine != _CUDA_MACHINE:
            raise self.elf.error(f"is for machine {self.elf.machine}, no NVIDIA GPU")

    @property
    def has_ptx(self) -> bool:
        """Whether PTX was kept; a module without kernels has none."""
        return self.elf.find(_PTX) is not None

    @cached_property
    def ptx(self) -> str:
        """The text of its kernels. Raises SimError (`cubin`) where there is none."""
        section = self.elf.find(_PTX)
        if section is None:
            raise self.elf.error(f"has no PTX (section {_PTX}): tileiras keeps it with --lineinfo")
        text = section.data.replace(b"\0", b"\n").decode(errors="replace")
        start = text.find(".version")
        if start < 0:
            raise self.elf.error(f"has a section {_PTX} without PTX")
        return text[start:]

    @property
    def arch(self) -> int:
        """The number of the architecture that the PTX is for, 90 for sm_90a."""
        found = _TARGET.search(self.ptx)
        return int(found[1]) if found else 0

    @cached_property
    def host(self) -> HostCode | None:
        """The code that fills hidden parameters, None if the cubin has none."""
        section = self.elf.find(_HOST)
        return None if section is None or not section.data else HostCode(section.data)

    def parameter_base(self, entry: str) -> int:
        """Where the kernel's parameters begin in constant bank 0, in bytes.

        Parameters are aligned in the bank, not relative to the first one.
        """
        bank = self.elf.parameter_bank(entry)
        if bank is not None:
            return bank[0]
        raise self.elf.error(f"does not say where the parameters of {entry!r} lie")

    def load(self, arch: str | None = None) -> Module:
        """The kernels, ready to launch on arguments without the hidden parameters.

        Raises SimError: `target` where `arch` ("sm_90") is another one, `cubin` where kernels
        have hidden parameters and there is no host code, or what is wrong with the PTX.
        """
        if arch is not None and str(self.arch) != arch.removeprefix("sm_").rstrip("af"):
            raise SimError("target", f"the cubin is for sm_{self.arch}, not for {arch}")
        module = Module(self.ptx)
        # What stands in a cubin has been through ptxas, which guards registers by itself.
        module.strict = False
        wanting = [name for name, p in module.programs.items() if p.hidden]
        if not wanting:
            return module
        if self.host is None:
            count = len(module.programs[wanting[0]].hidden)
            raise self.elf.error(
                f"has no host code (section {_HOST}), but kernel {wanting[0]!r} has {count} "
                f"hidden parameter{'s' * (count > 1)} that it would fill"
            )
        bases = {name: self.parameter_base(name) for name in wanting}
        module.hidden = HostFilled(self.host, bases)
        return module
