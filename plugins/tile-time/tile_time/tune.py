"""Choosing pipeline options by the model: a small set of candidates, timed, the best taken.

The planner's own choices are the first candidate. Axes are gone through in order; on each, every
value is tried beside the best of those before, so that a search costs the sum of the axes and not
their product. What a candidate changes are options of the pipeline, plain data, so whatever is
found can be written into a pipeline file and compiled from there. Candidates that make the same
code are timed once; those that do not compile are told and left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tile_core.cache import Cache, Entry, key_of
from tile_core.diagnostics import TileError
from tile_core.machines import Machine

#: Options of the pipeline and the values that are tried, in this order.
AXES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("num-warps", ("4", "8", "16")),
    ("occupancy", ("1", "2", "4")),
    ("unspecialized-pipeline-num-stages", ("2", "3", "5", "6", "8")),
    ("num-ctas", ("1", "2")),
    ("pipeline-strategy", ("warp-specialize", "unspecialize")),
    ("tma-stores", ("always", "never")),
    ("tma-loads", ("always", "never")),
    ("mma", ("mma.sync",)),
    ("persistent-stages", ("1", "3")),
)
#: How many candidates are compiled at most, the pipeline's own choice included.
MOST = 24
#: A candidate has to be so much faster than the best so far: less is within the model's noise.
GAIN = 0.01


class Subject(Protocol):
    """What is tuned: something that compiles with options, and launches."""

    def measure(self, options: Mapping[str, str], timed: Mapping[str, float]) -> tuple[str, float]:
        """The code that the options make, however it is named, and the microseconds of its
        launches; `timed` has those of codes that need not be timed again.

        Raises:
            TileError: it does not compile.
            SimError: its code cannot be run.
        """
        ...

    def decides(self) -> Mapping[str, Any] | None:
        """All that decides what a search finds, as JSON has it; None where nobody knows."""
        ...


@dataclass(frozen=True)
class Candidate:
    """Options beside those given, and the microseconds of the launch; None where it failed."""

    options: Mapping[str, str]
    us: float | None
    why: str = ""

    @property
    def text(self) -> str:
        return " ".join(f"{k}={v}" for k, v in self.options.items()) or "the pipeline's own choice"


@dataclass(frozen=True)
class Tuning:
    """What was tried, in order, and the best of it."""

    candidates: Sequence[Candidate]
    cached: bool = False

    @property
    def first(self) -> Candidate:
        return self.candidates[0]

    @property
    def best(self) -> Candidate:
        """The fastest; of equal ones the first, and the pipeline's own unless one gains."""
        best = self.first
        for one in self.candidates[1:]:
            if _gains(one, best):
                best = one
        return best

    @property
    def text(self) -> str:
        lines = []
        for one in self.candidates:
            us = f"{one.us:10.2f} us" if one.us is not None else f"{'failed':>13}"
            mark = "*" if one is self.best else " "
            lines.append(f"  {mark} {us}  {one.text}{f' ({one.why})' if one.why else ''}")
        return "\n".join(["candidates, by the model:", *lines]) + "\n"


def pipeline_file(tuning: Tuning, base: str, machine: Machine) -> str:
    """A pipeline with the best candidate's options, for `tilec compile --pipeline FILE`."""
    rows = [f"{key} = {_toml(value)}" for key, value in tuning.best.options.items()]
    summary = f"{base}, tuned by the model of {machine.title}"
    head = ["[pipeline]", 'name = "tuned"', f"summary = {json.dumps(summary)}",
            f"extends = {json.dumps(base)}", "", "[set]"]  # fmt: skip
    return "\n".join([*head, *rows]) + "\n"


def _gains(one: Candidate, best: Candidate) -> bool:
    if one.us is None:
        return False
    return best.us is None or one.us < best.us * (1 - GAIN)


def _toml(value: str) -> str:
    return value if value.isdigit() or value in ("true", "false") else json.dumps(value)


@dataclass
class Search:
    """A search for one subject; options that were `given` stay as they are."""

    subject: Subject
    given: Mapping[str, Any] = field(default_factory=dict)
    axes: Sequence[tuple[str, Sequence[str]]] = AXES
    most: int = MOST

    def run(self, cache: Cache | None = None) -> Tuning:
        """Time the candidates, or find what an equal search found.

        Raises:
            TileError: the program does not compile, or cannot be timed, with the pipeline's own
                choices.
        """
        decides = self.subject.decides() if cache is not None else None
        if cache is None or decides is None:
            return Tuning(tuple(self._search()))
        bounds = {"axes": [[name, list(values)] for name, values in self.axes],
                  "most": self.most, "gain": GAIN}  # fmt: skip
        key = key_of({"kind": "tuning", **decides, **bounds})
        found = cache.find(key)
        if found is not None:
            rows = json.loads(found.output)
            return Tuning(tuple(Candidate(*row) for row in rows), cached=True)
        tuning = Tuning(tuple(self._search()))
        rows = [[dict(c.options), c.us, c.why] for c in tuning.candidates]
        about = {"kind": "tuning", "gpu": str(decides.get("gpu", ""))}
        cache.store(key, Entry(json.dumps(rows).encode(), text=True, about=about))
        return tuning

    def _search(self) -> list[Candidate]:
        timed: dict[str, float] = {}
        first = self._candidate({}, timed, raising=True)
        found, best = [first], first
        for option, values in self.axes:
            if option in self.given:
                continue  # it was asked for: nobody else chooses
            base = best
            for value in values:
                if len(found) >= self.most:
                    return found
                one = self._candidate({**base.options, option: value}, timed)
                found.append(one)
                if _gains(one, best):
                    best = one
        return found

    def _candidate(
        self, options: dict[str, str], timed: dict[str, float], raising: bool = False
    ) -> Candidate:
        from tile_sim.errors import SimError

        try:
            code, us = self.subject.measure(options, timed)
        except (TileError, SimError) as error:
            if raising:
                raise
            why = error.message if isinstance(error, TileError) else str(error)
            return Candidate(options, None, why.splitlines()[0])
        again = code in timed
        timed[code] = us
        return Candidate(options, us, "the same code as before" if again else "")
