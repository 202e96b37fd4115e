"""The simulated device behind the bindings: memory, cubins, launches, and a clock they move."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

from tile_sim.chip import chip_of
from tile_sim.errors import SimError
from tile_sim.machine.parameters import RawBuffer
from tile_sim.module import Module
from tile_sim.packing import gathered_parameters
from tile_sim.peer.cubin import Cubin

_LANGUAGE_TILE_IR = (7,)
_WARPS_A_US = 1000.0
Dim = tuple[int, int, int]


class Failed(Exception):
    """A call that fails: the driver's name of the error, and why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(why)
        self.name = name


@dataclass
class Kernel:
    """A kernel of a loaded cubin."""

    module: Module
    name: str


class Simulated:
    """A device; `capability` (9, 0) runs cubins for sm_90."""

    def __init__(self, capability: tuple[int, int] = (9, 0)) -> None:
        self.capability = capability
        self.name, self.sms, self.l2 = "tile-sim", int(chip_of(capability).sms), 1 << 16
        self.mhz = 1000
        self.memory: dict[int, ctypes.Array[ctypes.c_uint8]] = {}
        self.us = 0.0
        self.launches = 0
        #: What went wrong on the device: from then on every call fails with it.
        self.lost: Failed | None = None

    # --- memory -----------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """At a multiple of 256 bytes, as the driver gives it."""
        data = (ctypes.c_uint8 * (size + 256))()
        address = -(-ctypes.addressof(data) // 256) * 256
        self.memory[address] = data
        return address

    def free(self, address: int) -> None:
        if self.memory.pop(address, None) is None:
            raise Failed("CUDA_ERROR_INVALID_VALUE", f"{address:#x} was not allocated")

    def span(self, address: int, size: int) -> int:
        """The address, when so many bytes from it are allocated."""
        for start, data in self.memory.items():
            if start <= address and address + size <= start + len(data) - 256:
                return address
        raise Failed("CUDA_ERROR_INVALID_VALUE", f"{size} bytes at {address:#x} are not allocated")

    # --- kernels ----------------------------------------------------------------------------

    def load(self, image: bytes) -> Module:
        arch = f"sm_{self.capability[0]}{self.capability[1]}"
        try:
            cubin = Cubin(image)
            if cubin.arch // 10 != self.capability[0] or cubin.arch % 10 > self.capability[1]:
                raise Failed("CUDA_ERROR_NO_BINARY_FOR_GPU", f"sm_{cubin.arch} code on {arch}")
            return cubin.load()
        except SimError as error:
            raise Failed("CUDA_ERROR_INVALID_IMAGE", str(error)) from error

    def kernel(self, module: Module, name: str) -> Kernel:
        if name not in module.programs:
            raise Failed("CUDA_ERROR_NOT_FOUND", f"no kernel {name!r}")
        return Kernel(module, name)

    def launch(
        self, kernel: Kernel, grid: Dim, block: Dim, shared: int, cluster: Dim | None, at: int
    ) -> None:
        """Run a kernel on the parameters that the array of pointers at `at` points to."""
        data = gathered_parameters(kernel.module, kernel.name, at)
        threads = self._block(kernel, block)
        buffers = [RawBuffer(a, len(d) - 256, "device memory") for a, d in self.memory.items()]
        try:
            report = kernel.module.launch_raw(
                kernel.name, grid, threads, data, buffers, shared_bytes=shared, cluster=cluster
            )
        except SimError as error:
            if error.kind == "launch":
                raise Failed("CUDA_ERROR_INVALID_VALUE", str(error)) from error
            outside = "ILLEGAL_ADDRESS" if "bounds" in error.kind else "LAUNCH_FAILED"
            self.lost = Failed(f"CUDA_ERROR_{outside}", str(error))
            return  # the next call tells
        self.launches += 1
        self.us += report.warp_instructions / _WARPS_A_US

    def _block(self, kernel: Kernel, block: Dim) -> Dim | None:
        """Kernels in Tile IR say themselves how many threads a CTA has; launches say (1, 1, 1)."""
        directives = kernel.module.program(kernel.name).entry.directives
        if directives.get("language") != _LANGUAGE_TILE_IR:
            return block
        if block != (1, 1, 1):
            raise Failed("CUDA_ERROR_INVALID_VALUE", f"a block of {block} of a kernel in Tile IR")
        return None


def _of_environment() -> Simulated:
    """The device for TILE_SIM_ARCH ("sm_100"), an H100 without it."""
    digits = os.environ.get("TILE_SIM_ARCH", "sm_90").removeprefix("sm_").rstrip("af")
    return Simulated((int(digits[:-1]), int(digits[-1]))) if len(digits) > 1 else Simulated()


#: The device of this process.
DEVICE = _of_environment()
