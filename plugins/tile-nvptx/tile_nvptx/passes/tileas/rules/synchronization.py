"""Where threads meet and wait: `sync`, fences, mbarriers, groups of copies."""

from __future__ import annotations

from tile_cute.linear.layout import is_power_of_two, log2
from tile_tileas.dialect.barriers import COPIER, CTAS, LEADER, PAIR, TEAM, WITH_WARP
from tile_tileas.dialect.buffers import Barrier

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device import asynchronous as device
from tile_nvptx.passes.tileas.device.tensor_memory import commit
from tile_nvptx.passes.tileas.ruleset import rules, text
from tile_nvptx.passes.tileas.thread.build import Builder, token
from tile_nvptx.passes.tileas.thread.shared import when
from tile_nvptx.passes.tileas.thread.state import LANES, Kernel

_BARRIER_BYTES = 8
#: Compute capability from which waiting for an mbarrier suspends, times 10 (PTX ISA, "mbarrier").
_SUSPENDS_SINCE = 90
#: Compute capability from which memory has an asynchronous proxy (PTX ISA, "Proxies").
_PROXIES_SINCE = 90
_EQ = 0
#: Blocks of a pair, and a bit for each.
_OF_PAIR, _PAIR_MASK = 2, 3


def run(cx: Kernel, routine: device.Routine, *operands: ir.Value) -> None:
    """Call a device function without result."""
    cx.state.helpers.call(cx, *routine, list(operands), None)


def first_thread(cx: Kernel) -> ir.Value:
    """i1: this is the agent's first thread."""
    index = cx.state.thread_index(cx)
    return cx.state.once(cx, ("first",), lambda b: b.compare(_EQ, index, b.constant(0)))


def begins_copies(cx: Kernel, op: ir.OpView) -> ir.Value:
    """i1: this thread begins copies: the agent's first one, or that of its second warp, or of the
    last team's.
    """
    if COPIER not in op.attributes:
        return first_thread(cx)
    first, each = 0, cx.state.num_warps
    if TEAM in op.attributes:
        each = _warps_of_team(cx, op)
        first = cx.state.num_warps - each
    index, one = cx.state.thread_index(cx), LANES * (first + min(1, each - 1))
    return cx.state.once(cx, ("copier", one), lambda b: b.compare(_EQ, index, b.constant(one)))


def _warps_of_team(cx: Kernel, op: ir.OpView) -> int:
    """Warps of each team of this agent.

    Raises:
        CompileError: it has not as many for each, a power of two.
    """
    teams = ir.IntegerAttr(op.attributes[TEAM]).value
    each, rest = divmod(cx.state.num_warps, teams)
    if rest or not is_power_of_two(each):
        raise cx.error(f"has {cx.state.num_warps} warps for {teams} teams")
    return each


def _leads_team(cx: Kernel, op: ir.OpView) -> ir.Value:
    """i1: this is the first thread of its team."""
    index, threads = cx.state.thread_index(cx), LANES * _warps_of_team(cx, op)

    def first(b: Builder) -> ir.Value:
        return b.compare(_EQ, b.with_constant("andi", index, threads - 1), b.constant(0))

    return cx.state.once(cx, ("leads team", threads), first)


def team_of(cx: Kernel, op: ir.OpView) -> ir.Value:
    """i32: the number of the thread's team."""
    index, bits = cx.state.thread_index(cx), log2(LANES * _warps_of_team(cx, op))
    return cx.state.once(cx, ("team", bits), lambda b: b.with_constant("shrui", index, bits))


def first_of_pair(cx: Kernel) -> ir.Value:
    """i32: the number of the first block of this block's pair."""

    def first(b: Builder) -> ir.Value:
        alone = cx.state.num_ctas <= _OF_PAIR
        return b.constant(0) if alone else b.with_constant("andi", _rank(cx), -_OF_PAIR)

    return cx.state.once(cx, ("first of pair",), first)


def _rank(cx: Kernel) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    return cx.create("nvvm.read.ptx.sreg.cluster.ctarank", [], [i32]).result


def leads_pair(cx: Kernel) -> ir.Value:
    """i1: this is the first thread of the agent of the pair's first block."""

    def both(b: Builder) -> ir.Value:
        return b.binary("andi", first_thread(cx), _is_first_of_pair(cx))

    return cx.state.once(cx, ("first of pair leads",), both)


def leads_cluster(cx: Kernel) -> ir.Value:
    """i1: this is the first thread of the agent of the cluster's first block."""

    def both(b: Builder) -> ir.Value:
        return b.binary("andi", first_thread(cx), b.compare(_EQ, _rank(cx), b.constant(0)))

    return cx.state.once(cx, ("first of cluster leads",), both)


def _is_first_of_pair(cx: Kernel) -> ir.Value:
    """i1: this block is the first one of its pair."""

    def first(b: Builder) -> ir.Value:
        return b.compare(_EQ, b.with_constant("andi", _rank(cx), 1), b.constant(0))

    return cx.state.once(cx, ("in first of pair",), first)


def leader(cx: Kernel, op: ir.OpView) -> ir.Value:
    """i1: this thread does what one does for the block, or for its pair."""
    if TEAM in op.attributes and COPIER not in op.attributes:
        return _leads_team(cx, op)
    if PAIR not in op.attributes:
        return begins_copies(cx, op)
    if COPIER not in op.attributes:
        return leads_pair(cx)
    copier = begins_copies(cx, op)

    def both(b: Builder) -> ir.Value:
        return b.binary("andi", copier, _is_first_of_pair(cx))

    return cx.state.once(cx, ("first of pair copies",), both)


def barrier_at(cx: Kernel, barrier: ir.Value, stage: ir.Value) -> ir.Value:
    """Address of the mbarrier of a stage."""
    b, known = Builder(cx), Barrier.of(cx.before(barrier))
    assert known is not None, "verified"
    if known.stages == 1:
        return barrier
    return b.offset(barrier, b.with_constant("muli", stage, _BARRIER_BYTES), b.i8)


@rules.on("nv_tileas.sync")
def sync(op: ir.OpView, cx: Kernel) -> None:
    """sync => bar.sync of the agent's threads"""
    if cx.state.agent.only is not None:
        raise cx.error("stands in code of one thread")
    Builder(cx).barrier()


@rules.on("nv_tileas.fence")
def fence(op: ir.OpView, cx: Kernel) -> None:
    """fence => fence.proxy.async, fence.mbarrier_init; nothing where there are no proxies"""
    if cx.target.sm >= _PROXIES_SINCE:
        run(cx, device.fence(text(op, "proxy")))


@rules.on("nv_tileas.barrier_init")
def barrier_init(op: ir.OpView, cx: Kernel) -> ir.Value:
    """barrier_init => mbarrier.init of each stage, by one thread"""
    b, words = Builder(cx), op.operands[0]
    barrier = Barrier.of(op.results[0].type)
    assert barrier is not None, "verified"
    with when(cx, first_thread(cx)):
        for stage in range(barrier.stages):
            place = b.offset(words, stage * _BARRIER_BYTES, b.i8)
            run(cx, device.barrier_init(barrier.arrivals), place)
    return words


@rules.on("nv_tileas.barrier_invalidate")
def barrier_invalidate(op: ir.OpView, cx: Kernel) -> None:
    """barrier_invalidate => mbarrier.inval of each stage, by one thread"""
    b, words = Builder(cx), op.operands[0]
    barrier = Barrier.of(cx.before(words))
    assert barrier is not None, "verified"
    with when(cx, first_thread(cx)):
        for stage in range(barrier.stages):
            run(cx, device.barrier_invalidate(), b.offset(words, stage * _BARRIER_BYTES, b.i8))


@rules.on("nv_tileas.barrier_expect")
def barrier_expect(op: ir.OpView, cx: Kernel) -> None:
    """barrier_expect => mbarrier.arrive.expect_tx, by one thread"""
    place = barrier_at(cx, op.operands[0], op.operands[1])
    with when(cx, leader(cx, op)):
        run(cx, device.barrier_expect(op.bytes.value), place)


@rules.on("nv_tileas.barrier_arrive")
def barrier_arrive(op: ir.OpView, cx: Kernel) -> None:
    """barrier_arrive => mbarrier.arrive by each thread, or by one after its warp or agent met;
    tcgen05.commit by the thread that begins products
    """
    place, by = barrier_at(cx, op.operands[0], op.operands[1]), text(op, "by")
    if text(op, "kind") == "cp.async":
        run(cx, device.barrier_arrive_copies(), place)
        return
    if text(op, "kind") == "tcgen05":
        pair = PAIR in op.attributes
        mask = [_both(cx)] if pair else _whole_cluster(cx, op)
        with when(cx, leader(cx, op)):
            run(cx, commit(pair=pair, to_others=bool(mask)), place, *mask)
        return
    b, arrive = Builder(cx), device.barrier_arrive()
    if by == "thread":
        run(cx, arrive, place)
        return
    if by == "agent":
        b.barrier()
        leads = first_thread(cx)
    else:
        leads = leads_warp(cx)
    with when(cx, leads):
        if PAIR not in op.attributes:
            run(cx, arrive, place)
            return
        for rank in range(_OF_PAIR):
            there = b.with_constant("addi", first_of_pair(cx), rank)
            run(cx, device.barrier_arrive_at(), place, there)


def leads_warp(cx: Kernel) -> ir.Value:
    """i1: this thread arrives for its warp, whose other lanes have done what they did before."""
    b = Builder(cx)
    cx.create("nvvm.bar.warp.sync", [b.constant(-1)])
    lane = b.with_constant("andi", cx.state.thread_index(cx), LANES - 1)
    return b.compare(_EQ, lane, b.constant(0))


def _whole_cluster(cx: Kernel, op: ir.OpView) -> list[ir.Value]:
    """i16: a bit for each block of the cluster, if all of them hear of products."""
    if CTAS not in op.attributes:
        return []
    ctas = ir.IntegerAttr(op.attributes[CTAS]).value
    return [Builder(cx).constant((1 << ctas) - 1, ir.IntegerType.get_signless(16))]


def _both(cx: Kernel) -> ir.Value:
    """i16: a bit for each block of the pair."""
    b, i16 = Builder(cx), ir.IntegerType.get_signless(16)
    mask = b.binary("shli", b.constant(_PAIR_MASK), first_of_pair(cx))
    return cx.create("arith.trunci", [mask], [i16]).result


@rules.on("nv_tileas.barrier_turn")
def barrier_turn(op: ir.OpView, cx: Kernel) -> ir.Value:
    """barrier_turn => a variable of the thread that is 0 and 1 in turn"""
    b = Builder(cx)
    place = cx.state.variable(cx, ("turn", op.operands[0]))
    phase = cx.create("llvm.load", [place], [b.i32]).result
    cx.create("llvm.store", [b.with_constant("xori", phase, 1), place])
    return phase


@rules.on("nv_tileas.barrier_next")
def barrier_next(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """barrier_next => variables of the thread: a stage, and how often it went round, modulo two"""
    return next_turn(cx, op.operands[0])


def next_turn(cx: Kernel, barrier: ir.Value) -> list[ir.Value]:
    """i32 stage and phase of a barrier whose turn it is for the thread, which counts it."""
    b = Builder(cx)
    known = Barrier.of(cx.before(barrier))
    assert known is not None, "verified"
    places = [cx.state.variable(cx, (name, barrier)) for name in ("stage", "phase")]
    stage, phase = (cx.create("llvm.load", [place], [b.i32]).result for place in places)
    following = b.with_constant("addi", stage, 1)
    around = b.compare(_EQ, following, b.constant(known.stages))
    cx.create("llvm.store", [_select(cx, around, b.constant(0), following), places[0]])
    turned = b.with_constant("xori", phase, 1)
    cx.create("llvm.store", [_select(cx, around, turned, phase), places[1]])
    return [stage, phase]


@rules.on("nv_tileas.barrier_wait")
def barrier_wait(op: ir.OpView, cx: Kernel) -> None:
    """barrier_wait => a loop around mbarrier.try_wait.parity; a leader's warp meets behind it"""
    place = barrier_at(cx, op.operands[0], op.operands[1])
    leads = leader(cx, op) if LEADER in op.attributes else None
    with when(cx, leads):
        wait_at(cx, place, op.operands[2])
    if leads is not None and WITH_WARP in op.attributes:
        # Others of its warp would run ahead, and instructions of whole warps follow.
        cx.create("nvvm.bar.warp.sync", [Builder(cx).constant(-1)])


def wait_at(cx: Kernel, place: ir.Value, phase: ir.Value) -> None:
    """Until the phase of an mbarrier is complete."""
    suspends = cx.target.sm >= _SUSPENDS_SINCE
    run(cx, device.barrier_wait(suspends=suspends), place, phase)


@rules.on("nv_tileas.async_commit_group")
def async_commit_group(op: ir.OpView, cx: Kernel) -> ir.Value:
    """async_commit_group => cp.async.commit_group"""
    group = text(op, "group")
    with when(cx, _issuer(cx, group)):
        run(cx, device.commit_group(group))
    return token(cx)


@rules.on("nv_tileas.async_wait")
def async_wait(op: ir.OpView, cx: Kernel) -> None:
    """async_wait => cp.async.wait_group"""
    group = text(op, "group")
    with when(cx, _issuer(cx, group)):
        run(cx, device.wait_group(group, op.pending.value))


def _issuer(cx: Kernel, group: str) -> ir.Value | None:
    """Who has groups of a kind: bulk copies are begun by one thread; None: everybody."""
    return first_thread(cx) if group.startswith("bulk") else None


def _select(cx: Kernel, condition: ir.Value, then: ir.Value, other: ir.Value) -> ir.Value:
    return cx.create("arith.select", [condition, then, other], [then.type]).result
