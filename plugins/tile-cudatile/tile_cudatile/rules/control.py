"""Rules of control flow and reductions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_cudatile.attrs import Float, Integer
from tile_cudatile.rules.registry import region_rule, rule
from tile_cudatile.rules.words import quote, quote_all
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import (
    BF16,
    F16,
    I1,
    GatherScatterView,
    PartitionView,
    Scalar,
    StridedView,
    TensorView,
    Tile,
    Type,
)

_VIEWS = (PartitionView, StridedView, GatherScatterView)


def _types(values: Sequence[Value]) -> tuple[Type, ...]:
    return tuple(v.type for v in values)


def _not_views(types: Sequence[Type], what: str) -> Iterator[str]:
    for i, type_ in enumerate(types):
        if isinstance(type_, TensorView):
            yield f"{what} {i} is a tensor_view, which is not supported"
        if isinstance(type_, _VIEWS):
            yield f"{what} {i} is a tile view, which is not supported"


@rule("if")
def branches(op: Op) -> Iterator[str]:
    """Both branches yield the results, or leave."""
    results = _types(op.results)
    yield from _not_views(results, "result type")
    yield from _yields(op, 0, "then", results)
    if op.regions[1].blocks:
        yield from _yields(op, 1, "else", results)
    elif results:
        yield "has non-empty return type, must define else branch"


def _yields(op: Op, region: int, name: str, results: tuple[Type, ...]) -> Iterator[str]:
    block = op.regions[region].blocks[0]
    last = block.ops[-1] if block.ops else None
    if last is None or last.name != "yield":
        return
    types = _types(last.values())
    if results and not types:
        yield f"has return type of {quote_all(results)} but {name} branch does not yield anything"
    elif types and not results:
        yield f"does not return a value, but {name} branch yields {quote_all(types)}"
    elif types != results:
        yield (
            f"type does not match yield type, {name} branch yields {quote_all(types)} but op "
            f"result type is {quote_all(results)}"
        )


@region_rule("for", "loop")
def iteration(op: Op) -> Iterator[str]:
    """Carried values keep their types."""
    block = op.regions[0].blocks[0]
    args = block.args
    if op.name == "for":
        if not args:
            yield "expected at least one block argument for induction variable"
            return
        lower = op.operands[0]
        assert isinstance(lower, Value)
        if args[0].type != lower.type:
            yield (
                "expected induction variable to be same type as bounds and step: "
                f"{quote(args[0].type)} vs {quote(lower.type)}"
            )
        args = args[1:]
    init = op.group("initValues")
    assert isinstance(init, tuple)
    if len(args) != len(init):
        yield (
            "mismatch in number of region iterator values and loop iterator inits: "
            f"{len(args)} vs {len(init)}"
        )
    yield from _not_views(_types(args), "loop-carried value")
    for i, (start, arg) in enumerate(zip(init, args, strict=False)):
        if start.type != arg.type:
            yield (
                f"init value {i} and region iter_value {i} have different type: "
                f"{quote(start.type)} != {quote(arg.type)}"
            )
    yield from _not_views(_types(op.results), "result type")


@rule("reduce", "scan")
def aggregate(op: Op) -> Iterator[str]:
    """As many results and identities as operands."""
    operands, identities = op.operands[0], op.attrs["identities"]
    assert isinstance(operands, tuple)
    assert isinstance(identities, tuple)
    if not operands:
        yield "expected 1 or more operands, but found 0"
        return
    if len(operands) != len(op.results):
        yield "expect same number of operands and results"
    if len(operands) != len(identities):
        yield (
            f"expect identities to match the number of operands but got: {len(operands)} operands "
            f"and {len(identities)} identities"
        )
    for i, (operand, identity) in enumerate(zip(operands, identities, strict=False)):
        yield from _identity(i, operand, identity)
    yield from _dimension(op, operands)


def _identity(i: int, operand: Value, identity: object) -> Iterator[str]:
    assert isinstance(operand.type, Tile)
    element = operand.type.element
    if isinstance(identity, bool):
        type_: Scalar | None = I1
    else:
        type_ = identity.type if isinstance(identity, (Integer, Float)) else None
    if {element, type_} == {F16, BF16} or element == type_:
        return
    shown = "none" if type_ is None else quote(type_)
    yield (
        f"expect same type for operand at index: {i} and identity at index: {i} but got: "
        f"{quote(element)} and {shown}"
    )


def _dimension(op: Op, operands: tuple[Value, ...]) -> Iterator[str]:
    first, dim = operands[0].type, op.attrs["dim"]
    assert isinstance(first, Tile)
    assert isinstance(dim, int)
    rank = len(first.shape)
    if dim < 0:
        yield (
            "attribute 'dim' failed to satisfy constraint: 32-bit signless integer attribute whose "
            "value is non-negative"
        )
    if not 0 <= dim < rank:
        yield f"dimension ({dim}) is out of bound [0, {rank})"
        return
    for i, (operand, result) in enumerate(zip(operands, op.results, strict=False)):
        assert isinstance(operand.type, Tile)
        shape = operand.type.shape
        if op.name == "scan":
            if operand.type != result.type:
                yield f"expect same type for operand at index: {i} and result at index: {i}"
        elif result.type != Tile(shape[:dim] + shape[dim + 1 :], operand.type.element):
            inferred = [
                Tile(_without(v.type.shape, dim), v.type.element)  # type: ignore[union-attr]
                for v in operands
            ]
            yield (
                f"inferred type(s) {quote_all(inferred)} are incompatible with return type(s) of "
                f"operation {quote_all(_types(op.results))}"
            )


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return shape[:dim] + shape[dim + 1 :]


@region_rule("reduce", "scan")
def aggregate_body(op: Op) -> Iterator[str]:
    """Pairs of scalars in, scalars out, and nothing but pure operations."""
    operands = op.operands[0]
    assert isinstance(operands, tuple)
    block = op.regions[0].blocks[0]
    args = _types(block.args)
    if len(args) != 2 * len(operands):
        yield f"expect {2 * len(operands)} block arguments but got: {len(args)}"
        return
    for i, arg in enumerate(args):
        if not isinstance(arg, Tile) or arg.shape:
            yield f"expect 0-rank tile type at index: {i} but got: {quote(arg)}"
            return
    elements = [a.element for a in args if isinstance(a, Tile)]
    for i in range(0, len(args), 2):
        if elements[i] != elements[i + 1]:
            yield (
                f"expect same element type for block argument at index: {i} and {i + 1} but got: "
                f"{quote(elements[i])} and {quote(elements[i + 1])}"
            )
    sources = [v.type.element for v in operands if isinstance(v.type, Tile)]
    for i, element in enumerate(sources):
        if element != elements[2 * i]:
            yield (
                f"expect same type for operand at index: {i} and block argument at index: {2 * i} "
                f"but got: {quote(element)} and {quote(elements[2 * i])}"
            )
    yield from _aggregate_end(op, sources)


def _aggregate_end(op: Op, sources: Sequence[Type]) -> Iterator[str]:
    block = op.regions[0].blocks[0]
    yielded = block.ops[-1].values()
    if len(yielded) != len(sources):
        yield (
            f"expect number of terminators operands ({len(yielded)}) to match number of operands "
            f"({len(sources)})"
        )
        return
    for i, (value, element) in enumerate(zip(yielded, sources, strict=True)):
        found = value.type.element if isinstance(value.type, Tile) else value.type
        if found != element:
            yield (
                f"expect same type for operand at index: {i} and terminator argument at index: "
                f"{i} but got: {quote(element)} and {quote(found)}"
            )
    for inner in block.ops[:-1]:
        if not is_effect_free(inner):
            yield (
                f"!'cuda_tile.{inner.name}' op only memory-effect-free operations are allowed "
                f"inside 'cuda_tile.{op.name}'"
            )


def is_effect_free(op: Op) -> bool:
    """Whether an operation touches no memory, nor does any inside of it; loops count as if they
    did, since what ends their bodies says nothing of effects.
    """
    if op.spec.effects == "recursive":
        return all(is_effect_free(i) for r in op.regions for b in r.blocks for i in b.ops)
    return op.spec.effects in ("pure", "none")
