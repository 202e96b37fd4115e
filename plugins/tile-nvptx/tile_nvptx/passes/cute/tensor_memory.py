"""Tensor memory: its columns, products into it, copies from and to it (sm_100 and its kin).

Order between these and everything else is the kernel's: `nvvm.tcgen05.commit` and `.fence`.
"""

from __future__ import annotations

import re

from tile_cute.atoms import CopyAtom, MmaAtom
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
#: What the collector does with A (PTX ISA, "tcgen05.mma", `.collector_usage`).
_USAGES = ("fill", "use", "lastuse", "discard")
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


def load_tensor_memory(cx: Cute, atom: CopyAtom, address: ir.Value, kind: ir.Type) -> ir.Value:
    """`tcgen05.ld`, and the wait for it: a vector of `kind`, the registers of one instruction."""
    access = _access(atom, cx)
    words = _words(len(access.moves[0].registers))
    loaded = cx.state.helpers.call(cx, *device.load(access), [address], words).result
    return loaded if kind == words else cx.create("llvm.bitcast", [loaded], [kind]).result


def store_tensor_memory(cx: Cute, atom: CopyAtom, value: ir.Value, address: ir.Value) -> None:
    """`tcgen05.st`, and the wait for it."""
    access = _access(atom, cx)
    words = _words(len(access.moves[0].registers))
    if value.type != words:
        value = cx.create("llvm.bitcast", [value], [words]).result
    cx.state.helpers.call(cx, *device.store(access), [address, value], None)


@rules.on("cute_nvgpu.arch_copy_sm100_tmem_load")
def load(op: ir.OpView, cx: Cute) -> Replacement:
    """tmem_load(a) => tcgen05.ld, and the wait for it: a warp reads its 32 rows"""
    atom = copy_atom(attributes_of(op)["atom"])
    return load_tensor_memory(cx, atom, base_of(cx, op.operands[0]), op.results[0].type)


@rules.on("cute_nvgpu.arch_copy_sm100_tmem_store")
def store(op: ir.OpView, cx: Cute) -> Replacement:
    """tmem_store(v, a) => tcgen05.st, and the wait for it"""
    atom = copy_atom(attributes_of(op)["atom"])
    store_tensor_memory(cx, atom, op.operands[0], base_of(cx, op.operands[1]))
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


@rules.on("cute_nvgpu.arch_mma_sm100_umma", "cute_nvgpu.arch_mma_sm100_umma_sparse",
          "cute_nvgpu.arch_mma_sm100_umma_block_scaled",
          "cute_nvgpu.arch_mma_sm100_umma_block_scaled_sparse")  # fmt: skip
def product(op: ir.OpView, cx: Cute) -> Replacement:
    """umma(d, a, b, idesc, enable, metadata?, scale_a?, scale_b?) => tcgen05.mma of one thread

    A is a descriptor or an address in tensor memory, B a descriptor, all others but the number
    `idesc` addresses in tensor memory. What was in the accumulator counts if `enable` is true.
    """
    atom = mma_atom(attributes_of(op)["atom"])
    _one_cta(atom.instruction, cx)
    if not atom.row.supported_on(cx.target.chip):
        raise cx.error(f"is '{atom.instruction}', which {cx.target.chip} does not have")
    for value in op.operands[1:3]:
        match = _DESCRIPTOR.fullmatch(str(cx.before(value)))
        if match is not None and match[1] != "sm100":
            raise cx.error(f"expects descriptors of sm100, but got {cx.before(value)}")
    total, a, b, kind, enable, *more = op.operands
    if str(enable.type) != "i1":
        raise cx.error(f"expects i1, whether to accumulate, but got {enable.type}")
    values = [base_of(cx, total), base_of(cx, a), b, kind]
    values.append(cx.create("arith.extui", [enable], [ir.IntegerType.get_signless(32)]).result)
    values += [base_of(cx, value) for value in more]
    left = str(values[1].type)
    types = ["i32", left, "i64", "i32", "i32", *["i32"] * len(more)]
    if [str(value.type) for value in values] != types:
        raise cx.error(f"expects {types}, but got {[str(value.type) for value in values]}")
    words = atom.instruction + _qualifiers(op, atom, in_tensor_memory=left == "i32", cx=cx)
    name = re.sub(r"\W+", "_", f"{words}_{'t' if left == 'i32' else 's'}")
    text = _issue(words, atom, in_tensor_memory=left == "i32")
    cx.state.helpers.call(cx, *routine(name, types, text), values, None)
    return None


def _issue(words: str, atom: MmaAtom, *, in_tensor_memory: bool) -> str:
    """The statement; metadata come before the instruction descriptor, and scales behind it."""
    operands = ["[$0]", "[$1]" if in_tensor_memory else "$1", "$2"]
    others = iter(["[$5]", "[$6]", "[$7]"])
    operands += [next(others)] if atom.row.sparse else []
    operands += ["$3", *([next(others), next(others)] if atom.row.scale is not None else [])]
    return (
        f"{{ .reg .pred begin; setp.ne.b32 begin, $4, 0; {words} {', '.join(operands)}, begin; }}"
    )


def _qualifiers(op: ir.OpView, atom: MmaAtom, *, in_tensor_memory: bool, cx: Cute) -> str:
    """What attributes add to the instruction's name. That A has 128 rows where it is shifted is the
    kernel's to say, in its instruction descriptor.
    """
    shifted = "ashift" in op.operation.attributes
    if shifted and (not in_tensor_memory or atom.row.weight_stationary):
        raise cx.error("shifts rows of A in tensor memory only, and not in .ws")
    usage = attributes_of(op).get("collector", "")
    if usage and (usage not in _USAGES or atom.row.weight_stationary):
        raise cx.error(f"keeps A as one of {', '.join(_USAGES)}, and not in .ws, but got '{usage}'")
    return (".ashift" if shifted else "") + (f".collector::a::{usage}" if usage else "")
