"""LLVM IR text as MLIR's LLVM prints it, made readable for the LLVM that generates code.

The MLIR bindings may be built on a newer LLVM (24 at the time of writing) than llvmlite (22).
Every textual difference is one row of `RULES`; nothing else in the project knows of any.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tile_nvptx.emit.float_literals import legacy_literal


@dataclass(frozen=True)
class Rule:
    """One difference: what it is about, and the rewriting of a whole module's text."""

    name: str
    why: str
    apply: Callable[[str], str]


# All alternatives begin with a character, so that the search skips what begins with none of them.
_HAS_FLOAT = re.compile(r"f0x|\+(?:inf|q?nan|snan)|-(?:inf|q?nan|snan)|\.(?<=\d\.)\d", re.ASCII)
_TOKEN = re.compile(
    r"""
      "[^"]*"                       # strings; a quote inside is written \22
    | ;.*                           # comments
    | [%@!$\#][-\w.$]+              # names
    | \b(?P<type>half|bfloat|float|double)\b
    | (?P<literal>
        [+-](?:inf|q?nan|snan)(?:\(0x[0-9A-Fa-f]+\))?
      | f0x[0-9A-Fa-f]+
      | [+-]?\d+\.\d*(?:[eE][+-]?\d+)?
      )
    """,
    re.VERBOSE,
)


def _float_literals(text: str) -> str:
    # Lines are looked for from what makes one interesting, which few have.
    parts: list[str] = []
    done = 0
    while found := _HAS_FLOAT.search(text, done):
        start, end = text.rfind("\n", done, found.start()) + 1, text.find("\n", found.end())
        start, end = max(start, done), len(text) if end < 0 else end
        parts += text[done:start], _floats_of_line(text[start:end])
        done = end
    return "".join((*parts, text[done:]))


def _floats_of_line(line: str) -> str:
    # The type of a literal is the nearest one before it: `float 1.0`, `fadd float %x, 1.0`,
    # `phi float [ 1.0, %a ], [ 2.0, %b ]`.
    current = ""

    def replace(token: re.Match[str]) -> str:
        nonlocal current
        current = token["type"] or current
        return legacy_literal(token[0], current) if token["literal"] and current else token[0]

    return _TOKEN.sub(replace, line)


_INTRINSIC_DECLARATION = re.compile(
    r"^(?:; Function Attrs:.*\n)?declare [^\n]*@\"?llvm\.[^\n]*\n", re.MULTILINE
)


def _intrinsic_declarations(text: str) -> str:
    return _INTRINSIC_DECLARATION.sub("", text)


_ATTRIBUTE_GROUP = re.compile(r"^attributes (#\d+) = \{.*\}\n", re.MULTILINE)
_GROUP_USE = re.compile(r"#\d+\b")


def _unused_attribute_groups(text: str) -> str:
    first = text.find("\nattributes #") + 1  # all of them stand behind all functions
    code, groups = text[:first], text[first:]
    used = set(_GROUP_USE.findall(code)) | set(_GROUP_USE.findall(_ATTRIBUTE_GROUP.sub("", groups)))
    kept = _ATTRIBUTE_GROUP.sub(lambda group: group[0] if group[1] in used else "", groups)
    return code + kept


#: Operand values of the newer intrinsic are positions in this list (tensor reductions of the PTX
#: ISA, `cp.reduce.async.bulk.tensor`).
_REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
_TENSOR_REDUCE = re.compile(
    r"@llvm\.nvvm\.cp\.async\.bulk\.tensor\.reduce\.((?:tile|im2col)\.\dd)\("
    r"(.*), (?:/\*[^*]*\*/ )?i32 ([0-7]), (?:/\*[^*]*\*/ )?(i1 \w+)\)"
)


def _tensor_reductions(text: str) -> str:
    return _TENSOR_REDUCE.sub(
        lambda call: (
            "@llvm.nvvm.cp.async.bulk.tensor.reduce."
            f"{_REDUCTIONS[int(call[3])]}.{call[1]}({call[2]}, {call[4]})"
        ),
        text,
    )


_MOVED_MATRIX = re.compile(
    r"@llvm\.nvvm\.(movmatrix\.sync\.aligned\.m8n8\.trans\.b16)\((i32 [^()]*)\)"
)


def _moved_matrices(text: str) -> str:
    return _MOVED_MATRIX.sub(r'asm sideeffect "\1 $0, $1;", "=r,r"(\2)', text)


RULES: tuple[Rule, ...] = (
    Rule(
        "intrinsic-declarations",
        "the parser declares intrinsics itself, with the attributes that it knows, and refuses "
        "names that it does not know instead of calling an undefined function",
        _intrinsic_declarations,
    ),
    Rule(
        "unused-attribute-groups",
        "groups of dropped declarations may hold attributes that are unknown to the parser",
        _unused_attribute_groups,
    ),
    Rule(
        "float-literals",
        "the older parser takes only exact decimals, and bits in another spelling",
        _float_literals,
    ),
    Rule(
        "tensor-reductions",
        "the reduction is an operand of the newer intrinsic, part of the older one's name",
        _tensor_reductions,
    ),
    Rule(
        "moved-matrices",
        "the older LLVM has no intrinsic for them, but assembly",
        _moved_matrices,
    ),
)


def readable_by_codegen(text: str) -> str:
    """`text` (a module printed by MLIR's LLVM) in the syntax of llvmlite's LLVM."""
    for rule in RULES:
        text = rule.apply(text)
    return text
