"""Layout strategies for tests, which exercise conversions."""

import random
from collections.abc import Iterable

from tile_cute.linear import LinearLayout
from tile_tileas.layouts import Assignment, TileGraph
from tile_tileas.strategies.spread import spread

from tile_core.hookspecs import Lazy, hookimpl

TILE_SPEC_VERSION = 1


def random_layout(rng: random.Random, shape: tuple[int, ...], warps: int) -> LinearLayout:
    """Every element somewhere; coordinate bits dealt to registers, lanes and warps at random."""
    bits = [
        tuple(1 << bit if axis == dim else 0 for axis in range(len(shape)))
        for dim, extent in enumerate(shape)
        for bit in range(extent.bit_length() - 1)
    ]
    rng.shuffle(bits)
    zero = tuple(0 for _ in shape)
    sizes = {"lane": 5, "warp": warps.bit_length() - 1}
    bases: dict[str, list[tuple[int, ...]]] = {"register": []}
    for space, count in sizes.items():
        taken = rng.randint(0, min(count, len(bits)))
        mine, bits = bits[:taken], bits[taken:]
        mine += [zero] * (count - len(mine))
        rng.shuffle(mine)
        bases[space] = mine
    bases["register"] = bits
    return LinearLayout(bases, shape)


class RandomStrategy:
    """A random legal layout for every tile, from a seed taken from the graph's size."""

    name = "random"
    seed = 0

    def assign(self, graph: TileGraph) -> Assignment:
        rng = random.Random(RandomStrategy.seed)
        values = {
            index: random_layout(rng, value.shape, graph.num_warps)
            for index, value in enumerate(graph.values)
        }
        stores = {
            index: random_layout(rng, graph.values[node.operands[0]].shape, graph.num_warps)
            for index, node in enumerate(graph.nodes)
            if node.kind == "store" and node.operands
        }
        return Assignment(values, stores)


class TransposedStrategy:
    """Tiles by rows, stores by columns: what a transpose costs."""

    name = "transposed"

    def assign(self, graph: TileGraph) -> Assignment:
        def along(shape: tuple[int, ...], order: tuple[int, ...]) -> LinearLayout:
            return spread(shape, graph.num_warps, order, 4)

        values = {
            index: along(value.shape, tuple(reversed(range(len(value.shape)))))
            for index, value in enumerate(graph.values)
        }
        stores = {
            index: along(graph.values[node.operands[0]].shape, tuple(range(len(node.order))))
            for index, node in enumerate(graph.nodes)
            if node.kind == "store" and node.operands
        }
        return Assignment(values, stores)


@hookimpl
def tile_layout_strategies() -> Iterable[Lazy]:
    """The strategies above."""
    return (
        Lazy("random", "support.strategies:RandomStrategy"),
        Lazy("transposed", "support.strategies:TransposedStrategy"),
    )
