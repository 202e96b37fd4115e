"""What a kernel can reach: functions it may call, module variables it names."""

from __future__ import annotations

from collections.abc import Iterator

from tile_sim.ptx.syntax import (
    Address,
    Function,
    Group,
    Instr,
    Module,
    Name,
    Operand,
    Pair,
    Scope,
    Statement,
    Variable,
    Vector,
)


def statements(scope: Scope) -> Iterator[Statement]:
    """All statements of a body, nested scopes opened."""
    for statement in scope.body:
        if isinstance(statement, Scope):
            yield from statements(statement)
        else:
            yield statement


def operand_names(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Name):
        yield operand.name
    elif isinstance(operand, Vector | Group):
        for item in operand.items:
            yield from operand_names(item)
    elif isinstance(operand, Pair):
        yield from operand_names(operand.first)
        yield from operand_names(operand.second)
    elif isinstance(operand, Address):
        yield from operand_names(operand.base)
        for item in operand.extra:
            yield from operand_names(item)


def names_in(function: Function) -> Iterator[str]:
    """Every name that the instructions of a function mention."""
    if function.body is None:
        return
    for statement in statements(function.body):
        if isinstance(statement, Instr):
            for operand in statement.operands:
                yield from operand_names(operand)


def _names_in_init(init: object) -> Iterator[str]:
    if isinstance(init, tuple):
        for item in init:
            yield from _names_in_init(item)
    elif isinstance(init, Name):
        yield init.name


def reachable(module: Module, entry: Function) -> tuple[list[Function], list[Variable]]:
    """Functions (callers after callees, the entry last) and module variables of a kernel.

    A function whose address is stored in a reachable variable counts as reachable.
    """
    variables = {v.name: v for v in module.variables}
    functions: dict[str, Function] = {}
    used: dict[str, Variable] = {}
    order: list[Function] = []

    def see(name: str) -> None:
        name = module.aliases.get(name, name)
        if name in module.functions and name not in functions:
            visit(module.functions[name])
        elif name in variables and name not in used:
            used[name] = variables[name]
            for inner in _names_in_init(variables[name].init):
                see(inner)

    def visit(function: Function) -> None:
        functions[function.name] = function
        for name in names_in(function):
            see(name)
        order.append(function)

    visit(entry)
    return order, [v for v in module.variables if v.name in used]
