"""tileas-plan-occupancy: as many blocks of a multiprocessor at once as a kernel has registers for.

ptxas takes what registers help one block. A kernel that waits for its loads most of its time is
served better by other blocks that compute meanwhile, as long as nothing is spilt. Kernels with
products are not such, nor those whose loops have loads under way for later iterations; but those
whose products pairs of blocks make, where stages were counted so that another pair has room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_core.target import Target
from tile_tileas.access import AccessPlan
from tile_tileas.analysis.accumulators import is_of_pair
from tile_tileas.analysis.buffers import allocated_bytes
from tile_tileas.analysis.held import blocks_by_registers
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.agents import SWITCH
from tile_tileas.dialect.fields import operand_of
from tile_tileas.dialect.tensor import UMMA
from tile_tileas.kernel_spec import SPEC, num_ctas, num_warps, occupancy
from tile_tileas.passes.allocate_shared import blocks_of
from tile_tileas.passes.slice_and_fuse import SLICED
from tile_tileas.pipelining.multistage import PIPELINED
from tile_tileas.pipelining.stage_count import BESIDE
from tile_tileas.storage import storage_bits
from tile_tileas.tile_graph import is_tile, kind_of

_OCCUPANCY, _COLUMNS_TAKEN = "occupancy", "nv_tileas.alloc_tmem"
#: Bits of an access that is worth its address.
_WIDE = 64
#: Accesses through pointers whose addresses a thread may compute at once.
_POINTER, _ADDRESSES = ("nv_tileas.load", "nv_tileas.store"), 2
#: Blocks of kernels whose tiles are made a slice after the other: what is ahead of a slice, and the
#: addresses of all, take more than what threads must hold. B200 (model), gradients of a gated SiLU
#: of 8192 rows of 11,008 bf16: 136 us with 5 blocks and spills of 120 bytes, 128 with 4.
_OF_SLICES = 4
#: Kernels with one of these compute, wait for other blocks, divide their registers otherwise, or
#: have few blocks that stay.
_OTHERS = (
    "nv_tileas.dot", *UMMA, SWITCH, "nv_tileaa.get_num_programs", "nv_tileas.atomic_rmw",
    "nv_tileas.atomic_cas", "nv_tileas.multimem",
)  # fmt: skip


@dataclass(frozen=True)
class PlanOccupancy(Pass):
    """Ask for as many blocks at once as registers, shared memory and warps allow, in kernels that
    wait for loads, and whose blocks are not meant to stay: a hint says how many at least. Without a
    hint, ask for two clusters where pairs multiply together and two have room.
    """

    name = "tileas-plan-occupancy"
    anchor = "func.func"
    statistics = {"asked": "kernels of which several blocks are to run at once"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if SPEC not in op.attributes:
            return
        if len(list(op.regions[0].blocks)) > 1:
            raise error_at(op, "has branches; control flow must be structured (scf) here")
        spec = {entry.name: entry.attr for entry in ir.DictAttr(op.attributes[SPEC])}
        inner = list(_operations(op))
        if num_ctas(op) > 1 and _OCCUPANCY in spec:
            return
        if num_ctas(op) > 1:
            blocks = min(_clusters_of_pairs(inner), blocks_at_once(op, cx.target))
        elif any(map(_is_other, inner)) or not all(
            any(map(does, inner)) for does in (_waits, _computes)
        ):
            return
        else:
            blocks = blocks_at_once(op, cx.target)
        if any(SLICED in one.attributes for one in inner):
            blocks = min(blocks, _OF_SLICES)
        if blocks > occupancy(op):
            spec[_OCCUPANCY] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), blocks)
            op.attributes[SPEC] = ir.DictAttr.get(spec)
            cx.count("asked")


def blocks_at_once(func: ir.Operation, target: Target) -> int:
    """Blocks of a kernel that fit into a multiprocessor, if threads hold no more than they must."""
    by_shared = blocks_of(allocated_bytes(func), target)
    by_warps = target.max_warps_per_sm // num_warps(func)
    return min(blocks_by_registers(func, target), by_shared, by_warps)


def _clusters_of_pairs(inner: Sequence[ir.OpView]) -> int:
    """Clusters at once, as many as stages are counted for, if pairs make all products and tensor
    memory has room for their sums; else 1.
    """
    products = [op for op in inner if op.operation.name in UMMA]
    if not products or not all(is_of_pair(op) for op in products):
        return 1
    taken = sum(op.columns.value for op in inner if op.operation.name == _COLUMNS_TAKEN)
    return BESIDE if taken <= COLUMNS // BESIDE else 1


def _is_other(op: ir.OpView) -> bool:
    return op.operation.name in _OTHERS or PIPELINED in op.attributes or _is_narrow(op)


def _waits(op: ir.OpView) -> bool:
    """Whether other blocks can do something meanwhile: what loads nothing computes all the time."""
    return kind_of(op) == "load"


def _computes(op: ir.OpView) -> bool:
    """Whether threads do more to a tile than move it; those that only move it have all that they
    wait for under way.
    """
    return kind_of(op) in ("same", "reduce", "scan") and any(map(is_tile, op.operands))


def _is_narrow(op: ir.OpView) -> bool:
    """Whether a thread loads or stores small pieces, each with a flag and a register of its own, or
    many that have addresses of their own.
    """
    plan = AccessPlan.of(op)
    if plan is None:
        return False
    stored = operand_of(op, "value") if op.operation.name.endswith("store") else None
    tile = op.results[0] if stored is None else stored
    layout = layout_of(tile.type)
    if layout is None:
        return False
    pieces = layout.elements_per_thread // plan.vector
    most = _ADDRESSES if op.operation.name in _POINTER else pieces
    return pieces > most or (
        pieces > 1 and plan.vector * storage_bits(tile.type.element_type) < _WIDE
    )


def _operations(op: ir.Operation) -> Iterator[ir.OpView]:
    """All operations inside of `op`."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner
                yield from _operations(inner.operation)
