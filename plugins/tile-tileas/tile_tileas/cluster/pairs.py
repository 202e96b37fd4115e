"""Products that pairs of blocks of a cluster can make together, by tcgen05.

Each block has its own rows of A and of the result, and half of the columns of B, which both read: a
stage takes less shared memory than if each had all of B. All products of a kernel are made so, or
none (PTX ISA, "tcgen05 instructions": one `.cta_group` in a kernel).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tile_cute.atoms import find_mma

from tile_core.mlir import ir
from tile_core.target import Target
from tile_tileas.mma.families import FAMILIES, TENSOR
from tile_tileas.mma.tensor import WARPS, TensorTier
from tile_tileas.mma.tier import Unfit
from tile_tileas.passes.dot import product_of

#: Blocks of a pair.
PAIR = 2
_LOAD, _LOOP = "nv_tileaa.tiled_load", "scf.for"
#: What moves no element to where another view would not find it.
_VIEWS = ("nv_tileaa.permute", "nv_tileaa.view", "nv_tileaa.expand_dims")
#: A, B and the accumulator: no block scales.
_PLAIN = 3


@dataclass(frozen=True)
class Pairing:
    """What products of a kernel are asked for.

    Attributes:
        target: which GPU.
        highest: the highest kind of instruction that products may run on.
        warps: of a block; 0 leaves that to the compiler, which takes whole warpgroups.
        parts: blocks of a cluster.
    """

    target: Target
    highest: str
    warps: int
    parts: int

    @property
    def exists(self) -> bool:
        """Whether the target has such products, and options allow them."""
        allowed = FAMILIES.index(self.highest) <= FAMILIES.index(TENSOR)
        return allowed and bool(find_mma(self.target.chip, family=TENSOR, sparse=False))

    def problem(self, dots: Sequence[ir.OpView]) -> str | None:
        """Why not all of `dots` can be made by pairs; None if they can."""
        if self.parts != PAIR:
            return f"a cluster of {self.parts} blocks has several pairs"
        problems = (self._problem_of(op) for op in dots)
        return next((problem for problem in problems if problem is not None), None)

    def _problem_of(self, op: ir.OpView) -> str | None:
        if len(op.operands) != _PLAIN:
            return "a product has block scales"
        if not _is_carried(op):
            return "a product is not added to what its loop carries"
        if not all(_is_loaded(value, op) for value in list(op.operands)[:2]):
            return "an operand of a product is no tile that is loaded for it"
        # Twice as many warps are chosen where sums leave a thread of fewer no registers.
        found = [
            self._choice(op, warps) for warps in (self.warps or WARPS, self.warps or 2 * WARPS)
        ]
        if any(isinstance(one, str) for one in found):
            return None
        return next(one.reason for one in found if isinstance(one, Unfit))

    def _choice(self, op: ir.OpView, warps: int) -> str | Unfit:
        product = product_of(op, list(op.operands), self.target, warps)
        if product.shape[0] == 1:
            product = replace(product, rank=2)  # no batch: instructions for matrices take it
        return TensorTier().choose(replace(product.part(self.parts), ctas=PAIR))


def _is_carried(op: ir.OpView) -> bool:
    """Whether a loop around the product carries its sum and does nothing else with it."""
    argument, parent = op.operands[2], op.operation.parent
    if parent is None or parent.name != _LOOP or not isinstance(argument.owner, ir.Block):
        return False
    uses = list(op.results[0].uses)
    return len(uses) == 1 and uses[0].owner.name == "scf.yield"


def _is_loaded(value: ir.Value, dot: ir.OpView) -> bool:
    """Whether a tile is loaded beside its product, and only products read it, in the same place."""
    at = list(dot.operands).index(value)
    readers = [(use.owner.name, use.operand_number) for use in value.uses]
    if any(reader != (dot.operation.name, at) for reader in readers):
        return False
    while not isinstance(value.owner, ir.Block):
        owner = value.owner
        if owner.operation.block != dot.operation.block:
            return False
        if owner.name == _LOAD:
            return True
        if owner.name not in _VIEWS or len(list(owner.operands[0].uses)) != 1:
            return False
        value = owner.operands[0]
    return False
