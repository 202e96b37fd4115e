"""One record of facts per operation: its class in machine models, and its work by that class.

Classes are those of `tile_sched/machine/sm.toml`, which says what they hold and how long they
take; a "region" holds what its operations do. Effects on memory come from the dialects' own
declarations.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.dialect import declared_effect
from tile_core.mlir import ir
from tile_tileas.analysis.buffers import ALLOC
from tile_tileas.dialect.effects import has_buffer_effects


@dataclass(frozen=True)
class Facts:
    """How an operation is scheduled.

    `scale` is instructions per element, as a multiple of what its class has.
    """

    class_: str
    kind: str = "compute"  # as `LoopOp.kind`
    scale: float = 1


_UNKNOWN = Facts("alu")
#: A load that runs ahead of its loop, through shared memory (`staged`).
STAGED_LOAD = Facts("staged_load", "staged")

#: A class a line, behind it its operations. A dialect's own name serves those that have no line.
_OPERATIONS: tuple[tuple[Facts, str], ...] = (
    (Facts("global_load", "load"), "nv_tileas.tiled_load nv_tileas.load"),
    (Facts("global_store", "store"), "nv_tileas.tiled_store nv_tileas.store"),
    (
        Facts("atomic", "store"),
        "nv_tileas.atomic_cas nv_tileas.atomic_rmw nv_tileas.tiled_atomic_rmw nv_tileas.multimem",
    ),
    (
        Facts("async_copy", "load"),
        "nv_tileas.async_load nv_tileas.async_tiled_load nv_tileas.async_copy",
    ),
    (Facts("tma_load", "load"), "nv_tileas.async_tiled_tma_load nv_tileas.async_gather_tma_load"),
    (
        Facts("tma_store", "store"),
        "nv_tileas.async_tiled_tma_store nv_tileas.async_scatter_tma_store "
        "nv_tileas.async_tiled_tma_reduce",
    ),
    (Facts("mma", "mma"), "nv_tileas.dot nv_tileas.scaled_dot"),
    (
        Facts("exchange"),
        "nv_tileas.convert_layout nv_tileas.copy nv_tileas.extract_slice nv_tileas.insert_slice",
    ),
    (Facts("reduce"), "nv_tileas.reduce nv_tileas.reduce_mixed"),
    (Facts("reduce", scale=2), "nv_tileas.scan nv_tileas.scan_mixed"),
    (
        Facts("barrier", "barrier"),
        "nv_tileas.sync nv_tileas.fence nv_tileas.async_wait nv_tileas.barrier_wait "
        "nv_tileas.barrier_arrive",
    ),
    (
        Facts("barrier", "barrier"),
        "nv_tileas.async_pipeline_producer_acquire nv_tileas.async_pipeline_producer_commit "
        "nv_tileas.async_pipeline_consumer_wait nv_tileas.async_pipeline_consumer_release",
    ),
    (
        Facts("region", "load"),
        "nv_tileas.async_pipeline_produce_one nv_tileas.async_pipeline_produce_one_async "
        "nv_tileas.async_pipeline_producer_write",
    ),
    (
        Facts("region"),
        "nv_tileas.async_pipeline_consume_one nv_tileas.async_pipeline_consume_one_async "
        "nv_tileas.async_pipeline_consumer_read",
    ),
    (Facts("alu"), "arith math.absf math.absi math.floor math.ceil"),
    (
        Facts("fma"),
        "arith.addf arith.subf arith.mulf arith.negf math.fma nv_tileaa.addf nv_tileaa.subf "
        "nv_tileaa.mulf nv_tileaa.fma",
    ),
    (Facts("divide"), "arith.divf nv_tileaa.divf"),
    (Facts("fma", scale=2), "arith.muli"),
    (
        Facts("divide", scale=3),
        "arith.divsi arith.divui arith.remsi arith.remui arith.ceildivui arith.ceildivsi",
    ),
    (Facts("convert"), "arith.extf arith.truncf nv_tileaa.fp_to_fp"),
    (
        Facts("free"),
        "arith.constant nv_tileaa.assume nv_tileaa.bitcast nv_tileaa.block_tile "
        "nv_tileaa.broadcast nv_tileaa.create_mem_token nv_tileaa.expand_dims "
        "nv_tileaa.extract nv_tileaa.join_tokens nv_tileaa.make_memref nv_tileaa.permute "
        "nv_tileaa.splat nv_tileaa.view nv_tileas.buffer_view nv_tileas.alloc_tensor "
        "nv_tileas.dealloc nv_tileas.view nv_tileas.yield nv_tileas.yield_mixed ub.poison "
        "nv_tileas.async_pipeline_create_iterator nv_tileas.async_pipeline_create_pipeline "
        "nv_tileas.async_pipeline_inc_iter nv_tileas.async_pipeline_yield",
    ),
    (
        Facts("special"),
        "math nv_tileaa.rsqrt nv_tileaa.exp2 nv_tileaa.cosh nv_tileaa.sinh nv_tileaa.log2",
    ),
    (Facts("alu", scale=2), "math.copysign"),
    (Facts("special", scale=1.25), "math.exp math.log nv_tileaa.exp nv_tileaa.log"),
    (Facts("special", scale=4), "math.sin math.cos nv_tileaa.sin nv_tileaa.cos"),
    (Facts("special", scale=6), "math.tan math.powf nv_tileaa.tan nv_tileaa.pow nv_tileaa.atan2"),
    (Facts("special", scale=2), "math.tanh nv_tileaa.tanh nv_tileaa.sqrt"),
    (Facts("convert", scale=2), "nv_tileaa.fp_to_int nv_tileaa.int_to_fp"),
    (Facts("free", "control"), "scf.yield scf.condition func.return"),
    (Facts("control", "control"), "scf"),
)

#: Operation name -> facts.
FACTS: dict[str, Facts] = {name: facts for facts, names in _OPERATIONS for name in names.split()}


def facts_of(name: str) -> Facts:
    """The facts of an operation by its name; those of plain arithmetic where there are none."""
    return FACTS.get(name) or FACTS.get(name.split(".", 1)[0]) or _UNKNOWN


_UPSTREAM = ("arith.", "math.", "ub.", "scf.yield", "scf.condition", "func.return")


def memory_effect(op: ir.OpView | ir.Operation) -> str:
    """ "none", "read" (may pass other reads) or "write" (keeps its place).

    By what the operation's dialect declares; an operation that declares nothing writes.
    """
    name = op.operation.name
    if name.startswith(_UPSTREAM):
        return "none"
    if name.startswith("scf."):
        inner = [memory_effect(i) for r in op.regions for b in r.blocks for i in b.operations]
        return "write" if "write" in inner else "read" if "read" in inner else "none"
    if _stays_in_buffers(op):
        return "none"
    declared = declared_effect(op.operation.opview)
    if declared == "read" and name.startswith(_GLOBAL):
        return "write"
    return declared or "write"


#: Operations that copy between buffers and global memory: what they do to buffers is declared,
#: what they do to global memory is not.
_GLOBAL = "nv_tileas.async_"


def _stays_in_buffers(op: ir.OpView | ir.Operation) -> bool:
    """Whether all that an operation touches are buffers, which `buffer_effects` names."""
    name = op.operation.name
    return has_buffer_effects(name) and not name.startswith(_GLOBAL)


def is_pure(op: ir.OpView | ir.Operation) -> bool:
    """Whether an operation may run once more and give the same: it has results, and no effects.

    An allocation gives other memory each time.
    """
    if len(op.regions) or memory_effect(op) != "none" or not len(op.results):
        return False
    return op.operation.name != ALLOC


def is_cheap(op: ir.OpView | ir.Operation) -> bool:
    """Whether an operation is better run again than kept: addresses, and what moves nothing."""
    if not is_pure(op):
        return False
    if facts_of(op.operation.name).class_ == "free":
        return True
    costly = (ir.RankedTensorType, ir.FloatType)
    return not any(isinstance(value.type, costly) for value in op.results)
