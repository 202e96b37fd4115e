"""Patterns for `if`."""

from __future__ import annotations

from tile_cudatile.locations import UNKNOWN
from tile_cudatile.transforms.rewrite import (
    Pattern,
    Place,
    Rewriter,
    defined,
    make,
    negated,
    negation,
    substitute,
    truth,
)
from tile_cudatile.tree import Block, Op, Region, Value
from tile_cudatile.types import I1, Tile


def _condition(op: Op) -> Value:
    condition = op.operands[0]
    assert isinstance(condition, Value)
    return condition


def _last(region: Region) -> Op | None:
    return region.block.ops[-1] if region.blocks else None


def _leaves(region: Region) -> bool:
    """Whether a branch ends in `break`, `continue` or `return`."""
    last = _last(region)
    return last is not None and last.name != "yield"


def _yields(region: Region) -> list[Value] | None:
    """What a branch yields; None if it leaves or is absent."""
    last = _last(region)
    return last.values() if last is not None and last.name == "yield" else None


def _only_yields(region: Region) -> bool:
    return not region.blocks or (len(region.block.ops) == 1 and not _leaves(region))


def _may_end(parent: str, last: Op) -> bool:
    return parent in last.spec.parents


def _set_results(op: Op, results: list[Value]) -> None:
    op.results = tuple(results)
    for index, value in enumerate(results):
        value.owner, value.index = op, index


def _set_yields(region: Region, values: list[Value]) -> None:
    last = _last(region)
    if last is not None and last.name == "yield":
        last.operands = (tuple(values),)


def _keep_results(op: Op, kept: list[int]) -> None:
    for region in op.regions:
        found = _yields(region)
        if found is not None:
            _set_yields(region, [found[i] for i in kept])
    _set_results(op, [op.results[i] for i in kept])


def turn_negated(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """if (not c) a else b => if (c) b else a"""
    plain = negated(_condition(op))
    if plain is None or not op.regions[1].blocks:
        return False
    op.operands, op.regions = (plain,), (op.regions[1], op.regions[0])
    place.again(op)
    return True


def drop_unused(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """Results that nobody uses are not yielded."""
    kept = [i for i, r in enumerate(op.results) if rewriter.uses[r]]
    if len(kept) == len(op.results):
        return False
    _keep_results(op, kept)
    place.again(op)
    return True


def replace_yields(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """Results that are the same in both branches, or the condition, or its negation."""
    then, other = map(_yields, op.regions)
    if then is None or other is None:
        return False
    condition = _condition(op)
    kept: list[int] = []
    made: list[Op] = []
    for i, result in enumerate(op.results):
        pair = (truth(then[i]), truth(other[i]))
        if then[i] is other[i]:
            rewriter.replace(result, then[i])
        elif result.type == Tile((), I1) and pair == (True, False):
            rewriter.replace(result, condition)
        elif result.type == Tile((), I1) and pair == (False, True):
            made += negation(condition, op.loc)
            rewriter.replace(result, made[-1].result)
        else:
            kept.append(i)
    if len(kept) == len(op.results):
        return False
    _keep_results(op, kept)
    place.again(*made, op)
    return True


def choose_static(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """if (true) a else b => a"""
    known = truth(_condition(op))
    if known is None:
        return False
    chosen = op.regions[0 if known else 1]
    if not chosen.blocks:
        return True
    *ops, last = chosen.block.ops
    if last.name == "yield":
        for result, value in zip(op.results, last.values(), strict=True):
            rewriter.replace(result, value)
        place.again(*ops)
        return True
    if not _may_end(place.parent, last):
        return False
    place.behind.clear()
    place.again(*ops, last)
    return True


def to_select(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """Results that both branches take from outside become selections."""
    if not op.results or not all(isinstance(r.type, Tile) for r in op.results):
        return False
    inside = defined(op.regions[0]) | defined(op.regions[1])
    then, other = map(_yields, op.regions)
    then, other = then or other, other or then
    if then is None or other is None:
        return False
    kept: list[int] = []
    made: list[Op] = []
    for i, result in enumerate(op.results):
        if then[i] in inside or other[i] in inside:
            kept.append(i)
        elif then[i] is other[i]:
            rewriter.replace(result, then[i])
        else:
            made += _selection(_condition(op), then[i], other[i], op)
            rewriter.replace(result, made[-1].result)
    if len(kept) == len(op.results):
        return False
    _keep_results(op, kept)
    place.again(*made, op)
    return True


def _selection(condition: Value, then: Value, other: Value, at: Op) -> list[Op]:
    type_ = then.type
    assert isinstance(type_, Tile)
    made: list[Op] = []
    if type_.shape:
        ones = Tile((1,) * len(type_.shape), I1)
        made.append(make("reshape", (condition,), [ones], at.loc))
        spread = Tile(type_.shape, I1)
        if spread != ones:
            made.append(make("broadcast", (made[-1].result,), [spread], at.loc))
        condition = made[-1].result
    return [*made, make("select", (condition, then, other), [type_], at.loc)]


def drop_empty_else(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """if (c) a else {} => if (c) a"""
    other = op.regions[1]
    if op.results or not other.blocks or not _only_yields(other):
        return False
    op.regions = (op.regions[0], Region([]))
    place.again(op)
    return True


def join_neighbours(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """if (c) a else b; if (c) d else e => if (c) {a; d} else {b; e}"""
    previous = place.before[-1] if place.before else None
    if previous is None or previous.name != "if":
        return False
    mine, theirs = _condition(op), _condition(previous)
    regions = op.regions
    if negated(mine) is theirs or negated(theirs) is mine:
        regions = (regions[1], regions[0])
    elif mine is not theirs:
        return False
    pairs = zip(previous.regions, regions, strict=True)
    joined = tuple(_joined(a, b, previous) for a, b in pairs)
    if previous.results or op.results:
        joined = tuple(r if r.blocks else _empty() for r in joined)
    merged = Op(previous.spec, (theirs,), (), {}, joined, previous.loc)
    if not joined[0].blocks:
        merged.regions = (_empty(), joined[1])
    _set_results(merged, [*previous.results, *op.results])
    place.before.pop()
    place.again(merged)
    return True


def _empty() -> Region:
    return Region([Block((), [make("yield", ((),), (), UNKNOWN)])])


def _joined(first: Region, second: Region, previous: Op) -> Region:
    """Both branches behind each other."""
    if _leaves(first) or not second.blocks:
        return first
    given = _yields(first) or []
    ops = list(first.block.ops[:-1]) if first.blocks else []
    substitute(second.block.ops, dict(zip(previous.results, given, strict=False)))
    *rest, last = second.block.ops
    if last.name == "yield":
        last.operands = ((*given, *last.values()),)
    return Region([Block((), [*ops, *rest, last])])


def join_nested(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """if (a) { if (b) x else y } else y => if (a and b) x else y"""
    then, other = op.regions
    if len(then.block.ops) != 2 or then.block.ops[0].name != "if":
        return False
    inner = then.block.ops[0]
    alone = not other.blocks and not inner.regions[1].blocks
    outer_then, outer_else = _yields(then), _yields(other)
    if outer_then is None or not _only_yields(other) or not _only_yields(inner.regions[1]):
        return False
    if _leaves(inner.regions[0]) and not alone:
        return False
    inner_then, inner_else = _yields(inner.regions[0]), _yields(inner.regions[1])
    plan = _plan(inner, outer_then, outer_else, inner_else)
    if plan is None:
        return False
    made: list[Op] = []
    kept: list[int] = []
    for i, j in enumerate(plan):
        if j is None:
            assert outer_else is not None
            made += _selection(_condition(op), outer_then[i], outer_else[i], op)
            rewriter.replace(op.results[i], made[-1].result)
        else:
            kept.append(i)
    both = make("andi", (_condition(op), _condition(inner)), [Tile((), I1)], op.loc)
    merged = Op(op.spec, (both.result,), (), {}, (inner.regions[0], other), op.loc)
    if inner_then is not None:
        _set_yields(inner.regions[0], [inner_then[plan[i]] for i in kept])  # type: ignore[index]
    if outer_else is not None:
        _set_yields(other, [outer_else[i] for i in kept])
    _set_results(merged, [op.results[i] for i in kept])
    place.again(*made, both, merged)
    return True


def _plan(
    inner: Op, then: list[Value], other: list[Value] | None, inner_else: list[Value] | None
) -> list[int | None] | None:
    """For each result the inner one it is, or None if it is selected; None if it cannot be."""
    plan: list[int | None] = []
    for i, value in enumerate(then):
        if value.owner is inner:
            if inner_else is None or other is None or inner_else[value.index] is not other[i]:
                return None
            plan.append(value.index)
        elif isinstance(value.type, Tile) and other is not None:
            plan.append(None)
        else:
            return None
    return plan


def move_exits_out(rewriter: Rewriter, op: Op, place: Place) -> bool:
    """if (c) { a; return } else { b; return } => if (c) { a; return }; b; return"""
    then, other = op.regions
    if not (_leaves(then) and _leaves(other)):
        return False
    last = _last(other)
    assert last is not None
    if not _may_end(place.parent, last):
        return False
    op.regions = (then, Region([]))
    op.results = ()
    place.behind.clear()
    place.again(*other.block.ops)
    place.before.append(op)
    return True


IF_PATTERNS: tuple[Pattern, ...] = (
    turn_negated,
    drop_unused,
    replace_yields,
    choose_static,
    to_select,
    drop_empty_else,
    join_neighbours,
    join_nested,
    move_exits_out,
)
