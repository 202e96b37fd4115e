"""Pipes and executors => mbarriers and branches on the number of the warp."""

from __future__ import annotations

from tile_cute.cutlass.dialect.around import integer
from tile_cute.cutlass.dialect.checks.pipes import arms_of, shape_of
from tile_cute.cutlass.dialect.types import numbers_of
from tile_cute.cutlass.pipes import CURSOR, FULL, HANDSHAKE, STRIDED, Shape, advance

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cutlass.numbers import Emitted
from tile_nvptx.passes.cutlass.state import (
    LANES,
    Cutlass,
    address,
    block_meets,
    get,
    given,
    is_lane,
    pack,
    place,
    rules,
    run,
    thread,
    unpack,
    warp,
    warp_meets,
    when,
    words_in_shared,
)
from tile_nvptx.passes.tileas.device import asynchronous as device
from tile_nvptx.passes.tileas.thread.build import Builder

#: Compute capability, times 10, from which waiting for an mbarrier suspends, and from which copies
#: of the asynchronous proxy use mbarriers (PTX ISA, "mbarrier", "Proxies").
_SINCE = 90
_UGE, _ULT = 9, 6  # arith.CmpIPredicate
_INIT = "cutlass.pipeline_init"
_STATE = "pipeline_state"


@rules.on("cutlass.pipeline_create")
def create(op: ir.OpView, cx: Cutlass) -> Replacement:
    """pipeline_create => two mbarriers for each stage"""
    inits = [use.owner for use in op.results[0].uses if use.owner.operation.name == _INIT]
    if len(inits) != 1:
        raise cx.error(f"expects one '{_INIT}' of the pipe, but got {len(inits)}")
    roles = list(inits[0].operands)[1:]
    shape = shape_of(inits[0], cx.before(roles[0]) if roles else None)
    if op.operands:
        words = address(cx, op.operands[0], 3)
    else:
        words = words_in_shared(cx, "pipe", 2 * shape.stages)
    cx.state.pipes[words] = shape
    return words


def shape_in(op: ir.OpView, cx: Cutlass) -> Shape:
    """Who takes part in the pipe that an operation is about."""
    pipe = next(v for v in op.operands if "cutlass.pipeline<" in str(cx.before(v)))
    shape = cx.state.pipes.get(pipe)
    if shape is None:
        raise cx.error("cannot tell which pipe this is: it has to be the result of pipeline_create")
    return shape


@rules.on("cutlass.pipeline_make_participants")
def make_participants(op: ir.OpView, cx: Cutlass) -> Replacement:
    """What its type says is no value"""
    return Builder(cx).constant(0)


@rules.on("cutlass.pipeline_init")
def init(op: ir.OpView, cx: Cutlass) -> Replacement:
    """pipeline_init => mbarrier.init of all barriers by one thread; the block, or cluster, meets"""
    shape, words = shape_in(op, cx), op.operands[0]
    if shape.ctas > 1 and cx.target.sm < _SINCE:
        raise cx.error(f"is for a cluster, which {cx.target.chip} does not have")
    arrivals = shape.arrivals()
    b = Builder(cx)
    first = b.compare(0, thread(cx), b.constant(0))
    with when(cx, first):
        for at in range(2 * shape.stages):
            barrier = place(cx, words, b.constant(at))
            run(cx, device.barrier_init(arrivals[at // shape.stages]), barrier)
        initialised(cx)
    everybody_meets(cx, shape.ctas)
    return None


def initialised(cx: Cutlass) -> None:
    """Other blocks and copies see barriers as they were initialised."""
    if cx.target.sm >= _SINCE:
        run(cx, device.fence("mbarrier_init"))


def everybody_meets(cx: Cutlass, ctas: int) -> None:
    """All threads of the block, or of the cluster."""
    if cx.state.mask != cx.state.all_warps:
        raise cx.error("is for all threads of the block: it cannot stand where some warps come")
    if ctas == 1:
        block_meets(cx)
        return
    cx.create("nvvm.cluster.arrive", [], [], {"aligned": ir.UnitAttr.get()})
    cx.create("nvvm.cluster.wait", [], [], {"aligned": ir.UnitAttr.get()})


# --- cursors -------------------------------------------------------------------------------------


def cursor_of(cx: Cutlass, state: ir.Value) -> dict[str, ir.Value]:
    """Index, phase and count."""
    return unpack(cx, state, CURSOR)


@rules.on("cutlass.pipeline_state_create")
def state_create(op: ir.OpView, cx: Cutlass) -> Replacement:
    """A cursor at the first stage"""
    zero = Builder(cx).constant(0)
    return pack(cx, dict.fromkeys(CURSOR, zero), CURSOR, _STATE)


def advanced(cx: Cutlass, state: ir.Value, stages: int) -> ir.Value:
    """The cursor at the next stage."""
    return pack(cx, advance(Emitted(cx), stages, cursor_of(cx, state)), CURSOR, _STATE)


@rules.on("cutlass.pipeline_state_increment")
def increment(op: ir.OpView, cx: Cutlass) -> Replacement:
    """index + 1, or the first stage and the other phase"""
    return advanced(cx, op.operands[0], numbers_of(cx.before(op.operands[0]))[0])


@rules.on(*(f"cutlass.pipeline_state_get_{name}" for name in CURSOR))
def state_get(op: ir.OpView, cx: Cutlass) -> Replacement:
    """A field of the cursor"""
    at = CURSOR.index(op.operation.name.rpartition("_")[2])
    return get(cx, op.operands[0], at, op.results[0].type)


# --- the handshake -------------------------------------------------------------------------------


def barrier_of(cx: Cutlass, pipe: ir.Value, shape: Shape, which: str, index: ir.Value) -> ir.Value:
    """The address of the full or the empty barrier of a stage."""
    b = Builder(cx)
    at = index if which == FULL else b.with_constant("addi", index, shape.stages)
    return place(cx, pipe, at)


def check_comes(cx: Cutlass, shape: Shape, name: str) -> None:
    """Nobody but participants comes to a step: others would arrive, too."""
    warps = shape.producers if name.startswith("produc") else shape.consumers
    mask = sum(1 << number for number in warps)
    if not cx.state.mask:
        raise cx.error("cannot tell which warps come here: the kernel has no 'num_warps'")
    if cx.state.mask & ~mask:
        raise cx.error(
            f"is reached by warps {cx.state.mask & ~mask:#x}, which do not take part as "
            f"{name.partition('_')[0]}"
        )


def _fills(cx: Cutlass, shape: Shape, index: ir.Value) -> ir.Value | None:
    """Whether the warp fills the stage; None where all producers do."""
    if shape.executor not in STRIDED:
        return None
    n = Emitted(cx)
    mask = shape.producer_mask(n, index)
    bit = n.b.binary("andi", n.b.binary("shrui", mask, warp(cx)), n.constant(1))
    return n.equal(bit, n.constant(1))


def wait(cx: Cutlass, name: str, pipe: ir.Value, shape: Shape, cursor: dict[str, ir.Value]) -> None:
    """A step of the handshake that waits."""
    step, b = HANDSHAKE[name], Builder(cx)
    phase = b.with_constant("xori", cursor["phase"], 1) if step.flipped else cursor["phase"]
    barrier = barrier_of(cx, pipe, shape, step.barrier, cursor["index"])
    run(cx, device.barrier_wait(suspends=cx.target.sm >= _SINCE), barrier, phase)


def arrive(
    cx: Cutlass, name: str, pipe: ir.Value, shape: Shape, cursor: dict[str, ir.Value], size: int = 0
) -> None:
    """A step that arrives: one lane of each warp, after its lanes met."""
    barrier = barrier_of(cx, pipe, shape, HANDSHAKE[name].barrier, cursor["index"])
    if size and cx.target.sm < _SINCE:
        raise cx.error(f"counts bytes of copies, which {cx.target.chip} cannot")
    warp_meets(cx)
    if name == "consumer_release" and shape.ctas > 1:
        b = Builder(cx)
        lane = b.with_constant("andi", thread(cx), LANES - 1)
        with when(cx, b.compare(_ULT, lane, b.constant(shape.ctas))):
            run(cx, device.barrier_arrive_at(), barrier, lane)
        return
    with when(cx, is_lane(cx)):
        run(cx, device.barrier_expect(size) if size else device.barrier_arrive(), barrier)


@rules.on("cutlass.pipeline_producer_acquire", "cutlass.pipeline_consumer_wait")
def wait_for(op: ir.OpView, cx: Cutlass) -> Replacement:
    """producer_acquire, consumer_wait => a loop around mbarrier.try_wait.parity"""
    name = op.operation.name.partition("pipeline_")[2]
    shape, cursor = shape_in(op, cx), cursor_of(cx, op.operands[1])
    check_comes(cx, shape, name)
    flags = []
    if len(op.operands) > 2:
        flags.append(_not(cx, op.operands[2]))
    fills = _fills(cx, shape, cursor["index"]) if name.startswith("producer") else None
    if fills is not None:
        flags.append(fills)
    with when(cx, Builder(cx).all_of(flags)):
        wait(cx, name, op.operands[0], shape, cursor)
    return None


def _not(cx: Cutlass, value: ir.Value) -> ir.Value:
    b = Builder(cx)
    return b.binary("xori", value, b.constant(1, b.i1))


@rules.on("cutlass.pipeline_producer_try_acquire", "cutlass.pipeline_consumer_try_wait")
def try_for(op: ir.OpView, cx: Cutlass) -> Replacement:
    """producer_try_acquire, consumer_try_wait => mbarrier.test_wait.parity, once"""
    name = op.operation.name.partition("pipeline_")[2].replace("try_", "")
    step, b = HANDSHAKE[name], Builder(cx)
    shape, cursor = shape_in(op, cx), cursor_of(cx, op.operands[1])
    check_comes(cx, shape, name)
    phase = b.with_constant("xori", cursor["phase"], 1) if step.flipped else cursor["phase"]
    barrier = barrier_of(cx, op.operands[0], shape, step.barrier, cursor["index"])
    test = device.barrier_test()
    done = cx.state.helpers.call(cx, *test, [barrier, phase], b.i32).result
    return b.compare(1, done, b.constant(0))


@rules.on("cutlass.pipeline_producer_commit", "cutlass.pipeline_consumer_release")
def arrive_at(op: ir.OpView, cx: Cutlass) -> Replacement:
    """producer_commit, consumer_release => mbarrier.arrive; with bytes, arrive.expect_tx"""
    name = op.operation.name.partition("pipeline_")[2]
    shape, cursor = shape_in(op, cx), cursor_of(cx, op.operands[1])
    check_comes(cx, shape, name)
    fills = _fills(cx, shape, cursor["index"]) if name.startswith("producer") else None
    with when(cx, fills):
        arrive(cx, name, op.operands[0], shape, cursor, integer(op, "transaction_bytes", 0))
    return None


@rules.on("cutlass.pipeline_producer_tail")
def tail(op: ir.OpView, cx: Cutlass) -> Replacement:
    """producer_tail => bulk copies drain; an acquisition of each stage"""
    shape, cursor = shape_in(op, cx), cursor_of(cx, op.operands[1])
    check_comes(cx, shape, "producer_tail")
    if cx.target.sm >= _SINCE:
        drain(cx)
    for _ in range(shape.stages):
        with when(cx, _fills(cx, shape, cursor["index"])):
            wait(cx, "producer_acquire", op.operands[0], shape, cursor)
        cursor = advance(Emitted(cx), shape.stages, cursor)
    return None


def drain(cx: Cutlass) -> None:
    """Until the thread's bulk copies are done."""
    group = {"group": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)}
    cx.create("nvvm.cp.async.bulk.wait_group", [], [], group)


@rules.on("cutlass.pipeline_produce", "cutlass.pipeline_consume")
def stage(op: ir.OpView, cx: Cutlass) -> Replacement:
    """produce, consume => wait, the region, arrive; the cursor at the next stage"""
    produces = op.operation.name.endswith("produce")
    first, last = (
        ("producer_acquire", "producer_commit")
        if produces
        else ("consumer_wait", "consumer_release")
    )
    pipe, state = op.operands
    shape, cursor = shape_in(op, cx), cursor_of(cx, state)
    check_comes(cx, shape, first)
    size = integer(op, "transaction_bytes", 0)
    with when(cx, _fills(cx, shape, cursor["index"]) if produces else None):
        wait(cx, first, pipe, shape, cursor)
        if size:
            arrive(cx, last, pipe, shape, cursor, size)
        move_inside(op, cx)
        if not size:
            arrive(cx, last, pipe, shape, cursor)
    return advanced(cx, state, shape.stages)


def move_inside(op: ir.OpView, cx: Cutlass) -> None:
    """Convert what a region of one block holds, where code is inserted."""
    for block in op.regions[0].blocks:
        for inner in list(block.operations):
            cx.insertion_point.insert(inner.operation.detach_from_parent())
            cx.convert_op(inner)


@rules.on("cutlass.pipeline_get_producer_barrier")
def producer_barrier(op: ir.OpView, cx: Cutlass) -> Replacement:
    """The full barrier of the stage"""
    shape, cursor = shape_in(op, cx), cursor_of(cx, op.operands[1])
    barrier = barrier_of(cx, op.operands[0], shape, FULL, cursor["index"])
    return given(cx, barrier, op.results[0].type)


@rules.on("cutlass.pipeline_get_producer_mask")
def producer_mask(op: ir.OpView, cx: Cutlass) -> Replacement:
    """A bit for each warp that fills the stage"""
    shape, cursor = shape_in(op, cx), cursor_of(cx, op.operands[1])
    return shape.producer_mask(Emitted(cx), cursor["index"])


# --- executors -----------------------------------------------------------------------------------


@rules.on("cutlass.pipeline_switch_by_executor")
def switch(op: ir.OpView, cx: Cutlass) -> Replacement:
    """switch_by_executor => its arms, one behind the other"""
    for arm in arms_of(op):
        cx.insertion_point.insert(arm.operation.detach_from_parent())
        cx.convert_op(arm)
    return None


@rules.on("cutlass.async_exec")
def async_exec(op: ir.OpView, cx: Cutlass) -> Replacement:
    """async_exec => scf.if on the number of the warp"""
    state = cx.state
    outer = state.mask
    mask = integer(op, "mask", outer)
    flags = []
    if mask != outer:
        b, number = Builder(cx), warp(cx)
        low, high = (mask & -mask).bit_length() - 1, mask.bit_length()
        flags += [b.compare(_UGE, number, b.constant(low))] if low else []
        if high < outer.bit_length() or not outer:
            flags.append(b.compare(_ULT, number, b.constant(high)))
    state.mask = mask
    with when(cx, Builder(cx).all_of(flags)):
        move_inside(op, cx)
    state.mask = outer
    return None
