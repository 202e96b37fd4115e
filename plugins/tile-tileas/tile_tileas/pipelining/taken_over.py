"""Kernels whose blocks take over tile blocks that have not been launched.

    scf.while (%x = get_program_id 0, %y = .., %z = ..) {
      async_cancel_next_program_id %answer       one thread asks for a block not launched yet
      ..                                         the kernel, with %x, %y, %z for its program id
      barrier_wait                               until the answer is there
      scf.condition(is_valid_program_id) next_program_id 0, 1, 2
    }

What is the same for all tile blocks stays in front. A block that is launched late finds nothing to
do: the grid is as it was, and no launch needs to know (PTX ISA, "clusterlaunchcontrol"; page 066).
Blocks of a cluster ask for one tile block: the first one does, and meets the others before, as all
have to have read the last answer.

Agents go through tile blocks each at its own pace: for those answers go through a pipe
(`question`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.mlir import ir
from tile_tileas.analysis.tokens import ACCESSES, is_weak
from tile_tileas.analysis.users import operations
from tile_tileas.dialect.launched import AXES, IS_VALID, TAKE
from tile_tileas.kernel_spec import num_ctas
from tile_tileas.pipelining.question import answers, ask
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tile_graph import is_tile
from tile_tileas.tma.barriers import BarrierPlace

PROGRAM_ID = "nv_tileaa.get_program_id"
#: Compute capability from which blocks can be taken over, times 10.
_SINCE = 100


def problem_of(func: ir.Operation, sm: int) -> str | None:
    """Why blocks of a kernel take over no others; None if they can."""
    if sm < _SINCE:
        return f"sm_{sm} has no launch control, which comes with sm_{_SINCE}"
    if not any(one.operation.name == PROGRAM_ID for one in operations(func.regions[0])):
        return "the kernel does not ask for its program id"
    return None


def is_taken_over(func: ir.Operation) -> bool:
    """Whether blocks of a kernel take over others already."""
    return any(one.operation.name in (IS_VALID, TAKE) for one in operations(func.regions[0]))


def ordered_in(func: ir.Operation) -> Iterator[str]:
    """Accesses of a kernel that others may wait for: with those, blocks that have not begun may
    have to go on beside the ones that have.
    """
    for op in operations(func.regions[0]):
        if op.operation.name in ACCESSES and not is_weak(op):
            yield op.operation.name


class TakenOver:
    """Puts the body of a kernel into a loop over tile blocks."""

    def __init__(self, func: ir.Operation) -> None:
        self._func = func
        self._ctas = num_ctas(func)
        self._block = func.regions[0].blocks[0]
        self._at = Writer(func.location)

    def wrap(self) -> None:
        *body, end = list(self._block.operations)
        inside = self._inside(body)
        for op in inside:
            op.operation.detach_from_parent()
        at = self._at
        at.move(ir.InsertionPoint(end))
        first = [self._program_id(axis) for axis in range(AXES)]
        kinds = [at.i32] * AXES
        loop = at.create("scf.while", first, kinds, regions=2)
        places = [self._func.location] * AXES
        before = loop.regions[0].blocks.append(*kinds, arg_locs=places)
        after = loop.regions[1].blocks.append(*kinds, arg_locs=places)
        at.move(ir.InsertionPoint(loop))
        answer = answers(at, self._block, 1)
        place = BarrierPlace(self._func, again=False)
        barrier = place.made(at, 1)
        place.seen(at, in_cluster=self._ctas > 1)
        at.move(ir.InsertionPoint(before))
        stage = at.constant(0)
        if self._ctas > 1:
            at.meet(in_cluster=True)
        ask(at, answer, barrier, stage, self._ctas)
        for op in inside:
            before.append(op)
        _use(before, list(before.arguments))
        at.move(ir.InsertionPoint(before))
        phase = at.create("nv_tileas.barrier_turn", [barrier], [at.i32]).result
        at.create("nv_tileas.barrier_wait", [barrier, stage, phase])
        i1 = ir.IntegerType.get_signless(1)
        valid = at.create(IS_VALID, [answer], [i1]).result
        following = [self._next(answer, axis) for axis in range(AXES)]
        at.create("scf.condition", [valid, *following])
        at.move(ir.InsertionPoint(after))
        at.create("scf.yield", list(after.arguments))

    def _inside(self, body: list[ir.OpView]) -> list[ir.OpView]:
        """Program ids, what depends on them or has effects, and tiles, which would take registers
        from one tile block to the next.
        """
        moving: set[ir.Value] = set()
        inside = []
        for op in body:
            stays = (
                op.operation.name != PROGRAM_ID
                and not len(op.regions)
                and is_pure(op)
                and not any(is_tile(result) for result in op.results)
                and not any(value in moving for value in op.operands)
            )
            if not stays:
                inside.append(op)
                moving |= set(op.results)
        return inside

    def _program_id(self, axis: int) -> ir.Value:
        return self._at.create(PROGRAM_ID, [], [self._at.i32], self._axis(axis)).result

    def _next(self, answer: ir.Value, axis: int) -> ir.Value:
        at = self._at
        return at.create("nv_tileas.next_program_id", [answer], [at.i32], self._axis(axis)).result

    def _axis(self, axis: int) -> dict[str, ir.Attribute]:
        return {"axis": ir.IntegerAttr.get(self._at.i32, axis)}


def _use(block: ir.Block, ids: list[ir.Value]) -> None:
    """Program ids of the loop instead of the launch's."""
    for op in list(block.operations):
        for region in op.regions:
            for inner in region.blocks:
                _use(inner, ids)
        if op.operation.name == PROGRAM_ID:
            axis = ir.IntegerAttr(op.attributes["axis"]).value
            op.results[0].replace_all_uses_with(ids[axis])
            op.operation.erase()
