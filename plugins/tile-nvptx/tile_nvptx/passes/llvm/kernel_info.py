"""kernel-info: what a kernel is made of, as remarks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import ALL_ANALYSES, Pass, PassContext
from tile_nvptx.passes.llvm.module import (
    GENERIC,
    SHARED,
    functions,
    inside,
    is_kernel,
    name_of,
    size_of,
    space,
)

#: The metrics of page 104 that the llvm dialect knows, in the page's order. Registers, stack, local
#: and constant memory are ptxas' to say (remarks of the cubin emitter).
METRICS = (
    "smem", "params", "barriers", "loads", "stores", "branches", "fp_ops", "int_ops", "vector_ops",
    "mma_ops", "tcgen05_ops", "tma_ops",
)  # fmt: skip
#: Those of page 062: what keeps LLVM from doing better.
OBSTACLES = (
    "allocas", "direct_calls", "indirect_calls", "inline_asm", "invokes", "flat_accesses",
)  # fmt: skip

_FLOAT = ("llvm.fadd", "llvm.fsub", "llvm.fmul", "llvm.fdiv", "llvm.frem", "llvm.fneg", "llvm.fcmp")
_INTEGER = tuple(
    f"llvm.{name}"
    for name in ("add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl",
                 "lshr", "ashr", "icmp")
)  # fmt: skip
#: Operation -> metrics that it counts for.
_COUNTED = {
    "llvm.load": ("loads",),
    "llvm.store": ("stores",),
    "llvm.cond_br": ("branches",),
    "llvm.br": ("branches",),
    "llvm.switch": ("branches",),
    "llvm.alloca": ("allocas",),
    "llvm.inline_asm": ("inline_asm",),
    "llvm.invoke": ("invokes",),
    "nvvm.barrier0": ("barriers",),
    "nvvm.barrier": ("barriers",),
    "llvm.intr.fma": ("fp_ops",),
    "llvm.intr.fmuladd": ("fp_ops",),
    **dict.fromkeys(_FLOAT, ("fp_ops",)),
    **dict.fromkeys(_INTEGER, ("int_ops",)),
}


@dataclass(frozen=True)
class KernelInfo(Pass):
    """Remark how many operations of each kind a kernel has, what its parameters take, and what is
    in the way of optimisation.
    """

    name = "kernel-info"
    anchor = "gpu.module"
    preserves = ALL_ANALYSES

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        shared = _shared_bytes(op)
        for func in functions(op).values():
            if not is_kernel(func):
                continue
            found = counts(func)
            found["smem"] = shared
            for metric in (*METRICS, *OBSTACLES):
                cx.observed(
                    func,
                    f"kernel-info: {metric} in function '{name_of(func)}' = {found[metric]}",
                    name="KernelInfo",
                )


def counts(func: ir.Operation) -> Counter[str]:
    """How often each metric is met in a function."""
    found: Counter[str] = Counter()
    arguments = func.regions[0].blocks[0].arguments
    offset = 0
    for argument in arguments:
        size = size_of(argument.type)
        step = min(8, size) or 1
        offset = -(-offset // step) * step + size
    found["params"] = offset
    for op in inside(func):
        found.update(_metrics(op))
    return found


def _metrics(op: ir.Operation) -> list[str]:
    name = op.name
    found = list(_COUNTED.get(name, ()))
    if name == "llvm.call":
        found.append("direct_calls" if "callee" in op.attributes else "indirect_calls")
    if name in ("llvm.load", "llvm.store"):
        address = op.operands[1 if name == "llvm.store" else 0]
        if space(address.type) == GENERIC:
            found.append("flat_accesses")
    if any(str(value.type).startswith("vector<") for value in op.results):
        found.append("vector_ops")
    if name.startswith("nvvm."):
        text = name.removeprefix("nvvm.")
        found += ["mma_ops"] * text.startswith(("mma.", "wgmma.mma"))
        found += ["tcgen05_ops"] * text.startswith("tcgen05.")
        found += ["tma_ops"] * text.startswith("cp.async.bulk")
    return found


def _shared_bytes(module: ir.Operation) -> int:
    """Bytes of the module's globals in shared memory."""
    total = 0
    for view in module.regions[0].blocks[0].operations:
        op = view.operation
        if op.name != "llvm.mlir.global" or "addr_space" not in op.attributes:
            continue
        if ir.IntegerAttr(op.attributes["addr_space"]).value == SHARED:
            total += size_of(ir.TypeAttr(op.attributes["global_type"]).value)
    return total
