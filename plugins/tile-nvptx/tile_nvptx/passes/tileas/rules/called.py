"""Functions and intrinsics that programs name themselves, called on each element."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import tomli

from tile_core.diagnostics import nearest
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.emit.intrinsic_probe import problem_with
from tile_nvptx.emit.library_calls import PREFIX
from tile_nvptx.passes.tileas.rules.shifts import known_amount
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.each import apply_each
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import element_of, held_type


@rules.on("nv_tileaa.extern_elementwise", "nv_tileaa.extern_elementwise_mixed")
def extern(op: ir.OpView, cx: Kernel) -> ir.Value:
    """extern_elementwise => llvm.call of a function of the module or of libdevice, per element"""
    name = ir.FlatSymbolRefAttr(op.attributes["symbol"]).value
    result, *sources = _numbers(op, cx)
    wanted, found = f"{result} ({', '.join(sources)})", _type_of(name, cx)
    if found is None:
        known = nearest(name, sorted(libdevice_functions()))
        raise error_at(
            op,
            f"calls '@{name}', which is neither an llvm.func with a body in its module nor a "
            "function of numbers in libdevice",
            hint=known and f"did you mean '@{known}'?",
        )
    if found != wanted:
        raise error_at(op, f"calls '@{name}' as {wanted}, but it is {found}")
    return apply_each(cx, name, list(op.operands), cx.type(op.results[0].type))


def _type_of(name: str, cx: Kernel) -> str | None:
    """A function's type, as `result (arguments)`; None if there is none of that name."""
    function = cx.state.helpers.defined(name)
    if function is None:
        return libdevice_functions().get(name)
    type_ = str(ir.TypeAttr(function.attributes["function_type"]).value)
    return type_.removeprefix("!llvm.func<").removesuffix(">")


@cache
def libdevice_functions() -> dict[str, str]:
    """Functions of libdevice by name, with their types."""
    text = files("tile_nvptx").joinpath("libdevice.toml").read_text(encoding="utf-8")
    return {
        f"{PREFIX}{name}": table["type"]
        for table in tomli.loads(text)["functions"]
        for name in table["names"].split()
    }


@rules.on("nv_tileaa.call_elementwise_intrinsic", "nv_tileaa.call_elementwise_intrinsic_mixed")
def intrinsic(op: ir.OpView, cx: Kernel) -> ir.Value:
    """call_elementwise_intrinsic => llvm.call_intrinsic per element; known integers stand there"""
    name = ir.StringAttr(op.attributes["intrinsic"]).value
    result, *sources = _numbers(op, cx)
    operands = list(op.operands)
    # LLVM takes some arguments, such as a flag of `llvm.ctlz`, as literals alone.
    literals = {
        at: number
        for at, operand in enumerate(operands)
        if isinstance(element_of(operand.type), ir.IntegerType)
        and (number := known_amount(operand)) is not None
    }
    problem = problem_with(name, result, sources, literals, cx.target)
    if problem is not None:
        raise error_at(op, f"calls '{name}', {problem}")
    type_ = cx.type(op.results[0].type)
    return apply_each(cx, name, operands, type_, intrinsic=True, literals=literals)


def _numbers(op: ir.OpView, cx: Kernel) -> list[str]:
    """Types of the result and the operands of what is called on each element.

    Raises:
        CompileError: elements are no numbers that LLVM computes with.
    """
    types = [element_of(type_) for type_ in (op.results[0].type, *map(cx.before, op.operands))]
    for kind in types:
        if held_type(kind) != kind or not isinstance(kind, ir.IntegerType | ir.FloatType):
            raise error_at(op, f"is for numbers that LLVM computes with, but got {kind}")
    return list(map(str, types))
