"""Reading ELF64 files: sections, symbols and relocations of cubins and host objects, and what
cubins say of their kernels.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

MAGIC = b"\x7fELF"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SIZE_FIELD = 5
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_SYMTAB, _RELA, NOBITS = 2, 4, 8
_CLASS_64, _LITTLE = 2, 1
X86_64 = 62

#: Attributes in `.nv.info` sections: format, number, size or value; one format has a body.
_ATTRIBUTE = struct.Struct("<BBH")
_WITH_BODY = 4
#: Where parameters of a kernel lie in constant bank 0: symbol, first byte, size.
_PARAM_CBANK = 0x0A
_CBANK = struct.Struct("<IHH")


class ElfError(ValueError):
    """The file is no ELF file, or broken; the message goes on from its name."""


@dataclass(frozen=True)
class Section:
    """`header` is where its header stands in the file, `target` the section that relocations
    apply to (`sh_info`).
    """

    index: int
    header: int
    name: str
    type: int
    size: int
    data: bytes
    link: int
    target: int


@dataclass(frozen=True)
class Symbol:
    """`section` is an index, 0 where the symbol is defined elsewhere."""

    name: str
    section: int
    value: int
    size: int


@dataclass(frozen=True)
class Relocation:
    """An entry of a RELA section."""

    offset: int
    type: int
    symbol: Symbol
    addend: int


class Elf:
    """A 64-bit little-endian ELF file.

    What is none, or broken, is raised as what `error` makes of a message that goes on from the
    file's name ("is cut short: ..."), some of it only when sections, symbols or relocations are
    asked for.
    """

    def __init__(self, data: bytes, error: Callable[[str], Exception] = ElfError) -> None:
        self.data = data
        self.error = error
        header = self._take(_HEADER, 0)
        if header[0][:4] != MAGIC or header[0][4:6] != bytes((_CLASS_64, _LITTLE)):
            raise self.error("is no ELF file of 64 bits")
        self.machine, self.flags = header[2], header[7]
        self._table, self._count, self._names = header[6], header[12], header[13]
        if header[11] != _SECTION.size and self._count:
            raise self.error(f"has section headers of {header[11]} bytes")

    def _take(self, form: struct.Struct, at: int) -> tuple:
        if at < 0 or at + form.size > len(self.data):
            raise self.error(f"is cut short: {form.size} bytes at {at} of {len(self.data)}")
        return form.unpack_from(self.data, at)

    @cached_property
    def sections(self) -> list[Section]:
        rows = [self._take(_SECTION, self._table + _SECTION.size * i) for i in range(self._count)]
        contents = [b"" if row[1] == NOBITS else self._bytes(row[4], row[5]) for row in rows]
        names = contents[self._names] if self._names < len(contents) else b""
        return [
            Section(
                i,
                self._table + _SECTION.size * i,
                self._text(names, row[0]),
                row[1],
                row[5],
                contents[i],
                row[6],
                row[7],
            )
            for i, row in enumerate(rows)
        ]

    def _bytes(self, at: int, size: int) -> bytes:
        if at + size > len(self.data):
            raise self.error(f"is cut short: a section of {size} bytes at {at}")
        return self.data[at : at + size]

    def _text(self, table: bytes, at: int) -> str:
        end = table.find(b"\0", at)
        return table[at : end if end >= 0 else None].decode(errors="replace")

    def find(self, name: str) -> Section | None:
        """The section of that name; the first, if there are several."""
        return next((s for s in self.sections if s.name == name), None)

    def parameter_bank(self, kernel: str) -> tuple[int, int] | None:
        """First byte and size of a kernel's parameters in constant bank 0, if a cubin says so."""
        info = self.find(f".nv.info.{kernel}")
        for number, body in _attributes(info.data) if info is not None else ():
            if number == _PARAM_CBANK and len(body) >= _CBANK.size:
                _, first, size = _CBANK.unpack_from(body)
                return first, size
        return None

    @cached_property
    def symbols(self) -> list[Symbol]:
        table = next((s for s in self.sections if s.type == _SYMTAB), None)
        if table is None:
            return []
        names = self.sections[table.link].data if table.link < len(self.sections) else b""
        rows = _SYMBOL.iter_unpack(table.data[: len(table.data) // _SYMBOL.size * _SYMBOL.size])
        return [Symbol(self._text(names, row[0]), row[3], row[4], row[5]) for row in rows]

    def relocations(self, section: int) -> list[Relocation]:
        """What is filled in within a section."""
        found = []
        for table in self.sections:
            if table.type != _RELA or table.target != section:
                continue
            whole = len(table.data) // _RELOCATION.size * _RELOCATION.size
            for offset, info, addend in _RELOCATION.iter_unpack(table.data[:whole]):
                if info >> 32 >= len(self.symbols):
                    raise self.error(f"has a relocation against symbol {info >> 32}")
                symbol = self.symbols[info >> 32]
                found.append(Relocation(offset, info & 0xFFFFFFFF, symbol, addend))
        return found


def _attributes(data: bytes) -> list[tuple[int, bytes]]:
    """(number, body) of the attributes of a `.nv.info` section."""
    found, at = [], 0
    while at + _ATTRIBUTE.size <= len(data):
        form, number, size = _ATTRIBUTE.unpack_from(data, at)
        at += _ATTRIBUTE.size
        length = size if form == _WITH_BODY else 0
        found.append((number, data[at : at + length]))
        at += length
    return found


def with_size(elf: bytes, section: Section, size: int) -> bytes:
    """`elf` with another size in the header of `section`, which has no contents."""
    made = bytearray(elf)
    fields = list(_SECTION.unpack_from(made, section.header))
    fields[_SIZE_FIELD] = size
    _SECTION.pack_into(made, section.header, *fields)
    return bytes(made)


def size_in_memory(read: Callable[[int, int], bytes]) -> int:
    """Bytes of an ELF file of which only the start is known; `read(offset, size)` gives bytes."""
    header = _HEADER.unpack(read(0, _HEADER.size))
    table, count = header[6], header[12]
    ends = [table + count * _SECTION.size]
    for i in range(count):
        row = _SECTION.unpack(read(table + i * _SECTION.size, _SECTION.size))
        ends.append(row[4] + (0 if row[1] == NOBITS else row[5]))
    return max(ends)
