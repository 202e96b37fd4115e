"""dot: tensor cores on fragments, or fused multiply-adds of operands in shared memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tile_cute.atoms import MmaAtom
from tile_tileas.dot_plan import atom_name, family_of, warps_of
from tile_tileas.dots import FMA, Fragments, atom_named, fragment, product_shape
from tile_tileas.mma.warpgroup import FAMILY as WARPGROUP

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.device.mma import Counts, mma_fragments
from tile_nvptx.passes.tileas.rules.buffers import is_buffer
from tile_nvptx.passes.tileas.rules.dot_fma import FmaProduct
from tile_nvptx.passes.tileas.rules.dot_operands import Held, Operand, Staged, shape_before
from tile_nvptx.passes.tileas.rules.dot_warpgroup import warpgroup_product
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.state import Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import element_of


@rules.on("nv_tileas.dot")
def dot(op: ir.OpView, cx: Kernel) -> ir.Value:
    """dot {atom} => instructions of the atom's tier: mma.sync on fragments, "fma" of buffers"""
    return _FORMS[family_of(op)](op, cx)


def _multiply_adds(op: ir.OpView, cx: Kernel) -> ir.Value:
    return FmaProduct(op, cx).run()


def _tensor_cores(op: ir.OpView, cx: Kernel) -> ir.Value:
    layout = tile_layout(cx, op.operands[2])
    a, b = (shape_before(cx, value) for value in list(op.operands)[:2])
    atom, shape = atom_named(atom_name(op)), product_shape(a, b)
    grid = warps_of(op)
    if fragment(atom, "c", shape, layout.rank, grid) != layout:
        raise error_at(op, f"has an accumulator that is no tile of {atom}: {layout}")
    batch, m, n, k = shape
    counts = (
        max(1, batch // grid[0]),
        max(1, m // (grid[1] * atom.m)),
        max(1, n // (grid[2] * atom.n)),
        k // atom.k,
    )
    wanted = (Fragments.of(atom, operand, shape, layout.rank, grid) for operand in "ab")
    operands = [
        _operand(op, cx, value, fragments)
        for value, fragments in zip(op.operands, wanted, strict=False)
    ]
    return _TensorCores(op, cx, atom, counts, operands).run()


def _operand(op: ir.OpView, cx: Kernel, value: ir.Value, fragments: Fragments) -> Operand:
    """A or B: fragments in registers, or a buffer."""
    if is_buffer(cx, value):
        return Staged.of(op, cx, value, fragments)
    layout = tile_layout(cx, value)
    if layout != fragments.whole:
        raise error_at(
            op,
            f"has an operand that is neither fragments nor a buffer: {layout}; run "
            "'tileas-materialize-convert-layout' before",
        )
    return Held(value, fragments)


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


_FORMS: dict[str, Callable[[ir.OpView, Kernel], ir.Value]] = {
    FMA: _multiply_adds,
    "mma.sync": _tensor_cores,
    WARPGROUP: warpgroup_product,
}
