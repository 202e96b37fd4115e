"""The debug section: for every kernel, the location of the kernel and of each operation."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import TypeVar

from tile_cudatile.bytecode.tables import Strings, read_offsets
from tile_cudatile.bytecode.wire import Cursor
from tile_cudatile.errors import BytecodeError
from tile_cudatile.locations import (
    DECLARATION,
    UNKNOWN,
    CallSite,
    CompileUnit,
    DebugLoc,
    DebugRecord,
    File,
    LexicalBlock,
    Location,
    Scope,
    Subprogram,
    Unknown,
)
from tile_cudatile.versions import V13_5, Version

R = TypeVar("R", bound=DebugRecord)
_SCOPES = (Subprogram, LexicalBlock)
_LOCATIONS = (Unknown, DebugLoc, CallSite)
_MAX_DEPTH = 64  # of references to records that come later; real files have none


class DebugInfo:
    """The decoded section. Without one, every location is unknown."""

    def __init__(self, payload: Cursor | None, strings: Strings, version: Version) -> None:
        self._strings = strings
        self._version = version
        self._lists: Sequence[int] = ()
        self._indices: Sequence[int] = ()
        self._offsets: Sequence[int] = ()
        self._records: Cursor | None = None
        self._busy: set[int] = set()
        if payload is not None:
            self._read_tables(payload)
        self._cache: list[DebugRecord | None] = [None] * len(self._offsets)
        self._tried = 0

    def _read_tables(self, payload: Cursor) -> None:
        count = _varint(payload, "failed to read total number of operations with debug info")
        _check_count(payload, count, 4, "operations with debug info")
        self._lists = _array(payload, count, 4, "debug info index offset")
        count = _varint(payload, "failed to read total number of debug info indices")
        _check_count(payload, count, 8, "debug info indices")
        self._indices = _array(payload, count, 8, "debug info indices")
        count = _varint(payload, "failed to read total number of debug info attributes")
        try:
            self._offsets = read_offsets(payload, count, 4, "debug info attributes")
        except BytecodeError as error:
            if error.lines:
                raise
            raise payload.error("failed to read debug info offset pointer") from None
        self._records = payload

    def all(self) -> tuple[DebugRecord | None, ...]:
        """Every record of the table, None where it is broken."""
        return tuple(self._record(i) for i in range(len(self._offsets)))

    def locations(self, operation: int) -> Locations:
        """The locations of the kernel whose record names debug operation number `operation`."""
        return Locations(self, operation)

    def list_start(self, operation: int) -> int | None:
        """Where the list of debug operation `operation` (from 1) starts in the indices."""
        return self._lists[operation - 1] if operation <= len(self._lists) else None

    @property
    def indices(self) -> Sequence[int]:
        """The lists of all debug operations, one behind the other."""
        return self._indices

    def location(self, index: int) -> Location | None:
        """Location number `index`, 0 being unknown; None if it is broken or no location."""
        return self._as(_LOCATIONS, index)

    def _as(self, kinds: tuple[type[R], ...], index: int) -> R | None:
        record = UNKNOWN if index == 0 else self._record(index - 1)
        return record if isinstance(record, kinds) else None

    def _record(self, index: int) -> DebugRecord | None:
        if index >= len(self._cache):
            return None
        while self._tried < index and not self._busy:
            # In order, so that a chain of references to earlier records needs no recursion.
            self._tried += 1
            self._record(self._tried - 1)
        found = self._cache[index]
        if found is None and index not in self._busy and len(self._busy) < _MAX_DEPTH:
            self._busy.add(index)
            try:
                found = self._cache[index] = self._decode(index)
            except BytecodeError:
                found = None
            finally:
                self._busy.discard(index)
        return found

    def _decode(self, index: int) -> DebugRecord | None:
        records = self._records
        assert records is not None
        size = records.end - records.pos
        start = self._offsets[index]
        end = self._offsets[index + 1] if index + 1 < len(self._offsets) else size
        if end < start or end > size:
            return None
        cursor = Cursor(records.data, records.pos + start, records.pos + end)
        tag = cursor.varint() & 0xFF
        return _RECORDS.get(tag, DebugInfo._unknown)(self, cursor)

    def _need(self, kinds: tuple[type[R], ...], cursor: Cursor) -> R:
        found = self._as(kinds, cursor.varint())
        if found is None:
            raise BytecodeError()
        return found

    def _string(self, cursor: Cursor) -> str:
        return self._strings[cursor.varint()]

    def _unknown(self, cursor: Cursor) -> Unknown:
        return UNKNOWN

    def _compile_unit(self, cursor: Cursor) -> CompileUnit:
        return CompileUnit(self._need((File,), cursor))

    def _file(self, cursor: Cursor) -> File:
        return File(self._string(cursor), self._string(cursor))

    def _lexical_block(self, cursor: Cursor) -> LexicalBlock:
        scope: Scope = self._need(_SCOPES, cursor)
        file = self._need((File,), cursor)
        return LexicalBlock(scope, file, cursor.varint(), cursor.varint())

    def _loc(self, cursor: Cursor) -> DebugLoc:
        scope: Scope = self._need(_SCOPES, cursor)
        return DebugLoc(scope, self._string(cursor), cursor.varint(), cursor.varint())

    def _subprogram(self, cursor: Cursor) -> Subprogram:
        file = self._need((File,), cursor)
        line = cursor.varint()
        name, linkage = self._string(cursor), self._string(cursor)
        unit = self._need((CompileUnit,), cursor)
        scope_line = cursor.varint()
        flags = cursor.varint() if self._version >= V13_5 else 0
        if flags & ~DECLARATION:
            raise BytecodeError()
        return Subprogram(file, line, name, linkage, unit, scope_line, flags)

    def _call_site(self, cursor: Cursor) -> CallSite:
        callee: Location = self._need(_LOCATIONS, cursor)
        return CallSite(callee, self._need(_LOCATIONS, cursor))


_RECORDS = {
    1: DebugInfo._compile_unit,
    2: DebugInfo._file,
    3: DebugInfo._lexical_block,
    4: DebugInfo._loc,
    5: DebugInfo._subprogram,
    6: DebugInfo._call_site,
}


class Locations:
    """The locations of one kernel, handed out in the order of its operations."""

    __slots__ = ("next",)

    def __init__(self, info: DebugInfo, operation: int) -> None:
        found: Iterator[Location | None] = repeat(UNKNOWN)
        if operation:
            start, indices = info.list_start(operation), info.indices
            positions = range(len(indices) if start is None else start, len(indices))
            found = map(_Known(info).__getitem__, map(indices.__getitem__, positions))
        #: The next location, or None if the section does not have one.
        self.next: Callable[[], Location | None] = partial(next, found, None)


class _Known(dict[int, "Location | None"]):
    """Locations by number, 0 being unknown; None for what is broken or no location."""

    def __init__(self, info: DebugInfo) -> None:
        super().__init__()
        self._info = info

    def __missing__(self, index: int) -> Location | None:
        found = self[index] = self._info.location(index)
        return found


def _varint(payload: Cursor, message: str) -> int:
    try:
        return payload.varint()
    except BytecodeError:
        raise payload.error(message) from None


def _check_count(payload: Cursor, count: int, width: int, what: str) -> None:
    fits = payload.remaining // width
    if count > fits:
        raise payload.error(
            f"number of {what} ({count}) exceeds the maximum of {fits} that can fit in the "
            f"remaining payload of {payload.remaining} bytes."
        )


def _array(payload: Cursor, count: int, width: int, what: str) -> Sequence[int]:
    try:
        payload.align(width)
    except BytecodeError:
        raise payload.error(f"failed to skip padding for {what} pointer") from None
    if not payload.remaining:
        raise payload.error(f"failed to read {what} pointer")
    try:
        data = payload.take(count * width)
    except BytecodeError:
        raise payload.error(f"failed to skip {what}") from None
    return struct.unpack(f"<{count}{'I' if width == 4 else 'Q'}", data)
