"""Operands of tensor cores that pass through shared memory inside a `nv_tileas.dot`.

Both operands are stored, then there is one barrier, and fragments are read as the product goes
along K: only those of one step need registers. Operands that come as fragments stay there.

The buffer's layout is the cheapest of those that copies and matrix loads agree on (rows of 16-byte
pieces, swizzled) and the one that serves this store and this load best; "cheapest" counts
wavefronts, bank conflicts included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tile_cute.linear import (
    LayoutError,
    LinearLayout,
    MatrixSide,
    SharedRoundTrip,
    SharedSide,
    best_shared_layout,
    matrix_access,
    memory_access,
    swizzled_rows,
)
from tile_cute.linear.memory import offsets_in
from tile_cute.linear.plans import ACCESS_COST, WAVEFRONT_COST

from tile_core.mlir import ir
from tile_tileas.dialect import layout_of
from tile_tileas.dot_plan import atom_name, fma_plan, product_of
from tile_tileas.dots import FMA, Fragments, atom_named, grid_of
from tile_tileas.scratch import OPERATION_LIMIT, plan_move, storage_bits

_ALIGNMENT = 128  # bytes; one row of banks, as the counted wavefronts assume
_SWIZZLES = (128, 64, 32, 16)  # bytes, the widest first


@dataclass(frozen=True)
class Stage:
    """How one operand passes through shared memory.

    Offsets are in elements. `load` reads the fragments of one step along K; step k reads at
    offsets XORed with `steps[k]`. Lanes and warps with a bit of `redundant_lanes` or
    `redundant_warps` set hold copies and need not store.
    """

    buffer: LinearLayout
    store: SharedSide
    load: SharedSide | MatrixSide
    steps: tuple[int, ...]
    elem_bytes: int
    redundant_lanes: int
    redundant_warps: int

    @property
    def bytes(self) -> int:
        """Shared memory of the operand."""
        return self.buffer.size * self.elem_bytes

    @property
    def cost(self) -> int:
        """Quarter cycles of a warp, as plans of conversions count them."""
        loads = _accesses(self.load)
        accesses = len(self.store.accesses[0]) + len(loads) * len(self.steps)
        wavefronts = self.store.wavefronts + self.load.wavefronts * len(self.steps)
        return ACCESS_COST * accesses + WAVEFRONT_COST * wavefronts


def _accesses(side: SharedSide | MatrixSide) -> tuple[object, ...]:
    return side.accesses if isinstance(side, MatrixSide) else side.accesses[0]


@lru_cache(maxsize=512)
def stage_of(source: LinearLayout, wanted: Fragments, bits: int) -> Stage:
    """The cheapest way from `source` to fragments, for elements of `bits` bits in memory."""
    found = [_stage(buffer, source, wanted, bits) for buffer in _buffers(source, wanted, bits)]
    return min(found, key=lambda stage: stage.cost)


def _buffers(source: LinearLayout, wanted: Fragments, bits: int) -> Iterator[LinearLayout]:
    last = source.rank - 1
    for fast, slow in ((last, last - 1), (last - 1, last)):
        order = (fast, slow, *reversed(range(last - 1)))
        for width in _SWIZZLES:
            if width * 8 <= source.shape[fast] * bits:
                yield swizzled_rows(source.shape, order, bits, width)
    yield best_shared_layout(source, wanted.whole, bits).layout


def _stage(buffer: LinearLayout, source: LinearLayout, wanted: Fragments, bits: int) -> Stage:
    sides: list[SharedSide | MatrixSide] = [memory_access(buffer, wanted.step, bits)]
    for transposed in (False, True):
        matrix = matrix_access(buffer, wanted.step, bits, transposed=transposed)
        if matrix is not None:
            sides.append(matrix)
    load = min(sides, key=lambda side: WAVEFRONT_COST * side.wavefronts + len(_accesses(side)))
    along = LinearLayout({"register": wanted.steps}, source.shape)
    offsets = [0]
    for bit in offsets_in(buffer, along)["register"]:
        offsets += [place ^ bit for place in offsets]
    return Stage(
        buffer,
        memory_access(buffer, source, bits),
        load,
        tuple(offsets),
        bits // 8,
        source.free_mask("lane"),
        source.free_mask("warp"),
    )


def stages(
    sources: tuple[LinearLayout, LinearLayout], wanted: tuple[Fragments, Fragments], bits: int
) -> tuple[tuple[tuple[Stage, int] | None, ...], int]:
    """What A and B do inside the product – stage and start in bytes, or None if they come as
    fragments – and the shared memory that both need together.
    """
    found: list[tuple[Stage, int] | None] = []
    top = 0
    for source, target in zip(sources, wanted, strict=True):
        if source == target.whole:
            found.append(None)
            continue
        stage = stage_of(source, target, bits)
        found.append((stage, top))
        top += -(-stage.bytes // _ALIGNMENT) * _ALIGNMENT
    return tuple(found), top


def staged_operands(
    op: ir.OpView, wanted: tuple[Fragments, Fragments], limit: int
) -> tuple[bool, bool]:
    """Which of A and B of a product by tensor cores stay in the layout they come in.

    The others are converted before: where that moves registers or lanes alone, and where both
    together do not fit into `limit` bytes.
    """
    layouts = [layout_of(op.operands[at].type) for at in range(2)]
    bits = [storage_bits(op.operands[at].type.element_type) for at in range(2)]
    sizes = [
        0 if layout is None or not _through_memory(layout, target.whole, width)
        else layout.size * width // 8
        for layout, target, width in zip(layouts, wanted, bits, strict=True)
    ]  # fmt: skip
    if sum(sizes) > limit:
        sizes[sizes.index(max(sizes))] = 0
    return 0 < sizes[0] <= limit, 0 < sizes[1] <= limit


def _through_memory(source: LinearLayout, wanted: LinearLayout, bits: int) -> bool:
    if source == wanted:
        return False
    try:
        return isinstance(plan_move(source, wanted, bits), SharedRoundTrip)
    except LayoutError:
        return True


def dot_scratch_bytes(op: ir.OpView | ir.Operation) -> int:
    """Shared memory of a dot whose layouts are assigned."""
    if atom_name(op) == FMA:
        return fma_plan(op, OPERATION_LIMIT).bytes
    a, b, c = (layout_of(op.operands[at].type) for at in range(3))
    assert a is not None
    assert b is not None
    assert c is not None
    atom, shape = atom_named(atom_name(op)), product_of(op)
    grid = grid_of(atom, shape, c.in_size("warp"), c)
    assert grid is not None, "layout assignment gives accumulators the atom's layout"
    wanted = tuple(Fragments.of(atom, operand, shape, c.rank, grid) for operand in "ab")
    bits = storage_bits(op.operands[0].type.element_type)
    return stages((a, b), (wanted[0], wanted[1]), bits)[1]
