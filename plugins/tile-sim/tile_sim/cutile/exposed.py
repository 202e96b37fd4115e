"""CPU arrays shown to cuTile as device arrays, through DLPack."""

from __future__ import annotations

import ctypes as c
import re
from typing import Any

import numpy as np

_CUDA = 2
# DLDataTypeCode by the name of a type without its width, and of the narrow types.
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
_NARROW = {
    "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8), "float8_e8m0fnu": (14, 8),
}  # fmt: skip
_NAME = re.compile(r"(bfloat|float|uint|int)(\d+)$")


class _Tensor(c.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32),
        ("ndim", c.c_int32), ("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16),
        ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    )  # fmt: skip


class _Managed(c.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", _Tensor), ("context", c.c_void_p), ("deleter", c.c_void_p))


_DELETER = c.CFUNCTYPE(None, c.c_void_p)(lambda managed: None)
_new_capsule = c.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)


class Exposed:
    """An array of this process that says it lies on CUDA device 0.

    `array` is a NumPy array, or a CPU tensor with torch's attributes. It has to outlive the launch
    that it is passed to.
    """

    def __init__(self, array: Any) -> None:
        if isinstance(array, np.ndarray):
            address, width = array.__array_interface__["data"][0], array.itemsize
            strides = [_whole(stride, width) for stride in array.strides]
            name = array.dtype.name
        else:
            address, strides = array.data_ptr(), array.stride()
            name = str(array.dtype).rsplit(".", 1)[-1]
        code, bits = _type_of(name)
        rank = len(array.shape)
        self.shape = (c.c_int64 * rank)(*array.shape)
        self.strides = (c.c_int64 * rank)(*strides)
        tensor = _Tensor(address, _CUDA, 0, rank, code, bits, 1, self.shape, self.strides, 0)
        self._managed = _Managed(tensor, None, c.cast(_DELETER, c.c_void_p))

    @staticmethod
    def of(array: Any) -> Exposed:
        """`array`, shown under its own type's name, which is what messages say."""
        name = type(array).__name__
        if name not in _TYPES:
            _TYPES[name] = type(name, (Exposed,), {})
        return _TYPES[name](array)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, 0

    def __dlpack__(self, **options: Any) -> Any:
        return _new_capsule(c.addressof(self._managed), b"dltensor", None)


_TYPES: dict[str, type[Exposed]] = {}


def is_array(value: Any) -> bool:
    """Whether a kernel argument is an array on the CPU."""
    if isinstance(value, np.ndarray):
        return True
    return hasattr(value, "data_ptr") and str(getattr(value, "device", "")) == "cpu"


def _whole(stride: int, width: int) -> int:
    elements, rest = divmod(stride, width)
    if rest:
        raise TypeError(f"a stride of {stride} bytes is no multiple of elements of {width} bytes")
    return elements


def _type_of(name: str) -> tuple[int, int]:
    """DLPack code and bits."""
    if name == "bool":
        return _CODES["bool"], 8
    if name in _NARROW:
        return _NARROW[name]
    found = _NAME.match(name)
    if found is None:
        raise TypeError(f"arrays of {name} cannot be passed to a tile kernel")
    return _CODES[found[1]], int(found[2])
