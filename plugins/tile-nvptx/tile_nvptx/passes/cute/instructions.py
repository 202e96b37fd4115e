"""Instructions of sm_80 on values: `mma.sync`, `cp.async`."""

from __future__ import annotations

from tile_cute.dialect.base import attributes_of
from tile_cute.dialect.nvgpu_ops import mma_atom
from tile_cute.layout_algebra import coalesce
from tile_cute.values import View

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cute.tensors import (
    Cute,
    base_of,
    element_bits,
    outer_of,
    rules,
    static_tensor,
    swizzle_of,
)
from tile_nvptx.passes.tileas.device.asynchronous import copy_to_shared
from tile_nvptx.passes.tileas.device.mma import mma_fragments


@rules.on("cute_nvgpu.arch_mma_sm80", "cute_nvgpu.arch_mma_sm89")
def mma(op: ir.OpView, cx: Cute) -> Replacement:
    """mma.sync of the fragments of a warp"""
    atom = mma_atom(attributes_of(op)["atom"])
    kinds = [ir.VectorType(value.type) for value in op.operands]
    elements = tuple(str(kind.element_type) for kind in kinds)
    name, text = mma_fragments(atom, elements, (1, 1, 1, 1))  # type: ignore[arg-type]
    return cx.state.helpers.call(cx, name, text, list(op.operands), op.results[0].type).result


@rules.on("cute_nvgpu.arch_copy_sm80_cp_async")
def copy_async(op: ir.OpView, cx: Cute) -> Replacement:
    """cp.async of a tensor of 4, 8 or 16 contiguous bytes; with `size`, so many are read"""
    target, source, *size = op.operands
    views = [static_tensor(cx, value) for value in (target, source)]
    if [view.space for view in views] != ["smem", "gmem"]:
        raise cx.error(f"copies from gmem to smem, but got {views[1]} and {views[0]}")
    counts = {_bytes_in_a_row(view, cx) for view in views}
    if len(counts) != 1 or not counts <= {4, 8, 16}:
        raise cx.error(f"copies 4, 8 or 16 bytes, but got {views[1]} and {views[0]}")
    (count,) = counts
    if ".cg." in attributes_of(op)["atom"] and count != 16:
        raise cx.error(f"copies 16 bytes past L1, but got {count}")
    name, text = copy_to_shared(count, partial=bool(size))
    cx.state.helpers.call(cx, name, text, [base_of(cx, target), base_of(cx, source), *size], None)
    return None


def _bytes_in_a_row(view: View, cx: Cute) -> int:
    if swizzle_of(view)[0] is not None:
        raise cx.error(f"copies what lies in a row, but got {view}")
    layout = coalesce(outer_of(view))
    leaves = [(extent, stride) for extent, stride in layout.int_leaves() if extent > 1]
    if leaves not in ([], [(layout.size, 1)]):
        raise cx.error(f"copies what lies in a row, but got {view}")
    return layout.size * element_bits(view, cx) // 8
