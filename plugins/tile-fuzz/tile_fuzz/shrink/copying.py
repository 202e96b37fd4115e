"""Copies of cases, which edits change in place."""

from __future__ import annotations

from dataclasses import replace

from tile_cudatile.transforms.rewrite import drop_dead
from tile_cudatile.tree import Block, Entry, Group, Module, Op, Region, Value

from tile_fuzz.case import Case


def copied(case: Case) -> Case:
    """A case that shares no operation with `case`."""
    module = case.module
    entries = [_entry(entry) for entry in module.entries]
    return Case(Module(module.version, list(module.globals), entries), list(case.launches))


def _entry(entry: Entry) -> Entry:
    return Entry(
        entry.name, entry.type, _region(entry.body, {}), entry.hints, entry.arg_attrs, entry.loc
    )


def _region(region: Region, values: dict[Value, Value]) -> Region:
    made = []
    for block in region.blocks:
        args = tuple(Value(arg.type) for arg in block.args)
        values.update(zip(block.args, args, strict=True))
        made.append(Block(args, [_op(op, values) for op in block.ops]))
    return Region(made)


def _op(op: Op, values: dict[Value, Value]) -> Op:
    results = tuple(Value(result.type) for result in op.results)
    operands = tuple(_group(group, values) for group in op.operands)
    regions = tuple(_region(region, values) for region in op.regions)
    values.update(zip(op.results, results, strict=True))
    return Op(op.spec, operands, results, dict(op.attrs), regions, op.loc)


def _group(group: Group, values: dict[Value, Value]) -> Group:
    if isinstance(group, tuple):
        return tuple(values[value] for value in group)
    return None if group is None else values[group]


def numbered(case: Case) -> list[Op]:
    """All operations in an order that copies keep."""
    return [op for entry in case.module.entries for op in entry.body.walk()]


def tidy(case: Case) -> None:
    """Drops dead operations, unused arguments and unused globals."""
    for entry in case.module.entries:
        while drop_dead(entry.body):
            pass
    _drop_arguments(case)
    names = {str(op.attrs["name"]) for op in numbered(case) if op.name == "get_global"}
    case.module.globals = [item for item in case.module.globals if item.name in names]


def _drop_arguments(case: Case) -> None:
    for at, entry in enumerate(case.module.entries):
        used = {value for op in entry.body.walk() for value in op.values()}
        kept = [number for number, arg in enumerate(entry.args) if arg in used]
        block = entry.body.block
        block.args = tuple(block.args[number] for number in kept)
        entry.type = replace(entry.type, inputs=tuple(arg.type for arg in block.args))
        launch = case.launches[at]
        arguments = tuple(launch.arguments[number] for number in kept)
        case.launches[at] = replace(launch, arguments=arguments)
