"""The container: a header and a sequence of sections."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tile_cudatile.bytecode.wire import Cursor
from tile_cudatile.errors import BytecodeError
from tile_cudatile.versions import NEWEST, OLDEST, SUPPORTED, Version, version_text

MAGIC = b"\x7fTileIR\x00"
MLIR_MAGIC = b"ML\xefR"
PREVIEW_TAG = 1  # header tag: preview features occur


class Section(IntEnum):
    """Section identifiers."""

    END = 0
    STRING = 1
    FUNC = 2
    DEBUG = 3
    CONSTANT = 4
    TYPE = 5
    GLOBAL = 6
    PRODUCER = 7


#: The multiple that a section's alignment must be of; the others may have any.
REQUIRED_ALIGNMENT = {
    Section.STRING: 4,
    Section.TYPE: 4,
    Section.CONSTANT: 8,
    Section.DEBUG: 8,
    Section.FUNC: 8,
}


@dataclass(frozen=True)
class SectionRecord:
    """Where a section lies: `start` and `length` of its payload, its alignment (1: no flag)."""

    id: Section
    start: int
    length: int
    alignment: int


def read_header(cursor: Cursor) -> tuple[Version, int]:
    """The version and the tag; the cursor ends behind the header."""
    for position, expected in enumerate(MAGIC):
        try:
            byte = cursor.byte()
        except BytecodeError:
            byte = 0
        if byte != expected:
            raise cursor.error(
                f"invalid magic number at position {position}, got {byte} expected {expected}"
            )
    version = (cursor.byte(), cursor.byte())
    tag = cursor.fixed(2)
    if version not in SUPPORTED:
        raise cursor.error(
            f"unsupported Tile version {version_text(version)}.{tag}, this reader supports "
            f"versions [{version_text(OLDEST)} - {version_text(NEWEST)}]"
        )
    if tag & ~PREVIEW_TAG:
        raise cursor.error(f"header has unrecognized version tag bits (0x{tag & ~PREVIEW_TAG:X});")
    if tag and version != NEWEST:
        raise cursor.error(
            f"public-preview bytecode at version {version_text(version)}.{tag} is not readable; "
            f"preview content is only valid at the current version {version_text(NEWEST)}"
        )
    return version, tag


def read_sections(cursor: Cursor) -> list[SectionRecord]:
    """All sections up to the end marker, in file order."""
    records: list[SectionRecord] = []
    while True:
        try:
            record = _read_section(cursor)
        except BytecodeError as error:
            raise error.within(cursor.at("failed to parse section header")) from None
        if record is None:
            if cursor.remaining:
                raise cursor.error("end section is not the last section")
            return records
        _check_alignment(cursor, record)
        if record.length > cursor.remaining:
            raise cursor.error(
                f"section length {record.length} exceeds remaining bytecode data. "
                f"{cursor.remaining}"
            )
        cursor.pos += record.length
        records.append(record)


def _read_section(cursor: Cursor) -> SectionRecord | None:
    if cursor.remaining < 1:
        raise cursor.error("unexpected end of data while reading section header")
    byte = cursor.byte()
    identifier, aligned = byte & 0x7F, byte > 127
    if identifier == Section.END:
        if aligned:
            raise cursor.error("end section should not have alignment flag set")
        return None
    if identifier > max(Section):
        raise cursor.error(f"unknown section ID: {identifier}")
    try:
        length = cursor.varint()
    except BytecodeError:
        raise cursor.error("failed to read section length") from None
    if length > cursor.remaining:
        raise cursor.error(
            f"section length {length} exceeds remaining data size {cursor.remaining}"
        )
    alignment = 1
    if aligned:
        alignment = cursor.varint()
        if alignment == 0 or alignment & (alignment - 1):
            raise cursor.error(f"invalid alignment value: {alignment}")
        cursor.align(alignment)
    return SectionRecord(Section(identifier), cursor.pos, length, alignment if aligned else 0)


def _check_alignment(cursor: Cursor, record: SectionRecord) -> None:
    required = REQUIRED_ALIGNMENT.get(record.id, 1)
    if required == 1 or (record.alignment and record.alignment % required == 0):
        return
    found = (
        f"has alignment of {record.alignment}" if record.alignment else "has no alignment flag set"
    )
    raise cursor.error(
        f"section {int(record.id)} must have alignment that is a multiple of {required} bytes, "
        f"but {found}"
    )
