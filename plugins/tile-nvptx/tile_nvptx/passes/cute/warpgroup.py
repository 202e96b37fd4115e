"""Products of warpgroups, and descriptors of their operands in shared memory."""

from __future__ import annotations

import re

from tile_cute.atoms.descriptors import SmemOperand, blackwell_descriptor, hopper_descriptor
from tile_cute.dialect.base import attributes_of
from tile_cute.dialect.nvgpu_ops import mma_atom
from tile_cute.dialect.view_signatures import described

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cute.in_flight import ATTRIBUTE, is_true
from tile_nvptx.passes.cute.tensors import Cute, base_of, rules
from tile_nvptx.passes.tileas.device.warpgroup_mma import (
    Accumulators,
    WarpgroupProduct,
    issue,
    multiply,
    wait,
)

#: Descriptors count in 16 bytes, and take 14 bits of an address (PTX ISA, "Matrix descriptor").
_UNIT_BITS, _ADDRESSES = 4, (1 << 14) - 1
#: Elements of fragments: PTX types of sums, and their bits.
_ACCUMULATORS = {"f32": "f32", "f16": "f16", "i32": "s32"}
_WIDTHS = {"f32": 32, "f16": 16, "i32": 32}
_WGMMA = 90  # the compute capability that has it
#: Compute capabilities from, and before, and what their descriptors are.
_DESCRIPTORS = (((90, 100), hopper_descriptor), ((100, 120), blackwell_descriptor))
_TYPED = re.compile(r'!cute_nvgpu\.smem_desc<"sm90", "(K|MN)", "(\w+)">')


def _i64(cx: Cute, value: int) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    signed = value - (1 << 64) if value >> 63 else value
    attribute = {"value": ir.IntegerAttr.get(i64, signed)}
    return cx.create("arith.constant", [], [i64], attribute).result


def _two(cx: Cute, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
    return cx.create(name, [left, right], [left.type]).result


@rules.on("cute.make_desc_iter", "cute_nvgpu.atom_get_copy_s2t_smem_desc_view")
def make_descriptor(op: ir.OpView, cx: Cute) -> Replacement:
    """make_desc_iter(t) => the descriptor of the tensor's first core matrix: i64

    As copies to tensor memory read it, it is the same.
    """
    sm = cx.target.sm
    fitting = [made for (first, last), made in _DESCRIPTORS if first <= sm < last]
    if not fitting:
        raise cx.error(f"makes a descriptor of shared memory, which {cx.target.chip} does not have")
    _, operand = described(op.results[0].type)
    i64 = ir.IntegerType.get_signless(64)
    place = cx.create("llvm.ptrtoint", [base_of(cx, op.operands[-1])], [i64]).result
    units = _two(cx, "arith.shrui", place, _i64(cx, _UNIT_BITS))
    # The address of a block's shared memory has the number of the block in its cluster above.
    units = _two(cx, "arith.andi", units, _i64(cx, _ADDRESSES))
    return _two(cx, "arith.ori", units, _i64(cx, fitting[0](0, operand)))


@rules.on("cute.deref_desc_iter")
def part_of_descriptor(op: ir.OpView, cx: Cute) -> Replacement:
    """deref_desc_iter(d) {mn, k} => the descriptor, so many units of 16 bytes further"""
    _, operand = described(cx.before(op.operands[0]))
    attributes = attributes_of(op)
    start = operand.start(int(attributes.get("mn", 0)), int(attributes.get("k", 0)))
    return _two(cx, "arith.addi", op.operands[0], _i64(cx, start >> _UNIT_BITS))


def _operand(value: ir.Value, cx: Cute) -> SmemOperand | None:
    """How the instruction reads a descriptor; None for a fragment."""
    type_ = cx.before(value)
    if isinstance(type_, ir.VectorType):
        return None
    match = _TYPED.fullmatch(str(type_))
    if match is None:
        raise cx.error(f"expects a smem_desc of sm90, whose type says its order, but got {type_}")
    return SmemOperand(match[2], match[1], 0, 0, (), ())


@rules.on("cute_nvgpu.arch_mma_sm90")
def product(op: ir.OpView, cx: Cute) -> Replacement:
    """arch_mma_sm90(d, a, b, accumulate) => wgmma.fence, mma_async, commit_group, wait_group 0, all
    in one: nobody can touch its registers meanwhile

    With `in_flight` there is no wait, and the product is a group of its own.
    """
    total, a, b, accumulate = op.operands
    if cx.target.sm != _WGMMA:
        raise cx.error(f"is wgmma, which {cx.target.chip} does not have")
    kind = ir.VectorType(total.type)
    left, right = _operand(a, cx), _operand(b, cx)
    if right is None:
        raise cx.error("reads B from shared memory")
    element = "" if left is not None else str(ir.VectorType(a.type).element_type)
    atom = mma_atom(attributes_of(op)["atom"])
    made = WarpgroupProduct(atom, (1, 1, 1), (0, 0), left, right, str(kind.element_type), element)
    in_flight = ATTRIBUTE in op.operation.attributes
    if in_flight and left is None:
        raise cx.error("keeps A in registers, which are written before it is done: wait for it")
    start = total if is_true(accumulate) else _started(cx, total, _flag(accumulate, cx))
    text = issue(made) if in_flight else multiply(made)
    return cx.state.helpers.call(cx, *text, [a, b, start], kind).result


def _started(cx: Cute, total: ir.Value, flag: ir.Value) -> ir.Value:
    """The sum, or zero."""
    kind = ir.VectorType(total.type)
    zero = ir.FloatAttr.get(kind.element_type, 0.0) if _is_float(kind) else None
    splat = zero or ir.IntegerAttr.get(kind.element_type, 0)
    nothing = {"value": ir.DenseElementsAttr.get_splat(kind, splat)}
    empty = cx.create("arith.constant", [], [kind], nothing).result
    return cx.create("arith.select", [flag, total, empty], [kind]).result


@rules.on("cute_nvgpu.arch_mma_sm90_wait")
def wait_for_product(op: ir.OpView, cx: Cute) -> Replacement:
    """arch_mma_sm90_wait(d) {pending} => wgmma.wait_group: d is there when at most so many products
    that were begun after it are still in flight
    """
    if cx.target.sm != _WGMMA:
        raise cx.error(f"is wgmma, which {cx.target.chip} does not have")
    kind = ir.VectorType(op.operands[0].type)
    element = str(kind.element_type)
    accumulators = Accumulators(
        _ACCUMULATORS[element], kind.shape[0] * _WIDTHS[element] // 32, element
    )
    made = wait(accumulators, int(attributes_of(op).get("pending", 0)))
    return cx.state.helpers.call(cx, *made, [op.operands[0]], kind).result


def _is_float(kind: ir.VectorType) -> bool:
    return not isinstance(kind.element_type, ir.IntegerType)


def _flag(value: ir.Value, cx: Cute) -> ir.Value:
    if str(value.type) != "i1":
        raise cx.error(f"expects i1, whether to accumulate, but got {value.type}")
    return value
