"""Functions of f32 that branch, of several elements of a fragment with one test."""

from __future__ import annotations

from functools import partial

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.angles import of_angles
from tile_nvptx.passes.tileas.device.roots import roots
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.groups import LEAST, MOST, call, cut, in_groups
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of

#: By the stem of their names: (name, text) of a helper that computes so many.
_TOGETHER = {
    "sqrt": roots,
    **{name: partial(of_angles, f"__nv_{name}f") for name in ("cos", "sin", "tan")},
}


def computed(cx: Kernel, stem: str, operand: ir.Value) -> ir.Value | None:
    """`stem` of f32 elements, a few at a time; None of few elements, and of other functions."""
    helper = _TOGETHER.get(stem)
    count = count_of(operand.type)
    if helper is None or not isinstance(element_of(operand.type), ir.F32Type) or count < LEAST:
        return None
    b = Builder(cx)
    groups = cut(range(count), MOST)
    return in_groups(
        cx, groups, lambda group: call(cx, helper(len(group)), [b.shuffle(operand, group)])
    )
