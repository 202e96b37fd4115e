"""Data that a launch leaves out, and what finds out that they are wanted.

Who records a launch asks where it goes and what it touches. What is stored or copied counts then
only where it is loaded again and decides a branch or an address. Which stores those are cannot be
seen in the text: one load of shared memory may read what any store of the kernel wrote. So all of
them are left out at first, and the words that they would have written are marked. A load whose
result counts and that comes by a mark raises `Wanted`: the instructions that left the marks are
noted in `Program.made`, and the launch is to be run again.
"""

from __future__ import annotations

from operator import length_hint
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tile_sim.machine.access import Part, Space
    from tile_sim.machine.wave import Wave
    from tile_sim.ptx.syntax import Instr

Array = np.ndarray
_WORD = 4
_STORES = ("st", "red", "stmatrix")


class Wanted(Exception):
    """A load that counts read what was left out; `Program.made` knows, so the launch may be run
    again."""


class Unmade:
    """Marks on shared and local memory, by words, and on buffers of global memory, of a wave."""

    def __init__(self, wave: Wave, loads: frozenset[int]) -> None:
        self.wave = wave
        self.made = wave.program.made
        self.loads = loads
        self._writers: list[Instr] = []
        self._number: dict[int, int] = {}  # by id of an instruction: of its mark, from 1 on
        self._words: dict[str, Array] = {}
        self._buffers: dict[int, set[int]] = {}  # ids of instructions, by a buffer's first address
        self._before: list[tuple[Array, Array, Array]] = []  # what global memory was, and where

    def instruction(self) -> Instr:
        """The one that runs."""
        block, steps = self.wave.cursor
        return block.instrs[len(block.code) - 1 - length_hint(steps)]

    # --- accesses of threads ----------------------------------------------------------------

    def access(self, kind: str, part: Part, count: int) -> None:
        """A load, store or atomic of `count` elements by each lane of a part."""
        ins = self.instruction()
        updates = ins.op == "red" and id(ins) in self.made
        if kind != "write" and (updates or id(ins) in self.loads):
            self._read(part, count)
        if ins.op in _STORES and "param" not in ins.mods:
            self._written(part, count, ins)

    def spares(self, part: Part, count: int) -> bool:
        """Whether a store or an update, told before, leaves memory as it is: where its data do not
        count, arrays are for the launches that follow what they were. Else what was there is kept,
        for the launch may have to be run again."""
        if part.space != "global":
            return False
        ins = self.instruction()
        if ins.op in _STORES and id(ins) not in self.made:
            return True
        index = (part.index[:, None] + np.arange(count)).reshape(-1)
        self._before.append((part.data, index, part.data[index]))
        return False

    def _written(self, part: Part, count: int, ins: Instr) -> None:
        if part.space == "global":
            if id(ins) not in self.made:
                self._buffers.setdefault(part.base, set()).add(id(ins))
        elif id(ins) not in self.made:
            self._marks(part.space)[self._touched(part, count)] = self._mark(ins)
        elif part.space in self._words and count * part.data.dtype.itemsize >= _WORD:
            # Of a part of a word others may have left out the rest.
            self._marks(part.space)[self._touched(part, count)] = 0

    def _read(self, part: Part, count: int) -> None:
        if part.space == "global":
            self._want(self._buffers.get(part.base, ()))
        elif part.space in self._words:
            self._found(self._marks(part.space)[self._touched(part, count)])

    def _touched(self, part: Part, count: int) -> Array:
        """The words of an access; some are named several times."""
        width = part.data.dtype.itemsize
        first = part.index * width // _WORD
        words = -(-count * width // _WORD)
        return first if words == 1 else (first[:, None] + np.arange(words)).reshape(-1)

    # --- copies of engines, of threads, and maps ----------------------------------------------

    def filled(self, cta: int, offset: int, size: int, origin: int | None) -> None:
        """A copy from global memory (`origin`) to shared memory of a CTA begins."""
        ins = self.instruction()
        first = cta * self.wave.shared.stride + offset
        marks = self._marks("shared")
        if id(ins) in self.made:
            self.taken(origin)
            marks[first // _WORD : -(-(first + size) // _WORD)] = 0
        else:
            marks[first // _WORD : -(-(first + size) // _WORD)] = self._mark(ins)

    def copied(self, part: Part, width: int, sources: Array) -> None:
        """`cp.async`, which is always made, so a load that counts only has to be noted."""
        if self._buffers:
            for origin in np.unique(sources).tolist():
                self.taken(origin)
        self._marks("shared")[self._touched(part, width)] = self._mark(self.instruction())

    def sent(self, places: Array) -> None:
        """A copy of shared bytes to global memory begins, whose data count."""
        self._found(self._marks("shared")[places.reshape(-1) // _WORD])

    def unsent(self, target: int) -> None:
        """The same of one whose data are left out: what it would write lies about `target`."""
        buffer = self.wave.memory.buffer_at(target)
        if buffer is not None:
            self._buffers.setdefault(buffer.origin, set()).add(id(self.instruction()))

    def taken(self, origin: int | None) -> None:
        """Global memory at an address is read: by a copy that counts, or as a tensor map."""
        buffer = None if origin is None or not self._buffers else self.wave.memory.buffer_at(origin)
        if buffer is not None:
            self._want(self._buffers.get(buffer.origin, ()))

    # --- marks ------------------------------------------------------------------------------

    def _marks(self, space: str) -> Array:
        found = self._words.get(space)
        if found is None:
            of: Space = getattr(self.wave, space)
            found = self._words[space] = np.zeros(len(of.bytes) // _WORD + 1, np.uint16)
        return found

    def _mark(self, ins: Instr) -> int:
        number = self._number.get(id(ins))
        if number is None:
            self._writers.append(ins)
            number = self._number[id(ins)] = len(self._writers)
        return number

    def _found(self, marks: Array) -> None:
        numbers = np.unique(marks[marks > 0]).tolist()
        self._want({id(self._writers[number - 1]) for number in numbers})

    def _want(self, instructions: set[int] | tuple[()]) -> None:
        new = set(instructions) - self.made
        if not new:
            return
        self.made |= new
        threads = {id(w) for w in self._writers if w.op == "cp" and "bulk" not in w.mods}
        if new - threads:
            for data, index, old in reversed(self._before):
                data[index] = old
            raise Wanted


def follows(wave: Wave) -> Unmade | None:
    """The marks of a wave that leaves data out, None where none are."""
    left = wave.program.left(wave.settings.skipped)
    return None if left is None or left.loads is None else Unmade(wave, left.loads)
