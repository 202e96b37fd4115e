"""Along which axis each tile of a program is cut over the blocks of a cluster. No MLIR here.

A tile is either cut along one axis, each block having an equal part, or whole in every block.
Operations relate the cuts of their tiles; products say where to begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

#: The state of a tile that every block has whole, and what no tile may be in.
WHOLE, NEVER = -1, -2

#: Tile -> the axis along which it is cut, or WHOLE.
Cuts = dict[int, int]


@dataclass(frozen=True)
class Rule:
    """What the cut of tile `source` means for tile `target`.

    Attributes:
        axes: for each axis of the source, the state of the target if the source is cut along it.
        whole: a source that is whole makes the target whole; else it says nothing.
        why: what relates them, for messages.
    """

    source: int
    target: int
    axes: tuple[int, ...]
    whole: bool
    why: str


@dataclass(frozen=True)
class Seed:
    """A tile to begin with, as a product's accumulator, and the axes along which it may be cut,
    the best first; `why` names it in messages.
    """

    tile: int
    axes: tuple[int, ...]
    why: str = "the product"


@dataclass
class Program:
    """The tiles of a kernel: their extents, what relates them, which must be whole.

    `whole` says why; `uncut` has axes along which tiles may not be cut. `seeds` are of products,
    `carried` of loops, for programs without products.
    """

    shapes: list[tuple[int, ...]] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    seeds: list[Seed] = field(default_factory=list)
    carried: list[Seed] = field(default_factory=list)
    whole: dict[int, str] = field(default_factory=dict)
    uncut: set[tuple[int, int]] = field(default_factory=set)


class Conflict(Exception):
    """No cut is possible; says why."""


def cuts_of(program: Program, parts: int) -> Cuts:
    """A state for every tile, with each seed cut into `parts`.

    Raises:
        Conflict: there is none; with the reason of the last that was tried.
    """
    users: dict[int, list[Rule]] = {}
    for rule in program.rules:
        users.setdefault(rule.source, []).append(rule)
    known: Cuts = {}
    for tile, why in program.whole.items():
        _spread(program, users, known, tile, WHOLE, parts, why)
    seeds = program.seeds or program.carried
    found = _seeded(program, users, known, seeds, parts)
    if all(found[seed.tile] == WHOLE for seed in seeds):
        raise Conflict(f"{seeds[0].why} is needed whole")
    return {tile: found.get(tile, WHOLE) for tile in range(len(program.shapes))}


def _seeded(
    program: Program,
    users: Mapping[int, list[Rule]],
    known: Cuts,
    seeds: Sequence[Seed],
    parts: int,
) -> Cuts:
    """`known` and what follows from the seeds, axes tried in order."""
    for at, seed in enumerate(seeds):
        if seed.tile in known:
            continue
        last: Conflict | None = None
        for axis in seed.axes:
            trial = dict(known)
            try:
                _spread(program, users, trial, seed.tile, axis, parts, seed.why)
                return _seeded(program, users, trial, seeds[at + 1 :], parts)
            except Conflict as conflict:
                last = last or conflict
        raise last or Conflict(f"no axis of {seed.why} is long enough")
    return known


def _spread(
    program: Program,
    users: Mapping[int, list[Rule]],
    known: Cuts,
    tile: int,
    state: int,
    parts: int,
    why: str,
) -> None:
    """Give `tile` a state and every tile that follows from it."""
    pending = [(tile, state, why)]
    while pending:
        tile, state, why = pending.pop()
        if tile in known:
            if known[tile] != state:
                raise Conflict(f"{why} would be cut in two ways")
            continue
        short = state >= 0 and program.shapes[tile][state] % parts
        if state == NEVER or short or (tile, state) in program.uncut:
            raise Conflict(f"{why} cannot be cut there")
        known[tile] = state
        pending += _implied(users.get(tile, ()), state)


def _implied(rules: Sequence[Rule], state: int) -> Iterator[tuple[int, int, str]]:
    for rule in rules:
        if state != WHOLE:
            yield rule.target, rule.axes[state], rule.why
        elif rule.whole:
            yield rule.target, WHOLE, rule.why
