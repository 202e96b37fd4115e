"""Calls: passing parameters, entering functions, and the functions the system provides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_sim.machine import builtins
from tile_sim.machine.group import Group
from tile_sim.machine.local import copy_local
from tile_sim.program.decode import Decode, Exec
from tile_sim.program.flow import Call, IndirectCall, Jump
from tile_sim.program.names import Reg, Var
from tile_sim.program.types import TYPES
from tile_sim.ptx.syntax import Function, Int, Name, Operand
from tile_sim.ptx.syntax import Group as OperandGroup

if TYPE_CHECKING:
    from tile_sim.program.build import FunctionBuilder

Formals = tuple[list[Var | Reg], list[Var | Reg]]


def build_call(b: FunctionBuilder, cx: Decode) -> None:
    """`call{.uni} {(returns),} target {, (arguments)} {, prototype}`."""
    cx.flag("uni")
    cx.done()
    returns, target, arguments = _split(cx)
    if not isinstance(target, Name):
        cx.fail("the function to call is missing")
    callee = cx.find(target.name)
    block = b.block if cx.ins.guard is None else b.guarded_block(cx.ins, cx.names)
    if isinstance(callee, Function) and callee.body is None:
        block.code.append(_system_call(cx, callee, returns, arguments))
        block.instrs.append(cx.ins)
        if cx.ins.guard is not None:
            b.start_after(block)
        return
    back = b._new_block() if cx.ins.guard is None else None
    if back is None:
        assert isinstance(block.end, Jump)
        back = block.end.to
    if isinstance(callee, Function):
        block.end = _direct(b, cx, callee.name, returns, arguments, back)
        block.code += []
    else:
        block.end = _indirect(b, cx, target, returns, arguments, back)
    block.end_instr = cx.ins
    b.block = back


def _split(cx: Decode) -> tuple[tuple[Operand, ...], Operand | None, tuple[Operand, ...]]:
    """Returns, target and arguments; a prototype label behind them says nothing more."""
    operands = list(cx.operands)
    returns: tuple[Operand, ...] = ()
    first = operands[0] if operands else None
    if isinstance(first, OperandGroup):
        returns = first.items
        del operands[0]
    target = operands.pop(0) if operands else None
    arguments: tuple[Operand, ...] = ()
    second = operands[0] if operands else None
    if isinstance(second, OperandGroup):
        arguments = second.items
    return returns, target, arguments


def _direct(b: FunctionBuilder, cx: Decode, name: str, returns, arguments, back) -> Call:
    """A call of a known function: copy the arguments in before, the results out after."""
    b.callees.append(name)
    results, params = b.program.formals[name]
    if len(params) != len(arguments) or len(results) != len(returns):
        cx.fail(
            f"{name!r} takes {len(params)} arguments and gives {len(results)} results, "
            f"found {len(arguments)} and {len(returns)}"
        )
    before = [_move_in(cx, a, p) for a, p in zip(arguments, params, strict=True)]
    after = [_move_out(cx, r, p) for r, p in zip(returns, results, strict=True)]
    back_of_call = back
    if after:
        # The results are copied in a block of their own, so that only this call runs it.
        back_of_call = b._new_block()
        back_of_call.code += after
        back_of_call.instrs += [cx.ins] * len(after)
        back_of_call.end = Jump(back)
    return Call(b.program.functions[name], back_of_call, before)


def _indirect(b: FunctionBuilder, cx: Decode, target: Name, returns, arguments, back):
    """A call through a register: any function whose shape fits may be meant."""
    slot = cx.slot(target, TYPES["u64"])
    calls: dict[int, Call] = {}
    for name, (results, params) in b.program.formals.items():
        function = b.program.module.functions[name]
        fits = len(params) == len(arguments) and len(results) == len(returns)
        if function.entry or name == b.function.name or not fits:
            continue
        calls[b.program.function_address(name)] = _direct(b, cx, name, returns, arguments, back)
    return IndirectCall(slot, calls, back, cx.where)


def _move_in(cx: Decode, actual: Operand, formal: Var | Reg) -> Exec:
    if isinstance(formal, Reg):
        get = cx.src(actual, formal.type)
        slot = cx.program.file.slot(formal, formal.type.dtype.str)
        return lambda g: g.put(slot, get(g))
    source = _local(cx, actual)
    if isinstance(source, Var):
        return _copy(source, formal)
    if isinstance(actual, Int):
        cx.fail("constant arguments of .param functions are not supported")
    raise cx.error("an argument has to be a .param variable")


def _move_out(cx: Decode, actual: Operand, formal: Var | Reg) -> Exec:
    if isinstance(formal, Reg):
        put = cx.put(actual, formal.type)
        slot = cx.program.file.slot(formal, formal.type.dtype.str)
        return lambda g: put(g, g.v[slot][g.sel])
    target = _local(cx, actual)
    if isinstance(target, Var):
        return _copy(formal, target)
    raise cx.error("a result has to be a .param variable")


def _local(cx: Decode, operand: Operand) -> object:
    return cx.find(operand.name) if isinstance(operand, Name) else None


def _copy(source: Var, target: Var) -> Exec:
    size = min(source.size, target.size)

    def execute(g: Group) -> None:
        copy_local(g, source.offset, target.offset, size)

    return execute


def _system_call(cx: Decode, callee: Function, returns, arguments) -> Exec:
    """A call of a function that the system provides (PTX declares it without a body)."""
    run = builtins.SYSTEM.get(callee.name)
    if run is None:
        cx.fail(f"function {callee.name!r} has no body", "undefined-function")
    places = []
    for operand in (*arguments, *returns):
        var = _local(cx, operand)
        if not isinstance(var, Var):
            cx.fail("an argument has to be a .param variable")
        places.append(var)
    inputs, outputs = places[: len(arguments)], places[len(arguments) :]
    return lambda g: run(g, inputs, outputs)
