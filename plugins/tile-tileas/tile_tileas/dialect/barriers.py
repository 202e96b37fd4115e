"""Meeting points and orders: `sync`, `fence`, mbarriers.

Optional attributes of `sync`: `agent` (i32, the index of the agent that it is for; without one,
the agent whose region it stands in) and `id` (i32, the named barrier, 0 to 15; set by resource
assignment).
"""

# pyright: reportGeneralTypeIssues=false

from typing import Any

from tile_cute.atoms.records import SHARED
from tile_tileaa.dialect.types import is_integer

from tile_core.dialect import Operand, OperationSpec, ReadsAndWrites, Result, declare
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dialect.buffers import Barrier, Buffer
from tile_tileas.dialect.effects import effects
from tile_tileas.dialect.staging import buffer_problem, is_index

#: Named barriers of a block (PTX ISA, "bar").
NAMED_BARRIERS = 16
#: Arrivals, and bytes, that a phase may wait for: 2**20 - 1 (PTX ISA, "mbarrier").
MOST = (1 << 20) - 1

#: What `fence` orders. "async": what threads did to shared memory before what the asynchronous
#: proxy does (TMA, wgmma, tcgen05); "async.global": the same for global memory;
#: "mbarrier_init": initialisation of mbarriers before their use by other blocks and by copies.
PROXIES = ("async", "async.global", "mbarrier_init")

#: On a wait of the agent's first thread alone.
LEADER = "leader"
#: On what the first thread of the agent's second warp does in the place of the agent's first one:
#: it begins copies and waits for the products before, while the other begins products.
COPIER = "copier"
#: How many teams (i32) an agent has, on what the first thread of each does in the place of the
#: agent's first one, and on what threads do at the barriers of their team, a stage each. Teams have
#: as many warps each, one after the other (`nv_tileas.team`). With `copier`: the first thread of
#: the last team's second warp, or of the only one that it has.
TEAM = "team"
#: Attribute of a leader's wait that the rest of its warp waits for.
WITH_WARP = "with_warp"
#: On what concerns both blocks of a pair: the first of them does it, at its own barrier; its
#: products arrive at the barriers of both.
PAIR = "pair"
#: How many blocks (i32) of a cluster hear of products at their barriers.
CTAS = "ctas"
#: Who arrives: every thread, one of each warp after its warp met, one of the agent after it met.
ARRIVERS = ("thread", "warp", "agent")
#: When an arrival counts: at once; when the copies that the thread has begun with cp.async are
#: done ("cp.async", each thread for itself), or the products of the agent's thread that begins
#: them ("tcgen05", that one thread; nobody meets).
ARRIVAL_KINDS = ("generic", "cp.async", "tcgen05")


def in_teams(teams: int) -> dict[str, ir.Attribute]:
    """The attribute of what each of several teams does; nothing for one."""
    i32 = ir.IntegerType.get_signless(32)
    return {TEAM: ir.IntegerAttr.get(i32, teams)} if teams > 1 else {}


def barrier_problem(type_: ir.Type) -> str | None:
    """What is wrong with a type that must be a barrier."""
    barrier = Barrier.of(type_)
    if barrier is None:
        return f"expects a barrier, but got {type_}"
    if not 1 <= barrier.arrivals <= MOST:
        return f"expects 1 to {MOST} arrivals, but got {barrier.arrivals}"
    if barrier.stages < 1:
        return f"expects a barrier of at least one stage, but got {barrier.stages}"
    return None


def _sync(op: ir.OpView) -> str | None:
    attributes = op.attributes
    if "agent" in attributes and ir.IntegerAttr(attributes["agent"]).value < 0:
        return f"expects agent to be the index of a region, but got {attributes['agent']}"
    if "id" not in attributes:
        return None
    number = ir.IntegerAttr(attributes["id"]).value
    if not 0 <= number < NAMED_BARRIERS:
        return f"expects id to be a named barrier, 0 to {NAMED_BARRIERS - 1}, but got {number}"
    return None


def _fence(op: ir.OpView) -> str | None:
    proxy = op.proxy.value
    if proxy in PROXIES:
        return None
    return f"expects a proxy of {', '.join(PROXIES)}, but got '{proxy}'"


def _init(op: ir.OpView) -> str | None:
    """One i64 for each stage."""
    problem = buffer_problem(op.storage.type) or barrier_problem(op.result.type)
    if problem is not None:
        return problem
    buffer, barrier = Buffer.of(op.storage.type), Barrier.of(op.result.type)
    assert buffer is not None
    assert barrier is not None
    element = buffer.tile.element_type
    words = is_integer(element) and element.width == 64 and set(buffer.shape) == {1}
    if not words or buffer.space != SHARED:
        return f"expects a buffer of one i64 in shared memory, but got {op.storage.type}"
    if buffer.stages != barrier.stages:
        return f"expects {buffer.stages} stages, but got {barrier.stages}"
    return None


def _at(op: ir.OpView) -> str | None:
    """A barrier and the number of its stage."""
    problem = barrier_problem(op.barrier.type)
    if problem is None and not is_index(op.stage):
        return f"expects stage to be i32, but got {op.stage.type}"
    return problem


def _barrier(op: ir.OpView) -> str | None:
    return barrier_problem(op.barrier.type)


def _bytes(op: ir.OpView) -> str | None:
    number = op.bytes.value
    return None if 0 < number <= MOST else f"expects 1 to {MOST} bytes, but got {number}"


def _arrive(op: ir.OpView) -> str | None:
    by, kind = op.by.value, op.kind.value
    if by not in ARRIVERS:
        return f"expects by to be one of {', '.join(ARRIVERS)}, but got '{by}'"
    if kind not in ARRIVAL_KINDS:
        return f"expects kind to be one of {', '.join(ARRIVAL_KINDS)}, but got '{kind}'"
    if kind == "cp.async" and by != "thread":
        return f"expects every thread to arrive for its own copies, but got '{by}'"
    if kind == "tcgen05" and by != "agent":
        return f"expects one thread of the agent to arrive for its products, but got '{by}'"
    if CTAS in op.attributes and (kind != "tcgen05" or PAIR in op.attributes):
        return f"expects products of one block to arrive for others, but got '{kind}' by '{by}'"
    if PAIR in op.attributes and (by, kind) != ("warp", "generic") and kind != "tcgen05":
        return f"expects products or warps to arrive for a pair, but got '{kind}' by '{by}'"
    return None


def _phase(op: ir.OpView) -> str | None:
    if COPIER in op.attributes and LEADER not in op.attributes:
        return "expects a leader to wait in the place of another"
    if PAIR in op.attributes and LEADER not in op.attributes:
        return "expects a leader to wait for a pair"
    return None if is_index(op.phase) else f"expects phase to be i32, but got {op.phase.type}"


def _turn(op: ir.OpView) -> str | None:
    problem = barrier_problem(op.barrier.type)
    if problem is not None:
        return problem
    barrier = Barrier.of(op.barrier.type)
    assert barrier is not None
    if barrier.stages != 1 and TEAM not in op.attributes:
        return f"expects a barrier of one stage, but got {barrier.stages}"
    return None if is_index(op.result) else f"expects a phase of i32, but got {op.result.type}"


def _next(op: ir.OpView) -> str | None:
    problem = barrier_problem(op.barrier.type)
    if problem is not None:
        return problem
    for name in ("stage", "phase"):
        if not is_index(getattr(op, name)):
            return f"expects {name} to be i32, but got {getattr(op, name).type}"
    return None


_BARRIER: dict[str, Any] = {"barrier": Operand[Any]}
_STAGE: dict[str, Any] = {**_BARRIER, "stage": Operand[Any]}

SPECS = (
    OperationSpec(
        "sync",
        {},
        "All threads of the agent meet; what each did to memory is visible to all.",
        (ReadsAndWrites,),
        (_sync,),
    ),
    OperationSpec(
        "fence",
        {"proxy": ir.StringAttr},
        "What this thread did before is seen by what the proxy does afterwards.",
        (ReadsAndWrites,),
        (_fence,),
    ),
    OperationSpec(
        "barrier_init",
        {"storage": Operand[Any], "result": Result[Any]},
        "mbarriers in a buffer of i64, all in phase 0. One thread writes them; others use them "
        'after a `sync`, copies and other blocks after a `fence` "mbarrier_init" before it.',
        (effects(writes=("storage",)),),
        (_init,),
    ),
    OperationSpec(
        "barrier_invalidate",
        _BARRIER,
        "End mbarriers, so that their memory may be used for something else.",
        (ReadsAndWrites,),
        (_barrier,),
    ),
    OperationSpec(
        "barrier_expect",
        {**_STAGE, "bytes": ir.IntegerAttr},
        "One thread of the agent arrives; the phase also waits for so many bytes of bulk copies. "
        "With `pair` that of the pair's first block alone, with `copier` the first one of the "
        "agent's second warp.",
        (ReadsAndWrites,),
        (_at, _bytes),
    ),
    OperationSpec(
        "barrier_arrive",
        {**_STAGE, "by": ir.StringAttr, "kind": ir.StringAttr},
        "Arrive with release semantics: one arrival per thread, warp or agent, as `by` says. With "
        "`pair` products of a pair arrive at the barriers of both blocks, and so do warps, which "
        "hand over nothing to the other block that they wrote. With `ctas` (i32) products arrive "
        "at the barriers of so many blocks, a whole cluster. With `team` products of each team's "
        "first thread arrive by themselves, or its threads at a stage of their own.",
        (ReadsAndWrites,),
        (_at, _arrive),
    ),
    OperationSpec(
        "barrier_turn",
        {**_BARRIER, "result": Result[Any]},
        "The phase (i32) of a barrier of one stage that this thread waits for next: each thread "
        "counts the turns that it has taken. For phases that all threads wait for, one after "
        "the other; with `team` of those of a stage for each team, whose threads wait for theirs.",
        (ReadsAndWrites,),
        (_turn,),
    ),
    OperationSpec(
        "barrier_next",
        {**_BARRIER, "stage": Result[Any], "phase": Result[Any]},
        "Stage and phase (i32) whose turn it is for the agent, which goes round the barrier's "
        "stages as often as this is done, in all loops together: stages in their order, from phase "
        "0 on, the other phase in the next round. Each thread counts for itself.",
        (ReadsAndWrites,),
        (_next,),
    ),
    OperationSpec(
        "barrier_wait",
        {**_STAGE, "phase": Operand[Any]},
        "Every thread waits, with acquire semantics, until the phase of parity `phase` (0 or 1) "
        "is complete. The phase before the first counts as complete and has parity 1. With "
        "`leader` the agent's first thread waits alone, and others hear of it where they meet; "
        "with `with_warp` as well, its warp waits with it; with `pair` the leader of the pair's "
        "first block; with `copier` the first thread of the agent's second warp. With `team` the "
        "first thread of each team leads, and the second warp is that of the last team.",
        (ReadsAndWrites,),
        (_at, _phase),
    ),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)
