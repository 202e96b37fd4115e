"""The few entry points of the CUDA driver that cuTile calls, answered by the simulator.

cuTile asks one function, `cuGetProcAddress`, for all others (CUDA driver API, "Driver Entry Point
Access"). The stand-in is such a function, made with ctypes. Device memory is memory of this
process, streams are synchronous, and a launch runs before it returns.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from typing import Any

from tile_core.elf import MAGIC, size_in_memory
from tile_sim.chip import chip_of
from tile_sim.errors import SimError
from tile_sim.machine.parameters import RawBuffer

_SUCCESS, _UNKNOWN, _NOT_SUPPORTED = 0, 999, 801
_VERSION = 13040
_CONTEXT, _MEMORY_DEVICE = 0x51, 2
_P, _I, _U, _SIZE = c.c_void_p, c.c_int, c.c_uint, c.c_size_t
_OUT, _OUT_I = c.POINTER(c.c_uint64), c.POINTER(c.c_int)

# CUdevice_attribute: what is asked and does not depend on the architecture.
_ATTRIBUTES = {1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 10: 32}
_MULTIPROCESSORS, _MAJOR, _MINOR = 16, 75, 76
# CUpointer_attribute: context, memory type, device pointer, device ordinal.
_POINTER_CONTEXT, _POINTER_TYPE, _POINTER_DEVICE, _POINTER_ORDINAL = 1, 2, 3, 9
# CUlaunchAttributeID.
_IGNORED_ATTRIBUTES = {0, 6}
_CLUSTER_ATTRIBUTE = 4


class _Attribute(c.Structure):
    _fields_ = (("id", _I), ("pad", _I), ("value", _U * 16))


class _Config(c.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", _U * 3), ("block", _U * 3), ("shared", _U), ("stream", _P),
        ("attributes", c.POINTER(_Attribute)), ("count", _U),
    )  # fmt: skip


class DriverError(Exception):
    """Something of the CUDA driver that the simulator has not got."""


Image = str | bytes
Run = Callable[[Image, str, tuple[int, int, int], "tuple[int, int, int] | None", int], None]


class Driver:
    """Answers `cuGetProcAddress`.

    `run(image, kernel, grid, cluster, parameters)` launches: `image` is what the compile hook
    returned, PTX text or a cubin, `parameters` the address of an array of pointers to the
    parameters. `failure` is the exception that made an entry point fail.
    """

    def __init__(self, capability: tuple[int, int], run: Run) -> None:
        self.capability = capability
        self.run = run
        self.failure: BaseException | None = None
        self.capturing = False
        self._images: list[Image] = []
        self._kernels: list[tuple[Image, str]] = []
        self._memory: dict[int, c.Array[c.c_uint8]] = {}
        self._callbacks: dict[str, Any] = {}
        self._message = c.c_char_p(b"not available in the simulator")
        prototype = c.CFUNCTYPE(_I, c.c_char_p, _OUT, _I, c.c_uint64, _OUT_I)
        self.lookup = prototype(self._get_proc_address)
        self._pointer = c.c_void_p(c.cast(self.lookup, _P).value)

    @property
    def address(self) -> int:
        """Where the pointer to `cuGetProcAddress` lies."""
        return c.addressof(self._pointer)

    @property
    def allocations(self) -> list[RawBuffer]:
        """Memory that was allocated through the driver."""
        return [RawBuffer(at, len(data), "cuMemAlloc") for at, data in self._memory.items()]

    def _get_proc_address(
        self, name: bytes, out: Any, version: int, flags: int, status: Any
    ) -> int:
        out[0] = c.cast(self._entry(name.decode()), _P).value or 0
        if status:
            status[0] = 0
        return _SUCCESS

    def _entry(self, name: str) -> Any:
        if name not in self._callbacks:
            types, method = _ENTRIES.get(name, ((), None))
            callback = c.CFUNCTYPE(_I, *types)(self._guarded(name, method))
            # For good: at the end of the process kernels are still unloaded through it.
            c.pythonapi.Py_IncRef(c.py_object(callback))
            self._callbacks[name] = callback
        return self._callbacks[name]

    def _guarded(self, name: str, method: Any) -> Callable[..., int]:
        """Exceptions cannot pass through C: they are kept, and an error code returned."""
        # By themselves: when the last kernels are unloaded, this module's names are gone already.
        unknown_entry, success, unsupported, unknown = (
            DriverError, _SUCCESS, _NOT_SUPPORTED, _UNKNOWN
        )  # fmt: skip

        def call(*args: Any) -> int:
            try:
                if method is None:
                    raise unknown_entry(f"{name} of the CUDA driver is not available in tile-sim")
                return method(self, *args) or success
            except unknown_entry as error:
                self.failure = error
                return unsupported
            except BaseException as error:
                self.failure = error
                return unknown

        return call

    # --- device and context -----------------------------------------------------------------

    def nothing(self, *args: Any) -> None:
        """Streams are synchronous, there is one context: nothing to do."""

    def version(self, out: Any) -> None:
        out[0] = _VERSION

    def one_device(self, out: Any) -> None:
        out[0] = 1

    def device(self, out: Any, *which: Any) -> None:
        out[0] = 0

    def attribute(self, out: Any, which: int, device: int) -> None:
        (major, minor), chip = self.capability, chip_of(self.capability)
        known = {**_ATTRIBUTES, _MULTIPROCESSORS: int(chip.sms), _MAJOR: major, _MINOR: minor}
        if which not in known:
            raise DriverError(f"device attribute {which} is not known in tile-sim")
        out[0] = known[which]

    def context(self, out: Any, *of: Any) -> None:
        out[0] = _CONTEXT

    def context_of(self, what: int, out: Any) -> None:
        out[0] = _CONTEXT

    def is_capturing(self, stream: int, out: Any) -> None:
        out[0] = int(self.capturing)

    def error_string(self, code: int, out: Any) -> None:
        out[0] = c.cast(self._message, _P).value

    def pointer_attribute(self, out: int, which: int, address: int) -> None:
        if which in (_POINTER_CONTEXT, _POINTER_DEVICE):
            c.cast(out, _OUT)[0] = _CONTEXT if which == _POINTER_CONTEXT else address
        elif which in (_POINTER_TYPE, _POINTER_ORDINAL):
            c.cast(out, _OUT_I)[0] = _MEMORY_DEVICE if which == _POINTER_TYPE else 0
        else:
            raise DriverError(f"pointer attribute {which} is not known in tile-sim")

    # --- memory -----------------------------------------------------------------------------

    def allocate(self, out: Any, size: int) -> None:
        data = (c.c_uint8 * max(size, 1))()
        self._memory[c.addressof(data)] = data
        out[0] = c.addressof(data)

    def free(self, address: int) -> None:
        self._memory.pop(address or 0, None)

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        c.memmove(to, source, size)

    # --- kernels ----------------------------------------------------------------------------

    def load(self, out: Any, image: int, *rest: Any) -> None:
        self._images.append(_image_at(image))
        out[0] = len(self._images)

    def kernel(self, out: Any, library: int, name: bytes) -> None:
        self._kernels.append((self._images[library - 1], name.decode()))
        out[0] = len(self._kernels)

    def function(self, out: Any, kernel: int) -> None:
        out[0] = kernel

    def launch(self, config: Any, function: int, parameters: int, extra: int) -> None:
        given = config.contents
        cluster = None
        for i in range(given.count):
            attribute = given.attributes[i]
            if attribute.id == _CLUSTER_ATTRIBUTE:
                x, y, z = attribute.value[:3]
                cluster = (x, y, z)
            elif attribute.id not in _IGNORED_ATTRIBUTES:
                raise DriverError(f"launch attribute {attribute.id} is not known in tile-sim")
        if extra:
            raise DriverError("launches with packed parameters are not available in tile-sim")
        x, y, z = given.grid
        self._run(function, (x, y, z), cluster, parameters)

    def launch_kernel(self, function: int, *given: int) -> None:
        """The older entry point: grid, block, shared bytes, stream, parameters, extra."""
        if given[9]:
            raise DriverError("launches with packed parameters are not available in tile-sim")
        x, y, z = given[:3]
        self._run(function, (x, y, z), None, given[8])

    def _run(
        self, function: int, grid: tuple[int, int, int], cluster: Any, parameters: int
    ) -> None:
        """Launch; what a kernel does wrong is no error of the launch, as on a GPU, where it comes
        up later. cuTile ends the process where a launch that uses its stream buffers fails."""
        try:
            self.run(*self._kernels[function - 1], grid, cluster, parameters)
        except SimError as error:
            self.failure = self.failure or error


def _image_at(address: int) -> Image:
    """PTX text, which ends with a zero, or a cubin, which says itself how long it is."""
    if c.string_at(address, len(MAGIC)) != MAGIC:
        return c.string_at(address).decode()
    return c.string_at(address, size_in_memory(lambda at, size: c.string_at(address + at, size)))


_NOTHING = Driver.nothing
# Argument types and what answers. Anything else that is called fails with its name.
_ENTRIES: dict[str, tuple[tuple[Any, ...], Any]] = {
    "cuInit": ((_U,), _NOTHING),
    "cuDriverGetVersion": ((_OUT_I,), Driver.version),
    "cuDeviceGetCount": ((_OUT_I,), Driver.one_device),
    "cuDeviceGet": ((_OUT_I, _I), Driver.device),
    "cuDeviceGetAttribute": ((_OUT_I, _I, _I), Driver.attribute),
    "cuDevicePrimaryCtxRetain": ((_OUT, _I), Driver.context),
    "cuCtxGetCurrent": ((_OUT,), Driver.context),
    "cuCtxSetCurrent": ((_P,), _NOTHING),
    "cuCtxPushCurrent": ((_P,), _NOTHING),
    "cuCtxPopCurrent": ((_OUT,), Driver.context),
    "cuCtxGetDevice": ((_OUT_I, _P), Driver.device),
    "cuCtxGetId": ((_P, _OUT), Driver.context_of),
    "cuCtxSynchronize": ((), _NOTHING),
    "cuStreamGetCtx": ((_P, _OUT), Driver.context_of),
    "cuStreamGetId": ((_P, _OUT), Driver.context_of),
    "cuStreamIsCapturing": ((_P, _OUT_I), Driver.is_capturing),
    "cuStreamCreate": ((_OUT, _U), Driver.context),
    "cuStreamDestroy": ((_P,), _NOTHING),
    "cuStreamSynchronize": ((_P,), _NOTHING),
    "cuStreamWaitEvent": ((_P, _P, _U), _NOTHING),
    "cuEventCreate": ((_OUT, _U), Driver.context),
    "cuEventDestroy": ((_P,), _NOTHING),
    "cuEventQuery": ((_P,), _NOTHING),
    "cuEventRecord": ((_P, _P), _NOTHING),
    "cuGetErrorString": ((_I, _OUT), Driver.error_string),
    "cuPointerGetAttribute": ((_P, _I, c.c_uint64), Driver.pointer_attribute),
    "cuMemAlloc": ((_OUT, _SIZE), Driver.allocate),
    "cuMemAllocHost": ((_OUT, _SIZE), Driver.allocate),
    "cuMemFree": ((c.c_uint64,), Driver.free),
    "cuMemFreeHost": ((c.c_uint64,), Driver.free),
    "cuMemcpyHtoDAsync": ((c.c_uint64, c.c_uint64, _SIZE, _P), Driver.copy),
    "cuLibraryLoadData": ((_OUT, _P), Driver.load),
    "cuLibraryUnload": ((_P,), _NOTHING),
    "cuLibraryGetKernel": ((_OUT, c.c_uint64, c.c_char_p), Driver.kernel),
    "cuKernelGetFunction": ((_OUT, c.c_uint64), Driver.function),
    "cuLaunchKernel": ((c.c_uint64, *[_U] * 7, _P, _P, _P), Driver.launch_kernel),
    "cuLaunchKernelEx": ((c.POINTER(_Config), c.c_uint64, _P, _P), Driver.launch),
}
