"""Accumulators of products by tcgen05: which a loop only adds to, and whether all fit at once."""

from __future__ import annotations

from collections.abc import Iterator

from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.analysis.constants import is_zero
from tile_tileas.dialect.tensor import UMMA
from tile_tileas.dot_plan import atom_name, family_of, tensor_plan_of
from tile_tileas.mma.families import TENSOR as FAMILY
from tile_tileas.mma.tensor import ctas_of

_DOT, _FOR, _YIELD = "nv_tileas.dot", "scf.for", "scf.yield"
#: Operands of a product without block scales.
_PLAIN = 3


def tensor_products(op: ir.Operation | ir.OpView) -> Iterator[ir.OpView]:
    """Products inside of `op` that tcgen05 makes, in program order."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == _DOT and family_of(inner) == FAMILY:
                    yield inner
                yield from tensor_products(inner)


def added_to(op: ir.OpView) -> ir.OpView | None:
    """The product to whose sum `op` adds in the same columns, as nothing else uses it; None if it
    adds to something else.
    """
    owner = op.operands[2].owner
    if isinstance(owner, ir.Block) or owner.operation.name != _DOT:
        return None
    before = owner.opview if isinstance(owner, ir.Operation) else owner
    alike = family_of(before) == FAMILY and atom_name(before) == atom_name(op)
    alone = len(list(before.results[0].uses)) == 1
    here = before.operation.block == op.operation.block
    plain = len(list(op.operands)) == len(list(before.operands)) == _PLAIN
    return before if alike and alone and here and plain else None


def together_with(op: ir.OpView) -> list[ir.OpView]:
    """The products that add to one sum, one after the other, of which `op` is the last."""
    found = [op]
    while (before := added_to(found[0])) is not None:
        found.insert(0, before)
    return found


def sums(op: ir.Operation | ir.OpView) -> list[ir.OpView]:
    """Products inside of `op` that tcgen05 makes, the last one alone of each sum."""
    products = list(tensor_products(op))
    inner = {before.operation for one in products if (before := added_to(one)) is not None}
    return [one for one in products if one.operation not in inner]


def is_of_pair(op: ir.OpView | ir.Operation) -> bool:
    """Whether a pair of blocks makes the product together; then pairs make all of its kernel."""
    return ctas_of(atom_name(op)) > 1


def made_by_pairs(func: ir.Operation) -> bool:
    """Whether pairs of blocks make the products of a kernel that have begun (`umma`).

    Raises:
        CompileError: some do, and others are for one block (PTX ISA, "tcgen05 instructions": all of
            a kernel say the same of that).
    """
    ctas = {ctas_of(atom_name(op)): op for op in _begun(func)}
    if len(ctas) > 1:
        raise error_at(ctas[1], "is for one block, and another product for a pair of blocks")
    return 2 in ctas


def _begun(op: ir.Operation | ir.OpView) -> Iterator[ir.OpView]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name in UMMA:
                    yield inner
                yield from _begun(inner)


def carried_place(op: ir.OpView) -> int | None:
    """Which value of the loop around it a product adds to, with others before it or alone, if
    nothing else touches it: carried in, added to, handed on. None otherwise.
    """
    block = op.operation.block
    argument, parent = together_with(op)[0].operands[2], op.operation.parent
    if parent is None or parent.name != _FOR or not isinstance(argument.owner, ir.Block):
        return None
    if argument.owner != block or len(list(argument.uses)) != 1:
        return None
    place = ir.BlockArgument(argument).arg_number - 1  # behind the induction variable
    uses = list(op.results[0].uses)
    end = block.operations[len(block.operations) - 1]
    if place < 0 or len(uses) != 1 or uses[0].owner.operation != end.operation:
        return None
    return place if uses[0].operand_number == place else None


def begun_with(op: ir.OpView) -> ir.OpView | None:
    """The product before the loop that gives what is carried in place of `op`, if nothing else: its
    sum has the same columns.
    """
    uses, loop = list(op.results[0].uses), op.operation.parent
    if len(uses) != 1 or loop is None or loop.name != _FOR:
        return None
    if uses[0].owner.operation.block != op.operation.block or uses[0].owner.name != _YIELD:
        return None
    value = loop.operands[3 + uses[0].operand_number]
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != _DOT:
        return None
    made = owner.operation.opview
    alike = atom_name(made) == atom_name(op) and is_zero(together_with(made)[0].operands[2])
    return made if alike and len(list(value.uses)) == 1 else None


def columns_together(func: ir.Operation, num_warps: int) -> int:
    """Columns of tensor memory for the accumulators of all products of a kernel, and their block
    scales, side by side.
    """
    products = sums(func)
    begun = [one.operation for one in map(begun_with, products) if one is not None]
    return sum(tensor_plan_of(op, num_warps).taken for op in products if op.operation not in begun)


def fit_together(func: ir.Operation, num_warps: int) -> bool:
    """Whether they all fit: a loop may then leave its own there."""
    return columns_together(func, num_warps) <= COLUMNS
