"""Instructions of warps and threads on values: `mma.sync`, `mma.sp`, `cp.async`."""

from __future__ import annotations

from tile_cute.atoms import MmaAtom
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
from tile_nvptx.passes.tileas.device.mma import Scales, mma_fragments


@rules.on("cute_nvgpu.arch_mma_sm80", "cute_nvgpu.arch_mma_sm89")
def mma(op: ir.OpView, cx: Cute) -> Replacement:
    """mma.sync of the fragments of a warp"""
    atom = _instruction(op, cx)
    return warp_product(cx, atom, list(op.operands))


@rules.on("cute_nvgpu.arch_mma_sm80_sparse")
def sparse_mma(op: ir.OpView, cx: Cute) -> Replacement:
    """mma.sp of the fragments of a warp; `selector` names the lanes of four with the metadata"""
    atom = _instruction(op, cx)
    layout = atom.metadata_layout
    assert layout is not None, "verified"
    selector = int(attributes_of(op).get("selector", 0))
    count = 1 << layout.free_mask("lane").bit_count()
    if not 0 <= selector < count:
        raise cx.error(f"has selectors below {count}, but got {selector}")
    return warp_product(cx, atom, list(op.operands), selector=selector)


@rules.on("cute_nvgpu.arch_mma_sm120_block_scaled")
def scaled_mma(op: ir.OpView, cx: Cute) -> Replacement:
    """mma.sync with block scales, which lanes 0 and 1 of four hold for A, and 0 for B, from byte
    `byte_a` and `byte_b` of their words on
    """
    atom = _instruction(op, cx)
    return warp_product(cx, atom, list(op.operands), scales=scales_of(op, cx, atom))


def scales_of(op: ir.OpView, cx: Cute, atom: MmaAtom) -> Scales:
    """The bytes of its words of scales that a product begins at."""
    attributes = attributes_of(op)
    assert atom.row.scale is not None, "verified"
    taken = int(atom.row.scale.size[0])
    found = [int(attributes.get(name, 0)) for name in ("byte_a", "byte_b")]
    if any(byte not in range(0, 4, taken) for byte in found):
        raise cx.error(f"takes {taken} bytes from one of {list(range(0, 4, taken))} on: {found}")
    return Scales(*found)


def _instruction(op: ir.OpView, cx: Cute) -> MmaAtom:
    atom = mma_atom(attributes_of(op)["atom"])
    if not atom.row.supported_on(cx.target.chip):
        raise cx.error(f"is '{atom.instruction}', which {cx.target.chip} does not have")
    return atom


def warp_product(
    cx: Cute,
    atom: MmaAtom,
    operands: list[ir.Value],
    *,
    scales: Scales | None = None,
    selector: int | None = None,
) -> ir.Value:
    """The product of the fragments A, B and C, behind which scales or metadata follow."""
    parts = [_fragment(cx, atom, name, value) for name, value in zip("abc", operands, strict=False)]
    elements = tuple(str(ir.VectorType(part.type).element_type) for part in parts)
    name, text = mma_fragments(atom, elements, (1, 1, 1, 1), scales, selector)  # type: ignore[arg-type]
    more = [_word(cx, value) for value in operands[3:]]
    if scales is not None:
        one = ir.VectorType.get([1], ir.IntegerType.get_signless(32))
        more = [cx.create("vector.from_elements", [word], [one]).result for word in more]
    return cx.state.helpers.call(cx, name, text, [*parts, *more], operands[2].type).result


def _fragment(cx: Cute, atom: MmaAtom, name: str, value: ir.Value) -> ir.Value:
    """A fragment of elements that LLVM knows; narrow floats are their bits, and in bytes the low
    ones, which `mma_fragments` packs or moves to where the instruction takes them from.
    """
    kind = ir.VectorType(value.type)
    element = kind.element_type
    assert isinstance(element, ir.IntegerType | ir.FloatType), "verified"
    bits = 32 * atom.registers(name)
    packed = name != "c" and atom.row.scale is not None and kind.shape[0] * 4 == bits
    if kind.shape[0] * element.width != bits and not (packed and element.width == 8):
        raise cx.error(f"takes {bits} bits of {name.upper()} from registers, but got {kind}")
    if isinstance(element, ir.IntegerType) or element.width >= 16:
        return value
    whole = ir.VectorType.get(kind.shape, ir.IntegerType.get_signless(element.width))
    return cx.create("arith.bitcast", [value], [whole]).result


def _word(cx: Cute, value: ir.Value) -> ir.Value:
    """Scales or metadata as one register."""
    i32 = ir.IntegerType.get_signless(32)
    return value if value.type == i32 else cx.create("llvm.bitcast", [value], [i32]).result


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
