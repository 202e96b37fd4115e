"""Copies by tensor maps, which kernels are given as parameters of 128 bytes."""

from __future__ import annotations

import re

from tile_cute.dialect.base import attributes_of

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cute.tensors import Cute, rules
from tile_nvptx.passes.tileas.device import asynchronous as device

#: Compute capability, times 10, from which there are tensor maps.
_SINCE = 90
_LOAD = re.compile(
    r"cp\.async\.bulk\.tensor\.(\d)d\.shared::cluster\.global\.tile\.mbarrier::complete_tx::bytes"
    r"(\.multicast::cluster)?"
)
_STORE = re.compile(
    r"cp\.(?:reduce\.)?async\.bulk\.tensor\.(\d)d\.global\.shared::cta\.(?:(\w+)\.)?tile\.bulk_group"
)


def _matched(instruction: str, form: re.Pattern[str], cx: Cute) -> re.Match[str]:
    if cx.target.sm < _SINCE:
        raise cx.error(f"copies by tensor maps, which {cx.target.chip} does not have")
    match = form.fullmatch(instruction)
    if match is None:
        raise cx.error(f"cannot be lowered for '{instruction}': only tiles")
    return match


def load_box(
    cx: Cute,
    instruction: str,
    target: ir.Value,
    map_: ir.Value,
    barrier: ir.Value,
    coordinates: list[ir.Value],
) -> None:
    """A copy into shared memory; of a multicast the last coordinate is the mask of blocks."""
    match = _matched(instruction, _LOAD, cx)
    rank = int(match[1])
    if len(coordinates) != rank + (match[2] is not None):
        raise cx.error("takes a mask of blocks: use arch_copy_sm100_tma_load")
    if match[2] is not None:
        i16 = ir.IntegerType.get_signless(16)
        coordinates[-1] = cx.create("arith.trunci", [coordinates[-1]], [i16]).result
    routine = device.tensor_load(rank, "tile", rank, "", multicast=match[2] is not None)
    cx.state.helpers.call(cx, *routine, [target, map_, barrier, *coordinates], None)


def store_box(
    cx: Cute, instruction: str, map_: ir.Value, source: ir.Value, coordinates: list[ir.Value]
) -> None:
    """A copy or reduction out of shared memory, of the thread's bulk group."""
    match = _matched(instruction, _STORE, cx)
    rank = int(match[1])
    routine = device.tensor_store(rank, "tile", rank, "", match[2] or "")
    cx.state.helpers.call(cx, *routine, [source, map_, *coordinates], None)


@rules.on("cute_nvgpu.arch_copy_sm100_tma_load")
def load(op: ir.OpView, cx: Cute) -> Replacement:
    """tma_load => cp.async.bulk.tensor into shared memory, which an mbarrier counts; one thread

    The last operand of a multicast says which blocks of the cluster get it, at the same place.
    """
    target, map_, barrier, *coordinates = op.operands
    load_box(cx, attributes_of(op)["atom"], target, map_, barrier, coordinates)
    return None


@rules.on("cute_nvgpu.arch_copy_sm100_tma_store", "cute_nvgpu.arch_copy_sm100_tma_reduce")
def store(op: ir.OpView, cx: Cute) -> Replacement:
    """tma_store, tma_reduce => cp(.reduce).async.bulk.tensor from shared memory, of the thread's
    bulk group; one thread
    """
    map_, source, *coordinates = op.operands
    store_box(cx, attributes_of(op)["atom"], map_, source, coordinates)
    return None


@rules.on("cute_nvgpu.arch_prefetch_tma_desc", "cute_nvgpu.prefetch_tma_desc")
def prefetch(op: ir.OpView, cx: Cute) -> Replacement:
    """prefetch.tensormap"""
    if cx.target.sm < _SINCE:
        raise cx.error(f"announces a tensor map, which {cx.target.chip} does not have")
    cx.state.helpers.call(cx, *device.prefetch_map(), [op.operands[0]], None)
    return None
