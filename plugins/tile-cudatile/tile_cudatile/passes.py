"""The transformations as passes on the MLIR form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_cudatile.dialect.build import Builder
from tile_cudatile.dialect.read import from_mlir
from tile_cudatile.dialect.types import CudaTile
from tile_cudatile.rules.verify import verify
from tile_cudatile.transforms.canonical import canonicalize
from tile_cudatile.transforms.fma import fuse_fma
from tile_cudatile.transforms.loop_split import split_loops
from tile_cudatile.transforms.scopes import synthesize_scopes
from tile_cudatile.transforms.simplify import simplify
from tile_cudatile.tree import Module


def _transform(op: ir.Operation, cx: PassContext, change: Callable[[Module], int]) -> None:
    """Applies `change` to every `cuda_tile.module` directly in `op`, and counts."""
    for view in list(op.regions[0].blocks[0].operations):
        program = view.operation
        if program.name != "cuda_tile.module":
            continue
        tree = from_mlir(program)
        count = change(tree)
        cx.count("changes", count)
        if not count:
            continue
        verify(tree, types=False)
        with op.context, ir.Location.unknown():
            CudaTile.load()
            Builder().program(tree, ir.InsertionPoint(program))
        program.erase()


@dataclass(frozen=True)
class Canonicalize(Pass):
    """The folds and patterns of CUDA Tile IR; removes dead operations"""

    name = "cuda-tile-canonicalize"
    dependent_dialects = ("cuda_tile",)
    statistics = {"changes": "patterns applied"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        _transform(op, cx, canonicalize)


@dataclass(frozen=True)
class Simplify(Pass):
    """Simpler integer and boolean expressions; what is computed already is used again"""

    name = "cuda-tile-simplify"
    dependent_dialects = ("cuda_tile",)
    statistics = {"changes": "operations replaced"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        _transform(op, cx, simplify)


@dataclass(frozen=True)
class FuseFMA(Pass):
    """addf (mulf a, b), c => fma a, b, c, where the product has no other use"""

    name = "cuda-tile-fuse-fma"
    dependent_dialects = ("cuda_tile",)
    statistics = {"changes": "patterns applied"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        _transform(op, cx, fuse_fma)


@dataclass(frozen=True)
class LoopSplit(Pass):
    """Splits loops where a condition on the induction variable turns"""

    name = "cuda-tile-loop-split"
    dependent_dialects = ("cuda_tile",)
    statistics = {"changes": "loops split"}
    split_threshold: int = option(1, "operations that a branch must have; 0: split nothing")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        def change(module: Module) -> int:
            count = split_loops(module, self.split_threshold)
            if count:
                canonicalize(module)
            return count

        _transform(op, cx, change)


@dataclass(frozen=True)
class SynthesizeDebugInfoScopes(Pass):
    """Gives kernels without debug info a scope, so that positions survive code generation"""

    name = "cuda-tile-synthesize-debug-info-scopes"
    dependent_dialects = ("cuda_tile",)
    statistics = {"changes": "kernels changed"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        _transform(op, cx, synthesize_scopes)


__all__ = ["Canonicalize", "FuseFMA", "LoopSplit", "Simplify", "SynthesizeDebugInfoScopes"]
