"""Choosing pipeline options by the model: a small set of candidates, timed, the best taken.

The planner's own choices are the first candidate. Axes are gone through in order; on each, every
value is tried beside the best of those before, so that a search costs the sum of the axes and not
their product. What a candidate changes are options of the pipeline, plain data, so whatever is
found can be written into a pipeline file and compiled from there. Candidates that make the same
code are timed once; those that do not compile are told and left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from tile_core.cache import Cache, Entry, key_of
from tile_core.diagnostics import TileError
from tile_core.fingerprint import installed
from tile_core.machines import Machine
from tile_core.registry import Registry
from tile_time.api import Dim, Program, compiled
from tile_time.model import load_kernel, time_kernel

#: Options of the pipeline and the values that are tried, in this order.
AXES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("num-warps", ("4", "8")),
    ("unspecialized-pipeline-num-stages", ("2", "3", "5", "6")),
    ("tma-descriptors", ("off",)),
    ("mma", ("mma.sync",)),
    ("persistent-stages", ("1", "2")),
)
#: How many candidates are compiled at most, the pipeline's own choice included.
MOST = 12
#: A candidate has to be so much faster than the best so far: less is within the model's noise.
GAIN = 0.01


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
    """A search for one program on one launch.

    `arguments` makes the arguments anew for each candidate, as kernels change them.
    """

    data: bytes
    machine: Machine
    grid: Dim
    arguments: Callable[[], Sequence[Any]]
    entry: str | None = None
    registry: Registry | None = None
    warm: bool = False
    chosen: Mapping[str, Any] = field(default_factory=dict)  # of the compiler, for all candidates
    axes: Sequence[tuple[str, Sequence[str]]] = AXES
    most: int = MOST

    def run(self, cache: Cache | None = None) -> Tuning:
        """Time the candidates, or find what an equal search found.

        Raises:
            TileError: the program does not compile, or cannot be timed, with the pipeline's own
                choices.
        """
        key = key_of(self._parts()) if cache is not None else ""
        found = cache.find(key) if cache is not None else None
        if found is not None:
            rows = json.loads(found.output)
            return Tuning(tuple(Candidate(*row) for row in rows), cached=True)
        tuning = Tuning(tuple(self._search()))
        if cache is not None:
            rows = [[dict(c.options), c.us, c.why] for c in tuning.candidates]
            about = {"kind": "tuning", "gpu": self.machine.name}
            cache.store(key, Entry(json.dumps(rows).encode(), text=True, about=about))
        return tuning

    def _search(self) -> list[Candidate]:
        timed: dict[str, float] = {}
        first = self._candidate({}, timed, raising=True)
        found, best = [first], first
        given = self.chosen.get("options") or {}
        for option, values in self.axes:
            if option in given:
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

        chosen = {**self.chosen, "options": {**(self.chosen.get("options") or {}), **options}}
        try:
            program = compiled(self.data, self.machine, self.registry, "program", **chosen)
            if program.ptx in timed:
                return Candidate(options, timed[program.ptx], "the same code as before")
            timed[program.ptx] = self._us(program)
            return Candidate(options, timed[program.ptx])
        except (TileError, SimError) as error:
            if raising:
                raise
            return Candidate(options, None, str(error).splitlines()[0])

    def _us(self, program: Program) -> float:
        kernel = load_kernel(program.ptx, self.machine, self.entry, program.hidden)
        result = time_kernel(kernel, self.grid, None, self.arguments(), warm=self.warm)
        return round(result.us, 3)

    def _parts(self) -> dict[str, Any]:
        """All that decides what a search finds."""
        machine = asdict(self.machine)
        machine.pop("sources")
        return {
            "kind": "tuning", "program": hashlib.sha256(self.data).hexdigest(), "machine": machine,
            "grid": self.grid, "arguments": [_digest(a) for a in self.arguments()],
            "entry": self.entry, "warm": self.warm, "chosen": dict(self.chosen),
            "axes": [[name, list(values)] for name, values in self.axes], "most": self.most,
            "gain": GAIN, "sources": installed(),
        }  # fmt: skip


def _digest(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        data = hashlib.sha256(value.tobytes()).hexdigest()
        return [value.dtype.str, list(value.shape), list(value.strides), data]
    return repr(value)
