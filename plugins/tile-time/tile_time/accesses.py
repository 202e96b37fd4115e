"""Which SASS instructions make the accesses of an instruction of PTX: by the widths of both.

ptxas copies an access where it copies the code around it (unrolled loops, tails of their own),
makes a wide one of several that lie side by side in shared memory, and drops what nobody reads. The
record has each access once. So of the copies that stand for one run of the PTX the first one makes
the access and the others none; where the SASS is narrower than the PTX, its parts share it; and
what no instruction of a line makes is made by a wider one of another line, as far as those are
wider than their own PTX asks for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tile_sim.program.types import TYPES
from tile_sim.ptx.syntax import Instr

from tile_time.sass.code import NEVER, Sass
from tile_time.sass.opcodes import NOTED, kind_of, ptx_kind

_WIDTH = re.compile(r"\.(U8|S8|U16|S16|64|128|256|ENL2\.256)(?=\.|$)")
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32, "ENL2.256": 32}


class Made(NamedTuple):
    """What a SASS instruction makes of the access in a copy of the body: the `part`th of `share`
    parts, nothing where `share` is 0. `width` bytes of a thread are those of a part."""

    copy: int
    part: int = 0
    share: int = 0
    width: int = 0


@dataclass
class Accesses:
    """How the accesses of one PTX instruction are made; `of` by the place among its SASS.

    `left` are the copies in which none of them makes it, `spare` the bytes of a thread by which its
    instructions are wider than the PTX.
    """

    of: dict[int, Made] = field(default_factory=dict)
    left: tuple[int, ...] = ()
    spare: int = 0


def accesses(ins: Instr, sass: Sequence[Sass], unroll: int) -> Accesses:
    """Which instructions of a line make its access in each of `unroll` copies of the body."""
    noted = [n for n, one in enumerate(sass) if one.guard != NEVER and _kind(one) in NOTED]
    makers = [n for n in noted if _kind(sass[n]) == ptx_kind(ins)] or noted
    per = expected(ins, [sass[n] for n in makers])
    copies = max(len(makers) // per, 1)
    found = Accesses({n: Made(0) for n in noted})
    groups: dict[int, list[int]] = {}
    for group in range(copies):
        copy = group * unroll // copies
        mine = makers[group * per : (group + 1) * per]
        found.of.update((n, Made(copy)) for n in mine)
        if mine and copy not in groups:
            groups[copy] = mine
            found.of.update((n, Made(copy, part, len(mine), width_of(sass[n])))
                            for part, n in enumerate(mine))  # fmt: skip
    found.left = tuple(copy for copy in range(unroll) if copy not in groups)
    if size := size_of(ins):
        wide = sum(width_of(sass[n]) for mine in groups.values() for n in mine)
        found.spare = max(wide - size * len(groups), 0)
    return found


def _kind(sass: Sass) -> str:
    return kind_of(sass.name) or ""


def size_of(ins: Instr) -> int:
    """Bytes of a thread that a load or store of PTX asks for, 0 for what is no such access."""
    if ins.op not in ("ld", "st", "ldu"):
        return 0
    bits = next((TYPES[m].bits for m in ins.mods if m in TYPES), 32)
    count = next((int(m[1:]) for m in ins.mods if m in ("v2", "v4", "v8")), 1)
    return bits * count // 8


def width_of(sass: Sass) -> int:
    """Bytes of a thread that a load or store of SASS moves."""
    hit = _WIDTH.search(sass.opcode)
    return _BYTES[hit[1]] if hit else 4


def expected(ins: Instr, found: Sequence[Sass]) -> int:
    """How many SASS instructions one PTX instruction needs, from the widths of both."""
    if (size := size_of(ins)) and found:
        return max(round(size * len(found) / sum(map(width_of, found))), 1)
    if ins.op == "mma" and found and found[0].name == "DMMA":
        shape = next((m for m in ins.mods if re.fullmatch(r"m\d+n\d+k\d+", m)), "m8n8k4")
        numbers = [int(n) for n in re.findall(r"\d+", shape)]
        # A DMMA of Ampere does 8x8x4, one of Hopper 16x8x4, 8 or 16.
        if "8x8x4" in found[0].opcode or "884" in found[0].opcode:
            return max(numbers[0] * numbers[1] * numbers[2] // 256, 1)
    return 1
