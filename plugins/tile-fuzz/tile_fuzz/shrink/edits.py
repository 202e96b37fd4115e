"""Edits that make a program smaller or plainer.

An edit changes a copy of the case in place and says whether it could. What it leaves need not be
valid, or do the same: what is not valid or does not fail any more is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import TypeAlias

from tile_cudatile.attrs import Dense, Hints, storage_bytes
from tile_cudatile.locations import UNKNOWN
from tile_cudatile.transforms.rewrite import make, replaced
from tile_cudatile.tree import Block, Op, Region, Value
from tile_cudatile.types import TOKEN, Scalar, Tile

from tile_fuzz.case import Case
from tile_fuzz.generator.maker import dense
from tile_fuzz.shrink.copying import numbered

Edit: TypeAlias = Callable[[Case], bool]

#: What stands for the result of an operation that is taken out.
Stand: TypeAlias = Callable[[Op, Value], "Op | Value | None"]


def zero(op: Op, result: Value) -> Op | Value | None:
    """Zeros; for a token a new one."""
    del op
    if result.type == TOKEN:
        return make("make_token", (), [TOKEN], UNKNOWN)
    if isinstance(result.type, Tile) and isinstance(result.type.element, Scalar):
        value = 1 if result.type.element.name == "f8E8M0FNU" else 0
        return make("constant", (), [result.type], UNKNOWN, value=dense(result.type, value))
    return None


def operand(op: Op, result: Value) -> Op | Value | None:
    """An operand of the same type."""
    return next((value for value in op.values() if value.type == result.type), None)


def without(numbers: Collection[int], stand: Stand) -> Edit:
    """Takes out the operations of these numbers, with something in place of their results."""

    def edit(case: Case) -> bool:
        ops = numbered(case)
        chosen = {ops[n] for n in numbers if n < len(ops) and not ops[n].spec.terminator}
        used = {value for op in ops for value in op.values()}
        swapped: dict[Value, Value] = {}
        changed = False
        for block in _all_blocks(case):
            kept: list[Op] = []
            for op in block.ops:
                stands = _stands(op, stand, used) if op in chosen else None
                if stands is None:
                    kept.append(op)
                    continue
                changed = True
                for result, value in stands.items():
                    if isinstance(value, Op):
                        kept.append(value)
                        value = value.results[0]
                    swapped[result] = value
            block.ops = kept
        _substitute(case, swapped)
        return changed

    return edit


def _stands(op: Op, stand: Stand, used: Collection[Value]) -> dict[Value, Op | Value] | None:
    """Something for each result that is used; None if there is nothing, or nothing to win."""
    if op.name in ("constant", "make_token"):
        return None
    found: dict[Value, Op | Value] = {}
    for result in op.results:
        if result in used:
            value = stand(op, result) or zero(op, result)
            if value is None:
                return None
            found[result] = value
    return found


def _substitute(case: Case, values: dict[Value, Value]) -> None:
    if values:
        for op in numbered(case):
            op.operands = replaced(op.operands, values)


def _all_blocks(case: Case) -> Iterator[Block]:
    for entry in case.module.entries:
        yield from _blocks(entry.body)


def _blocks(region: Region) -> Iterator[Block]:
    for block in region.blocks:
        yield block
        for op in block.ops:
            for inner in op.regions:
                yield from _blocks(inner)


# --- control flow ---------------------------------------------------------------------------------


def inlined(number: int, region: int) -> Edit:
    """One region of an operation in its place: a side of a branch, one turn of a loop."""

    def edit(case: Case) -> bool:
        op = numbered(case)[number]
        if op.name not in ("if", "for", "loop") or not op.regions[region].blocks:
            return False
        block = op.regions[region].block
        last = block.ops[-1]
        if last.name not in ("yield", "break") and op.name != "for":
            return False
        given = _entered(op)
        left = last.values()
        if len(given) != len(block.args) or len(left) != len(op.results):
            return False
        _replace(case, op, block.ops[:-1])
        swapped = dict(zip(block.args, given, strict=True))
        swapped.update(zip(op.results, left, strict=True))
        _substitute(case, swapped)
        return True

    return edit


def _entered(op: Op) -> list[Value]:
    """What the arguments of the body are in the first turn."""
    if op.name == "if":
        return []
    if op.name == "loop":
        return list(op.values())
    return [op.operands[0], *op.values()[3:]]  # type: ignore[list-item]


def never_taken(number: int) -> Edit:
    """A loop that makes no turn: its results are what it starts with."""

    def edit(case: Case) -> bool:
        op = numbered(case)[number]
        start = op.values()[3:] if op.name == "for" else op.values()
        if op.name not in ("for", "loop") or [v.type for v in start] != [
            r.type for r in op.results
        ]:
            return False
        _replace(case, op, [])
        _substitute(case, dict(zip(op.results, start, strict=True)))
        return True

    return edit


def _replace(case: Case, op: Op, by: list[Op]) -> None:
    for block in _all_blocks(case):
        if op in block.ops:
            at = block.ops.index(op)
            block.ops[at : at + 1] = by
            return


def fewer_results(number: int, index: int) -> Edit:
    """A branch without one of its results, a loop without one of its carried values."""

    def edit(case: Case) -> bool:
        op = numbered(case)[number]
        if index >= len(op.results):
            return False
        result = op.results[index]
        if op.name == "for":
            start = op.values()[3 + index]
            swapped = {result: start, op.regions[0].block.args[1 + index]: start}
            block = op.regions[0].block
            block.args = (*block.args[: 1 + index], *block.args[2 + index :])
            carried = op.values()[3:]
            op.operands = (*op.operands[:3], (*carried[:index], *carried[index + 1 :]))
            ends = ("continue",)
        elif op.name == "if":
            constant = zero(op, result)
            if not isinstance(constant, Op):
                return False
            _replace(case, op, [constant, op])
            swapped = {result: constant.results[0]}
            ends = ("yield",)
        else:
            return False
        op.results = (*op.results[:index], *op.results[index + 1 :])
        for last in _ends(op, ends):
            values = last.values()
            last.operands = ((*values[:index], *values[index + 1 :]),)
        _substitute(case, swapped)
        return True

    return edit


def _ends(op: Op, names: tuple[str, ...]) -> Iterator[Op]:
    """Terminators that leave `op`, in its regions and in branches there."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if inner.name in names:
                    yield inner
                elif inner.name == "if" and names == ("continue",):
                    yield from _ends(inner, names)


# --- attributes, constants and data ---------------------------------------------------------------


def plain_attribute(number: int, name: str) -> Edit:
    """An attribute as it is when nobody asks for anything."""

    def edit(case: Case) -> bool:
        op = numbered(case)[number]
        spec = next(a for a in op.spec.attrs if a.name == name)
        value = op.attrs.get(name)
        if spec.kind == "unit" or (spec.optional and spec.kind != "enum"):
            return op.attrs.pop(name, None) is not None
        if name == "memory_ordering_semantics" and value != "weak" and "atomic" not in op.name:
            op.attrs[name] = "weak"
            op.attrs.pop("memory_scope", None)
            return True
        if name == "inbounds" and isinstance(value, tuple) and any(value):
            op.attrs[name] = (False,) * len(value)
            return True
        if spec.kind != "enum" or spec.optional or name.startswith("memory"):
            return False
        simplest = spec.default or _SIMPLEST.get(name, value)
        if simplest is None or value == simplest:
            return False
        op.attrs[name] = simplest
        return True

    return edit


_SIMPLEST = {"rounding_mode": "nearest_even", "signedness": "signed"}


def splat(number: int, first: bool) -> Edit:
    """A constant of zeros, or of its first element only."""

    def edit(case: Case) -> bool:
        op = numbered(case)[number]
        data = op.attrs.get("value")
        if op.name != "constant" or not isinstance(data, Dense):
            return False
        if first:
            if data.is_splat or data.type.element.width == 1:  # type: ignore[union-attr]
                return False
            made = Dense(data.type, data.data[: storage_bytes(data.type.element)])
        else:
            made = dense(data.type, 0)
        op.attrs["value"] = made
        return made != data

    return edit


def no_hints(case: Case) -> bool:
    """No optimization hints anywhere."""
    had = any(entry.hints.targets for entry in case.module.entries)
    for entry in case.module.entries:
        entry.hints = Hints({})
    return had


def only_entry(index: int) -> Edit:
    """One kernel of several."""

    def edit(case: Case) -> bool:
        if len(case.module.entries) < 2:
            return False
        case.module.entries = [case.module.entries[index]]
        case.launches = [case.launches[index]]
        return True

    return edit


def smaller_grid(index: int, axis: int) -> Edit:
    """One block along an axis."""

    def edit(case: Case) -> bool:
        launch = case.launches[index]
        if launch.grid[axis] == 1:
            return False
        grid = tuple(1 if a == axis else n for a, n in enumerate(launch.grid))
        case.launches[index] = replace(launch, grid=grid)
        return True

    return edit


def plainer_data(index: int, number: int, fill: str) -> Edit:
    """An argument filled by a simpler rule."""

    def edit(case: Case) -> bool:
        launch = case.launches[index]
        argument = launch.arguments[number]
        if argument.count is None or argument.fill in ("zeros", fill):
            return False
        made = replace(argument, fill=fill)
        arguments = (*launch.arguments[:number], made, *launch.arguments[number + 1 :])
        case.launches[index] = replace(launch, arguments=arguments)
        return True

    return edit
