"""tileas-materialize-barriers: pipes become buffers' views, mbarriers, and waits on them.

Where a stage goes from one agent to another, a full and an empty mbarrier for each stage carry it.
Where both ends are one agent's, what it has read it has read in program order, so the empty
barriers are a meeting of its threads; copies that complete by themselves keep their full ones.

    end                     arrivals of a phase                    by
    commit "generic"        one per warp of the producer           a lane, after its warp met
    commit "cp.async"       one per thread                         the copies, when they are done
    commit "tma"            one, and the bytes                     acquire, which says how many
    release "generic"       one per warp of every consumer         a lane, after its warp met (and
                                                                   fenced, if the pipe is TMA's)

The producer waits for the phase before that of its iterator: the ring starts empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from tile_cute.atoms.records import SHARED
from tile_cute.linear import LinearLayout

from tile_core.insertion import Before
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_tileas.dialect import layout_attr
from tile_tileas.dialect.agents import AGENT, warps_of
from tile_tileas.dialect.barriers import MOST
from tile_tileas.dialect.buffers import Barrier, Buffer
from tile_tileas.dialect.fields import operands_of
from tile_tileas.dialect.pipelines import is_iterator, is_producer_token
from tile_tileas.kernel_spec import num_warps
from tile_tileas.pipes.extract import REGIONS, STEPS, Extracted, extract
from tile_tileas.pipes.model import ACQUIRE, COMMIT, RELEASE, WAIT

_P = "nv_tileas.async_pipeline_"
_LOADS = ("nv_tileas.async_tiled_tma_load", "nv_tileas.async_gather_tma_load")
_BARRIER_BYTES = 8


@dataclass(frozen=True)
class MaterializeBarriers(Pass):
    """Turn pipes into mbarriers: who arrives, how often, and which phase is waited for."""

    name = "tileas-materialize-barriers"
    anchor = "func.func"
    statistics: ClassVar[dict[str, str]] = {
        "pipes": "pipes turned into barriers",
        "barriers": "mbarriers, counting stages",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        found = extract(op.opview)
        if not found.created:
            return
        pipes = {name: _Pipe.of(found, name, op) for name in found.created}
        ordered = list(found.created)
        for name in ordered:
            _create(pipes[name])
            cx.count("pipes")
            cx.count("barriers", pipes[name].stages * len(pipes[name].barriers))
        _publish(pipes[ordered[-1]], list(pipes.values()))
        for use in list(_walk(op)):
            if use.operation.name in _LOADS:  # while steps still say which stage is acquired
                _on_barrier(use, found, pipes)
        for use in list(_walk(op)):
            _lower(use, found, pipes)
        for made in found.created.values():
            _erase(made)


@dataclass
class _Pipe:
    """What both ends of a pipe agree on, and what is made for it."""

    op: ir.OpView
    stages: int
    kind: str
    size: int  # bytes of copies by tensor maps, per stage
    producer: ir.Operation | None  # the agent; None for the whole kernel
    producer_warps: int
    consumer_warps: int
    is_local: bool
    payload: list[ir.Value] = field(default_factory=list)
    barriers: dict[str, ir.Value] = field(default_factory=dict)

    @staticmethod
    def of(found: Extracted, name: str, func: ir.Operation) -> _Pipe:
        """Raises CompileError where the ends of a pipe do not agree."""
        made = found.created[name]
        ends: dict[str, list[ir.OpView]] = {kind: [] for kind in (COMMIT, RELEASE)}
        for op in found.steps:
            if found.pipe_of[op.operands[0]] != name:
                continue
            if is_producer_token(op.operands[0].type):
                ends[COMMIT] += [op] if "kind" in op.attributes else []
            else:
                ends[RELEASE] += [op] if "kind" in op.attributes else []
        kind, size = _agreed(made, ends[COMMIT])
        producers = _agents(ends[COMMIT])
        consumers = _agents(ends[RELEASE])
        if len(producers) > 1:
            raise error_at(made, "has several producers; split it into a pipe for each")
        warps = {agent: _warps(agent, func) for agent in (*producers, *consumers)}
        producer = producers[0] if producers else None
        return _Pipe(
            made,
            ir.IntegerAttr(made.attributes["numStages"]).value,
            kind,
            size,
            producer,
            warps.get(producer, 0),
            sum(warps[agent] for agent in consumers),
            consumers == producers,
            list(made.operands),
        )

    @property
    def full_arrivals(self) -> int:
        """Arrivals that make a stage full."""
        by_kind = {"generic": self.producer_warps, "cp.async": 32 * self.producer_warps, "tma": 1}
        return by_kind[self.kind]


def _agreed(made: ir.OpView, commits: list[ir.OpView]) -> tuple[str, int]:
    """Kind and bytes of all commits of a pipe."""
    kinds = {
        (
            ir.StringAttr(op.attributes["kind"]).value,
            ir.IntegerAttr(op.attributes["bytes"]).value if "bytes" in op.attributes else 0,
        )
        for op in commits
    }
    if len(kinds) > 1:
        raise error_at(made, "is filled in several ways; split it into a pipe for each")
    kind, size = kinds.pop() if kinds else ("generic", 0)
    if size > MOST:
        raise error_at(made, f"expects {size} bytes per stage, but an mbarrier counts to {MOST}")
    return kind, size


def _agents(ops: list[ir.OpView]) -> list[ir.Operation | None]:
    """The agents that operations stand in, in program order; None for the whole kernel."""
    found: list[ir.Operation | None] = []
    for op in ops:
        agent = _agent_of(op.operation)
        if agent not in found:
            found.append(agent)
    return found


def _agent_of(op: ir.Operation) -> ir.Operation | None:
    parent = op.parent
    while parent is not None and parent.operation.name != AGENT:
        parent = parent.operation.parent
    return None if parent is None else parent.operation


def _warps(agent: ir.Operation | None, func: ir.Operation) -> int:
    return num_warps(func) if agent is None else warps_of(agent)


# --- creation --------------------------------------------------------------------------------


def _barrier(at: Before, arrivals: int, stages: int) -> ir.Value:
    """mbarriers of their own."""
    i64 = ir.IntegerType.get_signless(64)
    word = ir.RankedTensorType.get([1], i64, layout_attr(LinearLayout({}, (1,))))
    alignment = {"alignment": ir.IntegerAttr.get(at.i32, _BARRIER_BYTES)}
    storage = Buffer(word, SHARED, stages).type
    words = at.create("nv_tileas.alloc_tensor", [], [storage], alignment).result
    return at.create("nv_tileas.barrier_init", [words], [Barrier(arrivals, stages).type]).result


def _create(pipe: _Pipe) -> None:
    """The barriers of a pipe."""
    at = Before(pipe.op)
    if not pipe.is_local or pipe.kind != "generic":
        pipe.barriers["full"] = _barrier(at, pipe.full_arrivals, pipe.stages)
    if not pipe.is_local:
        pipe.barriers["empty"] = _barrier(at, pipe.consumer_warps, pipe.stages)


def _publish(last: _Pipe, pipes: list[_Pipe]) -> None:
    """After those of the last pipe, all threads see all barriers; so do copies that signal them.

    An agent that is at both ends meets as it acquires its first stage, before it uses a barrier.
    """
    at = Before(last.op)
    if any(pipe.kind == "tma" for pipe in pipes):
        at.create("nv_tileas.fence", attributes={"proxy": ir.StringAttr.get("mbarrier_init")})
    if any(not pipe.is_local for pipe in pipes):
        at.create("nv_tileas.sync")


def _erase(made: ir.OpView) -> None:
    """Tokens stand for nothing any more; dead ones go with what carries them."""
    at = Before(made)
    for end in made.results:
        end.replace_all_uses_with(at.create("nv_tileas.create_none", [], [end.type]).result)
    made.operation.erase()


# --- uses ------------------------------------------------------------------------------------


def _lower(op: ir.OpView, found: Extracted, pipes: dict[str, _Pipe]) -> None:
    name = op.operation.name
    if name not in STEPS and name not in REGIONS:
        return
    pipe = pipes[found.pipe_of[op.operands[0]]]
    _, *index = op.operands
    if any(is_iterator(value.type) for value in index):
        raise error_at(op, "has an iterator; run 'tileas-assign-phases' before")
    at = Before(op)
    if name in STEPS:
        _step(at, pipe, STEPS[name], *index)
        op.results[0].replace_all_uses_with(op.operands[0])
    else:
        _region(at, op, pipe, REGIONS[name], *index)
    op.operation.erase()


def _step(at: Before, pipe: _Pipe, kind: str, stage: ir.Value, phase: ir.Value) -> None:
    if kind == ACQUIRE:
        _acquire(at, pipe, stage, phase)
    elif kind == COMMIT and "full" in pipe.barriers and pipe.kind != "tma":
        by = "thread" if pipe.kind == "cp.async" else "warp"
        _arrive(at, pipe.barriers["full"], stage, by, pipe.kind)
    elif kind == WAIT and "full" in pipe.barriers:
        at.create("nv_tileas.barrier_wait", [pipe.barriers["full"], stage, phase])
    elif kind == WAIT:
        at.create("nv_tileas.sync")
    elif kind == RELEASE and "empty" in pipe.barriers:
        _fence_reads(at, pipe)
        _arrive(at, pipe.barriers["empty"], stage, "warp", "generic")


def _acquire(at: Before, pipe: _Pipe, stage: ir.Value, phase: ir.Value) -> None:
    if "empty" in pipe.barriers:
        before = at.create("arith.xori", [phase, at.constant(1)], [phase.type]).result
        at.create("nv_tileas.barrier_wait", [pipe.barriers["empty"], stage, before])
    else:
        _fence_reads(at, pipe)
        at.create("nv_tileas.sync")
    if pipe.kind == "tma":
        size = {"bytes": ir.IntegerAttr.get(at.i32, pipe.size)}
        at.create("nv_tileas.barrier_expect", [pipe.barriers["full"], stage], attributes=size)


def _fence_reads(at: Before, pipe: _Pipe) -> None:
    """What threads read comes before the copies that overwrite it, by another proxy."""
    if pipe.kind == "tma":
        at.create("nv_tileas.fence", attributes={"proxy": ir.StringAttr.get("async")})


def _arrive(at: Before, barrier: ir.Value, stage: ir.Value, by: str, kind: str) -> None:
    how = {"by": ir.StringAttr.get(by), "kind": ir.StringAttr.get(kind)}
    at.create("nv_tileas.barrier_arrive", [barrier, stage], attributes=how)


def _region(
    at: Before,
    op: ir.OpView,
    pipe: _Pipe,
    kinds: tuple[str, ...],
    stage: ir.Value,
    phase: ir.Value,
) -> None:
    """The region in place of the operation, on views of the stage, between the steps."""
    if kinds:
        _step(at, pipe, kinds[0], stage, phase)
    block = op.regions[0].blocks[0]
    for argument, payload in zip(block.arguments, pipe.payload, strict=True):
        view = at.create("nv_tileas.buffer_view", [payload, stage], [argument.type]).result
        argument.replace_all_uses_with(view)
    *body, end = list(block.operations)
    for inner in body:
        at.insertion_point.insert(inner.operation.detach_from_parent())
    if kinds:
        _step(at, pipe, kinds[1], stage, phase)
    results = list(op.results)
    values = [op.operands[0]]
    if len(results) > len(values) + len(end.operands):  # the async forms have a token
        values.append(at.create("nv_tileas.create_none", [], [results[1].type]).result)
    for result, value in zip(results, [*values, *end.operands], strict=True):
        result.replace_all_uses_with(value)


def _on_barrier(op: ir.OpView, found: Extracted, pipes: dict[str, _Pipe]) -> None:
    """The full barrier of the stage in place of the pipe that a copy completes on."""
    (end,) = operands_of(op, "barrier")
    if not is_producer_token(end.type):
        return
    pipe = pipes[found.pipe_of[end]]
    stage = _stage_of(op, end)
    at, sizes = Before(op), list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    operands = list(op.operands)
    place = operands.index(end)
    operands[place : place + 1] = [pipe.barriers["full"], stage]
    sizes[4] = 1
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(sizes)
    made = at.create(op.operation.name, operands, [op.results[0].type], attributes)
    op.results[0].replace_all_uses_with(made.result)
    op.operation.erase()


def _stage_of(op: ir.OpView, end: ir.Value) -> ir.Value:
    """The stage that the copy fills: that of its region, or of the acquire its token is from."""
    parent = op.operation.parent
    while parent is not None and parent.operation.name != "func.func":
        if parent.operation.name in REGIONS and parent.operation.operands[0] == end:
            return parent.operation.operands[1]
        parent = parent.operation.parent
    owner = end.owner
    if not isinstance(owner, ir.Block) and owner.name in STEPS:
        return owner.operands[1]
    raise error_at(op, "completes on a pipe of which it has acquired no stage")


def _walk(op: ir.Operation | ir.OpView) -> Iterator[ir.OpView]:
    """Operations inside, innermost first, so that regions are inlined when they are done."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _walk(inner)
                yield inner
