"""dot: tensor cores on fragments, or fused multiply-adds of operands in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.atoms import MmaAtom
from tile_tileas.dot_plan import atom_name
from tile_tileas.dot_stage import Staging
from tile_tileas.dots import FMA, atom_named, grid_of, product_shape

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.device.mma import Counts, mma_fragments
from tile_nvptx.passes.tileas.rules.dot_fma import FmaProduct
from tile_nvptx.passes.tileas.rules.dot_operands import Held, Operand, Staged, product_of
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import element_of


@rules.on("nv_tileas.dot")
def dot(op: ir.OpView, cx: Kernel) -> ir.Value:
    """dot {atom} => mma.sync on whole fragments, or "fma": a loop over K in shared memory"""
    if atom_name(op) == FMA:
        return FmaProduct(op, cx).run()
    return _tensor_cores(op, cx)


def _tensor_cores(op: ir.OpView, cx: Kernel) -> ir.Value:
    product = product_of(op, cx)
    a, b, layout = product.layouts
    atom, shape = atom_named(atom_name(op)), product_shape(a.shape, b.shape)
    grid = grid_of(atom, shape, cx.state.num_warps, layout)
    if grid is None:
        raise error_at(op, f"has an accumulator that is no tile of {atom}: {layout}")
    batch, m, n, k = shape
    counts = (
        max(1, batch // grid[0]),
        max(1, m // (grid[1] * atom.m)),
        max(1, n // (grid[2] * atom.n)),
        k // atom.k,
    )
    return _TensorCores(op, cx, atom, counts, _operands(op, cx, product.staging())).run()


def _operands(op: ir.OpView, cx: Kernel, staging: Staging) -> list[Operand]:
    """Where A and B come from: registers, or shared memory that they are written to here."""
    operands: list[Operand] = []
    for value, plan, fragments in zip(
        list(op.operands)[:2], staging.plans, staging.fragments, strict=True
    ):
        if plan is None:
            operands.append(Held(value, fragments))
        else:
            operands.append(Staged.of(op, cx, value, plan[0], fragments, plan[1]))
    if any(plan is not None for plan in staging.plans):
        Builder(cx).barrier()
    return operands


@dataclass
class _TensorCores:
    """C + A B, one step of the atom along K after the other."""

    op: ir.OpView
    cx: Kernel
    atom: MmaAtom
    counts: Counts  # atoms of a warp along B, M, N, K
    operands: list[Operand]

    def run(self) -> ir.Value:
        """The new accumulator."""
        batches, ms, ns, ks = self.counts
        total = self.op.operands[2]
        for k in range(ks):
            a, b = (operand.step(self.cx, k) for operand in self.operands)
            elements = (str(element_of(a.type)), str(element_of(b.type)))
            name, body = mma_fragments(
                self.atom, (*elements, str(element_of(total.type))), (batches, ms, ns, 1)
            )
            helpers = self.cx.state.helpers
            total = helpers.call(self.cx, name, body, [a, b, total], total.type).result
        return total
