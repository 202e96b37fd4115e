"""Memory that a block allocates, dependences between grids, fences of aliases.

Memory comes from the heap of the device: `malloc` and `free` of the CUDA system (CUDA programming
guide, "Dynamic Global Memory Allocation and Operations"). One thread calls them.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.access import expect_leader
from tile_nvptx.passes.tileas.thread.build import Builder, token
from tile_nvptx.passes.tileas.thread.instruction import bare_instruction
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import global_pointer

#: `malloc` gives multiples of this, in bytes.
_HEAP_ALIGNMENT = 16
#: The first compute capability whose grids may start before those they depend on are over.
_DEPENDENT_GRIDS = 90

_MALLOC = "\n".join(
    [
        "llvm.func @malloc(i64) -> !llvm.ptr",
        "llvm.func internal @__tile_malloc(%n: i64) -> !llvm.ptr<1> {",
        "  %g = llvm.call @malloc(%n) : (i64) -> !llvm.ptr",
        "  %zero = llvm.mlir.zero : !llvm.ptr",
        '  %none = llvm.icmp "eq" %g, %zero : !llvm.ptr',
        "  llvm.cond_br %none, ^fail, ^done",
        "^fail:",
        "  llvm.intr.trap",
        "  llvm.unreachable",
        "^done:",
        "  %p = llvm.addrspacecast %g : !llvm.ptr to !llvm.ptr<1>",
        "  llvm.return %p : !llvm.ptr<1>",
        "}",
    ]
)
_FREE = "\n".join(
    [
        "llvm.func @free(!llvm.ptr)",
        "llvm.func internal @__tile_free(%p: !llvm.ptr<1>) {",
        "  %g = llvm.addrspacecast %p : !llvm.ptr<1> to !llvm.ptr",
        "  llvm.call @free(%g) : (!llvm.ptr) -> ()",
        "  llvm.return",
        "}",
    ]
)


@rules.on("nv_tileaa.alloca")
def alloca(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """alloca => malloc by the leader; (aligned, as it was given)"""
    if any(True for result in op.results for _ in result.uses):
        expect_leader(op)
    b = Builder(cx)
    size, alignment = (ir.IntegerAttr(op.attributes[n]).value for n in ("size", "alignment"))
    extra = max(0, alignment - _HEAP_ALIGNMENT)
    branch = cx.create("scf.if", [_is_first(cx)], [b.i64], regions=2)
    with cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
        wanted = b.constant(max(1, size + extra), b.i64)
        found = cx.state.helpers.call(cx, "__tile_malloc", _MALLOC, [wanted], global_pointer())
        number = cx.create("llvm.ptrtoint", [found.result], [b.i64]).result
        cx.create("scf.yield", [number])
    with cx.at(ir.InsertionPoint(branch.regions[1].blocks.append())):
        cx.create("scf.yield", [b.constant(0, b.i64)])
    number = aligned = branch.result
    if extra:
        raised = b.with_constant("addi", number, alignment - 1)
        aligned = b.with_constant("andi", raised, -alignment)
    return [
        cx.create("llvm.inttoptr", [value], [global_pointer()]).result
        for value in (aligned, number)
    ]


@rules.on("nv_tileaa.free")
def free(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """free => one thread calls free when all threads have made their accesses"""
    Builder(cx).barrier()
    branch = cx.create("scf.if", [_is_first(cx)], regions=2)
    with cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
        cx.state.helpers.call(cx, "__tile_free", _FREE, [op.operands[0]], None)
        cx.create("scf.yield")
    return []


def _is_first(cx: Kernel) -> ir.Value:
    b = Builder(cx)
    return b.compare(0, cx.state.thread_index(cx), b.constant(0))


@rules.on("nv_tileaa.gdc_launch_dependents", "nv_tileaa.gdc_wait")
def dependent_grids(op: ir.OpView, cx: Kernel) -> ir.Value:
    """gdc_wait => griddepcontrol.wait, and so on; nothing where grids run one after the other"""
    if cx.target.sm >= _DEPENDENT_GRIDS:
        word = "wait" if op.operation.name.endswith("wait") else "launch_dependents"
        bare_instruction(cx, f"griddepcontrol.{word}")
    return token(cx)


@rules.on("nv_tileaa.fence_alias")
def fence_alias(op: ir.OpView, cx: Kernel) -> ir.Value:
    """fence_alias => fence.proxy.alias (PTX ISA, "membar/fence"); barriers go by its token"""
    bare_instruction(cx, "fence.proxy.alias")
    return token(cx)
