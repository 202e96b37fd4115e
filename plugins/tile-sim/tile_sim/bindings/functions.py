"""The functions, under the driver's names and with the bindings' results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from tile_sim.bindings.constants import (
    CUdevice_attribute,
    CUlaunchAttributeID,
    CUlaunchConfig,
    CUresult,
)
from tile_sim.bindings.device import DEVICE, Failed, Kernel
from tile_sim.errors import SimError
from tile_sim.machine.tensormap import TensorMap

_VERSION = 13040
_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16")
_SWIZZLES = ("none", "32B", "64B", "128B")
_PROMOTIONS = ("none", "64B", "128B", "256B")
_FILLS = ("zero", "nan")
_said: dict[int, str] = {}


def _answers(function: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """A tuple whose first is the error; the rest what the function returns."""

    @wraps(function)
    def call(*args: Any) -> tuple[Any, ...]:
        try:
            if DEVICE.lost is not None:
                raise DEVICE.lost
            found = function(*args)
        except Failed as error:
            status = CUresult[error.name]
            _said[int(status)] = str(error)
            return (status, None)
        if found is None:
            return (CUresult.CUDA_SUCCESS,)
        return (CUresult.CUDA_SUCCESS, found)

    return call


def cuGetErrorName(status: Any) -> tuple[Any, Any]:  # noqa: N802 - the driver's names
    return CUresult.CUDA_SUCCESS, CUresult(int(status)).name.encode()


def cuGetErrorString(status: Any) -> tuple[Any, Any]:  # noqa: N802
    return CUresult.CUDA_SUCCESS, _said.get(int(status), "").encode()


@_answers
def cuInit(flags: int) -> None:  # noqa: N802
    return None


@_answers
def cuDriverGetVersion() -> int:  # noqa: N802
    return _VERSION


@_answers
def cuDeviceGet(ordinal: int) -> int:  # noqa: N802
    if ordinal != 0:
        raise Failed("CUDA_ERROR_INVALID_VALUE", "there is one simulated device")
    return 0


@_answers
def cuDeviceGetName(length: int, device: Any) -> bytes:  # noqa: N802
    return DEVICE.name.encode()


@_answers
def cuDeviceGetAttribute(which: Any, device: Any) -> int:  # noqa: N802
    prefix = "CU_DEVICE_ATTRIBUTE_"
    major, minor = DEVICE.capability
    known = {
        "CLOCK_RATE": DEVICE.mhz * 1000, "MULTIPROCESSOR_COUNT": DEVICE.sms,
        "MEMORY_CLOCK_RATE": 1_000_000, "L2_CACHE_SIZE": DEVICE.l2,
        "COMPUTE_CAPABILITY_MAJOR": major, "COMPUTE_CAPABILITY_MINOR": minor,
    }  # fmt: skip
    return known[CUdevice_attribute(which).name.removeprefix(prefix)]


@_answers
def cuDevicePrimaryCtxRetain(device: Any) -> int:  # noqa: N802
    return 1


@_answers
def cuCtxSetCurrent(context: Any) -> None:  # noqa: N802
    return None


@_answers
def cuCtxSynchronize() -> None:  # noqa: N802
    return None


# --- memory ---------------------------------------------------------------------------------------


@_answers
def cuMemAlloc(size: int) -> int:  # noqa: N802
    return DEVICE.allocate(size)


@_answers
def cuMemFree(address: Any) -> None:  # noqa: N802
    DEVICE.free(int(address))


@_answers
def cuMemcpyHtoD(to: Any, source: Any, size: int) -> None:  # noqa: N802
    ctypes.memmove(DEVICE.span(int(to), size), int(source), size)


@_answers
def cuMemcpyDtoH(to: Any, source: Any, size: int) -> None:  # noqa: N802
    ctypes.memmove(int(to), DEVICE.span(int(source), size), size)


@_answers
def cuMemsetD8Async(address: Any, value: int, size: int, stream: Any) -> None:  # noqa: N802
    ctypes.memset(DEVICE.span(int(address), size), value, size)


@_answers
def cuTensorMapEncodeTiled(  # noqa: N802
    kind: Any, rank: int, address: Any, dims: Sequence[Any], strides: Sequence[Any],
    box: Sequence[Any], element_strides: Sequence[Any], interleave: Any, swizzle: Any,
    promotion: Any, fill: Any,
) -> Any:  # fmt: skip
    """A map with the words that NVIDIA's own tools write; an object with `getPtr`."""
    try:
        tensor = TensorMap(
            int(address), tuple(map(int, box)), tuple(map(int, dims)), tuple(map(int, strides)),
            tuple(map(int, element_strides)), type=_TYPES[int(kind)],
            swizzle=_SWIZZLES[int(swizzle)], fill=_FILLS[int(fill)],
            l2_promotion=_PROMOTIONS[int(promotion)],
        )  # fmt: skip
        return _Map(tensor.encode(int(address)))
    except SimError as error:
        raise Failed("CUDA_ERROR_INVALID_VALUE", str(error)) from error


class _Map:
    def __init__(self, words: bytes) -> None:
        self._words = ctypes.create_string_buffer(words, len(words))

    def getPtr(self) -> int:  # noqa: N802 - the bindings' name
        return ctypes.addressof(self._words)


# --- kernels --------------------------------------------------------------------------------------


@_answers
def cuLibraryLoadData(image: bytes, *options: Any) -> Any:  # noqa: N802
    return DEVICE.load(bytes(image))


@_answers
def cuLibraryGetKernel(library: Any, name: bytes) -> Kernel:  # noqa: N802
    return DEVICE.kernel(library, name.decode())


@_answers
def cuKernelGetFunction(kernel: Kernel) -> Kernel:  # noqa: N802
    return kernel


@_answers
def cuFuncSetAttribute(function: Kernel, which: Any, value: int) -> None:  # noqa: N802
    return None


@_answers
def cuLaunchKernel(function: Kernel, *given: Any) -> None:  # noqa: N802
    gx, gy, gz, bx, by, bz, shared, _stream, parameters, extra = given
    if extra:
        raise Failed("CUDA_ERROR_INVALID_VALUE", "packed parameters are not simulated")
    DEVICE.launch(function, (gx, gy, gz), (bx, by, bz), shared, None, int(parameters))


@_answers
def cuLaunchKernelEx(  # noqa: N802
    config: CUlaunchConfig, function: Kernel, parameters: Any, extra: Any
) -> None:
    cluster = None
    for attribute in config.attrs[: config.numAttrs]:
        if attribute.id != CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            raise Failed("CUDA_ERROR_INVALID_VALUE", f"attribute {attribute.id} is not simulated")
        extent = attribute.value.clusterDim
        cluster = extent.x, extent.y, extent.z
    grid = config.gridDimX, config.gridDimY, config.gridDimZ
    block = config.blockDimX, config.blockDimY, config.blockDimZ
    DEVICE.launch(function, grid, block, config.sharedMemBytes, cluster, int(parameters))


# --- events ---------------------------------------------------------------------------------------


class _Event:
    us = 0.0


@_answers
def cuEventCreate(flags: int) -> _Event:  # noqa: N802
    return _Event()


@_answers
def cuEventRecord(event: _Event, stream: Any) -> None:  # noqa: N802
    event.us = DEVICE.us


@_answers
def cuEventSynchronize(event: _Event) -> None:  # noqa: N802
    return None


@_answers
def cuEventElapsedTime(first: _Event, last: _Event) -> float:  # noqa: N802
    return (last.us - first.us) / 1000
