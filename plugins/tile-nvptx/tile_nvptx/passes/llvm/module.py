"""What passes over the llvm dialect ask about a `gpu.module`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tile_core.mlir import ir
from tile_core.passes import error_at

#: Address spaces of NVPTX.
GENERIC, GLOBAL, SHARED, CONSTANT, LOCAL = 0, 1, 3, 4, 5

_EARLIER = ("func.func", "gpu.func")
_POINTER = re.compile(r"!llvm\.ptr(?:<(\d+)>)?")
_SIZE = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}


def functions(module: ir.Operation) -> dict[str, ir.Operation]:
    """Functions with a body, by name, in program order.

    Raises:
        CompileError: the module is not in the llvm dialect yet.
    """
    found = {}
    for view in module.regions[0].blocks[0].operations:
        op = view.operation
        if op.name in _EARLIER:
            raise error_at(
                op,
                "is not in the llvm dialect; run 'convert-tileas-to-llvm' and MLIR's "
                "'convert-to-llvm' before",
            )
        if op.name == "llvm.func" and len(op.regions[0].blocks):
            found[name_of(op)] = op
    return found


def name_of(func: ir.Operation) -> str:
    """The symbol of a function."""
    return ir.StringAttr(func.attributes["sym_name"]).value


def is_kernel(func: ir.Operation) -> bool:
    """The one test of the specification (page 104): marked as such, or called as kernels are."""
    if "nvvm.kernel" in func.attributes:
        return True
    return "CConv" in func.attributes and "ptx_kernel" in str(func.attributes["CConv"])


def inside(op: ir.Operation) -> Iterator[ir.Operation]:
    """All operations inside `op`, in order."""
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation
                yield from inside(view.operation)


def callee(call: ir.Operation) -> str:
    """Whom a call calls; empty for a pointer."""
    if "callee" not in call.attributes:
        return ""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def calls(module: ir.Operation) -> dict[str, list[ir.Operation]]:
    """Direct calls by callee."""
    found: dict[str, list[ir.Operation]] = {}
    for op in inside(module):
        if op.name == "llvm.call":
            found.setdefault(callee(op), []).append(op)
    return found


def addressed(module: ir.Operation) -> set[str]:
    """Symbols whose address is taken."""
    taken = (op for op in inside(module) if op.name == "llvm.mlir.addressof")
    return {ir.FlatSymbolRefAttr(op.attributes["global_name"]).value for op in taken}


def space(type_: ir.Type) -> int | None:
    """The address space of a pointer type; None for any other type."""
    match = _POINTER.fullmatch(str(type_))
    return None if match is None else int(match[1] or 0)


def size_of(type_: ir.Type) -> int:
    """Bytes of a parameter: scalar, pointer, vector, array or struct, naturally aligned."""
    return _layout(str(type_))[0]


def _layout(text: str) -> tuple[int, int]:
    """(size, alignment) in bytes."""
    text = text.strip()
    if text.startswith("!llvm.ptr"):
        return 8, 8
    if text in _SIZE:
        return _SIZE[text], _SIZE[text]
    if match := re.fullmatch(r"i(\d+)", text):
        size = max(1, -(-int(match[1]) // 8))
        return size, min(16, 1 << (size - 1).bit_length())
    if match := re.fullmatch(r"(?:vector|!llvm\.vec|!llvm\.array|array)<(\d+) ?x ?(.*)>", text):
        size, alignment = _layout(match[2])
        return int(match[1]) * size, alignment
    if match := re.fullmatch(r"(?:!llvm\.)?struct<(?:packed )?(?:\"[^\"]*\", )?\((.*)\)>", text):
        return _struct(match[1])
    return 8, 8


def _struct(body: str) -> tuple[int, int]:
    offset, widest = 0, 1
    for part in _split(body):
        size, alignment = _layout(part)
        offset = -(-offset // alignment) * alignment + size
        widest = max(widest, alignment)
    return -(-offset // widest) * widest, widest


def _split(body: str) -> list[str]:
    """Parts between commas that stand in no brackets."""
    parts, depth, last = [], 0, 0
    for at, char in enumerate(body):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(body[last:at])
            last = at + 1
    return [part for part in [*parts, body[last:]] if part.strip()]
