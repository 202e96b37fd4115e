"""Stands for `cuda.bindings.driver`, NVIDIA's Python bindings of the CUDA driver, on the simulator.

    from tile_sim import bindings as driver

    error, = driver.cuInit(0)
    error, library = driver.cuLibraryLoadData(cubin, [], [], 0, [], [], 0)

Programs that launch cubins through the bindings run as they are, with no GPU: device memory is
memory of this process, streams are synchronous, cubins have their PTX inside. Functions and their
results are those of the bindings (a tuple, the error first); what is not here is no attribute. The
device is `DEVICE`, of the architecture that TILE_SIM_ARCH names (sm_90 without it). Events tell one
microsecond for 1000 warp instructions. What a kernel does wrong is CUDA_ERROR_ILLEGAL_ADDRESS or
CUDA_ERROR_LAUNCH_FAILED of every call after the launch, as on a GPU; `cuGetErrorString` has the
simulator's words.
"""

from __future__ import annotations

from tile_sim.bindings.constants import (
    CUdevice_attribute,
    CUfunction_attribute,
    CUlaunchAttribute,
    CUlaunchAttributeID,
    CUlaunchAttributeValue,
    CUlaunchConfig,
    CUresult,
    CUtensorMapDataType,
    CUtensorMapFloatOOBfill,
    CUtensorMapInterleave,
    CUtensorMapL2promotion,
    CUtensorMapSwizzle,
    cuuint32_t,
    cuuint64_t,
)
from tile_sim.bindings.device import DEVICE, Simulated
from tile_sim.bindings.functions import (
    cuCtxSetCurrent,
    cuCtxSynchronize,
    cuDeviceGet,
    cuDeviceGetAttribute,
    cuDeviceGetName,
    cuDevicePrimaryCtxRetain,
    cuDriverGetVersion,
    cuEventCreate,
    cuEventElapsedTime,
    cuEventRecord,
    cuEventSynchronize,
    cuFuncSetAttribute,
    cuGetErrorName,
    cuGetErrorString,
    cuInit,
    cuKernelGetFunction,
    cuLaunchKernel,
    cuLaunchKernelEx,
    cuLibraryGetKernel,
    cuLibraryLoadData,
    cuMemAlloc,
    cuMemcpyDtoH,
    cuMemcpyHtoD,
    cuMemFree,
    cuMemsetD8Async,
    cuTensorMapEncodeTiled,
)

#: Which the bindings themselves have not: whoever measures has to know.
SIMULATED = True

__all__ = [
    "DEVICE", "SIMULATED", "CUdevice_attribute", "CUfunction_attribute", "CUlaunchAttribute",
    "CUlaunchAttributeID", "CUlaunchAttributeValue", "CUlaunchConfig", "CUresult",
    "CUtensorMapDataType", "CUtensorMapFloatOOBfill", "CUtensorMapInterleave",
    "CUtensorMapL2promotion", "CUtensorMapSwizzle", "Simulated", "cuCtxSetCurrent",
    "cuCtxSynchronize", "cuDeviceGet", "cuDeviceGetAttribute", "cuDeviceGetName",
    "cuDevicePrimaryCtxRetain", "cuDriverGetVersion", "cuEventCreate", "cuEventElapsedTime",
    "cuEventRecord", "cuEventSynchronize", "cuFuncSetAttribute", "cuGetErrorName",
    "cuGetErrorString", "cuInit", "cuKernelGetFunction", "cuLaunchKernel", "cuLaunchKernelEx",
    "cuLibraryGetKernel", "cuLibraryLoadData", "cuMemAlloc", "cuMemFree", "cuMemcpyDtoH",
    "cuMemcpyHtoD", "cuMemsetD8Async", "cuTensorMapEncodeTiled", "cuuint32_t", "cuuint64_t",
]  # fmt: skip
