"""PTX as the model reads it: one instruction a line, so that a line names an instruction."""

from __future__ import annotations

import re

from tile_sim.ptx.parser import parse
from tile_sim.ptx.syntax import Instr, Scope

# Where instructions may begin on a line that has something before them.
_BLANK = re.compile(r"[ \t]*$")


def one_instruction_a_line(text: str) -> str:
    """The same PTX with a line break before every instruction that does not begin its line.

    Raises SimError (`syntax`) for what is no PTX.
    """
    syntax, _ = parse(text)
    places: list[int] = []
    for function in syntax.functions.values():
        if function.body is not None:
            _collect(function.body, places)
    pieces: list[str] = []
    last = 0
    for place in sorted(set(places)):
        start = text.rfind("\n", 0, place) + 1
        if not _BLANK.match(text[start:place]):
            pieces += [text[last:place], "\n"]
            last = place
    pieces.append(text[last:])
    return "".join(pieces)


def _collect(scope: Scope, places: list[int]) -> None:
    for statement in scope.body:
        if isinstance(statement, Instr):
            places.append(statement.pos)
        elif isinstance(statement, Scope):
            _collect(statement, places)
