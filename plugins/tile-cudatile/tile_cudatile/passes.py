"""The transformations as passes on the MLIR form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_cudatile.dialect.build import Builder
from tile_cudatile.dialect.types import CudaTile
from tile_cudatile.handed import Handed, tree_of
from tile_cudatile.transforms.canonical import canonicalize
from tile_cudatile.transforms.fma import fuse_fma
from tile_cudatile.transforms.loop_join import MOST_DIFFERENCES, join_loops
from tile_cudatile.transforms.loop_split import split_loops
from tile_cudatile.transforms.masks import skip_masks
from tile_cudatile.transforms.scopes import synthesize_scopes
from tile_cudatile.transforms.simplify import simplify
from tile_cudatile.tree import Module


def _transform(op: ir.Operation, cx: PassContext, change: Callable[[Module], int]) -> None:
    """Applies `change` to every `cuda_tile.module` directly in `op`, and counts. What it made is
    verified as all IR is, as MLIR.
    """
    for view in list(op.regions[0].blocks[0].operations):
        program = view.operation
        if program.name != "cuda_tile.module":
            continue
        tree = tree_of(program, cx)
        count = change(tree)
        cx.count("changes", count)
        if not count:
            continue
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
class DeriveCounters(Pass):
    """Numbers that loops count up beside their index become functions of the index"""

    name = "cuda-tile-derive-counters"
    dependent_dialects = ("cuda_tile",)
    statistics = {"changes": "numbers computed of an index"}
    preserves = (Handed.name,)

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if any(map(_counts, _loops(op))):
            from tile_cudatile.transforms.counters import derive_counters  # few programs need it

            _transform(op, cx, derive_counters)


def _counts(loop: ir.Operation) -> bool:
    """Whether a loop carries something of its index's type."""
    index, *carried = (argument.type for argument in loop.regions[0].blocks[0].arguments)
    return index in carried


@dataclass(frozen=True)
class LoopJoin(Pass):
    """Joins loops of products over one range in a row that differ in what some operations see"""

    name = "cuda-tile-loop-join"
    dependent_dialects = ("cuda_tile",)
    statistics = {"changes": "loops joined with the one before"}
    preserves = (Handed.name,)  # whoever takes it to change the program leaves none
    differences: int = option(
        MOST_DIFFERENCES, "values that bodies of joined loops differ in, at most; -1: join nothing"
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        loops = list(_loops(op))
        if self.differences < 0 or not any(map(_follows, loops)):
            return  # without a tree, which takes longer than all else here
        left = iter(loops)

        def change(module: Module) -> int:
            own = [inner for entry in module.entries for inner in entry.body.walk()]
            places = {inner: next(left) for inner in own if inner.name == _FOR}
            found = join_loops(module, self.differences)
            for one in found:
                _remark(places[one.loop], one.why_not, cx)
            return sum(one.why_not is None for one in found)

        _transform(op, cx, change)


_FOR, _PRODUCT = "for", "cuda_tile.mma"


def _loops(op: ir.Operation) -> Iterator[ir.Operation]:
    """All `for` loops inside of an operation, in pre-order."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == f"cuda_tile.{_FOR}":
                    yield inner.operation
                yield from _loops(inner.operation)


def _follows(loop: ir.Operation) -> bool:
    """Whether a loop begins with something that another one gives."""
    return any(
        not isinstance(value.owner, ir.Block) and value.owner.name == loop.name
        for value in loop.operands
    )


def _remark(loop: ir.Operation, why_not: str | None, cx: PassContext) -> None:
    if why_not is None:
        cx.passed(loop, "joined with the loop before it", category="pipeline", name="LoopsJoined")
        return
    cx.missed(
        loop, f"not joined with the loop before it: {why_not}", category="pipeline",
        name="LoopsNotJoined", reasons=[why_not],
    )  # fmt: skip


@dataclass(frozen=True)
class SkipMasks(Pass):
    """Puts masks in loops of products into branches, around which whole tiles inside of them go"""

    name = "cuda-tile-skip-masks"
    dependent_dialects = ("cuda_tile",)
    statistics = {"changes": "masks in branches"}
    preserves = (Handed.name,)

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if any(map(_selects, _loops(op))):
            _transform(op, cx, lambda module: len(skip_masks(module)))


def _selects(loop: ir.Operation) -> bool:
    """Whether the body of a loop selects, and multiplies."""
    names = {inner.operation.name for inner in loop.regions[0].blocks[0].operations}
    return "cuda_tile.select" in names and any(name.startswith(_PRODUCT) for name in names)


@dataclass(frozen=True)
class SynthesizeDebugInfoScopes(Pass):
    """Gives kernels without debug info a scope, so that positions survive code generation"""

    name = "cuda-tile-synthesize-debug-info-scopes"
    dependent_dialects = ("cuda_tile",)
    statistics = {"changes": "kernels changed"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        _transform(op, cx, synthesize_scopes)


__all__ = [
    "Canonicalize",
    "DeriveCounters",
    "FuseFMA",
    "LoopJoin",
    "LoopSplit",
    "Simplify",
    "SkipMasks",
    "SynthesizeDebugInfoScopes",
]
