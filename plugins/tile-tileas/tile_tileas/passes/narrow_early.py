"""tileas-narrow-early: results that take fewer registers than what ends with them come early.

    p = exp2 x;  s = reduce p;  v = load;  q = fp_to_fp p : f16;  dot q, v
=>  p = exp2 x;  s = reduce p;  q = fp_to_fp p : f16;  v = load;  dot q, v

Loads, products and reductions are what code generators do not move arithmetic across: they come
with barriers and branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_tileas.analysis.pressure import tile_bits, used_values
from tile_tileas.tile_graph import is_tile, kind_of, only_computes

_LOADS = ("load", "tiled_load", "atomic_rmw", "atomic_cas", "multimem")
_WAITS = ("dot", "reduce", "reduce_mixed", "scan", "scan_mixed")
#: What code generators do not move arithmetic across; so is all that has regions.
_WALLS = (*_LOADS, *_WAITS, "store", "tiled_store", "extract_slice", "insert_slice")


@dataclass(frozen=True)
class NarrowEarly(Pass):
    """Move operations that free registers before loads, products and reductions."""

    name = "tileas-narrow-early"
    anchor = "func.func"
    statistics = {"moved": "operations that moved up"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if len(list(op.regions[0].blocks)) > 1:
            raise error_at(op, "has branches; control flow must be structured (scf) here")
        for block in _blocks(op.regions[0]):
            cx.count("moved", _Order(block).run())


def _blocks(region: ir.Region) -> Iterator[ir.Block]:
    """The blocks of a function and of its control flow."""
    for block in region.blocks:
        yield block
        for op in block.operations:
            if op.operation.name.startswith("scf."):
                for inner in op.regions:
                    yield from _blocks(inner)


class _Order:
    """The operations of a block while some of them move."""

    def __init__(self, block: ir.Block) -> None:
        self.ops = list(block.operations)
        self.order = list(range(len(self.ops)))
        self.place = list(self.order)  # of each operation in `order`
        self.maker: dict[ir.Value, int] = {
            value: at for at, op in enumerate(self.ops) for value in op.results
        }
        self.own = {*block.arguments, *self.maker}
        self.users: dict[ir.Value, list[int]] = {}
        for at, op in enumerate(self.ops):
            for value in dict.fromkeys(used_values(op)):
                self.users.setdefault(value, []).append(at)
        self.fresh = self._fresh()

    def _fresh(self) -> set[int]:
        """Operations whose results a load still has to bring: whoever uses them waits for it."""
        fresh: set[int] = set()
        for at, op in enumerate(self.ops):
            inside = any(self.maker.get(value) in fresh for value in used_values(op))
            if _kind(op) in _LOADS or (inside and _kind(op) not in _WAITS):
                fresh.add(at)
        return fresh

    def run(self) -> int:
        """Move what should; how many operations did."""
        return sum(self._move(at) for at in range(len(self.ops)) if self._may_move(at))

    def _may_move(self, at: int) -> bool:
        op = self.ops[at]
        simple = kind_of(op) == "same" and len(op.results) == 1 and not len(op.regions)
        simple = simple and only_computes(op)
        return simple and at not in self.fresh and is_tile(op.results[0])

    def _move(self, at: int) -> bool:
        op = self.ops[at]
        ending = [value for value in dict.fromkeys(op.operands) if self._ends(value, at)]
        if sum(map(tile_bits, ending)) <= tile_bits(op.results[0]):
            return False
        makers = [self.maker[value] for value in op.operands if value in self.maker]
        others = [user for value in ending for user in self.users[value] if user != at]
        now = self.place[at]
        first = 1 + max((self.place[other] for other in (*makers, *others)), default=-1)
        if not any(_is_wall(self.ops[other]) for other in self.order[first:now]):
            return False
        op.operation.move_before(self.ops[self.order[first]].operation)
        self.order[first : now + 1] = [at, *self.order[first:now]]
        for place in range(first, now + 1):
            self.place[self.order[place]] = place
        return True

    def _ends(self, value: ir.Value, at: int) -> bool:
        """Whether operation `at` is the last one to use `value`."""
        if value not in self.own or not is_tile(value):
            return False
        return all(self.place[user] <= self.place[at] for user in self.users[value])


def _kind(op: ir.OpView) -> str:
    return op.operation.name.rpartition(".")[2]


def _is_wall(op: ir.OpView) -> bool:
    return _kind(op) in _WALLS or len(op.regions) > 0
