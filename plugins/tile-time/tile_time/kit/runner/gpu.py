"""The CUDA driver as the kit needs it, through `cuda.bindings.driver` or what stands in for it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

DRIVER = "cuda.bindings.driver"
#: Bytes on both sides of an array that no kernel may touch.
GUARD, _PATTERN = 256, 0xA5


class DriverError(Exception):
    """A call of the driver that failed: which one, and what it said."""


class OutOfBounds(Exception):
    """A kernel wrote beside an array."""


class Gpu:
    """A device with its primary context; made once in a process."""

    def __init__(self, module: str = DRIVER, ordinal: int = 0) -> None:
        self.d = import_module(module)
        self.call("cuInit", 0)
        self.device = self.call("cuDeviceGet", ordinal)
        context = self.call("cuDevicePrimaryCtxRetain", self.device)
        self.call("cuCtxSetCurrent", context)
        self.flushed: int | None = None

    def call(self, name: str, *args: Any) -> Any:
        """A function of the driver; its one result, or a tuple of them.

        Raises DriverError with the driver's name and text of the error.
        """
        status, *results = getattr(self.d, name)(*args)
        if int(status):
            said = self._said(status)
            raise DriverError(f"{name}: {said}")
        return results[0] if len(results) == 1 else tuple(results) or None

    def _said(self, status: Any) -> str:
        parts = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            failed, text = getattr(self.d, name)(status)
            if not int(failed) and text:
                parts.append(text.decode() if isinstance(text, bytes) else str(text))
        return " ".join(parts) or f"error {int(status)}"

    # --- what it is -------------------------------------------------------------------------

    def attribute(self, name: str) -> int:
        which = getattr(self.d.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.call("cuDeviceGetAttribute", which, self.device))

    def facts(self) -> dict[str, Any]:
        """Name, compute capability, sizes, clocks in MHz, the driver's version."""
        name = self.call("cuDeviceGetName", 256, self.device)
        text = name.decode().split("\0")[0] if isinstance(name, bytes) else str(name)
        return {
            "name": text,
            "capability": [self.attribute("COMPUTE_CAPABILITY_MAJOR"),
                           self.attribute("COMPUTE_CAPABILITY_MINOR")],
            "sms": self.attribute("MULTIPROCESSOR_COUNT"),
            "l2_bytes": self.attribute("L2_CACHE_SIZE"),
            "max_mhz": self.attribute("CLOCK_RATE") / 1000,
            "memory_mhz": self.attribute("MEMORY_CLOCK_RATE") / 1000,
            "driver": int(self.call("cuDriverGetVersion")),
            "simulated": bool(getattr(self.d, "SIMULATED", False)),
        }  # fmt: skip

    # --- kernels ----------------------------------------------------------------------------

    def kernel(self, image: Path, name: str, shared: int = 0) -> Any:
        """A function of a cubin; `shared` is its dynamic shared memory in bytes."""
        data = image.read_bytes()
        library = self.call("cuLibraryLoadData", data, [], [], 0, [], [], 0)
        kernel = self.call("cuLibraryGetKernel", library, name.encode())
        function = self.call("cuKernelGetFunction", kernel)
        if shared > 48 * 1024:
            most = self.d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.call("cuFuncSetAttribute", function, most, shared)
        return function

    def launch(
        self, function: Any, grid: Sequence[int], block: Sequence[int], parameters: Sequence[bytes],
        shared: int = 0, cluster: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """Start a kernel in the default stream; `parameters` are the bytes of each."""
        held = [_aligned(one) for one in parameters]
        pointers = (ctypes.c_void_p * max(len(held), 1))(*(address for address, _ in held))
        at = ctypes.addressof(pointers)
        if cluster is None:
            self.call("cuLaunchKernel", function, *grid, *block, shared, 0, at, 0)
            return
        config = self.d.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes, config.hStream = shared, 0
        attribute, value = self.d.CUlaunchAttribute(), self.d.CUlaunchAttributeValue()
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = cluster
        attribute.id = self.d.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value = value
        config.attrs, config.numAttrs = [attribute], 1
        self.call("cuLaunchKernelEx", config, function, at, 0)

    def wait(self) -> None:
        self.call("cuCtxSynchronize")

    # --- memory -----------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        return int(self.call("cuMemAlloc", max(size, 1)))

    def free(self, address: int) -> None:
        self.call("cuMemFree", address)

    def write(self, address: int, array: np.ndarray) -> None:
        flat = np.ascontiguousarray(array)
        if flat.nbytes:
            self.call("cuMemcpyHtoD", address, flat.ctypes.data, flat.nbytes)

    def read(self, address: int, array: np.ndarray) -> None:
        if array.nbytes:
            self.call("cuMemcpyDtoH", array.ctypes.data, address, array.nbytes)

    def guarded(self, array: np.ndarray) -> Guarded:
        return Guarded(self, array)

    # --- time -------------------------------------------------------------------------------

    def event(self) -> Any:
        return self.call("cuEventCreate", 0)

    def record(self, event: Any) -> None:
        self.call("cuEventRecord", event, 0)

    def milliseconds(self, first: Any, last: Any) -> float:
        self.call("cuEventSynchronize", last)
        return float(self.call("cuEventElapsedTime", first, last))

    def flush_l2(self) -> None:
        """Write twice the L2's size, so that nothing of a kernel's inputs is left in it."""
        size = 2 * self.attribute("L2_CACHE_SIZE")
        if self.flushed is None:
            self.flushed = self.allocate(size)
        self.call("cuMemsetD8Async", self.flushed, 0, size, 0)


class Guarded:
    """An array on the device, with bytes around it that tell who wrote beside it."""

    def __init__(self, gpu: Gpu, array: np.ndarray) -> None:
        self.gpu, self.like = gpu, array
        self.base = gpu.allocate(array.nbytes + 2 * GUARD)
        self.address = self.base + GUARD
        edge = np.full(GUARD, _PATTERN, np.uint8)
        gpu.write(self.base, edge)
        gpu.write(self.address, array)
        gpu.write(self.address + array.nbytes, edge)

    def read(self) -> np.ndarray:
        """What is there now. Raises OutOfBounds where a guard has changed."""
        for at, side in ((self.base, "before"), (self.address + self.like.nbytes, "behind")):
            edge = np.zeros(GUARD, np.uint8)
            self.gpu.read(at, edge)
            if (edge != _PATTERN).any():
                raise OutOfBounds(f"bytes {side} an array of {self.like.nbytes} were written")
        found = np.empty_like(self.like)
        self.gpu.read(self.address, found)
        return found

    def free(self) -> None:
        self.gpu.free(self.base)


def parameter_bytes(
    parameters: Sequence[Mapping[str, Any]], addresses: Sequence[int], gpu: Gpu
) -> list[bytes]:
    """The bytes of each parameter of a launch: an array's address, given bytes, a tensor map."""
    made: list[bytes] = []
    for one in parameters:
        if "array" in one:
            made.append(struct.pack("<Q", addresses[one["array"]] + one.get("offset", 0)))
        elif "map" in one:
            made.append(_tensor_map(one["map"], addresses, gpu))
        else:
            made.append(bytes.fromhex(one["bytes"]))
    return made


def _tensor_map(about: Mapping[str, Any], addresses: Sequence[int], gpu: Gpu) -> bytes:
    """A tensor map: its words with the array's address put in, or as the driver encodes it."""
    address = addresses[about["array"]] + about.get("offset", 0)
    if "words" in about:
        return struct.pack("<Q", address) + bytes.fromhex(about["words"])[8:]
    d = gpu.d

    def named(kind: str, prefix: str) -> Any:
        return getattr(getattr(d, f"CUtensorMap{kind}"), f"CU_TENSOR_MAP_{prefix}_{about[kind]}")

    rank = len(about["dims"])
    made = gpu.call(
        "cuTensorMapEncodeTiled", named("DataType", "DATA_TYPE"), rank, address,
        [d.cuuint64_t(n) for n in about["dims"]], [d.cuuint64_t(n) for n in about["strides"]],
        [d.cuuint32_t(n) for n in about["box"]], [d.cuuint32_t(1)] * rank,
        named("Interleave", "INTERLEAVE"), named("Swizzle", "SWIZZLE"),
        named("L2promotion", "L2_PROMOTION"), named("FloatOOBfill", "FLOAT_OOB_FILL"),
    )  # fmt: skip
    return ctypes.string_at(made.getPtr(), 128)


def _aligned(data: bytes) -> tuple[int, Any]:
    """The bytes at an address that is a multiple of 64, as tensor maps need it."""
    room = ctypes.create_string_buffer(len(data) + 64)
    address = -(-ctypes.addressof(room) // 64) * 64
    ctypes.memmove(address, data, len(data))
    return address, room
