"""Loops whose loads have stages of their own, waited for and filled anew each in its place.

As `Multistage`, but that nobody meets where an iteration begins: stages are read by products that
somebody waits for in the body. Of S stages that of iteration i is filled anew for i+S

    in i            where its product was begun in i-1 (`Spot.first`), or in i (`Spot.own`), and i
                    has waited for it
    in i+1          where its product was begun in i, and i+1 waits for it

Where there is but one, the last kind is filled before the loop, too, and not in the first
iteration; and of products the thread alone that begins them waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.multistage import Multistage
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.signals import commit_products
from tile_tileas.tma.filling import Tma

_Part = tuple[Tma, Prefetch]


@dataclass(frozen=True)
class Spot:
    """Where one filling has its place in a body: it is waited for before `read`, and a stage that
    has been read is filled anew behind `free`. Loads of such loops carry nothing.

    Attributes:
        first: a product before the loop that reads the first tile from a buffer of its own, which
            the stage takes the place of. What the body reads is the tile of the iteration after
            its own then, one more than the loop has.
        own: the iteration that reads a stage is the one that frees it.
        apart: a thread of its own waits for that, and begins copies.
        last: the last operation of the body that reads a stage, where each of several `teams` has
            products of its own that do: a stage is free when those of all of them have said so,
            for which the thread that copies waits behind `free`.
    """

    read: ir.OpView
    free: ir.OpView
    first: ir.OpView | None = None
    own: bool = False
    apart: bool = False
    last: ir.OpView | None = None
    teams: int = 1


#: Iterations whose stages are still read when the next filling begins, less one: stages are filled
#: for as many iterations as there are stages.
_LAG = -1


class Spotted(Multistage):
    """One `scf.for`; `spots` are those of the fillings, in their order, whose stages products read
    and nobody else.
    """

    def __init__(
        self, loop: ir.OpView, parts: Sequence[_Part], stages: int, spots: Sequence[Spot]
    ) -> None:
        super().__init__(loop, [(filling, [load]) for filling, load in parts], stages, _LAG)
        assert not self.carried, "loads carry nothing"
        self._parts = list(zip(spots, parts, strict=True))
        self._passed = [spot.first for spot in spots if spot.first is not None]

    @property
    def _fills_alike(self) -> bool:
        return False

    def _fill_first(self, ahead: int, slot: Slot, places: list[ir.Value]) -> list[ir.Value]:
        at = self._at
        for spot, part in self._parts:
            exists = None
            if spot.first is not None:
                always = at.constant(1, ir.IntegerType.get_signless(1))
                exists = self._later(self.lower, ahead - 1)[1] if ahead else always
            elif ahead and ahead == self.stages - 1 and not spot.own:
                continue  # the first iteration fills it
            self._fetch(self.lower, ahead, slot, [], fillings=_alone(part), exists=exists)
        return places

    @property
    def _meets_in_each_step(self) -> bool:
        return False

    def _step(self, slot: Slot, places: list[ir.Value]) -> list[ir.Value]:
        at, following = self._at, self._following(slot)
        for spot, (filling, load) in self._parts:
            read = slot if spot.first is None else following
            outer = at.place
            self._read(load, read)
            at.move(ir.InsertionPoint(spot.read))
            alone = self.stages == 1 or spot.last is not None
            filling.wait(at, read, self.ahead - 1, leader=alone)
            if spot.last is not None:
                at.move(ir.InsertionPoint.after(spot.last))
                commit_products(at, filling.emptied, read.index, teams=spot.teams)
            at.move(ir.InsertionPoint.after(spot.free))
            if spot.last is not None:
                filling.await_read(at, slot)
            self._fill_again(spot, (filling, load), slot)
            if spot.first is not None:
                self._read_first(spot, filling, load)
            at.move(outer)
        return places

    def run(self) -> ir.Operation:
        """As of others; behind it, no product is to say what nobody has waited for."""
        new = super().run()
        at = self._at
        for spot, (filling, _) in self._parts:
            if spot.first is not None and spot.last is not None:
                at.move(ir.InsertionPoint.after(new))
                filling.await_read(at, self.slot_behind(new))
        return new

    def _fill_again(self, spot: Spot, part: _Part, slot: Slot) -> None:
        """Fill the stage that was read last for the next iteration whose turn it is."""
        at, now = self._at, self.block.arguments[0]
        later = spot.first is None and not spot.own
        _, exists = self._later(now, self.stages if spot.own else self.stages - 1)
        if later and self.stages == 1:
            begun = at.is_less(at.wide(self.lower), at.wide(now))
            exists = at.binary("andi", exists, begun)
        ahead = self.stages - later
        refilled = self._refilled(slot, ahead)
        again = spot.last is None
        self._fetch(now, ahead, refilled, [], again=again, fillings=_alone(part), exists=exists)

    def _read_first(self, spot: Spot, filling: Tma, load: Prefetch) -> None:
        """Let the product before the loop read the stage of the first tile."""
        at, product = self._at, spot.first
        assert product is not None, "there is one"
        at.move(ir.InsertionPoint(product))
        slot = Slot(at.constant(0), at.constant(0))
        filling.wait(at, slot, self.ahead - 1, leader=True)
        buffer = product.operands[1]
        view = at.view(self._buffers[load.load.results[0]], slot.index)
        product.operands[1] = at.reinterpret(view, buffer.type)
        buffer.owner.erase()
        if spot.last is not None:
            at.move(ir.InsertionPoint.after(product))
            commit_products(at, filling.emptied, slot.index, teams=spot.teams)


def _alone(part: _Part) -> Sequence[tuple[Tma, Sequence[Prefetch]]]:
    filling, load = part
    return [(filling, [load])]
