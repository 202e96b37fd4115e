"""Integers of all lanes of a warp, folded by one instruction (PTX ISA, "redux.sync")."""

from __future__ import annotations

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.vectors import each_word
from tile_nvptx.passes.tileas.rules.combine import is_symmetric
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, vector_of

#: Operation of a region -> kind of `nvvm.redux.sync`, and how narrower integers are widened.
_KINDS = {
    "arith.addi": ("add", "llvm.zext"),
    "arith.andi": ("and", "llvm.zext"),
    "arith.maxsi": ("max", "llvm.sext"),
    "arith.maxui": ("umax", "llvm.zext"),
    "arith.minsi": ("min", "llvm.sext"),
    "arith.minui": ("umin", "llvm.zext"),
    "arith.ori": ("or", "llvm.zext"),
    "arith.xori": ("xor", "llvm.zext"),
}
_WORD = 32


def over_all_lanes(op: ir.OpView, cx: Kernel, values: list[ir.Value]) -> list[ir.Value] | None:
    """The fragments of a reduction, folded over all 32 lanes; None if there is no instruction."""
    first = op.regions[0].blocks[0].operations[0].operation.name
    element = element_of(values[0].type)
    if len(values) != 1 or first not in _KINDS or not is_symmetric(op):
        return None
    if not isinstance(element, ir.IntegerType) or element.width > _WORD:
        return None
    (kind, extension), value = _KINDS[first], values[0]
    words = vector_of(count_of(value.type), Builder(cx).i32)
    if element.width < _WORD:
        value = cx.create(extension, [value], [words]).result
    name, body = _text(kind, count_of(words))
    folded = cx.state.helpers.call(cx, name, body, [value], words).result
    if element.width < _WORD:
        folded = cx.create("llvm.trunc", [folded], [values[0].type]).result
    return [folded]


def _text(kind: str, count: int) -> tuple[str, str]:
    """Name and text of `vector<count x i32> -> vector`, each word folded over the warp."""
    name = f"__tile_redux_{kind}_v{count}"
    return each_word(name, count, f"nvvm.redux.sync {kind} %a, %all", constants={"all": -1})
