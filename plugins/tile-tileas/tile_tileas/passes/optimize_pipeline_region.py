"""tileas-optimize-pipeline-region: a stage of a pipe is held no longer than it is worked on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tile_tileaa.dialect.folds import SLOTS

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.analysis.tokens import LOADS, STORES, is_weak
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.pipelines import YIELD
from tile_tileas.pipelining.slices import is_pure

_PREFIX = "nv_tileas.async_pipeline_"
PRODUCES = (f"{_PREFIX}produce_one", f"{_PREFIX}produce_one_async")
CONSUMES = (f"{_PREFIX}consume_one", f"{_PREFIX}consume_one_async")
_COPY = "nv_tileas.copy"


@dataclass(frozen=True)
class OptimizePipelineRegion(Pass):
    """Optimize the region scope of tileas.async.pipeline.produce_one/consume_one ops.

    What a producer's region does before it has anything to do with the stage is done before the
    stage is acquired: arithmetic, weak loads. What a consumer's region does with values that it has
    read is done behind the release: arithmetic, weak stores. Nothing else moves, and accesses never
    pass an operation that orders others; tokens order them among themselves.
    """

    name = "tileas-optimize-pipeline-region"
    anchor = "func.func"
    statistics = {
        "regions": "regions that became smaller",
        "operations": "operations that left them",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        # The last one first: regions may lie in one another.
        for region in reversed(list(_regions(op))):
            moved = _hoist(region) if region.operation.name in PRODUCES else _sink(region)
            if moved:
                cx.count("regions")
                cx.count("operations", moved)


def _regions(op: ir.Operation | ir.OpView) -> Iterator[ir.OpView]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name in (*PRODUCES, *CONSUMES):
                    yield inner
                yield from _regions(inner.operation)


def _hoist(region: ir.OpView) -> int:
    """Move what needs no stage in front; how many operations that are."""
    block = region.regions[0].blocks[0]
    inside = set(block.arguments)
    early: list[ir.OpView] = []
    blocked = False
    for op in list(block.operations):
        if _moves(op, LOADS, blocked) and not any(value in inside for value in op.operands):
            early.append(op)
            continue
        inside.update(op.results)
        blocked |= _orders(op)
    for op in early:
        op.operation.move_before(region.operation)
    return len(early)


def _sink(region: ir.OpView) -> int:
    """Move what only works on what was read behind; how many operations that are."""
    block = region.regions[0].blocks[0]
    *body, end = block.operations
    late: list[ir.OpView] = []
    needed: set[ir.Value] = set()
    blocked = False
    for op in reversed(body):
        if _moves(op, STORES, blocked) and not any(value in needed for value in op.results):
            late.append(op)
            continue
        needed.update(_used(op))
        blocked |= _orders(op)
    late.reverse()
    made: set[ir.Value] = {value for op in late for value in op.results}
    read = _read(late, made, block)
    given = list(end.operands)
    kept = [value for value in given if value not in made]
    if not late or len({*kept, *read}) > SLOTS:
        return 0
    _replace(region, late, list(dict.fromkeys([*kept, *read])), given)
    return len(late)


def _read(late: Sequence[ir.OpView], made: set[ir.Value], block: ir.Block) -> list[ir.Value]:
    """What `late` takes of what stays inside."""
    return [
        value
        for op in late
        for value in op.operands
        if value not in made and not isinstance(value.owner, ir.Block)
        and value.owner.operation.block == block
    ]  # fmt: skip


def _replace(
    old: ir.OpView, late: Sequence[ir.OpView], yielded: list[ir.Value], given: list[ir.Value]
) -> None:
    """Make `old` anew so that it gives `yielded`, and let `late` come behind it."""
    tokens = [result.type for result in old.results][: len(old.results) - len(given)]
    attributes = {name: old.attributes[name] for name in old.attributes}
    sizes = [1] * len(tokens) + [1] * len(yielded) + [0] * (SLOTS - len(yielded))
    attributes["resultSegmentSizes"] = ir.DenseI32ArrayAttr.get(sizes)
    new = ir.Operation.create(
        old.operation.name,
        [*tokens, *(value.type for value in yielded)],
        list(old.operands),
        attributes,
        regions=1,
        loc=old.location,
        ip=ir.InsertionPoint(old),
    )
    block = old.regions[0].blocks[0]
    block.append_to(new.regions[0])
    block = new.regions[0].blocks[0]
    outside = dict(zip(yielded, list(new.results)[len(tokens) :], strict=True))
    place = new
    for op in late:
        op.operation.move_after(place)
        place = op.operation
        for at, value in enumerate(op.operands):
            if value in outside:
                op.operands[at] = outside[value]
    for result, token in zip(list(old.results)[: len(tokens)], new.results, strict=False):
        result.replace_all_uses_with(token)
    for result, value in zip(list(old.results)[len(tokens) :], given, strict=True):
        result.replace_all_uses_with(outside.get(value, value))
    _end_with(block, yielded)
    old.operation.erase()


def _end_with(block: ir.Block, values: list[ir.Value]) -> None:
    end = block.operations[len(block.operations) - 1]
    sizes = [1] * len(values) + [0] * (SLOTS - len(values))
    attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get(sizes)}
    ir.Operation.create(YIELD, [], values, attributes, loc=end.location, ip=ir.InsertionPoint(end))
    end.operation.erase()


def _moves(op: ir.OpView, accesses: Sequence[str], blocked: bool) -> bool:
    """Whether an operation may leave, as far as it goes: it has no effect on what a stage holds."""
    if len(op.regions) or op.operation.name == YIELD:
        return False
    if any(Buffer.of(value.type) is not None for value in (*op.operands, *op.results)):
        return False
    return is_pure(op) or (not blocked and op.operation.name in accesses and is_weak(op))


def _orders(op: ir.OpView) -> bool:
    """Whether accesses must not pass an operation that stays."""
    return not is_pure(op) and op.operation.name != _COPY


def _used(op: ir.OpView) -> Iterator[ir.Value]:
    """What an operation takes, and what its regions do."""
    yield from op.operands
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _used(inner)
