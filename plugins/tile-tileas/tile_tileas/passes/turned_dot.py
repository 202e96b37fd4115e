"""Products that are made turned, B^T A^T for A B, where only those have an instruction: B that lies
along N is then an A along M, and few rows are few columns.

For instructions that find matrices in shared memory, only sums that a loop carries, and nobody else
looks at: those are turned once, behind the loop (`tileas-canonicalize`). Fragments of warps are
turned where they lie: a row of the product is a column of what `mma.sync` makes, of which it makes
8, and 16 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_tileas.analysis.axis import shape_of
from tile_tileas.mma.families import FMA, TENSOR, WARP, WARPGROUP
from tile_tileas.mma.tier import Choice, Product, Tier, choose
from tile_tileas.passes.ruleset import DotState

#: Tiers that multiply matrices, and whose operands are found in shared memory.
_OF_MATRICES = (TENSOR, WARPGROUP)
_SIGNS = ("signedness_a", "signedness_b")

Make = Callable[[list[ir.Value], dict[str, ir.Attribute]], ir.Value]


def turned_choice(op: ir.OpView, product: Product, tiers: Sequence[Tier]) -> Choice | None:
    """The instruction for the turned product, if it is one for matrices and `product` has none."""
    turned = transposed(op, product)
    matrices = [tier for tier in tiers if tier.family in _OF_MATRICES]
    if turned is None or not matrices or choose(product, matrices) is not None:
        return None
    return choose(turned, matrices)


def turned_in_fragments(product: Product, tiers: Sequence[Tier]) -> Choice | None:
    """The instruction of warps for the turned product, if only that one has any."""
    found = choose(product, tiers)
    if found is None or found.atom != FMA:
        return None
    choice = choose(_turned(product), [tier for tier in tiers if tier.family == WARP])
    return None if choice is None else replace(choice, refused=found.refused[:-1])


def transposed(op: ir.OpView, product: Product) -> Product | None:
    """B^T A^T, if `op`, whose `product` is A B, may be made so: where operands lie is known, and
    nobody but a loop has its sum.
    """
    order_a, order_b = product.orders
    if product.rank != 2 or not order_a or not order_b or not _is_sum_of_loop(op):
        return None
    return _turned(product)


def _turned(product: Product) -> Product:
    a, b, c = product.types
    batch, m, n, k = product.shape
    order_a, order_b = product.orders
    return replace(product, types=(b, a, c), shape=(batch, n, m, k), orders=(order_b, order_a))


def turned_product(
    op: ir.OpView, operands: list[ir.Value], cx: Conversion[DotState], make: Make
) -> ir.Value:
    """The product that `make` makes of turned operands, turned back."""
    a, b, c = (turned(value, cx) for value in operands)
    attributes = {name: op.attributes[name] for name in op.attributes}
    if _SIGNS[0] in attributes:
        first, second = (attributes[name] for name in _SIGNS)
        attributes |= {_SIGNS[0]: second, _SIGNS[1]: first}
    return turned(make([b, a, c], attributes), cx)


def turned(value: ir.Value, cx: Conversion[DotState]) -> ir.Value:
    """A matrix transposed, or each of several."""
    *batch, rows, columns = shape_of(value)
    type_ = ir.RankedTensorType.get([*batch, columns, rows], value.type.element_type)
    last = len(batch)
    axes = [*range(last), last + 1, last]
    order = {"permutation": ir.DenseI32ArrayAttr.get(axes)}
    return cx.create("nv_tileaa.permute", [value], [type_], order).result


def _is_sum_of_loop(op: ir.OpView) -> bool:
    """Whether the loop around carries the accumulator, which the product alone uses there."""
    block = op.operation.block
    uses, total = list(op.results[0].uses), op.operands[2]
    if len(uses) != 1 or len(list(total.uses)) != 1 or not isinstance(total.owner, ir.Block):
        return False
    end, loop = uses[0].owner, block.owner
    inside = total.owner == block and end.operation.block == block
    if not inside or end.operation.name != "scf.yield" or loop.operation.name != "scf.for":
        return False
    return ir.BlockArgument(total).arg_number == uses[0].operand_number + 1
