"""dead-sync-elim: barriers of a block across which threads exchange nothing.

Page 102 of the specification, in a form that is sound: a barrier goes if in its basic block,
between the barriers (or the kernel's ends) on both of its sides, no access before it and none
behind it may touch the same memory with one of them writing. What is not known to leave memory
alone conflicts with everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_nvptx.passes.llvm.module import GENERIC, LOCAL, functions, is_kernel, space

_BARRIERS = ("nvvm.barrier0", "nvvm.barrier")  # the name before and after LLVM 22
#: Operations of these dialects, and these of `llvm`, touch no memory.
_PURE_DIALECTS = ("arith", "math")
_PURE = frozenset(
    f"llvm.{name}"
    for name in (
        "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl", "lshr",
        "ashr", "fadd", "fsub", "fmul", "fdiv", "frem", "fneg", "icmp", "fcmp", "select", "trunc",
        "zext", "sext", "fptrunc", "fpext", "fptosi", "fptoui", "sitofp", "uitofp", "ptrtoint",
        "inttoptr", "bitcast", "addrspacecast", "getelementptr", "mlir.constant", "mlir.zero",
        "mlir.undef", "mlir.poison", "mlir.addressof", "extractvalue", "insertvalue",
        "extractelement", "insertelement", "shufflevector", "freeze", "br", "cond_br", "return",
    )
)  # fmt: skip
_REGISTERS = "nvvm.read.ptx.sreg."


class Access(NamedTuple):
    """Memory that an operation touches; `space` None is any memory, `root` "" any object."""

    writes: bool
    space: int | None
    root: str


_UNKNOWN = Access(True, None, "")


def access(op: ir.Operation, own: frozenset[str]) -> Access | None:
    """What an operation touches; None for nothing that another thread could see.

    `own` are globals that lie apart from each other.
    """
    name = op.name
    if name in _PURE or name.partition(".")[0] in _PURE_DIALECTS or name.startswith(_REGISTERS):
        return None
    if name not in ("llvm.load", "llvm.store") or "volatile_" in op.attributes:
        return _UNKNOWN
    if "ordering" in op.attributes and ir.IntegerAttr(op.attributes["ordering"]).value:
        return _UNKNOWN
    writes = name == "llvm.store"
    address = op.operands[1 if writes else 0]
    where = space(address.type)
    if where == LOCAL:
        return None
    return Access(writes, None if where == GENERIC else where, _root(address, own))


def _root(address: ir.Value, own: frozenset[str]) -> str:
    """The global that an address leads to; empty if that is not known."""
    while not isinstance(address.owner, ir.Block):
        owner = address.owner.operation
        if owner.name == "llvm.mlir.addressof":
            name = ir.FlatSymbolRefAttr(owner.attributes["global_name"]).value
            return name if name in own else ""
        if owner.name not in ("llvm.getelementptr", "llvm.bitcast", "llvm.addrspacecast"):
            return ""
        address = owner.operands[0]
    return ""


def _own(module: ir.Operation) -> frozenset[str]:
    """Globals that no other overlaps: arrays of dynamic shared memory, which are external, do."""
    found = set()
    for view in module.regions[0].blocks[0].operations:
        op = view.operation
        if op.name == "llvm.mlir.global" and "external" not in str(op.attributes["linkage"]):
            found.add(ir.StringAttr(op.attributes["sym_name"]).value)
    return frozenset(found)


def conflict(a: Access, b: Access) -> bool:
    """Whether the order of two accesses of different threads may matter."""
    if not (a.writes or b.writes):
        return False
    if a.space is not None and b.space is not None and a.space != b.space:
        return False
    return not (a.root and b.root and a.root != b.root)


@dataclass(frozen=True)
class DeadSyncElim(Pass):
    """Remove barriers of the whole block that order no two accesses of memory.

    Barriers with a number or a count, of warps and clusters, fences and waits stay.
    """

    name = "dead-sync-elim"
    anchor = "gpu.module"
    statistics = {"removed": "barriers that ordered nothing"}
    print_dead_sync_elim: bool = option(False, "a remark also for each barrier that stays")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        own = _own(op)
        for func in functions(op).values():
            for number, block in enumerate(func.regions[0].blocks):
                while self._removes_one(block, number == 0 and is_kernel(func), own, cx):
                    cx.count("removed")
            if self.print_dead_sync_elim:
                for block in func.regions[0].blocks:
                    for view in block.operations:
                        if _is_barrier(view.operation):
                            cx.observed(view.operation, "the barrier stays")

    def _removes_one(
        self, block: ir.Block, begins: bool, own: frozenset[str], cx: PassContext
    ) -> bool:
        """Remove the first barrier of the block that can go; `begins`: a kernel begins with it."""
        ops = [view.operation for view in block.operations]
        at = [i for i, op in enumerate(ops) if _is_barrier(op)]
        for n, here in enumerate(at):
            if n == 0 and not begins:
                continue  # what came before lies in other blocks
            begin = at[n - 1] + 1 if n else 0
            last = n + 1 == len(at)
            if last and not (ops[-1].name == "llvm.return" and is_kernel(block.owner.operation)):
                continue
            end = len(ops) if last else at[n + 1]
            above, below = _accesses(ops[begin:here], own), _accesses(ops[here + 1 : end], own)
            if any(conflict(a, b) for a in above for b in below):
                continue
            cx.passed(ops[here], f"Removed dead synch: {len(above)} accesses above, "
                      f"{len(below)} below")  # fmt: skip
            ops[here].erase()
            return True
        return False


def _accesses(ops: list[ir.Operation], own: frozenset[str]) -> list[Access]:
    return [found for op in ops if (found := access(op, own)) is not None]


def _is_barrier(op: ir.Operation) -> bool:
    """Of all threads of the block, and nothing else: number 0, no count, no reduction."""
    return op.name in _BARRIERS and not len(op.operands) and not len(op.results)
