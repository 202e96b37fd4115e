"""Pipes between agents: `async_pipeline_*`.

A pipe is a ring of stages with a full and an empty credit each. A producer acquires a stage (waits
until it is empty), fills it and commits; a consumer waits until it is full, reads and releases.
Tokens stand for the ends of a pipe and are threaded through what uses them; iterators say which
stage is next. `produce_one` is acquire, region, commit; `consume_one` wait, region, release.

From `tileas-assign-phases` on, operations have a stage and a phase (both i32) in place of the
iterator. Names and texts follow the Tile IR specification, "nv_tileas operation roster" and
"nv_tileas verifiers", typos included; a dot in a name is `_` here.

How a stage becomes full or empty belongs to the end that says so, in `kind` of commit and release.
"""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any

from tile_tileaa.dialect.folds import slots

from tile_core.dialect import (
    Check,
    Operand,
    OperationSpec,
    Pure,
    ReadsAndWrites,
    Region,
    Result,
    Terminator,
    Type,
    declare,
)
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dialect.buffers import Buffer, is_async_token
from tile_tileas.dialect.staging import buffer_problem, is_index

#: When a stage is full: "generic", when the producer's threads have written it; "cp.async", when
#: their copies are done; "tma", when `bytes` have landed.
COMMIT_KINDS = ("generic", "cp.async", "tma")
RELEASE_KINDS = ("generic",)

YIELD = "nv_tileas.async_pipeline_yield"


class ProducerTokenType(Type, dialect=NvTileAS, name="pipeline_producer_token"):
    """The producer's end of a pipe."""


class ConsumerTokenType(Type, dialect=NvTileAS, name="pipeline_consumer_token"):
    """A consumer's end of a pipe."""


class IteratorType(Type, dialect=NvTileAS, name="pipeline_iterator"):
    """The stage whose turn it is, of a pipe whose first payload is `element`; i1 without any."""

    element: Any


def is_producer_token(type_: ir.Type) -> bool:
    """Whether values of this type are a producer's end."""
    return isinstance(type_, ProducerTokenType)


def is_consumer_token(type_: ir.Type) -> bool:
    """Whether values of this type are a consumer's end."""
    return isinstance(type_, ConsumerTokenType)


def is_iterator(type_: ir.Type) -> bool:
    """Whether values of this type say which stage is next."""
    return isinstance(type_, IteratorType)


def _created(op: ir.OpView) -> str | None:
    """Payloads have as many stages as the pipe."""
    stages = op.numStages.value
    if stages < 1:
        return f"expects at least one stage, but got {stages}"
    for value in op.operands:
        problem = buffer_problem(value.type)
        if problem is not None:
            return problem
        buffer = Buffer.of(value.type)
        assert buffer is not None
        if buffer.stages != stages:
            return f"expects payloads of {stages} stages, but got {buffer.stages}"
    made = [result.type for result in op.results]
    if is_producer_token(made[0]) and is_consumer_token(made[1]):
        return None
    return f"expects a producer and a consumer token, but got {made[0]}, {made[1]}"


def _end(producer: bool) -> Check:
    """The first operand, and the first result, are such an end of a pipe."""
    name, is_end = ("producer", is_producer_token) if producer else ("consumer", is_consumer_token)

    def check(op: ir.OpView) -> str | None:
        for value in (op.operands[0], op.results[0]):
            if not is_end(value.type):
                return f"expects a {name} token, but got {value.type}"
        return _place(list(op.operands)[1:])

    return check


def _place(index: Sequence[ir.Value]) -> str | None:
    if len(index) == 1 and is_iterator(index[0].type):
        return None
    if len(index) == 2 and all(map(is_index, index)):
        return None
    return f"expects an iterator, or a stage and a phase, but got {[str(v.type) for v in index]}"


def _kind(kinds: Sequence[str]) -> Check:
    def check(op: ir.OpView) -> str | None:
        kind = op.kind.value
        if kind not in kinds:
            return f"expects a kind of {', '.join(kinds)}, but got '{kind}'"
        if (kind == "tma") != ("bytes" in op.attributes):
            return "expects bytes for commits of kind tma, and for no others"
        return None

    return check


def _consumer_index(op: ir.OpView) -> str | None:
    number = ir.IntegerAttr(op.attributes["consumer_idx"]).value
    if number < 0:
        return f"expected 'consumer_idx' less than the number of consumer groups, but got {number}"
    return None


def _iterator_made(op: ir.OpView) -> str | None:
    end, made = op.operands[0].type, op.results[0].type
    if not is_producer_token(end) and not is_consumer_token(end):
        return f"expects an end of a pipe, but got {end}"
    return None if is_iterator(made) else f"expects an iterator, but got {made}"


def _iterator_stepped(op: ir.OpView) -> str | None:
    before, after = op.operands[0].type, op.results[0].type
    if is_iterator(before) and before == after:
        return None
    return f"cannot step from {before} to {after}"


def _listed(types: Sequence[ir.Type]) -> str:
    return ", ".join(f"'{type_}'" for type_ in types)


def _body(types: str, asynchronous: bool) -> Check:
    """The region takes the stage's payloads and yields what follows the tokens among the results.

    `types` names the attribute that lists the payloads' types.
    """

    def check(op: ir.OpView) -> str | None:
        blocks = list(op.regions[0].blocks)
        if len(blocks) != 1 or not len(blocks[0].operations):
            return f"expects regions to end with '{YIELD}'"
        last = list(blocks[0].operations)[-1]
        if last.operation.name != YIELD:
            return f"expects regions to end with '{YIELD}'"
        wanted = [ir.TypeAttr(item).value for item in ir.ArrayAttr(op.attributes[types])]
        found = [argument.type for argument in blocks[0].arguments]
        if wanted != found:
            return (
                f"expects region arguement types to match with producer types [{_listed(wanted)}], "
                f"but got: [{_listed(found)}]"
            )
        return _yielded(op, last, 2 if asynchronous else 1)

    return check


def _yielded(op: ir.OpView, last: ir.OpView, tokens: int) -> str | None:
    if tokens == 2 and not is_async_token(op.results[1].type):
        return f"expects an async token, but got {op.results[1].type}"
    wanted = [result.type for result in list(op.results)[tokens:]]
    found = [value.type for value in last.operands]
    if wanted == found:
        return None
    return (
        f"expects region result types to be match with operation result types [{_listed(wanted)}], "
        f"but got: [{_listed(found)}]"
    )


_INDEX: dict[str, Any] = {"token": Operand[Any], "index": Sequence[Operand[Any]]}
_SAME_END: dict[str, Any] = {**_INDEX, "result": Result[Any]}
_VALUES: dict[str, Any] = slots("values", Result[Any])
_DONE: dict[str, Any] = {"done": Result[Any]}
_PRODUCER: dict[str, Any] = {"body": Region, "producer_types": ir.ArrayAttr}
_CONSUMER: dict[str, Any] = {
    "body": Region,
    "consumer_types": ir.ArrayAttr,
    "consumer_idx": ir.IntegerAttr,
}
_KIND: dict[str, Any] = {"kind": ir.StringAttr}


def _region(name: str, producer: bool, asynchronous: bool, doc: str) -> OperationSpec:
    fields = {
        **_SAME_END,
        **(_DONE if asynchronous else {}),
        **_VALUES,
        **(_PRODUCER if producer else _CONSUMER),
    }
    checks: tuple[Check, ...] = (_end(producer),)
    if "one" in name:
        fields |= _KIND
        checks += (_kind(COMMIT_KINDS if producer else RELEASE_KINDS),)
    if not producer:
        checks += (_consumer_index,)
    body = _body("producer_types" if producer else "consumer_types", asynchronous)
    return OperationSpec(name, fields, doc, (ReadsAndWrites,), (*checks, body))


_PREFIX = "async_pipeline_"

SPECS = (
    OperationSpec(
        f"{_PREFIX}create_pipeline",
        {
            **slots("payload", Operand[Any]),
            "producer": Result[Any],
            "consumer": Result[Any],
            "numStages": ir.IntegerAttr,
            "producerGroupId": ir.IntegerAttr,
            "consumerGroupId": ir.IntegerAttr,
        },
        "A pipe of `numStages` stages, all empty, whose payloads are stages of buffers; without "
        "any it passes on that something has happened. Groups are indices of agents.",
        (ReadsAndWrites,),
        (_created,),
    ),
    OperationSpec(
        f"{_PREFIX}create_iterator",
        {"end": Operand[Any], "result": Result[Any]},
        "The first stage of a pipe.",
        (Pure,),
        (_iterator_made,),
    ),
    OperationSpec(
        f"{_PREFIX}inc_iter",
        {"iterator": Operand[Any], "result": Result[Any]},
        "The stage after; behind the last one follows the first, in the other phase.",
        (Pure,),
        (_iterator_stepped,),
    ),
    OperationSpec(
        f"{_PREFIX}producer_acquire",
        _SAME_END,
        "Wait until the stage is empty; it is the producer's.",
        (ReadsAndWrites,),
        (_end(True),),
    ),
    OperationSpec(
        f"{_PREFIX}producer_commit",
        {**_SAME_END, **_KIND},
        "The stage is full as soon as what `kind` says is done. `bytes`: what copies by TMA bring.",
        (ReadsAndWrites,),
        (_end(True), _kind(COMMIT_KINDS)),
    ),
    OperationSpec(
        f"{_PREFIX}consumer_wait",
        {**_SAME_END, "consumer_idx": ir.IntegerAttr},
        "Wait until the stage is full.",
        (ReadsAndWrites,),
        (_end(False), _consumer_index),
    ),
    OperationSpec(
        f"{_PREFIX}consumer_release",
        {**_SAME_END, **_KIND},
        "This consumer needs the stage no more. It may be an earlier one than was waited for last.",
        (ReadsAndWrites,),
        (_end(False), _kind(RELEASE_KINDS)),
    ),
    _region(f"{_PREFIX}producer_write", True, False, "Fill an acquired stage."),
    _region(f"{_PREFIX}consumer_read", False, False, "Read a full stage."),
    _region(f"{_PREFIX}produce_one", True, False, "Acquire a stage, fill it, commit it."),
    _region(f"{_PREFIX}produce_one_async", True, True, "`produce_one`; the token is done with it."),
    _region(f"{_PREFIX}consume_one", False, False, "Wait for a stage, read it, release it."),
    _region(
        f"{_PREFIX}consume_one_async", False, True, "`consume_one`; the token is done with it."
    ),
    OperationSpec(
        f"{_PREFIX}yield",
        slots("values", Operand[Any]),
        "End a region of a pipe, or of an agent.",
        (Pure, Terminator),
    ),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)
