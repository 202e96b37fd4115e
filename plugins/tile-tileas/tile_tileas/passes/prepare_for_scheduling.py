"""tileas-prepare-for-scheduling: the last clean-up before schedules are made."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.prepare.atoms import refine_vectors
from tile_tileas.prepare.boxes import refresh_boxes
from tile_tileas.prepare.loads import share_and_raise_loads
from tile_tileas.prepare.loops import decompose_single_ops, unroll_by_factor, unroll_small_loops
from tile_tileas.prepare.marks import mark_loops
from tile_tileas.prepare.places import compact
from tile_tileas.prepare.views import decompose_views


@dataclass(frozen=True)
class PrepareForScheduling(Pass):
    """Make a kernel ready for schedules: direct views, true vectors, marks, no tiny loops.

    Six stages in fixed order, each a timing scope under the specification's name; the first that
    fails, fails the pass.
    """

    name = "tileas-prepare-for-scheduling"
    anchor = "func.func"
    statistics = {
        "views": "views that became direct",
        "vectors": "accesses planned as wide as their threads make them",
        "marks": "hints put on loops and on what is cheap in them",
        "unrolled": "tiny loops written out, and loops unrolled as they ask for",
        "merged": "loads that another one of the code written out had made already",
        "raised": "loads moved before stores that they need not wait for",
        "unwrapped": "wrappers of one operation that went",
        "shared": "bytes of shared memory of buffers that were there already",
        "refreshed": "accesses planned again, since their coordinates changed",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        with cx.scope("TileASPrepareForScheduling"):
            self._stages(op, cx)

    def _stages(self, op: ir.Operation, cx: PassContext) -> None:
        with cx.scope("decomposeTiledLoadStoreView"):
            cx.count("views", decompose_views(op))
        with cx.scope("refineVecSizeOfAtoms"):
            cx.count("vectors", refine_vectors(op, cx.target))
        with cx.scope("TileASSliceAndFuse"), cx.scope("sliceAndFuse"):
            cx.count("marks", mark_loops(op))
        with cx.scope("runCanonicalizer"):
            with cx.scope("unrollSmallLoopsForScheduling"):
                with cx.scope("loopUnrollByFactor"):
                    unrolled = unroll_by_factor(op, cx)
                with cx.scope("loopUnrollByHeuristic"):
                    unrolled += unroll_small_loops(op)
                merged, raised = share_and_raise_loads(op) if unrolled else (0, 0)
            with cx.scope("decomposeSingleOp"):
                unwrapped = decompose_single_ops(op)
        cx.count("unrolled", unrolled)
        cx.count("unwrapped", unwrapped)
        cx.count("merged", merged)
        cx.count("raised", raised)
        with cx.scope("compactMemLayout"):
            cx.count("shared", compact(op, cx.target))
        with cx.scope("refreshBoxDim"):
            if unrolled:
                cx.count("refreshed", refresh_boxes(op, cx))
