"""The rule set of `convert-tileas-to-llvm`, and what its files share."""

from __future__ import annotations

from tile_core.convert import RuleSet
from tile_core.mlir import ir

#: Families of operations that few programs have, and the modules of `rules` with their rules. What
#: most programs have is in modules that `rules` imports: elementwise, program, shape, tiled.
FAMILIES = {
    "agents": ("nv_tileas.async_pipeline_agent_switch",),
    "assertions": ("nv_tileaa.assert",),
    "async_copies": ("nv_tileas.async_tiled_load", "nv_tileas.async_load", "nv_tileas.async_copy"),
    "atomics": ("nv_tileas.atomic_rmw", "nv_tileas.atomic_cas"),
    "buffers": (
        "nv_tileas.alloc_tensor", "nv_tileas.dealloc", "nv_tileas.create_none",
        "nv_tileas.buffer_view", "nv_tileas.buffer_reinterpret", "nv_tileas.copy",
    ),
    "called": (
        "nv_tileaa.extern_elementwise", "nv_tileaa.extern_elementwise_mixed",
        "nv_tileaa.call_elementwise_intrinsic", "nv_tileaa.call_elementwise_intrinsic_mixed",
    ),
    "casts": (
        "nv_tileaa.fp_to_fp", "arith.sitofp", "arith.uitofp", "nv_tileaa.int_to_fp", "arith.extsi",
        "arith.extui", "arith.trunci", "nv_tileaa.fp_to_int",
    ),
    "cluster": (
        "nv_tileas.cta_rank", "nv_tileas.cluster_sync", "nv_tileas.cluster_arrive",
        "nv_tileas.cluster_wait", "nv_tileas.barrier_arrive_in_cluster",
    ),
    "convert_layout": ("nv_tileas.convert_layout", "nv_tileas.convert_in_parts"),
    "count": ("nv_tileas.count",),
    "dot": ("nv_tileas.dot",),
    "dot_warpgroup": ("nv_tileas.dot_wait",),
    "inline_asm": (
        "nv_tileaa.elementwise_inline_asm", "nv_tileaa.elementwise_inline_asm_mixed",
        "nv_tileaa.optimization_barrier", "nv_tileas.pragma",
    ),
    "host": ("nv_tileaa.get_global", "nv_tileaa.print"),
    "launched": (
        "nv_tileas.async_cancel_next_program_id", "nv_tileas.is_valid_program_id",
        "nv_tileas.next_program_id", "nv_tileas.take_program_id",
    ),
    "multimem": ("nv_tileas.multimem",),
    "pointers": ("nv_tileas.load", "nv_tileas.load_rest", "nv_tileas.store"),
    "reduce": ("nv_tileas.reduce", "nv_tileas.reduce_mixed", "nv_tileas.reduce_across_warps"),
    "scan": ("nv_tileas.scan", "nv_tileas.scan_mixed", "nv_tileas.scan_across_warps"),
    "shifts": ("arith.shli", "arith.shrui", "arith.shrsi"),
    "slices": (
        "nv_tileaa.permute", "nv_tileas.cat", "nv_tileas.extract_slice", "nv_tileas.insert_slice",
    ),
    "synchronization": (
        "nv_tileas.sync", "nv_tileas.fence", "nv_tileas.barrier_init",
        "nv_tileas.barrier_invalidate", "nv_tileas.barrier_expect", "nv_tileas.barrier_arrive",
        "nv_tileas.barrier_next", "nv_tileas.barrier_turn", "nv_tileas.barrier_wait",
        "nv_tileas.async_commit_group", "nv_tileas.async_wait",
    ),
    "system": (
        "nv_tileaa.alloca", "nv_tileaa.free", "nv_tileaa.gdc_launch_dependents",
        "nv_tileaa.gdc_wait", "nv_tileaa.fence_alias",
    ),
    "tensor_memory": (
        "nv_tileas.alloc_tmem", "nv_tileas.dealloc_tmem", "nv_tileas.tmem_address",
        "nv_tileas.team", "nv_tileas.tmem_buffer", "nv_tileas.tmem_columns", "nv_tileas.tmem_view",
        "nv_tileas.tmem_fence", "nv_tileas.umma",
        "nv_tileas.umma_scaled",
    ),
    "tma": (
        "nv_tileas.async_tiled_tma_load", "nv_tileas.async_gather_tma_load",
        "nv_tileas.async_tiled_tma_store", "nv_tileas.async_scatter_tma_store",
        "nv_tileas.async_tiled_tma_reduce", "nv_tileas.prefetch_tma_desc",
        "nv_tileas.acquire_tma_desc", "nv_tileas.make_tiled_tma_desc", "nv_tileas.claim_tma_descs",
        "nv_tileas.release_tma_descs", "nv_tileas.fill_tma_desc",
    ),
}  # fmt: skip

rules = RuleSet(
    "convert-tileas-to-llvm",
    {f"{__package__}.rules.{module}": ops for module, ops in FAMILIES.items()},
)


def text(op: ir.OpView, name: str, default: str = "") -> str:
    """A string attribute, or `default`."""
    attributes = op.attributes
    return ir.StringAttr(attributes[name]).value if name in attributes else default
