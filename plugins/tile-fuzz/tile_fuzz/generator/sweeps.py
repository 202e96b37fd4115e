"""Loops over the tiles of arrays that add up what they load: what schedulers reorder.

Loops of `control` have bodies of a few random statements, most of which do not change from turn to
turn. A sweep loads other tiles in every turn, and carries sums or products of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_cudatile.tree import Value
from tile_cudatile.types import I32, Tile

from tile_fuzz.generator.control import Fill, Inside, bound, given, take
from tile_fuzz.generator.maker import Maker
from tile_fuzz.generator.sums import a_sum

_MOST_TURNS = 12
_MOST_STREAMS = 3


def sweep(maker: Maker, fill: Fill) -> None:
    """A `for` over tiles of new arrays."""
    maker.depth += 1
    turns = maker.rng.randint(0, _MOST_TURNS)
    sums = [a_sum(maker, turns) for _ in range(maker.rng.randint(1, _MOST_STREAMS))]
    inits = [one.start for one in sums]
    if maker.memory is not None and maker.chance(0.5):
        inits.append(maker.memory)
    types = [value.type for value in inits]
    bounds = [bound(maker, 0, I32), bound(maker, turns, I32), maker.number(1, I32)]
    talks = maker.chance(0.6)

    def build(turn: Value, *carried: Value) -> tuple[str, Sequence[Value]]:
        maker.memory = None
        maker.keep(turn)
        take(maker, carried)
        products = [at for at, one in enumerate(sums) if len(one.streams) > 1]
        maker.exit_values = {at: carried[at] for at in products}
        following = []
        for one, before in zip(sums, carried, strict=False):
            tiles = [stream.load(maker, turn) for stream in one.streams]
            for tile in tiles:
                maker.keep(tile)
            following.append(one.following(tiles, before))
            maker.keep(following[-1])
        if talks:
            fill(maker)
        return "continue", [*following, *given(maker, types[len(sums) :])]

    with Inside(maker, "for", types):
        body = maker.region([Tile((), I32), *types], build)
    maker.emit("for", [*bounds, tuple(inits)], *types, regions=(body,))
    take(maker, maker.ops[-1].results)
    maker.depth -= 1
