"""PTX as the model reads it: one instruction a line, so that a line names an instruction."""

from __future__ import annotations

import re

from tile_sim.ptx.parser import parse
from tile_sim.ptx.syntax import Instr, Scope

# Where instructions may begin on a line that has something before them.
_BLANK = re.compile(r"[ \t]*$")


_FILE = re.compile(r"^\s*\.file\s+(\d+)", re.MULTILINE)
_SOURCE = re.compile(r"^\s*\.nv_intermediate_source_section\b", re.MULTILINE)
_REGISTERS = re.compile(r"(\.maxnreg[ \t]+)\d+")
_LOCATION = re.compile(r"^[ \t]*\.loc[ \t]+(\d+)\b.*$", re.MULTILINE)


def from_cubin(text: str) -> str:
    """PTX as a cubin keeps it, so that ptxas takes it again.

    The table of files is lost: locations that name none of it are left out, and so is the section
    with the intermediate source at the end, which names files too. Lines stay where they are.
    """
    found = _SOURCE.search(text)
    text = text[: found.start()] if found else text
    known = set(_FILE.findall(text))
    return _LOCATION.sub(lambda hit: hit[0] if hit[1] in known else "", text)


def with_registers(text: str, most: int) -> str:
    """The same PTX with another limit of a thread's registers for every kernel that has one
    (`.maxnreg`); lines stay where they are."""
    return _REGISTERS.sub(lambda hit: f"{hit[1]}{most}", text)


def one_instruction_a_line(text: str) -> tuple[str, tuple[int, ...]]:
    """The same PTX with a line break before every instruction that does not begin its line; the
    numbers of the lines that were made so.

    Raises SimError (`syntax`) for what is no PTX.
    """
    syntax, _ = parse(text)
    places: list[int] = []
    for function in syntax.functions.values():
        if function.body is not None:
            _collect(function.body, places)
    pieces: list[str] = []
    made: list[int] = []
    last = 0
    for place in sorted(set(places)):
        start = text.rfind("\n", 0, place) + 1
        if not _BLANK.match(text[start:place]):
            pieces += [text[last:place], "\n"]
            made.append(text.count("\n", 0, place) + len(made) + 2)
            last = place
    pieces.append(text[last:])
    return "".join(pieces), tuple(made)


def _collect(scope: Scope, places: list[int]) -> None:
    for statement in scope.body:
        if isinstance(statement, Instr):
            places.append(statement.pos)
        elif isinstance(statement, Scope):
            _collect(statement, places)
