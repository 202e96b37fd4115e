"""tileas-dynamic-persistent: blocks take further tile blocks until none is left.

    scf.while (%x = get_program_id 0, %y = .., %z = ..) {
      async_cancel_next_program_id %answer       one thread asks for a block not launched yet
      ..                                         the kernel, with %x, %y, %z for its program id
      barrier_wait                               until the answer is there
      scf.condition(is_valid_program_id) next_program_id 0, 1, 2
    }

What is the same for all tile blocks stays in front. A block that is launched late finds nothing to
do: the grid is as it was, and no launch needs to know (PTX ISA, "clusterlaunchcontrol"; page 066).
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.dialect import distributed
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.launched import ANSWER_WORDS, AXES, CANCEL, IS_VALID
from tile_tileas.kernel_spec import num_ctas, num_warps
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.pipelining.writer import Writer
from tile_tileas.storage import row_major
from tile_tileas.tile_graph import is_tile
from tile_tileas.tma.barriers import BarrierPlace

_PROGRAM_ID = "nv_tileaa.get_program_id"
#: Compute capability from which blocks can be taken over, times 10.
_SINCE = 100
_WORD_BYTES = 4


@dataclass(frozen=True)
class DynamicPersistent(Pass):
    """Make the kernel into dynamic persistent kernels."""

    name = "tileas-dynamic-persistent"
    anchor = "func.func"
    statistics = {"kernels": "kernels whose blocks take further tile blocks"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if "nv_tileaa.kernel" not in op.attributes:
            return
        if any(one.operation.name == IS_VALID for one in _all(op.regions[0])):
            cx.missed(op, "Kernel is already dynamic persistent")
            return
        num_warps(op)  # raises an error where nothing says how the kernel is launched
        reason = _reason(op, cx.target.sm)
        if reason is not None:
            cx.failed(op, f"blocks do not take further tile blocks: {reason}",
                      category="schedule", name="DynamicPersistentFailed")  # fmt: skip
            return
        _Wrapping(op).wrap()
        cx.count("kernels")
        cx.passed(op, "blocks take further tile blocks until none is left")


def _reason(func: ir.Operation, sm: int) -> str | None:
    if sm < _SINCE:
        return f"sm_{sm} has no launch control, which comes with sm_{_SINCE}"
    if num_ctas(func) > 1:
        return f"{num_ctas(func)} blocks of a cluster work on each"
    if not any(one.operation.name == _PROGRAM_ID for one in _all(func.regions[0])):
        return "the kernel does not ask for its program id"
    return None


def _all(region: ir.Region) -> list[ir.OpView]:
    found: list[ir.OpView] = []
    for block in region.blocks:
        for op in block.operations:
            found.append(op)
            for inner in op.regions:
                found += _all(inner)
    return found


class _Wrapping:
    """The body of a kernel, put into a loop."""

    def __init__(self, func: ir.Operation) -> None:
        self._func = func
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
        answer = self._answer(end)
        place = BarrierPlace(self._func, again=False)
        barrier = place.made(at, 1)
        place.seen(at)
        at.move(ir.InsertionPoint(before))
        size = {"bytes": ir.IntegerAttr.get(at.i32, ANSWER_WORDS * _WORD_BYTES)}
        stage = at.constant(0)
        at.create("nv_tileas.barrier_expect", [barrier, stage], [], size)
        at.create(CANCEL, [answer, barrier, stage])
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
                op.operation.name != _PROGRAM_ID
                and not len(op.regions)
                and is_pure(op)
                and not any(is_tile(result) for result in op.results)
                and not any(value in moving for value in op.operands)
            )
            if not stays:
                inside.append(op)
                moving |= set(op.results)
        return inside

    def _answer(self, end: ir.OpView) -> ir.Value:
        """Memory that nothing else ever uses, from the kernel's beginning to its end."""
        at, outer = self._at, self._at.place
        tile = ir.RankedTensorType.get([ANSWER_WORDS], at.i32)
        held = ir.RankedTensorType(distributed(tile, row_major([ANSWER_WORDS])))
        aligned = {"alignment": ir.IntegerAttr.get(at.i32, ANSWER_WORDS * _WORD_BYTES)}
        at.move(ir.InsertionPoint.at_block_begin(self._block))
        type_ = Buffer(held, "shared", 1).type
        made = at.create("nv_tileas.alloc_tensor", [], [type_], aligned).result
        at.move(ir.InsertionPoint(end))
        at.create("nv_tileas.dealloc", [made])
        at.move(outer)
        return made

    def _program_id(self, axis: int) -> ir.Value:
        return self._at.create(_PROGRAM_ID, [], [self._at.i32], self._axis(axis)).result

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
        if op.operation.name == _PROGRAM_ID:
            axis = ir.IntegerAttr(op.attributes["axis"]).value
            op.results[0].replace_all_uses_with(ids[axis])
            op.operation.erase()
