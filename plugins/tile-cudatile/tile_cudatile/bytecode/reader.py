"""From bytes to a module."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from tile_cudatile.attrs import Attr, Hints
from tile_cudatile.bytecode.attributes import Attributes
from tile_cudatile.bytecode.body import BodyReader
from tile_cudatile.bytecode.debug import DebugInfo
from tile_cudatile.bytecode.heads import Heads
from tile_cudatile.bytecode.sections import Section, read_header, read_sections
from tile_cudatile.bytecode.tables import (
    GlobalRecord,
    Layout,
    Strings,
    read_constants,
    read_globals,
)
from tile_cudatile.bytecode.typetable import Types
from tile_cudatile.bytecode.wire import Cursor
from tile_cudatile.errors import BytecodeError, VerifyError
from tile_cudatile.locations import Location
from tile_cudatile.ops.enums import VISIBILITY
from tile_cudatile.rules.types import check_type
from tile_cudatile.rules.verify import verify
from tile_cudatile.rules.words import quote
from tile_cudatile.tree import Entry, Global, Module, Op, Region
from tile_cudatile.types import Function, Type
from tile_cudatile.versions import V13_3, V13_5, Version

T = TypeVar("T")
_PRIVATE_FLAG, _ENTRY_FLAG, _HINTS_FLAG = 1, 2, 4
_EXTERN_FLAG, _TESTING_FLAG = 4, 8  # 13.5


@dataclass(frozen=True)
class FuncRecord:
    """A kernel's record; `body` is the span of its operations."""

    name: int
    signature: int
    flags: int
    debug: int
    hints: Hints
    has_hints: bool
    arg_attrs: tuple[Attr, ...]
    start: int
    end: int


def read_bytecode(data: bytes) -> Module:
    """The program in `data`.

    Raises:
        BytecodeError: the bytes are not valid Tile IR bytecode of a supported version.
        VerifyError: the program breaks a rule of the language.
    """
    with collector_at_rest():
        reader = Reader(data)
        module = reader.module()
        # The reader has checked types, and told apart the operations that differ.
        verify(module, types=False, only=reader.novel)
    return module


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Without garbage collection: what is read is not garbage, and looking through it again and
    again takes as long as the reading."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Reader:
    """Reads one file: finds its sections, decodes the tables, then globals and kernels."""

    def __init__(self, data: bytes) -> None:
        self.cursor = Cursor(bytes(data))
        try:
            self.version, self.tag = read_header(self.cursor)
        except BytecodeError as error:
            raise error.within(self.cursor.at("failed to parse bytecode header")) from None
        self.sections = read_sections(self.cursor)
        self._heads = Heads()
        #: Operations that are not like one before in all that the rules of operations look at.
        self.novel: set[Op] = set()
        # The last of several sections of one kind counts.
        self._payloads = {record.id: record for record in self.sections}

    def module(self) -> Module:
        """The whole program."""
        strings = self._table(Section.STRING, "string", Strings, mandatory=True)
        producer = self._producer(strings)
        types = self._table(Section.TYPE, "type", lambda p: Types(p, self.version, check_type))
        constants = self._table(
            Section.CONSTANT, "constant", lambda p: read_constants(p) if p else []
        )
        globals_ = self._table(
            Section.GLOBAL,
            "global",
            lambda p: read_globals(p, self.version >= V13_3) if p else [],
        )
        attributes = Attributes(strings, types, constants)
        functions = self._table(
            Section.FUNC,
            "function",
            lambda p: _read_functions(p, attributes, self.version),
            mandatory=True,
        )
        debug = self._table(Section.DEBUG, "debug", lambda p: DebugInfo(p, strings, self.version))
        module = Module(self.version, producer=producer, tag=self.tag)
        for record in globals_:
            module.globals.append(self._global(record, attributes, constants))
        for record in functions:
            module.entries.append(self._entry(record, attributes, debug))
        module.layout = self._layout(module, functions, attributes, constants, debug)
        return module

    def _layout(
        self,
        module: Module,
        functions: list[FuncRecord],
        attributes: Attributes,
        constants: list[bytes],
        debug: DebugInfo,
    ) -> Layout:
        strings, types = attributes.strings, attributes.types
        record = self._payloads[Section.FUNC]
        end = functions[-1].end if functions else record.start + 1
        named = list(zip(module.entries, functions, strict=True))
        return Layout(
            tuple((s.id, s.alignment) for s in self.sections),
            tuple(strings.raw(i) for i in range(len(strings))),
            types.decodable(),
            tuple(constants),
            attributes.constant_index(),
            tuple(attributes.spellings),
            debug.all(),
            self.cursor.data[end : record.start + record.length],
            {entry.name: function.flags for entry, function in named},
            {entry.name: function.debug for entry, function in named},
        )

    def _table(
        self,
        section: Section,
        name: str,
        decode: Callable[[Cursor | None], T],
        mandatory: bool = False,
    ) -> T:
        record = self._payloads.get(section)
        if record is None and mandatory:
            raise self.cursor.error(f"{name} section is mandatory")
        payload = None
        if record is not None:
            payload = Cursor(self.cursor.data, record.start, record.start + record.length)
        try:
            return decode(payload)
        except BytecodeError as error:
            raise error.within(self.cursor.at(f"failed to parse {name} section")) from None

    def _producer(self, strings: Strings) -> str | None:
        record = self._payloads.get(Section.PRODUCER)
        if record is None:
            return None
        payload = Cursor(self.cursor.data, record.start, record.start + record.length)
        failed = self.cursor.at("failed to parse producer section")
        try:
            index = payload.varint()
        except BytecodeError:
            raise payload.error("failed to read producer string index").within(failed) from None
        try:
            return strings[index]
        except BytecodeError as error:
            where = payload.at(f"failed to get producer string at index {index}")
            raise error.within(where).within(failed) from None

    def _global(
        self, record: GlobalRecord, attributes: Attributes, constants: list[bytes]
    ) -> Global:
        try:
            return self._checked_global(record, attributes, constants)
        except BytecodeError as error:
            raise error.within(self.cursor.at("failed to create global from bytecode")) from None

    def _checked_global(
        self, record: GlobalRecord, attributes: Attributes, constants: list[bytes]
    ) -> Global:
        cursor = self.cursor
        if record.constant >= len(constants):
            raise cursor.error("global value constant index out of bounds")
        try:
            name = attributes.strings[record.name]
        except BytecodeError as error:
            raise error.within(
                cursor.at(f"failed to get global symbol name string for index {record.name}")
            ) from None
        if not name:
            raise cursor.error(f"global symbol name at index {record.name} is empty")
        try:
            tile = attributes.types[record.type]
        except BytecodeError as error:
            raise error.within("error at offset 0: provided type is null") from None
        value = attributes.constant(record.constant, tile, cursor)
        if record.visibility >= len(VISIBILITY):
            raise cursor.error(f"invalid symbol visibility value: {record.visibility}")
        return Global(
            name, value, record.alignment, record.is_constant != 0, VISIBILITY[record.visibility]
        )

    def _entry(self, record: FuncRecord, attributes: Attributes, debug: DebugInfo) -> Entry:
        try:
            return self._checked_entry(record, attributes, debug)
        except BytecodeError as error:
            raise error.within(self.cursor.at("failed to create function from bytecode")) from None

    def _checked_entry(self, record: FuncRecord, attributes: Attributes, debug: DebugInfo) -> Entry:
        cursor = self.cursor
        name, signature = self._signature(record, attributes)
        locations = debug.locations(record.debug)
        loc: Location | None = locations.next()
        if loc is None:
            raise cursor.error(f"failed to read function location for '{name}'")
        if not record.flags & _ENTRY_FLAG:
            raise cursor.error(f"un-expected non-entry function '{name}'")
        if record.flags & _PRIVATE_FLAG:
            raise VerifyError("'cuda_tile.entry' op entry op must have public symbol visibility")
        body = Cursor(cursor.data, record.start, record.end)
        reader = BodyReader(body, self.version, attributes, locations, self._heads)
        try:
            block = reader.body(signature.inputs)
        except BytecodeError as error:
            raise error.within(
                cursor.at(f"failed to parse function body for function '{name}'")
            ) from None
        self.novel |= reader.novel
        return Entry(name, signature, Region([block]), record.hints, record.arg_attrs, loc)

    def _signature(self, record: FuncRecord, attributes: Attributes) -> tuple[str, Function]:
        cursor = self.cursor
        try:
            name = attributes.strings[record.name]
        except BytecodeError as error:
            raise error.within(
                cursor.at(f"failed to get function name string at index {record.name}")
            ) from None
        if not name:
            raise cursor.error(f"function name at index {record.name} is empty")
        if record.signature >= len(attributes.types):
            raise cursor.error(
                f"function signature index {record.signature} out of bounds for function '{name}'"
            )
        try:
            signature: Type = attributes.types[record.signature]
        except BytecodeError as error:
            raise error.within(
                cursor.at(f"failed to parse type at index {record.signature} for function '{name}")
            ) from None
        if not isinstance(signature, Function):
            raise cursor.error(
                f"function signature index {record.signature} does not refer to a function type "
                f"for function '{name}', got type: {quote(signature)}"
            )
        return name, signature


def _read_functions(
    payload: Cursor | None, attributes: Attributes, version: Version
) -> list[FuncRecord]:
    assert payload is not None  # the section is mandatory
    count = payload.varint()
    size = payload.end - payload.start
    if count > size:
        raise payload.error(f"number of functions ({count}) exceeds payload size ({size})")
    return [_read_function(payload, attributes, version) for _ in range(count)]


def _check_flags(payload: Cursor, flags: int) -> None:
    """Bits that 13.5 gave other meanings, or none."""
    if flags & _ENTRY_FLAG and flags & _EXTERN_FLAG:
        raise payload.error("function entry cannot be both kernel and extern impl")
    if flags & _TESTING_FLAG:
        raise payload.error("function entry has testing form in non-test build")
    unknown = flags & ~0xF
    if unknown:
        raise payload.error(f"function entry has unrecognized flag bits (0x{unknown:X});")


def _read_function(payload: Cursor, attributes: Attributes, version: Version) -> FuncRecord:
    name, signature = payload.varint(), payload.varint()
    flags = payload.byte()
    debug = payload.varint()
    if version >= V13_5:
        _check_flags(payload, flags)
    is_entry = flags & _ENTRY_FLAG != 0
    # From 13.5 on every kernel has hints, and every function the attributes of its arguments.
    has_hints = is_entry and (version >= V13_5 or flags & _HINTS_FLAG != 0)
    hints: Attr = attributes.tagged(payload) if has_hints else Hints({})
    if not isinstance(hints, Hints):
        raise payload.error("invalid optimization hints attribute")
    arg_attrs: Attr = attributes.tagged(payload) if version >= V13_5 else ()
    if not isinstance(arg_attrs, tuple):
        raise payload.error("invalid argument attributes")
    length = payload.varint()
    if length > payload.remaining:
        raise payload.error(
            f"function body length {length} exceeds remaining bytecode data "
            f"({payload.remaining} bytes)"
        )
    start = payload.pos
    payload.pos += length
    return FuncRecord(
        name, signature, flags, debug, hints, has_hints, arg_attrs, start, payload.pos
    )
