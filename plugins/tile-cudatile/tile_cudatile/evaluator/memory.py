"""Simulated global memory: the buffers of the arguments at addresses of our own."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_cudatile.evaluator.errors import EvaluationError
from tile_cudatile.evaluator.formats import Array, decode, dtype_of, encode, memory_bytes
from tile_cudatile.types import F4E2M1FN, F8E5M3FNU, I1, I4, Scalar

FIRST_ADDRESS = 1 << 32
ALIGNMENT = 1 << 12  # of every buffer; between two of them lies at least as much


@dataclass
class Buffer:
    """Consecutive bytes at address `base`. `owners` are kept alive with it."""

    base: int
    data: Array  # uint8
    writable: bool
    owners: tuple[Any, ...] = ()


class Memory:
    """Buffers in address order.

    Arrays that overlap in the host's memory overlap here too. Addresses depend on nothing but
    the order in which buffers are added.
    """

    def __init__(self) -> None:
        self._buffers: list[Buffer] = []
        self._next = FIRST_ADDRESS

    def add_arrays(self, arrays: list[Array]) -> list[int]:
        """Makes the arrays accessible; gives the address of each."""
        spans = [(a.ctypes.data, a.ctypes.data + a.nbytes) for a in arrays]
        groups: list[list[int]] = []
        end = -1
        for index in sorted(range(len(arrays)), key=lambda i: (spans[i][0], -spans[i][1])):
            if spans[index][0] >= end or arrays[index].nbytes == 0:
                groups.append([])
            groups[-1].append(index)
            end = max(end, spans[index][1])
        addresses = [0] * len(arrays)
        for group in sorted(groups, key=min):
            self._add_group(group, arrays, spans, addresses)
        return addresses

    def _add_group(
        self,
        group: list[int],
        arrays: list[Array],
        spans: list[tuple[int, int]],
        addresses: list[int],
    ) -> None:
        start, end = min(spans[i][0] for i in group), max(spans[i][1] for i in group)
        cells: Any = (ctypes.c_uint8 * (end - start)).from_address(start)
        data = np.frombuffer(cells, np.uint8) if end > start else np.zeros(0, np.uint8)
        writable = all(arrays[i].flags.writeable for i in group)
        buffer = Buffer(self._next, data, writable, tuple(arrays[i] for i in group))
        self._place(buffer)
        for index in group:
            addresses[index] = buffer.base + spans[index][0] - start

    def allocate(self, size: int, alignment: int = 1) -> int:
        """New zeroed bytes; gives their address."""
        step = max(alignment, ALIGNMENT)
        self._next = -(-self._next // step) * step
        buffer = Buffer(self._next, np.zeros(size, np.uint8), True)
        self._place(buffer)
        return buffer.base

    def _place(self, buffer: Buffer) -> None:
        self._buffers.append(buffer)
        self._next = (buffer.base + len(buffer.data) + 2 * ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT

    def find(self, lowest: int, highest: int, what: str) -> Buffer:
        """The buffer that holds all bytes from `lowest` to `highest`, inclusive."""
        for buffer in self._buffers:
            if buffer.base <= lowest and highest < buffer.base + len(buffer.data):
                return buffer
        raise EvaluationError(
            f"'cuda_tile.{what}' op accesses address {lowest:#x} to {highest:#x}, outside of "
            "every buffer or across two"
        )

    def load(self, addresses: Array, element: Scalar, what: str) -> Array:
        """The elements at the given byte addresses, all in one buffer or in several."""
        if element == F4E2M1FN:
            raise EvaluationError(f"'cuda_tile.{what}' op cannot address single f4E2M1FN numbers")
        addresses = np.asarray(addresses)
        if addresses.size == 0:
            return np.zeros(addresses.shape, dtype_of(element))
        size = memory_bytes(element)
        low, high = int(addresses.min()), int(addresses.max()) + size - 1
        try:
            buffer = self.find(low, high, what)
        except EvaluationError:
            if addresses.size == 1:
                raise
            return self._load_apart(addresses, element, what)
        return gather(buffer, addresses - buffer.base, element)

    def _load_apart(self, addresses: Array, element: Scalar, what: str) -> Array:
        flat = addresses.ravel()
        found = np.empty(flat.shape, dtype_of(element))
        for index, address in enumerate(flat):
            found[index] = self.load(np.asarray(address), element, what)
        return found.reshape(addresses.shape)

    def store(self, addresses: Array, values: Array, element: Scalar, what: str) -> None:
        """Writes elements one after the other."""
        if element == F4E2M1FN:
            raise EvaluationError(f"'cuda_tile.{what}' op cannot address single f4E2M1FN numbers")
        addresses = np.asarray(addresses).ravel()
        values = np.broadcast_to(values, addresses.shape) if np.ndim(values) == 0 else values
        if addresses.size == 0:
            return
        size = memory_bytes(element)
        low, high = int(addresses.min()), int(addresses.max()) + size - 1
        try:
            buffer = self.find(low, high, what)
        except EvaluationError:
            if addresses.size == 1:
                raise
            for address, value in zip(addresses, np.ravel(values), strict=True):
                self.store(np.asarray(address), np.asarray(value), element, what)
            return
        self.check_writable(buffer, what)
        scatter(buffer, addresses - buffer.base, np.ravel(values), element)

    def check_writable(self, buffer: Buffer, what: str) -> None:
        """Raises if the buffer is a read-only array."""
        if not buffer.writable:
            raise EvaluationError(f"'cuda_tile.{what}' op writes to a read-only array")


def _plain(element: Scalar) -> bool:
    """Whether the held form is the memory form."""
    return element not in (I1, I4, F4E2M1FN, F8E5M3FNU)


def gather(buffer: Buffer, offsets: Array, element: Scalar) -> Array:
    """Elements at byte offsets of a buffer."""
    size = memory_bytes(element)
    if _plain(element) and _aligned(buffer, offsets, size):
        return _elements(buffer, element)[offsets // size]
    cells = buffer.data[np.asarray(offsets)[..., None] + np.arange(size)]
    return decode(cells, element)


def scatter(buffer: Buffer, offsets: Array, values: Array, element: Scalar) -> None:
    """Writes elements at byte offsets of a buffer; the last of equal offsets wins."""
    size = memory_bytes(element)
    if _plain(element) and _aligned(buffer, offsets, size):
        _elements(buffer, element)[offsets // size] = values
    else:
        buffer.data[np.asarray(offsets)[..., None] + np.arange(size)] = encode(values, element)


def _aligned(buffer: Buffer, offsets: Array, size: int) -> bool:
    return size == 1 or not np.any(np.asarray(offsets) % size)


def _elements(buffer: Buffer, element: Scalar) -> Array:
    dtype = dtype_of(element)
    return buffer.data[: len(buffer.data) // dtype.itemsize * dtype.itemsize].view(dtype)
