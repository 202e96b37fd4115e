"""Primitive encodings: LEB128 integers and fixed little-endian lists."""

from __future__ import annotations

import struct

from tile_cudatile.errors import BytecodeError

UINT32_LIMIT = 0xFFFFFFFE  # counts above this are refused
_MASK64 = (1 << 64) - 1
_LIST_FORMATS = {1: "b", 4: "i", 8: "q"}


class Cursor:
    """A position in a span of untrusted bytes.

    Every read checks its bounds. A read that fails raises `BytecodeError` without any line when
    only the enclosing level has words for it.
    """

    __slots__ = ("data", "end", "pos", "start")

    def __init__(self, data: bytes, start: int = 0, end: int | None = None) -> None:
        self.data = data
        self.start = start
        self.pos = start
        self.end = len(data) if end is None else end

    @property
    def offset(self) -> int:
        """Bytes read so far, relative to the start of the span."""
        return self.pos - self.start

    @property
    def remaining(self) -> int:
        """Bytes left."""
        return self.end - self.pos

    def error(self, message: str) -> BytecodeError:
        """The error `message` at the current offset."""
        return BytecodeError(self.at(message))

    def at(self, message: str) -> str:
        """`message` with the current offset."""
        return f"error at offset {self.pos - self.start}: {message}"

    def byte(self) -> int:
        """One byte."""
        if self.pos >= self.end:
            raise BytecodeError()
        value = self.data[self.pos]
        self.pos += 1
        return value

    def varint(self, limit: int = 0) -> int:
        """An unsigned LEB128 number of at most ten bytes, modulo 2**64."""
        pos, end, data = self.pos, self.end, self.data
        if pos >= end:
            raise BytecodeError()
        value = data[pos]
        self.pos = pos + 1
        if value > 127:
            value = self._long_varint(value & 0x7F)
        if limit and value > limit:
            raise self.error(
                "varint value exceeds maximum supported capacity. "
                f"(expected value less than {limit}, got {value})."
            )
        return value

    def _long_varint(self, value: int) -> int:
        shift = 7
        while True:
            if self.pos >= self.end or shift > 63:
                raise BytecodeError()
            byte = self.data[self.pos]
            self.pos += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 128:
                return value & _MASK64

    def svarint(self) -> int:
        """A zig-zag number, as a 64-bit pattern read as signed."""
        raw = self.varint()
        return (raw >> 1) ^ -(raw & 1)

    def fixed(self, size: int) -> int:
        """An unsigned little-endian number of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if size > self.end - self.pos:
            raise BytecodeError()
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def int_list(self, width: int) -> tuple[int, ...]:
        """A count and as many signed little-endian numbers of `width` bytes."""
        count = self.varint()
        if count > UINT32_LIMIT:
            raise self.error(f"array size in bytecode ({count}) exceeds maximum supported capacity")
        data = self.take(count * width)
        return struct.unpack(f"<{count}{_LIST_FORMATS[width]}", data)

    def align(self, alignment: int) -> None:
        """Skips pad bytes up to a multiple of `alignment` from the start of the span."""
        if alignment < 2:
            return
        padding = -(self.pos - self.start) % alignment
        if self.remaining == 0 or self.remaining < padding:
            raise BytecodeError()
        self.pos += padding


def encode_varint(value: int) -> bytes:
    """`value`, 0 <= value < 2**64, as LEB128 in the fewest bytes."""
    if value < 128:
        return bytes((value,))
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_svarint(value: int) -> bytes:
    """A signed 64-bit `value` as a zig-zag number."""
    return encode_varint(((value << 1) ^ (value >> 63)) & _MASK64)


def encode_int_list(values: tuple[int, ...], width: int) -> bytes:
    """A count and signed little-endian numbers of `width` bytes."""
    return encode_varint(len(values)) + struct.pack(
        f"<{len(values)}{_LIST_FORMATS[width]}", *values
    )
