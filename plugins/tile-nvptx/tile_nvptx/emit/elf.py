"""Sections of ELF files, as cubins are."""

from __future__ import annotations

import struct

_TABLE, _COUNTS = 0x28, 0x3A
_ROW = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, ...
_NOBITS = 8


def sections(elf: bytes) -> dict[str, bytes]:
    """Contents of the sections of a 64-bit little-endian ELF file; of equal names, the last."""
    (table,) = struct.unpack_from("<Q", elf, _TABLE)
    entry, count, names = struct.unpack_from("<HHH", elf, _COUNTS)
    rows = [_ROW.unpack_from(elf, table + index * entry) for index in range(count)]
    strings = rows[names][4]
    found: dict[str, bytes] = {}
    for name, kind, _, _, offset, size, *_ in rows:
        start = strings + name
        text = elf[start : elf.index(0, start)].decode()
        found[text] = b"" if kind == _NOBITS else elf[offset : offset + size]
    return found
