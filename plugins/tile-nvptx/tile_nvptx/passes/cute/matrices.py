"""Matrices of 8 rows of 16 bytes between shared memory and registers."""

from __future__ import annotations

import re

from tile_cute.dialect.base import attributes_of

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cute.tensors import Cute, rules
from tile_nvptx.passes.tileas.device import memory as device

_LDMATRIX = re.compile(r"ldmatrix\.sync\.aligned\.m8n8\.x(\d)(\.trans)?\.shared\.b16")
_STMATRIX = re.compile(r"stmatrix\.sync\.aligned\.m8n8\.x(\d)(\.trans)?\.shared\.b16")


def matrices_of(instruction: str, cx: Cute) -> tuple[int, bool]:
    """(matrices, whether they are transposed) of an instruction that moves 8 x 8 of 16 bits."""
    match = _LDMATRIX.fullmatch(instruction) or _STMATRIX.fullmatch(instruction)
    if match is None:
        raise cx.error(f"cannot be lowered for '{instruction}'")
    return int(match[1]), match[2] is not None


def _count(op: ir.OpView, form: re.Pattern[str], address: ir.Value, cx: Cute) -> tuple[int, bool]:
    """(matrices, whether they are transposed) of an instruction."""
    instruction = attributes_of(op)["atom"]
    match = form.fullmatch(instruction)
    if match is None or str(address.type) != "!llvm.ptr<3>":
        raise cx.error(f"cannot be lowered for '{instruction}' and an address of {address.type}")
    return int(match[1]), match[2] is not None


@rules.on("cute_nvgpu.arch_copy_ldsm")
def load_matrices(op: ir.OpView, cx: Cute) -> Replacement:
    """ldmatrix of one, two or four matrices, from an address of each lane"""
    address = op.operands[0]
    count, transposed = _count(op, _LDMATRIX, address, cx)
    name, text = device.load_matrices(count, transposed=transposed)
    words = ir.VectorType.get([count], ir.IntegerType.get_signless(32))
    loaded = cx.state.helpers.call(cx, name, text, [address], words).result
    kind = op.results[0].type
    return loaded if kind == words else cx.create("llvm.bitcast", [loaded], [kind]).result


@rules.on("cute_nvgpu.arch_copy_stsm")
def store_matrices(op: ir.OpView, cx: Cute) -> Replacement:
    """stmatrix of one, two or four matrices, to an address of each lane"""
    value, address = op.operands
    count, transposed = _count(op, _STMATRIX, address, cx)
    name, text = device.store_matrices(count, transposed=transposed)
    words = ir.VectorType.get([count], ir.IntegerType.get_signless(32))
    if value.type != words:
        value = cx.create("llvm.bitcast", [value], [words]).result
    cx.state.helpers.call(cx, name, text, [address, value], None)
    return None


@rules.on("cute_nvgpu.arch_make_warp_uniform")
def warp_uniform(op: ir.OpView, cx: Cute) -> Replacement:
    """make_warp_uniform => shfl.sync.idx of lane 0: ptxas then knows that lanes have it alike"""
    value = op.operands[0]
    if str(value.type) not in ("i32", "f32"):
        raise cx.error(f"is for i32 and f32, but got {value.type}")
    i32 = ir.IntegerType.get_signless(32)

    def number(of: int) -> ir.Value:
        attribute = {"value": ir.IntegerAttr.get(i32, of)}
        return cx.create("arith.constant", [], [i32], attribute).result

    kind = {"kind": ir.Attribute.parse("#nvvm<shfl_kind idx>")}
    operands = [number(-1), value, number(0), number(31)]
    return cx.create("nvvm.shfl.sync", operands, [value.type], kind).result
