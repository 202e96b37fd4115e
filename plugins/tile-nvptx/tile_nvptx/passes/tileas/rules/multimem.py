"""Accesses to multicast memory (PTX ISA, "multimem.ld_reduce", "multimem.st", "multimem.red").

Each element by one thread. Halves travel in pairs: of a pair that is read one half is taken, and
one that is combined has -0 in the other half, which changes nothing. A half is stored by clearing
and setting its bits, which leaves the other one alone.
"""

from __future__ import annotations

from tile_tileas.dialect import layout_of

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.rules.atomics import acting_thread, bits_of, element_at
from tile_nvptx.passes.tileas.ruleset import rules, text
from tile_nvptx.passes.tileas.thread.access import qualifiers
from tile_nvptx.passes.tileas.thread.build import Builder, token
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of

_SINCE = 90
#: Integer reductions -> (PTX name, letter of the type).
_INTEGER = {
    "add": ("add", "u"), "min": ("min", "s"), "max": ("max", "s"), "umin": ("min", "u"),
    "umax": ("max", "u"), "and": ("and", "b"), "or": ("or", "b"), "xor": ("xor", "b"),
}  # fmt: skip
_NEGATIVE_ZERO = 0x8000
_CONSTRAINT = {32: "r", 64: "l"}


@rules.on("nv_tileas.multimem")
def multimem(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """multimem {action} => multimem.ld_reduce, multimem.red or multimem.st per element"""
    if cx.target.sm < _SINCE:
        raise error_at(
            op,
            f"needs multicast memory, which {cx.target.name} lacks",
            hint=f"compile for sm_{_SINCE} or later",
        )
    b = Builder(cx)
    result, kind = cx.type(op.result.type), element_of(cx.type(op.result.type))
    layout = layout_of(op.result.type)
    owner = acting_thread(op, cx, layout)
    value = None if op.value is None else bits_of(cx, op.value)
    element = ir.IntegerType.get_signless(kind.width)
    name, body = _helper(op, kind)
    found = []
    for register in range(count_of(result)):
        flags = [owner] if owner is not None else []
        flag = b.all_of([*flags, element_at(b, op.mask, register)])
        assert flag is not None
        values = [] if value is None else [b.extract(value, register)]
        operands = [element_at(b, op.base, register), *values, flag]
        old = cx.state.helpers.call(cx, name, body, operands, element).result
        found.append(b.splat(old, 1))
    return [b.bitcast(b.concat(found), result), token(cx)]


def _helper(op: ir.OpView, kind: ir.Type) -> tuple[str, str]:
    """Name and text of `(ptr<1>, [bits], i1) -> bits`: acts if the flag is set."""
    action, order = text(op, "action"), qualifiers(op) or ".weak"
    if kind.width == 16:
        return _of_halves(op, action, order, kind)
    instruction = _instruction(op, action, kind)
    name = f"__tile_multimem{order}_{action}_{instruction}".replace(".", "_")
    return name, _function(name, kind.width, action, _asm(action, order, instruction, kind.width))


def _instruction(op: ir.OpView, action: str, kind: ir.Type) -> str:
    """What stands behind `.global.`: `add.f32`, `max.s64`, or a type."""
    if action == "store":
        return f"b{kind.width}"
    reduction = text(op, "reduction")
    if isinstance(kind, ir.FloatType):
        return f"{reduction}.{kind}"
    name, letter = _INTEGER[reduction]
    return f"{name}.{letter}{kind.width}"


def _asm(action: str, order: str, instruction: str, width: int) -> tuple[str, str]:
    """Inline assembly and its constraints."""
    register = _CONSTRAINT[width]
    if action == "load_reduce":
        line = f"mov.b{width} $0, 0; @$2 multimem.ld_reduce{order}.global.{instruction} $0, [$1];"
        return line, f"=&{register},l,b,~{{memory}}"
    word = "st" if action == "store" else "red"
    return (
        f"@$2 multimem.{word}{order}.global.{instruction} [$0], $1;",
        f"l,{register},b,~{{memory}}",
    )


def _call(asm: tuple[str, str], pointer: str, value: str, flag: str, width: int) -> str:
    """A statement of inline assembly; with no value it gives %r."""
    line, constraints = asm
    head = "llvm.inline_asm has_side_effects asm_dialect = att"
    if not value:
        types = f"(!llvm.ptr<1>, i1) -> i{width}"
        return f'  %r = {head} "{line}", "{constraints}" {pointer}, {flag} : {types}'
    types = f"(!llvm.ptr<1>, i{width}, i1) -> ()"
    return f'  {head} "{line}", "{constraints}" {pointer}, {value}, {flag} : {types}'


def _function(name: str, width: int, action: str, asm: tuple[str, str]) -> str:
    loads = action == "load_reduce"
    value = "" if loads else f"%x: i{width}, "
    lines = [
        f"llvm.func internal @{name}(%p: !llvm.ptr<1>, {value}%c: i1) -> i{width} "
        "attributes {always_inline} {",
        _call(asm, "%p", "" if loads else "%x", "%c", width),
        f"  llvm.return {'%r' if loads else '%x'} : i{width}",
        "}",
    ]
    return "\n".join(lines)


# -- halves -----------------------------------------------------------------------------------


def _of_halves(op: ir.OpView, action: str, order: str, kind: ir.Type) -> tuple[str, str]:
    reduction, pair = text(op, "reduction"), f"{kind}x2"
    name = f"__tile_multimem{order}_{action}_{reduction}_{pair}".replace(".", "_")
    value = "" if action == "load_reduce" else "%x: i16, "
    if action == "store" and order != ".weak":
        raise error_at(
            op,
            f"stores {kind} to multicast memory with memory ordering "
            f"'{text(op, 'mem_semantic')}', which no instruction does",
            hint="store elements of 32 bits, or with weak ordering",
        )
    lines = [
        f"llvm.func internal @{name}(%p: !llvm.ptr<1>, {value}%c: i1) -> i16 "
        "attributes {always_inline} {",
        *_PAIR,
        *_half_action(action, order, reduction, pair),
        "}",
    ]
    return name, "\n".join(lines)


#: %pair: the address of the aligned pair that holds the half; %shift: where it begins in it.
_PAIR = (
    "  %a = llvm.ptrtoint %p : !llvm.ptr<1> to i64",
    "  %three = llvm.mlir.constant(-4 : i64) : i64",
    "  %aligned = llvm.and %a, %three : i64",
    "  %pair = llvm.inttoptr %aligned : i64 to !llvm.ptr<1>",
    "  %low = llvm.trunc %a : i64 to i32",
    "  %two = llvm.mlir.constant(2 : i32) : i32",
    "  %upper = llvm.and %low, %two : i32",
    "  %eight = llvm.mlir.constant(8 : i32) : i32",
    "  %shift = llvm.mul %upper, %eight : i32",
)


def _half_action(action: str, order: str, reduction: str, pair: str) -> list[str]:
    if action == "load_reduce":
        exact = ".acc::f32" if reduction == "add" else ""
        asm = _asm(action, order, f"{reduction}{exact}.{pair}", 32)
        return [
            _call(asm, "%pair", "", "%c", 32),
            "  %s = llvm.lshr %r, %shift : i32",
            "  %h = llvm.trunc %s : i32 to i16",
            "  llvm.return %h : i16",
        ]
    widened = ["  %w = llvm.zext %x : i16 to i32", "  %mine = llvm.shl %w, %shift : i32"]
    masks = [
        "  %all = llvm.mlir.constant(65535 : i32) : i32",
        "  %half = llvm.shl %all, %shift : i32",
        "  %ones = llvm.mlir.constant(-1 : i32) : i32",
        "  %others = llvm.xor %half, %ones : i32",
    ]
    if action == "reduce":
        both = _NEGATIVE_ZERO << 16 | _NEGATIVE_ZERO
        calls = [
            f"  %zeros = llvm.mlir.constant({both - (1 << 32)} : i32) : i32",
            "  %rest = llvm.and %zeros, %others : i32",
            "  %word = llvm.or %mine, %rest : i32",
            _call(_asm(action, order, f"{reduction}.{pair}", 32), "%pair", "%word", "%c", 32),
        ]
    else:
        calls = [
            _call(_asm("reduce", ".relaxed.sys", f"{name}.b32", 32), "%pair", value, "%c", 32)
            for name, value in (("and", "%others"), ("or", "%mine"))
        ]
    return [*widened, *masks, *calls, "  llvm.return %x : i16"]
