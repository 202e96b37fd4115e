"""Programs in which there is nothing to compile: clients probe for versions with them."""

from __future__ import annotations

from tile_cudatile.bytecode.sections import Section, read_header, read_sections
from tile_cudatile.bytecode.wire import Cursor
from tile_cudatile.errors import BytecodeError


def is_empty(data: bytes) -> bool:
    """Whether `data` is a right program without kernels and globals."""
    if not _looks_empty(data):
        return False
    from tile_core.diagnostics import TileError
    from tile_cudatile.bytecode.reader import read_bytecode

    try:
        program = read_bytecode(data)
    except TileError:
        return False  # whoever reads it next says what is wrong
    return not program.entries and not program.globals


def _looks_empty(data: bytes) -> bool:
    """Whether the numbers at the start of its sections say so; costs little for a large program."""
    cursor = Cursor(data)
    try:
        read_header(cursor)
        sections = read_sections(cursor)
        counted = [s.start for s in sections if s.id in (Section.FUNC, Section.GLOBAL) and s.length]
        for start in counted:
            cursor.pos = start
            if cursor.varint():
                return False
    except BytecodeError:
        return False
    return True
