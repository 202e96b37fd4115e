"""Tensor memory: its columns, products into it, copies from and to it (sm_100 and its kin).

Order between these and everything else is the kernel's: `nvvm.tcgen05.commit` and `.fence`.
"""

from __future__ import annotations

import re

from tile_cute.atoms import CopyAtom
from tile_cute.atoms.tensor_access import TensorAccess, TensorMove
from tile_cute.dialect.base import attributes_of
from tile_cute.dialect.nvgpu_ops import copy_atom, mma_atom

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cute.tensors import Cute, base_of, rules
from tile_nvptx.passes.tileas.device import tensor_memory as device
from tile_nvptx.passes.tileas.device.asynchronous import routine

_ACCESS = re.compile(r"tcgen05\.(?:ld|st)\.sync\.aligned\.(\w+)\.x(\d+)\.b32")
_DESCRIPTOR = re.compile(r'!cute_nvgpu\.smem_desc<"(\w+)", .*>')
_SHARED = "!llvm.ptr<3>"
#: First and next compute capability of those with tensor memory.
_SINCE, _UNTIL = 100, 120


def _check_target(cx: Cute) -> None:
    if not _SINCE <= cx.target.sm < _UNTIL:
        raise cx.error(f"needs tensor memory, which {cx.target.chip} does not have")


def _one_cta(instruction: str, cx: Cute) -> None:
    _check_target(cx)
    if "cta_group::2" in instruction:
        raise cx.error(f"cannot be lowered for '{instruction}': pairs of blocks are not built")


# --- columns -------------------------------------------------------------------------------------


@rules.on("cute_nvgpu.arch_sm100_alloc_tmem")
def allocate(op: ir.OpView, cx: Cute) -> Replacement:
    """alloc_tmem(p, n) => tcgen05.alloc: a warp takes n columns, and their address goes to p"""
    _check_target(cx)
    asm = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$0], $1;"
    made = routine("tcgen05_alloc", [_SHARED, "i32"], asm)
    cx.state.helpers.call(cx, *made, [base_of(cx, op.operands[0]), op.operands[1]], None)
    return None


@rules.on("cute_nvgpu.arch_sm100_dealloc_tmem")
def release(op: ir.OpView, cx: Cute) -> Replacement:
    """dealloc_tmem(a, n) => tcgen05.dealloc: a warp gives n columns back"""
    _check_target(cx)
    asm = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 $0, $1;"
    made = routine("tcgen05_dealloc", ["i32", "i32"], asm)
    cx.state.helpers.call(cx, *made, [base_of(cx, op.operands[0]), op.operands[1]], None)
    return None


@rules.on("cute_nvgpu.arch_sm100_relinquish_tmem_alloc_permit")
def relinquish(op: ir.OpView, cx: Cute) -> Replacement:
    """relinquish_tmem_alloc_permit => tcgen05.relinquish_alloc_permit"""
    _check_target(cx)
    asm = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
    cx.state.helpers.call(cx, *routine("tcgen05_relinquish", [], asm), [], None)
    return None


@rules.on("cute_nvgpu.arch_sm100_retrieve_tmem_ptr")
def retrieve(op: ir.OpView, cx: Cute) -> Replacement:
    """retrieve_tmem_ptr(p) => the address that alloc_tmem put there"""
    _check_target(cx)
    i32 = ir.IntegerType.get_signless(32)
    return cx.create("llvm.load", [base_of(cx, op.operands[0])], [i32]).result


# --- copies --------------------------------------------------------------------------------------


def _access(atom: CopyAtom, cx: Cute) -> TensorAccess:
    """All registers of one instruction, in order."""
    _check_target(cx)
    match = _ACCESS.fullmatch(atom.instruction)
    if match is None or match[1] == "16x32bx2":
        raise cx.error(f"cannot be lowered for '{atom.instruction}'")
    registers = tuple(range(atom.bits // 32))
    return TensorAccess(match[1], int(match[2]), (TensorMove(registers, 0),), ())


def _words(count: int) -> ir.Type:
    return ir.VectorType.get([count], ir.IntegerType.get_signless(32))


@rules.on("cute_nvgpu.arch_copy_sm100_tmem_load")
def load(op: ir.OpView, cx: Cute) -> Replacement:
    """tmem_load(a) => tcgen05.ld, and the wait for it: a warp reads its 32 rows"""
    access = _access(copy_atom(attributes_of(op)["atom"]), cx)
    words, kind = _words(len(access.moves[0].registers)), op.results[0].type
    address = base_of(cx, op.operands[0])
    loaded = cx.state.helpers.call(cx, *device.load(access), [address], words).result
    return loaded if kind == words else cx.create("llvm.bitcast", [loaded], [kind]).result


@rules.on("cute_nvgpu.arch_copy_sm100_tmem_store")
def store(op: ir.OpView, cx: Cute) -> Replacement:
    """tmem_store(v, a) => tcgen05.st, and the wait for it"""
    access = _access(copy_atom(attributes_of(op)["atom"]), cx)
    value, words = op.operands[0], _words(len(access.moves[0].registers))
    if value.type != words:
        value = cx.create("llvm.bitcast", [value], [words]).result
    address = base_of(cx, op.operands[1])
    cx.state.helpers.call(cx, *device.store(access), [address, value], None)
    return None


@rules.on("cute_nvgpu.arch_copy_sm100_copy_s2t")
def copy_from_shared(op: ir.OpView, cx: Cute) -> Replacement:
    """copy_s2t(a, d) => tcgen05.cp, begun by one thread and done when a commit arrives"""
    instruction = attributes_of(op)["atom"]
    _one_cta(instruction, cx)
    name = re.sub(r"\W+", "_", instruction)
    made = routine(name, ["i32", "i64"], f"{instruction} [$0], $1;")
    cx.state.helpers.call(cx, *made, [base_of(cx, op.operands[0]), op.operands[1]], None)
    return None


# --- products ------------------------------------------------------------------------------------


@rules.on("cute_nvgpu.arch_mma_sm100_umma")
def product(op: ir.OpView, cx: Cute) -> Replacement:
    """umma(d, a, b, idesc, enable) => tcgen05.mma, begun by one thread

    A is a descriptor or an address in tensor memory, B a descriptor, the accumulator an address in
    tensor memory. What was in the accumulator counts if `enable` is true.
    """
    atom = mma_atom(attributes_of(op)["atom"])
    _one_cta(atom.instruction, cx)
    for value in op.operands[1:3]:
        match = _DESCRIPTOR.fullmatch(str(cx.before(value)))
        if match is not None and match[1] != "sm100":
            raise cx.error(f"expects descriptors of sm100, but got {cx.before(value)}")
    total, a, b, kind, enable = op.operands
    if str(enable.type) != "i1":
        raise cx.error(f"expects i1, whether to accumulate, but got {enable.type}")
    in_tensor_memory = str(a.type) == "i32"
    left = "[$1]" if in_tensor_memory else "$1"
    flag = cx.create("arith.extui", [enable], [ir.IntegerType.get_signless(32)]).result
    asm = (
        "{ .reg .pred begin; setp.ne.b32 begin, $4, 0; "
        f"{atom.instruction} [$0], {left}, $2, $3, begin; }}"
    )
    types = ["i32", "i32" if in_tensor_memory else "i64", "i64", "i32", "i32"]
    name = re.sub(r"\W+", "_", f"{atom.instruction}_{'t' if in_tensor_memory else 's'}")
    values = [base_of(cx, total), base_of(cx, a), b, kind, flag]
    cx.state.helpers.call(cx, *routine(name, types, asm), values, None)
    return None
