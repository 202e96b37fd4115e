"""Delta debugging over programs (Zeller and Hildebrandt, 2002): smaller, and still failing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from tile_cudatile import verify

from tile_core.diagnostics import TileError
from tile_fuzz.case import Case
from tile_fuzz.shrink import edits
from tile_fuzz.shrink.copying import copied, numbered, tidy
from tile_fuzz.shrink.edits import Edit
from tile_fuzz.shrink.extents import extents, halved

#: Says whether a valid case still fails in the way that is looked for.
Interesting = Callable[[Case], bool]


class Shrinker:
    """Makes one case smaller.

    `checked` counts how often the case was tried; after `seconds` the best one so far stays.
    """

    def __init__(
        self,
        case: Case,
        interesting: Interesting,
        seconds: float = 600.0,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.case = case
        self.checked = 0
        self._interesting = interesting
        self._deadline = time.monotonic() + seconds
        self._progress = progress or (lambda text: None)

    def run(self) -> Case:
        """The smallest case that was found: none of the edits makes it smaller."""
        self._try(lambda case: True)  # tidied
        while not self._late():
            before = self.size()
            for stage in (self._entries, self._operations, self._structure, self._details):
                stage()
                self._progress(f"{stage.__name__.strip('_')}: {self.size()[0]} operations")
            if self.size() >= before:
                break
        return self.case

    def size(self) -> tuple[int, int]:
        """Operations, and what else there is to simplify, for comparison."""
        ops = numbered(self.case)
        rest = sum(len(op.attrs) + len(op.results) for op in ops)
        elements = sum(extents(self.case))
        data = sum(len(a.fill) for launch in self.case.launches for a in launch.arguments)
        return len(ops), rest + elements + data

    def _late(self) -> bool:
        return time.monotonic() > self._deadline

    def _try(self, edit: Edit) -> bool:
        """Whether an edit leaves a case that fails; if so, it is the case from now on."""
        if self._late():
            return False
        candidate = copied(self.case)
        try:
            if not edit(candidate):
                return False
            tidy(candidate)
            verify(candidate.module)
            self.checked += 1
            if not self._interesting(candidate):
                return False
        except (TileError, LookupError, TypeError, ValueError, AssertionError):
            return False  # the edit left no program
        self.case = candidate
        return True

    def _all(self, choices: Callable[[], Iterator[Edit]]) -> None:
        """Tries edits, from the first again after each that helps, without those before."""
        at = 0
        while not self._late():
            edit = next(_from(choices(), at), None)
            if edit is None:
                return
            if not self._try(edit):
                at += 1

    # --- stages -------------------------------------------------------------------------------

    def _entries(self) -> None:
        self._all(lambda: (edits.only_entry(i) for i in range(len(self.case.module.entries))))

    def _operations(self) -> None:
        """Operations in chunks, from half of them down to single ones, the last ones first."""
        for stand in (edits.zero, edits.operand):
            size = len(numbered(self.case))
            while size > 0:
                end = len(numbered(self.case))
                while end > 0 and not self._late():
                    self._try(edits.without(range(max(end - size, 0), end), stand))
                    end = min(end - size, len(numbered(self.case)))
                size //= 2

    def _structure(self) -> None:
        self._all(self._structures)

    def _structures(self) -> Iterator[Edit]:
        for number, op in enumerate(numbered(self.case)):
            if op.name in ("if", "for", "loop"):
                for region in range(len(op.regions)):
                    yield edits.inlined(number, region)
                yield edits.never_taken(number)
                for index in range(len(op.results)):
                    yield edits.fewer_results(number, index)

    def _details(self) -> None:
        self._all(self._extents)
        self._all(self._launches)
        self._all(self._attributes)

    def _extents(self) -> Iterator[Edit]:
        for extent in extents(self.case):
            yield halved(extent)
            for axis in range(4):
                yield halved(extent, axis)

    def _launches(self) -> Iterator[Edit]:
        yield edits.no_hints
        for index, launch in enumerate(self.case.launches):
            for axis in range(3):
                yield edits.smaller_grid(index, axis)
            for number in range(len(launch.arguments)):
                for fill in ("zeros", "small"):
                    yield edits.plainer_data(index, number, fill)

    def _attributes(self) -> Iterator[Edit]:
        for number, op in enumerate(numbered(self.case)):
            for name in sorted(op.attrs):
                yield edits.plain_attribute(number, name)
            if op.name == "constant":
                yield edits.splat(number, first=False)
                yield edits.splat(number, first=True)


def _from(choices: Iterator[Edit], at: int) -> Iterator[Edit]:
    for number, edit in enumerate(choices):
        if number >= at:
            yield edit
