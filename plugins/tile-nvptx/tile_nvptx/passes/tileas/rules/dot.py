"""dot: tensor cores on fragments, or fused multiply-adds of operands in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.atoms import MmaAtom, find_copies
from tile_tileas.dot_plan import atom_name
from tile_tileas.dots import FMA, Fragments, Grid, atom_named, grid_of, product_shape
from tile_tileas.stages import stages

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.device.mma import Counts, mma_fragments
from tile_nvptx.passes.tileas.rules.dot_fma import FmaProduct
from tile_nvptx.passes.tileas.rules.dot_operands import Held, Operand, Staged
from tile_nvptx.passes.tileas.ruleset import rules, state
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.types import element_of, storage_type

#: What transposes matrices of bytes on their way from shared memory.
(_TURNS_BYTES,) = (
    copy
    for copy in find_copies(family="ldmatrix")
    if copy.name == "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8"
)


@rules.on("nv_tileas.dot")
def dot(op: ir.OpView, cx: Conversion) -> ir.Value:
    """dot {atom} => mma.sync on whole fragments, or "fma": a loop over K in shared memory"""
    if atom_name(op) == FMA:
        return FmaProduct(op, cx).run()
    return _tensor_cores(op, cx)


def _tensor_cores(op: ir.OpView, cx: Conversion) -> ir.Value:
    a, b = (state(cx).operand_layout(op, at).shape for at in (0, 1))
    atom, shape = atom_named(atom_name(op)), product_shape(a, b)
    layout = state(cx).operand_layout(op, 2)
    grid = grid_of(atom, shape, state(cx).num_warps, layout)
    if grid is None:
        raise error_at(op, f"has an accumulator that is no tile of {atom}: {layout}")
    batch, m, n, k = shape
    counts = (
        max(1, batch // grid[0]),
        max(1, m // (grid[1] * atom.m)),
        max(1, n // (grid[2] * atom.n)),
        k // atom.k,
    )
    return _TensorCores(op, cx, atom, counts, _operands(op, cx, atom, shape, grid)).run()


def _operands(
    op: ir.OpView, cx: Conversion, atom: MmaAtom, shape: tuple[int, int, int, int], grid: Grid
) -> list[Operand]:
    """Where A and B come from: registers, or shared memory that they are written to here."""
    layouts = [state(cx).operand_layout(op, at) for at in (0, 1)]
    a, b = (Fragments.of(atom, operand, shape, layouts[0].rank, grid) for operand in "ab")
    values = list(op.operands)[:2]
    bits = storage_type(element_of(values[0].type)).width
    turns_bytes = _TURNS_BYTES.supported_on(cx.target.chip)
    plans = stages((layouts[0], layouts[1]), (a, b), bits, turns_bytes=turns_bytes)[0]
    if "barrier_before" in op.attributes:
        Builder(cx).barrier()
    operands: list[Operand] = []
    for value, plan, fragments in zip(values, plans, (a, b), strict=True):
        if plan is None:
            operands.append(Held(value, fragments))
        else:
            operands.append(Staged.of(op, cx, value, plan[0], fragments, plan[1]))
    if any(plan is not None for plan in plans):
        Builder(cx).barrier()
    return operands


@dataclass
class _TensorCores:
    """C + A B, one step of the atom along K after the other."""

    op: ir.OpView
    cx: Conversion
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
            helpers = state(self.cx).helpers
            total = helpers.call(self.cx, name, body, [a, b, total], total.type).result
        return total
