"""Products of tcgen05 that one thread begins: when it may, and when they are done."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_tileas.dialect.barriers import LEADER, PAIR
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tma.barriers import BarrierPlace

_TURN, _WAIT = "nv_tileas.barrier_turn", "nv_tileas.barrier_wait"
_ARRIVE, _FENCE = "nv_tileas.barrier_arrive", "nv_tileas.tmem_fence"


class Signals:
    """Makes barriers of the kernel `func`, of `threads`, and what arrives and waits there."""

    def __init__(self, func: ir.Operation, threads: int) -> None:
        self._func, self._threads = func, threads

    def barrier(self, arrivals: int = 1) -> ir.Value:
        """A barrier whose turns are counted, made where the kernel begins; threads see all of them
        behind one meeting.
        """
        at = Writer(self._func.location)
        at.move(ir.InsertionPoint(self._func.regions[0].blocks[0].operations[0]))
        place = BarrierPlace(self._func, again=False)
        made = place.made(at, 1, arrivals)
        place.seen(at)
        return made

    def gather(self, at: Writer, turn: ir.Value | None = None) -> ir.Value:
        """The thread that begins products waits for all others; those go on, and run ahead until
        they wait for what it begins here. `turn`: that of another barrier, which has a wait for
        each one here. The turn that is waited for.
        """
        here = self.barrier(self._threads)
        zero, how = at.constant(0), {LEADER: ir.UnitAttr.get()}
        at.create(_FENCE, [], [], {"side": ir.StringAttr.get("before")})
        arrival = {"by": ir.StringAttr.get("thread"), "kind": ir.StringAttr.get("generic")}
        at.create(_ARRIVE, [here, zero], [], arrival)
        counted = at.create(_TURN, [here], [at.i32]).result if turn is None else turn
        at.create(_WAIT, [here, zero, counted], [], how)
        at.create(_FENCE, [], [], {"side": ir.StringAttr.get("after"), **how})
        return counted


def await_products(at: Writer, done: ir.Value, zero: ir.Value) -> None:
    """Until as many arrivals of a barrier have been as there were waits, this one included."""
    turn = at.create(_TURN, [done], [at.i32]).result
    at.create(_WAIT, [done, zero, turn])
    at.create(_FENCE, [], [], {"side": ir.StringAttr.get("after")})


def commit_products(
    at: Writer, barrier: ir.Value, stage: ir.Value, *, pair: bool = False
) -> ir.Operation:
    """The barrier's stage hears of it when all products that have begun are done, in both blocks if
    a `pair` makes them.
    """
    how: dict[str, ir.Attribute] = {
        "by": ir.StringAttr.get("agent"), "kind": ir.StringAttr.get("tcgen05")
    }  # fmt: skip
    if pair:
        how[PAIR] = ir.UnitAttr.get()
    return at.create(_ARRIVE, [barrier, stage], [], how)
