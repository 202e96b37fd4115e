"""Assembly that programs write themselves, run on the elements that a thread has."""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import sha256

from tile_tileaa.dialect.extended import PACKED

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.emit.floors import missing_in_ptx
from tile_nvptx.passes.tileas.device.inline_asm import LETTERS, Assembly, Group
from tile_nvptx.passes.tileas.ruleset import rules, text
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, storage_type, vector_of

_WORD = 32
_OUTPUT = re.compile(r"=(&?)(.+)")
_CLOBBER = re.compile(r"~\{[^{}]+\}")
#: `$$`, an operand, or a dollar sign that LLVM would end the process on.
_DOLLAR = re.compile(r"\$(?:(\$)|(\d+)|\{(\d+)\}|)")


@rules.on("nv_tileaa.elementwise_inline_asm", "nv_tileaa.elementwise_inline_asm_mixed")
def inline_asm(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """elementwise_inline_asm => llvm.inline_asm for each `packed_element` elements of a thread"""
    packed = ir.IntegerAttr(op.attributes[PACKED]).value if PACKED in op.attributes else 1
    asm, constraints = text(op, "asm"), text(op, "constraints")
    operands, results, count = _bound(
        op,
        constraints,
        [_group(value.type, cx, packed) for value in op.operands],
        [_group(value.type, cx, packed) for value in op.results],
    )
    _expect_operands(op, asm, count)
    lacking = missing_in_ptx(asm, cx.target)
    if lacking is not None:
        needs = lacking[1].needs
        raise error_at(
            op, f"has {lacking[0]}, which needs {needs}, but the target is {cx.target.chip}"
        )
    return _run(cx, op, asm, constraints, operands, results, effects="pure" not in op.attributes)


@rules.on("nv_tileaa.optimization_barrier")
def optimization_barrier(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """optimization_barrier => assembly that does nothing, of which LLVM does not know that"""
    value = op.operands[0]
    group = _group(value.type, cx, 1)
    packed = min(count_of(value.type), max(1, _WORD // group.width))
    group = replace(group, packed=packed)
    letter = next(letter for letter in "hrl" if group.takes(letter))
    group = replace(group, letters=(letter,) * group.registers)
    return _run(cx, op, "", f"={letter},0", [group], [group], effects=True)


@rules.on("nv_tileas.pragma")
def pragma(op: ir.OpView, cx: Kernel) -> None:
    """pragma => `.pragma` directives"""
    for directive in ir.ArrayAttr(op.attributes["directives"]):
        written = ir.StringAttr(directive).value.replace("$", "$$")
        cx.create(
            "llvm.inline_asm",
            [],
            [],
            {
                "asm_string": ir.StringAttr.get(f'.pragma "{written}";'),
                "constraints": ir.StringAttr.get(""),
                "has_side_effects": ir.UnitAttr.get(),
                "asm_dialect": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0),
            },
        )


def _group(type_: ir.Type, cx: Kernel, packed: int) -> Group:
    """Flags are bytes to assembly, pointers are numbers."""
    stored = storage_type(element_of(cx.type(type_)))
    return Group(str(stored), stored.width, packed)


def _run(
    cx: Kernel,
    op: ir.OpView,
    asm: str,
    constraints: str,
    operands: list[Group],
    results: list[Group],
    *,
    effects: bool,
) -> list[ir.Value]:
    b = Builder(cx)
    types = [cx.type(result.type) for result in op.results]
    is_scalar = not isinstance(types[0], ir.VectorType)
    count = count_of(types[0])
    given = [b.splat(value, 1) if is_scalar else value for value in op.operands]
    stored = [b.to_storage(value) for value in given]
    key = repr((asm, constraints, effects, operands, results, count))
    name = f"__tile_asm_{sha256(key.encode()).hexdigest()[:16]}"
    function = Assembly(name, asm, constraints, effects, tuple(operands), tuple(results), count)
    vectors = [vector_of(count, ir.Type.parse(group.element)) for group in results]
    parts = _call(cx, name, function.function(), stored, vectors)
    back = [b.from_storage(p, element_of(t)) for p, t in zip(parts, types, strict=True)]
    return [b.extract(value, 0) for value in back] if is_scalar else back


def _call(
    cx: Kernel, name: str, function: str, given: list[ir.Value], results: list[ir.Type]
) -> list[ir.Value]:
    """Call a helper that returns one vector, or a struct of several."""
    if len(results) == 1:
        return [cx.state.helpers.call(cx, name, function, given, results[0]).result]
    struct = ir.Type.parse(f"!llvm.struct<({', '.join(map(str, results))})>")
    whole = cx.state.helpers.call(cx, name, function, given, struct).result
    places = [{"position": ir.DenseI64ArrayAttr.get([at])} for at in range(len(results))]
    return [
        cx.create("llvm.extractvalue", [whole], [result], place).result
        for result, place in zip(results, places, strict=True)
    ]


def _bound(
    op: ir.OpView, constraints: str, operands: list[Group], results: list[Group]
) -> tuple[list[Group], list[Group], int]:
    """Operands and results with the letters of their registers, and how many registers there are.

    Raises:
        CompileError: constraints do not fit the types.
    """
    outputs, inputs = _parsed(op, constraints)
    for what, groups, letters in (("results", results, outputs), ("operands", operands, inputs)):
        needed = sum(group.registers for group in groups)
        if len(letters) != needed:
            raise error_at(
                op,
                f"has constraints of {len(letters)} {what}, but its {what} take {needed} registers",
                hint="elements of fewer than 32 bits share registers, up to packed_element of them",
            )
    bound = _letters(op, operands, inputs), _letters(op, results, outputs)
    return *bound, len(outputs) + len(inputs)


def _parsed(op: ir.OpView, constraints: str) -> tuple[list[str], list[str]]:
    """Letters of outputs, which come first, and of inputs; those tied to an output have its letter.

    Raises:
        CompileError: not such a list.
    """
    outputs, inputs = list[str](), list[str]()
    for part in constraints.split(",") if constraints else ():
        if _CLOBBER.fullmatch(part):
            continue
        output = _OUTPUT.fullmatch(part)
        if output is not None and not inputs:
            outputs.append(output[2])
        elif part.isdecimal() and int(part) < len(outputs):
            inputs.append(outputs[int(part)])
        else:
            inputs.append(part)
    for letter in (*outputs, *inputs):
        if letter not in LETTERS:
            raise error_at(
                op,
                f"has the constraint '{letter}', which is none of {', '.join(LETTERS)}",
                hint="outputs, '=r', come first, then inputs, 'r', or '0' for the register of "
                "output 0, then what is overwritten, '~{memory}'",
            )
    return outputs, inputs


def _letters(op: ir.OpView, groups: list[Group], letters: list[str]) -> list[Group]:
    bound, rest = [], letters
    for group in groups:
        own, rest = rest[: group.registers], rest[group.registers :]
        for letter in own:
            if not group.takes(letter):
                raise error_at(
                    op,
                    f"has the constraint '{letter}', of {LETTERS[letter][0]} bits, for a register "
                    f"that holds {group.shared} x {group.element}, {group.bits} bits",
                )
        bound.append(replace(group, letters=tuple(own)))
    return bound


def _expect_operands(op: ir.OpView, asm: str, count: int) -> None:
    """Raise an error for a text in which a dollar sign stands for none of `count` registers."""
    for found in _DOLLAR.finditer(asm):
        number = found[2] or found[3]
        if found[1] is None and (number is None or int(number) >= count):
            near = asm[found.start() : found.start() + 8]
            raise error_at(
                op,
                f"has '{near}' in its text, which names none of its {count} registers",
                hint="a dollar sign itself is '$$'",
            )
