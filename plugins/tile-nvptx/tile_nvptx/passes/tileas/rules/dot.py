"""dot: tensor cores on fragments, or fused multiply-adds of operands in shared memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tile_cute.atoms import MmaAtom
from tile_tileas.dot_plan import atom_name, family_of, warps_of
from tile_tileas.dots import (
    FMA,
    SCALED_FAMILY,
    Fragments,
    atom_named,
    fragment,
    product_shape,
    scale_fragment,
)
from tile_tileas.mma.families import WARPGROUP
from tile_tileas.mma.tier import Warps

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.device.mma import Counts, Scales, mma_fragments
from tile_nvptx.passes.tileas.rules.buffers import is_buffer
from tile_nvptx.passes.tileas.rules.dot_fma import FmaProduct
from tile_nvptx.passes.tileas.rules.dot_operands import Held, Operand, Staged, shape_before
from tile_nvptx.passes.tileas.rules.dot_warpgroup import warpgroup_product
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import element_of, vector_of


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
    scales = [_ScaleWords.of(op, cx, at, atom, grid) for at in (3, 4) if atom.row.scale]
    return _TensorCores(op, cx, atom, counts, operands, scales).run()


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
class _ScaleWords:
    """Block scales of A or B in words of four along K, one word or more for each atom."""

    bytes: ir.Value  # K fastest
    atoms: int
    steps: int  # along K of the atom
    each: int  # scales of one step

    @staticmethod
    def of(op: ir.OpView, cx: Kernel, at: int, atom: MmaAtom, grid: Warps) -> _ScaleWords:
        """Operand `at` of `op`."""
        value, scale = op.operands[at], atom.row.scale
        layout, operand = tile_layout(cx, value), "ab"[at - 3]
        a, b = (shape_before(cx, held) for held in list(op.operands)[:2])
        shape = product_shape(a, b)
        assert scale is not None
        if layout != scale_fragment(atom, operand, shape, layout.rank, grid):
            raise error_at(op, f"has scales that are not where {atom} takes them: {layout}")
        each, along = atom.k // scale.vector, shape[3] // scale.vector
        return _ScaleWords(value, layout.elements_per_thread // along, along // each, each)

    def step(self, cx: Kernel, k: int) -> tuple[ir.Value, int]:
        """A word for each atom, and the first byte in it, of step `k`."""
        along = self.steps * self.each
        first = k * self.each
        low = first // 4 * 4
        # Where there are fewer than four, what stands behind them is not looked at.
        order = [
            at * along + min(low + byte, along - 1) for at in range(self.atoms) for byte in range(4)
        ]
        b = Builder(cx)
        stored = b.to_storage(self.bytes)
        return b.bitcast(b.shuffle(stored, order), vector_of(self.atoms, b.i32)), first - low


@dataclass
class _TensorCores:
    """C + A B, one step of the atom along K after the other."""

    op: ir.OpView
    cx: Kernel
    atom: MmaAtom
    counts: Counts  # atoms of a warp along B, M, N, K
    operands: list[Operand]
    scales: list[_ScaleWords]

    def run(self) -> ir.Value:
        """The new accumulator."""
        batches, ms, ns, ks = self.counts
        total = self.op.operands[2]
        for k in range(ks):
            a, b = (operand.step(self.cx, k) for operand in self.operands)
            elements = (str(element_of(a.type)), str(element_of(b.type)))
            words = [scale.step(self.cx, k) for scale in self.scales]
            scales = Scales(*(byte for _, byte in words)) if words else None
            name, body = mma_fragments(
                self.atom, (*elements, str(element_of(total.type))), (batches, ms, ns, 1), scales
            )
            arguments = [a, b, total, *(word for word, _ in words)]
            helpers = self.cx.state.helpers
            total = helpers.call(self.cx, name, body, arguments, total.type).result
        return total


_FORMS: dict[str, Callable[[ir.OpView, Kernel], ir.Value]] = {
    FMA: _multiply_adds,
    "mma.sync": _tensor_cores,
    SCALED_FAMILY: _tensor_cores,
    WARPGROUP: warpgroup_product,
}
