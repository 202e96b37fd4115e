"""One record of facts per operation: its class in machine models, and its work by that class.

Classes are those of `tile_sched/machine/sm.toml`, which says what they hold and how long they
take; effects on memory come from the dialects' own declarations.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.dialect import declared_effect
from tile_core.mlir import ir
from tile_tileas.dialect.effects import has_buffer_effects


@dataclass(frozen=True)
class Facts:
    """How an operation is scheduled.

    `scale` is instructions per element, as a multiple of what its class has.
    """

    class_: str
    kind: str = "compute"  # as `LoopOp.kind`
    scale: float = 1


_FREE = Facts("free")
_LOAD, _STORE = Facts("global_load", "load"), Facts("global_store", "store")
#: A load that runs ahead of its loop, through shared memory (`staged`).
STAGED_LOAD = Facts("staged_load", "load")
_ATOMIC = Facts("atomic", "store")
_EXCHANGE = Facts("exchange")
_CONTROL = Facts("control", "control")
_BARRIER = Facts("barrier", "barrier")
_UNKNOWN = Facts("alu")

#: Operation name -> facts. A dialect's own line ("math") serves those that have none.
FACTS: dict[str, Facts] = {
    # accesses
    "nv_tileas.tiled_load": _LOAD,
    "nv_tileas.load": _LOAD,
    "nv_tileas.tiled_store": _STORE,
    "nv_tileas.store": _STORE,
    "nv_tileas.atomic_cas": _ATOMIC,
    "nv_tileas.atomic_rmw": _ATOMIC,
    "nv_tileas.tiled_atomic_rmw": _ATOMIC,
    "nv_tileas.multimem": _ATOMIC,
    "nv_tileas.async_load": Facts("async_copy", "load"),
    "nv_tileas.async_tiled_load": Facts("async_copy", "load"),
    "nv_tileas.async_copy": Facts("async_copy", "load"),
    "nv_tileas.async_tiled_tma_load": Facts("tma_load", "load"),
    "nv_tileas.async_gather_tma_load": Facts("tma_load", "load"),
    "nv_tileas.async_tiled_tma_store": Facts("tma_store", "store"),
    "nv_tileas.async_scatter_tma_store": Facts("tma_store", "store"),
    "nv_tileas.async_tiled_tma_reduce": Facts("tma_store", "store"),
    # products
    "nv_tileas.dot": Facts("mma", "mma"),
    "nv_tileas.scaled_dot": Facts("mma", "mma"),
    # movement between threads
    "nv_tileas.convert_layout": _EXCHANGE,
    "nv_tileas.copy": _EXCHANGE,
    "nv_tileas.extract_slice": _EXCHANGE,
    "nv_tileas.insert_slice": _EXCHANGE,
    "nv_tileas.reduce": Facts("reduce"),
    "nv_tileas.reduce_mixed": Facts("reduce"),
    "nv_tileas.scan": Facts("reduce", scale=2),
    "nv_tileas.scan_mixed": Facts("reduce", scale=2),
    "nv_tileas.sync": _BARRIER,
    "nv_tileas.fence": _BARRIER,
    "nv_tileas.async_wait": _BARRIER,
    "nv_tileas.barrier_wait": _BARRIER,
    "nv_tileas.barrier_arrive": _BARRIER,
    # arithmetic
    "arith": _UNKNOWN,
    "arith.addf": Facts("fma"),
    "arith.subf": Facts("fma"),
    "arith.mulf": Facts("fma"),
    "arith.negf": Facts("fma"),
    "arith.divf": Facts("divide"),
    "arith.muli": Facts("fma", scale=2),
    "arith.divsi": Facts("divide", scale=3),
    "arith.divui": Facts("divide", scale=3),
    "arith.remsi": Facts("divide", scale=3),
    "arith.remui": Facts("divide", scale=3),
    "arith.ceildivui": Facts("divide", scale=3),
    "arith.ceildivsi": Facts("divide", scale=3),
    "arith.extf": Facts("convert"),
    "arith.truncf": Facts("convert"),
    "arith.constant": _FREE,
    "math": Facts("special"),
    "math.absf": Facts("alu"),
    "math.absi": Facts("alu"),
    "math.fma": Facts("fma"),
    "math.floor": Facts("alu"),
    "math.ceil": Facts("alu"),
    "math.copysign": Facts("alu", scale=2),
    "math.exp": Facts("special", scale=1.25),
    "math.log": Facts("special", scale=1.25),
    "math.sin": Facts("special", scale=4),
    "math.cos": Facts("special", scale=4),
    "math.tan": Facts("special", scale=6),
    "math.powf": Facts("special", scale=6),
    "math.tanh": Facts("special", scale=2),
    "nv_tileaa.addf": Facts("fma"),
    "nv_tileaa.subf": Facts("fma"),
    "nv_tileaa.mulf": Facts("fma"),
    "nv_tileaa.fma": Facts("fma"),
    "nv_tileaa.divf": Facts("divide"),
    "nv_tileaa.sqrt": Facts("special", scale=2),
    "nv_tileaa.rsqrt": Facts("special"),
    "nv_tileaa.exp2": Facts("special"),
    "nv_tileaa.atan2": Facts("special", scale=6),
    "nv_tileaa.fp_to_fp": Facts("convert"),
    "nv_tileaa.fp_to_int": Facts("convert", scale=2),
    "nv_tileaa.int_to_fp": Facts("convert", scale=2),
    # what becomes no instruction, or is the same for every element
    "nv_tileaa.assume": _FREE,
    "nv_tileaa.bitcast": _FREE,
    "nv_tileaa.block_tile": _FREE,
    "nv_tileaa.broadcast": _FREE,
    "nv_tileaa.create_mem_token": _FREE,
    "nv_tileaa.expand_dims": _FREE,
    "nv_tileaa.extract": _FREE,
    "nv_tileaa.join_tokens": _FREE,
    "nv_tileaa.make_memref": _FREE,
    "nv_tileaa.permute": _FREE,
    "nv_tileaa.splat": _FREE,
    "nv_tileaa.view": _FREE,
    "nv_tileas.buffer_view": _FREE,
    "nv_tileas.alloc_tensor": _FREE,
    "nv_tileas.dealloc": _FREE,
    "nv_tileas.view": _FREE,
    "nv_tileas.yield": _FREE,
    "nv_tileas.yield_mixed": _FREE,
    "ub.poison": _FREE,
    "scf.yield": Facts("free", "control"),
    "scf.condition": Facts("free", "control"),
    "func.return": Facts("free", "control"),
    "scf": _CONTROL,
}


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
