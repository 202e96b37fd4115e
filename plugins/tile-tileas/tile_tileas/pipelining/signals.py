"""Products of tcgen05 that one thread begins: when it may, and when they are done."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.dialect.barriers import CTAS, LEADER, PAIR, in_teams
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tma.barriers import BarrierPlace

_TURN, _WAIT = "nv_tileas.barrier_turn", "nv_tileas.barrier_wait"
_ARRIVE, _FENCE = "nv_tileas.barrier_arrive", "nv_tileas.tmem_fence"


class Signals:
    """Makes barriers of the kernel `func`, of `threads`, and what arrives and waits there: of all
    threads for one that begins products, or of each of several `teams` for its own one.
    """

    def __init__(self, func: ir.Operation, threads: int, teams: int = 1) -> None:
        self._func, self._threads, self._teams = func, threads, teams
        self._how = in_teams(teams)

    def barrier(self, arrivals: int = 1) -> ir.Value:
        """A barrier whose turns are counted, with a stage for each team, made where the kernel
        begins; threads see all of them behind one meeting.
        """
        at = Writer(self._func.location)
        at.move(ir.InsertionPoint(self._func.regions[0].blocks[0].operations[0]))
        place = BarrierPlace(self._func, again=False)
        made = place.made(at, self._teams, arrivals)
        place.seen(at)
        return made

    def meeting(self, times: int = 1) -> ir.Value:
        """A barrier at which each thread arrives, so many `times` for each turn."""
        return self.barrier(times * self._threads // self._teams)

    def arrive(self, at: Writer, here: ir.Value) -> ir.Value:
        """The thread has done what it did in tensor memory, too; the stage where it arrives."""
        stage = self._stage(at)
        at.create(_FENCE, [], [], {"side": ir.StringAttr.get("before")})
        _arrive(at, here, stage, self._teams)
        return stage

    def gather(
        self, at: Writer, turn: ir.Value | None = None, here: ir.Value | None = None
    ) -> ir.Value:
        """The thread that begins products waits for all others; those go on, and run ahead until
        they wait for what it begins here. `turn`: that of another barrier, which has a wait for
        each one here. `here`: a `meeting` where others arrive, too. The turn that is waited for.
        """
        here = self.meeting() if here is None else here
        stage, how = self.arrive(at, here), {LEADER: ir.UnitAttr.get(), **self._how}
        counted = _turn(at, here, self._teams) if turn is None else turn
        at.create(_WAIT, [here, stage, counted], [], how)
        at.create(_FENCE, [], [], {"side": ir.StringAttr.get("after"), **how})
        return counted

    def commit(self, at: Writer, done: ir.Value, *, pair: bool = False) -> ir.Operation:
        """What says at a barrier of these that all products are done that have begun."""
        return commit_products(at, done, self._stage(at), pair=pair, teams=self._teams)

    def wait(self, at: Writer, done: ir.Value) -> None:
        """Until as many arrivals of a barrier have been as there were waits, this one included."""
        operands = [done, self._stage(at), _turn(at, done, self._teams)]
        at.create(_WAIT, operands, [], self._how)
        at.create(_FENCE, [], [], {"side": ir.StringAttr.get("after")})

    def in_turn(self) -> Turns:
        """Turns that the teams take at something."""
        assert self._teams > 1, "one waits for nobody"
        return Turns(self.meeting(), self._teams)

    def _stage(self, at: Writer) -> ir.Value:
        """The stage of a thread's own team."""
        return at.constant(0) if self._teams == 1 else _team(at, self._teams)


@dataclass
class Turns:
    """Teams take turns, each as often as the others, the first one first: threads of a team wait
    at its stage of `barrier` until all of the team before have arrived there.
    """

    barrier: ir.Value
    teams: int
    _mine: tuple[ir.Value, ir.Value] | None = None

    def wait(self, at: Writer) -> None:
        """Until it is the team's turn."""
        team, counted = _team(at, self.teams), _turn(at, self.barrier, self.teams)
        # The first team begins: its turn comes behind what was before the barrier's first phase.
        one = at.constant(1)
        phase = at.binary("xori", counted, at.select(team, 0, one, at.constant(0)))
        self._mine = team, phase
        self.stay(at)

    def stay(self, at: Writer) -> None:
        """It is the team's turn: no code is moved across here."""
        assert self._mine is not None, "the turn has come"
        at.create(_WAIT, [self.barrier, *self._mine], [], in_teams(self.teams))

    def hand_on(self, at: Writer) -> None:
        """Let the next team have its turn."""
        assert self._mine is not None, "the turn has come"
        team, _ = self._mine
        following = at.select(team, self.teams - 1, at.constant(0), at.plus(team, 1))
        _arrive(at, self.barrier, following, self.teams)


def _team(at: Writer, teams: int) -> ir.Value:
    """The number of a thread's own team."""
    return at.create("nv_tileas.team", [], [at.i32], in_teams(teams)).result


def _turn(at: Writer, barrier: ir.Value, teams: int) -> ir.Value:
    return at.create(_TURN, [barrier], [at.i32], in_teams(teams)).result


def _arrive(at: Writer, barrier: ir.Value, stage: ir.Value, teams: int) -> None:
    """The thread arrives, of one of so many teams."""
    arrival = {"by": ir.StringAttr.get("thread"), "kind": ir.StringAttr.get("generic")}
    at.create(_ARRIVE, [barrier, stage], [], {**arrival, **in_teams(teams)})


def commit_products(
    at: Writer,
    barrier: ir.Value,
    stage: ir.Value,
    *,
    pair: bool = False,
    teams: int = 1,
    ctas: int = 1,
) -> ir.Operation:
    """The barrier's stage hears of it when all products that have begun are done, in both blocks if
    a `pair` makes them, in all `ctas` blocks of a cluster that read the same stages; if each of
    several `teams` makes its own, from each of them.
    """
    how: dict[str, ir.Attribute] = {
        "by": ir.StringAttr.get("agent"), "kind": ir.StringAttr.get("tcgen05")
    }  # fmt: skip
    if pair:
        how[PAIR] = ir.UnitAttr.get()
    elif ctas > 1:
        how[CTAS] = ir.IntegerAttr.get(at.i32, ctas)
    return at.create(_ARRIVE, [barrier, stage], [], {**how, **in_teams(teams)})
