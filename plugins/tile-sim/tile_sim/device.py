"""`Device(arch)`: loading PTX for one GPU architecture and launching kernels by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine.launch import LaunchReport
from tile_sim.machine.parameters import Argument, RawBuffer
from tile_sim.module import Module

_ARCH = re.compile(r"sm_(\d+)([af]?)$")
Extent = int | Sequence[int]


class Device:
    """A simulated GPU.

    `arch` is "sm_80", "sm_90a", ...: only PTX that such a GPU runs can be loaded. `options` are
    defaults for every launch (`schedule`, `seed`, `check`, ...; see `Module.launch`).
    """

    def __init__(self, arch: str, **options: Any) -> None:
        """Raises SimError (`launch`) for what is no architecture."""
        self.arch = arch
        self.number, self.feature = _parse(arch)
        self.options = options

    def load(self, ptx: str) -> LoadedModule:
        """Parse and decode a module.

        Raises SimError: `target` where its `.target` does not run on this device, or what is
        wrong with the text.
        """
        module = Module(ptx)
        number, feature = _parse(module.syntax.target)
        fits = {
            "": self.number >= number,
            "f": self.number // 10 == number // 10 and self.number >= number,
            "a": self.number == number and self.feature == "a",
        }
        if not fits[feature]:
            target = module.syntax.target
            raise SimError("target", f"a module for {target} does not run on {self.arch}")
        return LoadedModule(module, self.options)


class LoadedModule:
    """A module on a device."""

    def __init__(self, module: Module, options: dict[str, Any]) -> None:
        self.module = module
        self.options = options

    def kernel(self, name: str | None = None) -> Kernel:
        """A kernel by name; without one, the only kernel there is."""
        if name is None:
            if len(self.module.entries) != 1:
                known = ", ".join(self.module.entries) or "none"
                raise SimError("launch", f"which kernel? this module has: {known}")
            name = self.module.entries[0]
        self.module.program(name)
        return Kernel(self.module, name, self.options)

    __getitem__ = kernel

    def variable(self, name: str, dtype: Any = np.uint8) -> np.ndarray:
        """The memory of a `.global` or `.const` variable."""
        return self.module.variable(name, dtype)


class Kernel:
    """One kernel of a loaded module."""

    def __init__(self, module: Module, name: str, options: dict[str, Any]) -> None:
        self.module = module
        self.name = name
        self.options = options

    def launch(
        self,
        grid: Extent,
        args: Sequence[Argument],
        cluster: Extent | None = None,
        *,
        block: Extent | None = None,
        **options: Any,
    ) -> LaunchReport:
        """Run over `grid` CTAs. NumPy arrays and CPU tensors are updated in place.

        `block` is only needed where the kernel has no `.reqntid`. See `Module.launch`.
        """
        options = {**self.options, "cluster": _extent(cluster), **options}
        return self.module.launch(self.name, _extent(grid), _extent(block), args, **options)

    def launch_raw(
        self,
        grid: Extent,
        parameters: bytes,
        buffers: Sequence[RawBuffer | np.ndarray],
        cluster: Extent | None = None,
        *,
        block: Extent | None = None,
        **options: Any,
    ) -> LaunchReport:
        """Run on real process addresses; accesses outside `buffers` are errors.

        `parameters` are the bytes of all parameters. See `Module.launch_raw`.
        """
        options = {**self.options, "cluster": _extent(cluster), **options}
        return self.module.launch_raw(
            self.name, _extent(grid), _extent(block), parameters, buffers, **options
        )


def _parse(arch: str) -> tuple[int, str]:
    found = _ARCH.match(arch)
    if found is None:
        raise SimError("launch", f"{arch!r} is no architecture such as sm_80 or sm_90a")
    return int(found[1]), found[2]


def _extent(value: Extent | None) -> Any:
    if value is None:
        return None
    numbers = (value,) if isinstance(value, int) else tuple(value)
    return (*numbers, *[1] * (3 - len(numbers)))
