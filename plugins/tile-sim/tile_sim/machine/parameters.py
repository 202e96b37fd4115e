"""From the arguments of a launch to parameter bytes and registered buffers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine.memory import Buffer, GlobalMemory
from tile_sim.machine.tensormap import TensorMap
from tile_sim.machine.wave import Settings
from tile_sim.program.layout import alignment_of, parameter_offsets, size_of
from tile_sim.program.program import Program
from tile_sim.program.types import TYPES
from tile_sim.ptx.syntax import Variable


class HostTensor(Protocol):
    """What is asked of a tensor of another library, such as a CPU tensor of torch."""

    shape: Any
    device: Any

    def data_ptr(self) -> int: ...
    def element_size(self) -> int: ...
    def stride(self) -> Sequence[int]: ...


Argument = np.ndarray | np.generic | int | float | bytes | TensorMap | HostTensor


#: Bytes of workspace for each multiprocessor. How many a kernel needs, tileiras' host code says
#: when it is loaded, which is not run; its group GEMM takes 48 KiB. More is out of bounds.
_WORKSPACE = 1 << 16
_MULTIPROCESSORS = Settings.sm_count


class HiddenFilled(Protocol):
    """What fills hidden parameters at a launch, as the host code of a cubin does."""

    def fill(
        self, entry: str, visible: bytes, hidden: Sequence[tuple[int, int]], workspace: int = 0
    ) -> list[bytes]:
        """The bytes of the hidden parameters of the given (size, alignment); `workspace` is the
        address of the memory that the kernel asked for, 0 if it did not."""
        ...


@dataclass(frozen=True)
class RawBuffer:
    """`size` bytes of this process at `address` that a kernel may access."""

    address: int
    size: int
    name: str = ""
    writable: bool = True


@dataclass(frozen=True)
class RawParameters:
    """Parameter bytes with real addresses in them, and the memory they may point into."""

    data: bytes
    buffers: tuple[RawBuffer | np.ndarray, ...]


def as_array(value: Any) -> Any:
    """A tensor of another library as a NumPy array on the same memory; the rest as it is.

    Its elements become unsigned integers where NumPy may not have the type: a kernel only sees
    bytes. Raises SimError (`launch`) for a tensor that is not in this process's memory.
    """
    if isinstance(value, np.ndarray) or not hasattr(value, "data_ptr"):
        return value
    if str(value.device) != "cpu":
        raise SimError("launch", f"a tensor on device {value.device}; it has to be on the CPU")
    width = int(value.element_size())
    shape = tuple(int(n) for n in value.shape)
    strides = tuple(int(n) * width for n in value.stride())
    interface = {
        "data": (int(value.data_ptr()), False), "shape": shape, "strides": strides,
        "typestr": f"<V{width}" if width > 8 else f"<u{width}", "version": 3,
    }  # fmt: skip
    return np.asarray(_Exposed(interface, value))


class _Exposed:
    """Memory described by `__array_interface__`; keeps its owner alive."""

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def byte_extent(array: np.ndarray) -> tuple[int, int]:
    """Address and bytes from the first to the last element of an array, gaps included."""
    low = high = int(array.__array_interface__["data"][0])
    if array.size == 0:
        return low, 0
    for count, stride in zip(array.shape, array.strides, strict=True):
        low += min(stride * (count - 1), 0)
        high += max(stride * (count - 1), 0)
    return low, high + array.itemsize - low


class Parameters:
    """The parameters of one launch. `release` unregisters what they point to."""

    def __init__(
        self,
        memory: GlobalMemory,
        program: Program,
        hidden: HiddenFilled | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.memory = memory
        self.names = names
        self.program = program
        self.hidden = hidden
        visible = len(program.visible) if hidden is not None else len(program.entry.params)
        #: How many parameters are given, and their bytes; what fills hidden ones does the rest.
        self.given = visible
        self.given_size = parameter_offsets(program.entry.params[:visible])[1]
        self.placed: list[Buffer] = []
        self._copies: list[tuple[np.ndarray, np.ndarray]] = []
        self._known: dict[tuple[int, int], Buffer] = {}

    def release(self) -> None:
        for buffer in self.placed:
            self.memory.remove(buffer)

    def write_back(self) -> None:
        """Copies of arrays that are not contiguous go back to their arrays."""
        for original, copy in self._copies:
            original[...] = copy

    # --- real addresses ---------------------------------------------------------------------

    def raw(self, given: RawParameters) -> np.ndarray:
        """The parameter bytes as given, their buffers registered."""
        wanted = self.given_size
        if len(given.data) != wanted:
            name = self.program.entry.name
            message = f"kernel {name!r} takes {wanted} bytes of parameters, got {len(given.data)}"
            raise SimError("launch", message)
        for name, address, size, writable in _merged(given.buffers):
            self.placed.append(self.memory.map(name, address, size, writable))
        raw = np.zeros(max(self.program.param_size, 1), np.uint8)
        raw[:wanted] = np.frombuffer(given.data, np.uint8)
        self._fill_hidden(raw)
        return raw

    def _fill_hidden(self, raw: np.ndarray) -> None:
        """What the host code makes of the other parameters."""
        params = self.program.entry.params[self.given :]
        if self.hidden is None or not params:
            return
        wanted = [(size_of(p), alignment_of(p)) for p in params]
        visible = raw[: self.given_size].tobytes()
        filled = self.hidden.fill(self.program.entry.name, visible, wanted, self._workspace())
        offsets = self.program.param_offsets[self.given :]
        for start, data in zip(offsets, filled, strict=True):
            raw[start : start + len(data)] = np.frombuffer(data, np.uint8)

    def _workspace(self) -> int:
        """The address of memory for a kernel that wants some for each of its CTAs."""
        if "minperctamemory" not in self.program.entry.directives:
            return 0
        room = np.zeros(_MULTIPROCESSORS * _WORKSPACE, np.uint8)
        buffer = self.memory.place("workspace", room)
        self.placed.append(buffer)
        return buffer.base

    # --- values -----------------------------------------------------------------------------

    def packed(self, args: Sequence[Argument]) -> np.ndarray:
        """The parameter bytes, laid out as the kernel declares them."""
        program = self.program
        params = program.entry.params[: self.given]
        if len(args) != len(params):
            raise SimError(
                "launch",
                f"kernel {program.entry.name!r} takes {len(params)} arguments, got {len(args)}",
            )
        raw = np.zeros(max(program.param_size, 1), np.uint8)
        for i, (param, value) in enumerate(zip(params, args, strict=True)):
            data = self._pack(i, param, as_array(value))
            start = program.param_offsets[i]
            raw[start : start + len(data)] = np.frombuffer(data, np.uint8)
        self._fill_hidden(raw)
        return raw

    def _pack(self, i: int, param: Variable, value: Any) -> bytes:
        size = size_of(param)
        if isinstance(value, TensorMap):
            data = value.encode(self._tensor_address(i, value))
            return data if param.shape else struct.pack("<Q", self._place_map(i, data))
        what = f"argument {i} ({param.name}, .{param.type})"
        if param.shape:
            return _by_value(what, value, size)
        if isinstance(value, np.ndarray) and value.ndim == 0 and param.type not in ("u64", "b64"):
            value = value[()]
        if isinstance(value, np.ndarray):
            if size != 8:
                raise SimError("launch", f"{what} is no pointer, got an array")
            return struct.pack("<Q", self._address(i, value))
        if isinstance(value, bytes):
            return _by_value(what, value, size)
        return _scalar(what, param.type, size, value)

    def _tensor_address(self, i: int, tensor: TensorMap) -> int:
        is_array = isinstance(tensor.array, np.ndarray)
        return self._address(i, tensor.array) if is_array else int(tensor.array)

    def _place_map(self, i: int, data: bytes) -> int:
        """A map passed by pointer lies in a buffer of its own."""
        raw = np.frombuffer(data, np.uint8).copy()
        buffer = self.memory.place(f"tensor map {i}", raw)
        self.placed.append(buffer)
        return buffer.base

    def _address(self, i: int, array: np.ndarray) -> int:
        """Register an array, in place where it is contiguous, and give its address."""
        key = (array.__array_interface__["data"][0], array.nbytes)
        if key in self._known and array.nbytes and array.flags.c_contiguous:
            return self._known[key].base
        if array.flags.c_contiguous:
            flat = array.reshape(-1).view(np.uint8)
        else:
            copy = np.ascontiguousarray(array)
            self._copies.append((array, copy))
            flat = copy.reshape(-1).view(np.uint8)
        name = f"argument {i}" if self.names is None else self.names[i]
        buffer = self.memory.place(name, flat, array.flags.writeable)
        self.placed.append(buffer)
        self._known[key] = buffer
        return buffer.base


def _merged(buffers: Sequence[RawBuffer | np.ndarray]) -> list[tuple[str, int, int, bool]]:
    """Name, address, size and writability of each region; those that overlap become one."""
    found: list[tuple[int, int, str, bool]] = []
    for i, buffer in enumerate(buffers):
        if isinstance(buffer, RawBuffer):
            name = buffer.name or f"buffer {i}"
            found.append((buffer.address, buffer.size, name, buffer.writable))
            continue
        array = as_array(buffer)
        if not isinstance(array, np.ndarray):
            raise SimError("launch", f"buffer {i}: {type(buffer).__name__} is no array")
        found.append((*byte_extent(array), f"buffer {i}", array.flags.writeable))
    merged: list[tuple[str, int, int, bool]] = []
    for address, size, name, writable in sorted(f for f in found if f[1] > 0):
        if address < 0 or address + size > 1 << 47:
            raise SimError("launch", f"{name}: {size} bytes at {address:#x} are no memory")
        if merged and merged[-1][1] + merged[-1][2] > address:
            first, start, length, both = merged[-1]
            end = max(start + length, address + size)
            merged[-1] = (f"{first}, {name}", start, end - start, both or writable)
        else:
            merged.append((name, address, size, writable))
    return merged


def _by_value(what: str, value: Any, size: int) -> bytes:
    data = value.tobytes() if isinstance(value, np.ndarray | np.generic) else value
    if not isinstance(data, bytes):
        raise SimError("launch", f"{what} needs {size} bytes, got {type(value).__name__}")
    if len(data) != size:
        raise SimError("launch", f"{what} needs {size} bytes, got {len(data)}")
    return data


def _scalar(what: str, name: str, size: int, value: Any) -> bytes:
    type_ = TYPES[name]
    if isinstance(value, np.generic):
        if value.dtype.itemsize == size:
            return value.tobytes()
        value = value.item()
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, float):
        if type_.dtype.kind == "f" or name.startswith("b"):
            return np.array(value, f"f{size}" if size >= 2 else "f2").tobytes()[:size]
        raise SimError("launch", f"{what} is an integer, got {value!r}")
    if not isinstance(value, int):
        raise SimError("launch", f"{what}: cannot pass {type(value).__name__}")
    if type_.dtype.kind == "f":
        return np.array(value, type_.dtype).tobytes()
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        raise SimError("launch", f"{what}: {value} does not fit {size} bytes")
    return (value % (1 << (8 * size))).to_bytes(size, "little")
