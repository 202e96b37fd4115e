"""Parts of output tiles: the workspace, handing over, summing up."""

from __future__ import annotations

from tile_cute.cutlass import schedules
from tile_cute.cutlass.dialect.around import integer
from tile_cute.cutlass.dialect.types import kind_of
from tile_cute.cutlass.records import FIELDS

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cutlass.barriers import increment, wait_for
from tile_nvptx.passes.cutlass.numbers import Emitted
from tile_nvptx.passes.cutlass.schedulers import work_of
from tile_nvptx.passes.cutlass.state import (
    Cutlass,
    get,
    is_first,
    params_of,
    rules,
    run,
    thread,
    when,
)
from tile_nvptx.passes.tileas.device import asynchronous as device
from tile_nvptx.passes.tileas.thread.build import Builder

_PREFIX = "cutlass.tile_scheduler_"
_COUNTER = 4  # bytes
_WORKSPACE = list(FIELDS).index("workspace_ptr")


class _Workspace:
    """Where parts and counters of this block's output tiles lie.

    Args:
        size: bytes of the accumulators of one output tile.
    """

    def __init__(self, cx: Cutlass, params: ir.Value, info: ir.Value | None, size: int) -> None:
        self.cx, self.size = cx, size
        self.n = Emitted(cx, 64)
        self.p = params_of(cx, params, 64)
        self.base = cx.create(
            "llvm.inttoptr",
            [get(cx, params, _WORKSPACE, self.n.type)],
            [ir.Type.parse("!llvm.ptr<1>")],
        ).result
        self.sums = schedules.workspace(self.n, self.p, size)[1]
        self.place = None if info is None else self._place(info)

    def _place(self, info: ir.Value) -> ir.Value:
        """The number of the block's output tile among those that are cut."""
        n, cx = self.n, self.cx
        place = n.mul(work_of(cx, info)["tile"], self.p["num_ctas_per_cluster"])
        if cx.state.ctas == 1:
            return place
        i32 = ir.IntegerType.get_signless(32)
        rank = cx.create("nvvm.read.ptx.sreg.cluster.ctarank", [], [i32]).result
        return n.add(place, rank)

    def counter(self, at: ir.Value | None = None) -> ir.Value:
        """The address of a counter; of the tile's own without a number."""
        n, b = self.n, self.n.b
        number = self.place if at is None else at
        assert number is not None
        offset = n.add(self.sums, n.mul(number, n.constant(_COUNTER)))
        return b.offset(self.base, offset, b.i8)

    def part(self, split: ir.Value) -> ir.Value:
        """The address of a part of the tile."""
        n, b = self.n, self.n.b
        assert self.place is not None
        slots = n.sub(self.p["k_split_count"], n.constant(1))
        number = n.add(n.mul(self.place, slots), split)
        return b.offset(self.base, n.mul(number, n.constant(self.size)), b.i8)


@rules.on(_PREFIX + "compute_epilogue")
def epilogue(op: ir.OpView, cx: Cutlass) -> Replacement:
    """Whether this is the last part of its tile"""
    return schedules.is_final(Emitted(cx), work_of(cx, op.operands[0]))


@rules.on(_PREFIX + "get_workspace_sizes")
def sizes(op: ir.OpView, cx: Cutlass) -> Replacement:
    """Bytes of the workspace; none but StreamK has one"""
    n = Emitted(cx, 64)
    if kind_of(cx.before(op.operands[0])) != "streamk":
        return [n.constant(0)] * 3
    p = params_of(cx, op.operands[0], 64)
    return list(schedules.workspace(n, p, integer(op, "accumulator_bytes")))


@rules.on(_PREFIX + "initialize_workspace")
def initialize(op: ir.OpView, cx: Cutlass) -> Replacement:
    """A loop over the counters, shared by all threads of the grid"""
    place = _Workspace(cx, op.operands[0], None, integer(op, "accumulator_bytes"))
    n = Emitted(cx)
    p = params_of(cx, op.operands[0])
    count = n.mul(schedules.streamk_tiles(n, p), p["num_ctas_per_cluster"])
    first, step = _in_grid(cx, n)
    index = ir.IndexType.get()
    bounds = [cx.create("arith.index_cast", [v], [index]).result for v in (first, count, step)]
    loop = cx.create("scf.for", bounds, [], regions=1)
    body = loop.regions[0].blocks.append(index)
    with cx.at(ir.InsertionPoint(body)):
        number = cx.create("arith.index_cast", [body.arguments[0]], [place.n.type]).result
        run(cx, device.count_reset(), place.counter(number))
        cx.create("scf.yield")
    return None


def _in_grid(cx: Cutlass, n: Emitted) -> tuple[ir.Value, ir.Value]:
    """(number of the thread in a grid of one dimension, threads of the grid)."""
    read = {
        name: cx.create(f"nvvm.read.ptx.sreg.{name}", [], [n.type]).result
        for name in ("ctaid.x", "nctaid.x", "ntid.x")
    }
    own = n.add(n.mul(read["ctaid.x"], read["ntid.x"]), thread(cx))
    return own, n.mul(read["nctaid.x"], read["ntid.x"])


@rules.on(_PREFIX + "fixup_increment")
def fixup_increment(op: ir.OpView, cx: Cutlass) -> Replacement:
    """One more part has been handed over"""
    params, info = op.operands
    place = _Workspace(cx, params, info, integer(op, "accumulator_bytes"))
    increment(op, cx, place.counter())
    return None


@rules.on(_PREFIX + "fixup_wait")
def fixup_wait(op: ir.OpView, cx: Cutlass) -> Replacement:
    """Until all parts but one have been handed over"""
    params, info = op.operands
    place = _Workspace(cx, params, info, integer(op, "accumulator_bytes"))
    n = Emitted(cx)
    others = n.sub(work_of(cx, info)["splits"], n.constant(1))
    wait_for(op, cx, place.counter(), others, least=False)
    return None


# --- fixup ---------------------------------------------------------------------------------------


@rules.on(_PREFIX + "fixup")
def fixup(op: ir.OpView, cx: Cutlass) -> Replacement:
    """fixup => of one part nothing; a part that is not the last is stored and counted; the last
    waits for the others, adds them in their order, itself at the end, and resets the counter
    """
    params, info, partial, index = op.operands
    kind = ir.VectorType(partial.type)
    threads = integer(op, "threads")
    size = kind.shape[0] * _bits(kind.element_type) // 8 * threads
    n, work = Emitted(cx), work_of(cx, info)
    several = n.less(n.constant(1), work["splits"])
    final = schedules.is_final(n, work)
    branch = cx.create("scf.if", [several], [partial.type], regions=2)
    with cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
        place = _Workspace(cx, params, info, size)
        last = cx.create("scf.if", [final], [partial.type], regions=2)
        with cx.at(ir.InsertionPoint(last.regions[0].blocks.append())):
            cx.create("scf.yield", [_summed(op, cx, place, work, partial, index)])
        with cx.at(ir.InsertionPoint(last.regions[1].blocks.append())):
            _striped(cx, place.part(work["split"]), index, threads, kind, partial)
            increment(op, cx, place.counter())
            cx.create("scf.yield", [partial])
        cx.create("scf.yield", [last.result])
    with cx.at(ir.InsertionPoint(branch.regions[1].blocks.append())):
        cx.create("scf.yield", [partial])
    return branch.result


def _bits(type_: ir.Type) -> int:
    assert isinstance(type_, ir.IntegerType | ir.FloatType)
    return type_.width


def _summed(
    op: ir.OpView,
    cx: Cutlass,
    place: _Workspace,
    work: dict[str, ir.Value],
    partial: ir.Value,
    index: ir.Value,
) -> ir.Value:
    n, kind = Emitted(cx), ir.VectorType(partial.type)
    threads = integer(op, "threads")
    others = n.sub(work["splits"], n.constant(1))
    wait_for(op, cx, place.counter(), others, least=False)
    with when(cx, is_first(cx)):
        run(cx, device.count_reset(), place.counter())
    first = _striped(cx, place.part(n.constant(0)), index, threads, kind)
    loop = cx.create("scf.for", [n.constant(1), others, n.constant(1), first], [kind], regions=1)
    body = loop.regions[0].blocks.append(n.type, kind)
    with cx.at(ir.InsertionPoint(body)):
        part = _striped(cx, place.part(body.arguments[0]), index, threads, kind)
        cx.create("scf.yield", [_added(cx, body.arguments[1], part)])
    return _added(cx, loop.result, partial)


def _added(cx: Cutlass, left: ir.Value, right: ir.Value) -> ir.Value:
    element = ir.VectorType(left.type).element_type
    name = "arith.addi" if isinstance(element, ir.IntegerType) else "arith.addf"
    return cx.create(name, [left, right], [left.type]).result


def _striped(
    cx: Cutlass,
    base: ir.Value,
    index: ir.Value,
    threads: int,
    kind: ir.VectorType,
    value: ir.Value | None = None,
) -> ir.Value:
    """The thread's elements of a part, `threads` apart; stored if a value is given."""
    b = Builder(cx)
    own = b.offset(base, index, kind.element_type)
    items = []
    for at in range(kind.shape[0]):
        where = b.offset(own, at * threads, kind.element_type)
        if value is None:
            items.append(cx.create("llvm.load", [where], [kind.element_type]).result)
        else:
            cx.create("llvm.store", [b.extract(value, at), where])
    return b.vector(items) if value is None else value
