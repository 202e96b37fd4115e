"""The tables of a file: strings, constants, globals' records and kernels' records."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from tile_cudatile.attrs import Dense, Float
from tile_cudatile.bytecode.sections import Section
from tile_cudatile.bytecode.wire import UINT32_LIMIT, Cursor
from tile_cudatile.errors import BytecodeError
from tile_cudatile.locations import DebugRecord
from tile_cudatile.types import Type


@dataclass
class Layout:
    """How a file orders its tables, kept so that it can be written again byte by byte."""

    sections: tuple[tuple[Section, int], ...] = ()  # in file order, with alignment (0: no flag)
    strings: tuple[bytes, ...] = ()
    types: tuple[Type, ...] = ()
    constants: tuple[bytes, ...] = ()  # raw entries
    # Which constant is which object: files may hold equal ones at several places.
    constant_index: tuple[tuple[Dense, int], ...] = ()
    # The bytes of numbers that have others than the writer would choose.
    spellings: tuple[tuple[Float, bytes], ...] = ()
    debug: tuple[DebugRecord | None, ...] = ()
    func_tail: bytes = b""  # behind the last kernel's record
    entry_flags: dict[str, int] = field(default_factory=dict)
    entry_debug: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class GlobalRecord:
    """An entry of the global section, by table indices."""

    name: int
    type: int
    constant: int
    alignment: int
    visibility: int
    is_constant: int


class Strings:
    """The string table."""

    def __init__(self, payload: Cursor | None) -> None:
        self._data = b""
        self._offsets: Sequence[int] = ()
        if payload is None:
            return
        count = payload.varint()
        if count == 0:
            return
        self._offsets = read_offsets(payload, count, 4, "strings")
        if not payload.remaining:
            return
        self._data = payload.take(payload.remaining)

    def __len__(self) -> int:
        return len(self._offsets)

    def raw(self, index: int) -> bytes:
        """String number `index` as bytes."""
        if index >= len(self._offsets):
            raise BytecodeError(f"string index {index} out of bounds")
        start = self._offsets[index]
        end = self._offsets[index + 1] if index + 1 < len(self._offsets) else len(self._data)
        # As in the reference reader, a string that ends before it starts goes on to the end.
        return self._data[start:end] if start <= end else self._data[start:]

    def __getitem__(self, index: int) -> str:
        return self.raw(index).decode("utf-8", "surrogateescape")


def read_offsets(payload: Cursor, count: int, width: int, what: str) -> Sequence[int]:
    """`count` aligned unsigned offsets of `width` bytes."""
    fits = payload.remaining // width
    if count > fits:
        raise payload.error(
            f"number of {what} ({count}) exceeds the maximum of {fits} that can fit in the "
            f"remaining payload of {payload.remaining} bytes."
        )
    payload.align(width)
    if not payload.remaining:
        raise BytecodeError()
    return struct.unpack(f"<{count}{'I' if width == 4 else 'Q'}", payload.take(count * width))


def read_constants(payload: Cursor) -> list[bytes]:
    """The raw entries of the constant section, each a size and as many bytes."""
    count = payload.varint(UINT32_LIMIT)
    if count == 0:
        return []
    payload.align(8)
    if payload.remaining // 8 < count:
        raise payload.error("insufficient data for constant indices")
    starts = struct.unpack(f"<{count}Q", payload.take(count * 8))
    total = payload.remaining
    entries: list[bytes] = []
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < count else total
        if end < start:
            raise payload.error(
                f"invalid constant start indices: end ({end}) is less than start ({start}) "
                f"for constant {index}"
            )
        if end > total:
            raise payload.error(
                f"constant {index} extends beyond available data: size={end - start}, "
                f"start={start}, total data size={total}"
            )
        entries.append(payload.data[payload.pos + start : payload.pos + end])
    return entries


_GLOBAL_FIELDS = (
    "failed to read global symbol name string.",
    "failed to read global value type",
    "failed to read global value constant index",
    "failed to read global alignment",
    "failed to read global symbol visibility",
    "failed to read global constant flag",
)


def read_globals(payload: Cursor, has_visibility: bool) -> list[GlobalRecord]:
    """The records of the global section."""
    try:
        count = payload.varint()
    except BytecodeError:
        raise payload.error("failed to read number of global.") from None
    size = 6 if has_visibility else 4
    fits = payload.remaining // size
    if count > fits:
        raise payload.error(
            f"number of globals ({count}) exceeds the maximum of {fits} that can fit in the "
            f"remaining payload of {payload.remaining} bytes."
        )
    records: list[GlobalRecord] = []
    for _ in range(count):
        fields = [0] * 6
        for position in range(size):
            try:
                fields[position] = payload.varint()
            except BytecodeError:
                raise payload.error(_GLOBAL_FIELDS[position]) from None
        records.append(GlobalRecord(*fields))
    return records
