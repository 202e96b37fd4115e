"""Whether LLVM has code for an intrinsic, asked before a module is full of calls of it.

What reads a whole module, or selects its instructions, says only that something in it is wrong, and
may end with an assertion; a program that names intrinsics itself is told at the operation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from tile_core.target import Target
from tile_nvptx.emit.floors import INTRINSICS, missing
from tile_nvptx.emit.pool import POOL, WorkerFailure
from tile_nvptx.emit.ptx import LLVM_PTX

#: Types of MLIR -> of LLVM, where they have another name.
_FLOATS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}
_NAME = re.compile(r"llvm\.[\w.]+")
_SECONDS = 60.0
_ERROR = re.compile(r"error: (.*)")


def problem_with(
    name: str, result: str, operands: Sequence[str], literals: Mapping[int, int], target: Target
) -> str | None:
    """Why `name` of these types of numbers is not to be called on `target`, in words that follow
    "calls '..', "; None if it may be.

    Args:
        literals: place of an operand -> the integer that it is.
    """
    if not _NAME.fullmatch(name):
        return "which is no name of an intrinsic of LLVM, 'llvm.', with overloads spelt out"
    row = missing(name.removeprefix("llvm.nvvm."), INTRINSICS, target)
    if row is not None:
        return f"which needs {row.needs}, but the target is {target.chip}"
    said = _compiled(_text(name, result, operands, literals), target.chip)
    return said and f"which LLVM cannot compile for {target.chip}: {said}"


def _text(name: str, result: str, operands: Sequence[str], literals: Mapping[int, int]) -> str:
    kind, *kinds = (_FLOATS.get(type_, type_) for type_ in (result, *operands))
    taken = "".join(f", {type_} %x{at}" for at, type_ in enumerate(kinds))
    given = ", ".join(f"{t} {literals.get(at, f'%x{at}')}" for at, t in enumerate(kinds))
    # LLVM declares intrinsics itself; a wrong declaration would end it.
    return (
        f"define void @probe(ptr %to{taken}) {{\n  %y = call {kind} @{name}({given})\n"
        f"  store {kind} %y, ptr %to\n  ret void\n}}\n"
    )


@lru_cache(maxsize=256)
def _compiled(text: str, chip: str) -> str | None:
    """What LLVM says instead of compiling `text`; None if it compiles it."""
    request = {
        "ir": text,
        "chip": chip,
        "features": f"+ptx{LLVM_PTX}",
        "opt_level": 0,
    }
    try:
        POOL.ask(request, _SECONDS)
    except WorkerFailure as failure:
        said = [found[1] for note in failure.notes if (found := _ERROR.search(note))]
        return said[0] if said else failure.message
    return None
