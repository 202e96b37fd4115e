"""Divisions of a fragment whose elements share divisors, as rows that are divided by their sums."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.division import quotients
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of

#: Elements with one divisor that are worth a reciprocal and a test of their own.
_LEAST = 4
#: Elements that are tested together: as many are divided one by one if one of them has to be.
#: Windowed attention of 32 heads, 8192 x 1024 (model, us): B200 183 with 8 of them, 174 with 16 and
#: with 32; H100 294, 288, 302.
_MOST = 16


def divided(cx: Kernel, numerators: ir.Value, divisors: ir.Value) -> ir.Value | None:
    """f32 quotients to nearest even, by reciprocals; None where elements share no divisor."""
    if not isinstance(element_of(numerators.type), ir.F32Type):
        return None
    groups = [group for one in _sharing(divisors) for group in _cut(one)]
    if not groups or any(len(group) < _LEAST for group in groups):
        return None
    b = Builder(cx)
    parts = [_quotients(cx, b.shuffle(numerators, group), b.extract(divisors, group[0]))
             for group in groups]  # fmt: skip
    return _in_order(b, parts, groups)


def _quotients(cx: Kernel, numerators: ir.Value, divisor: ir.Value) -> ir.Value:
    name, text = quotients(count_of(numerators.type))
    return cx.state.helpers.call(cx, name, text, [numerators, divisor], numerators.type).result


def _sharing(divisors: ir.Value) -> list[list[int]]:
    """Elements of a vector that are copies of one value each; none where nothing shows it."""
    if not isinstance(divisors.type, ir.VectorType) or isinstance(divisors.owner, ir.Block):
        return []
    maker, count = divisors.owner, count_of(divisors.type)
    if maker.name == "arith.constant" and ir.DenseElementsAttr(maker.attributes["value"]).is_splat:
        return [list(range(count))]
    if maker.name == "llvm.shufflevector":
        return _equal(list(ir.DenseI32ArrayAttr(maker.attributes["mask"])))
    return _equal(_inserted(divisors))


def _inserted(vector: ir.Value) -> list[ir.Value]:
    """The scalars that a vector is made of one by one (see `Builder.vector`)."""
    found: list[ir.Value] = []
    while not isinstance(vector.owner, ir.Block) and vector.owner.name == "llvm.insertelement":
        found.append(vector.owner.operands[1])
        vector = vector.owner.operands[0]
    return found[::-1]


def _equal(items: Sequence[int] | Sequence[ir.Value]) -> list[list[int]]:
    """Places of equal items together, in order of the first of each."""
    found: dict[int | ir.Value, list[int]] = {}
    for at, item in enumerate(items):
        found.setdefault(item, []).append(at)
    return list(found.values())


def _cut(group: Sequence[int]) -> list[Sequence[int]]:
    return [group[at : at + _MOST] for at in range(0, len(group), _MOST)]


def _in_order(b: Builder, parts: list[ir.Value], groups: list[Sequence[int]]) -> ir.Value:
    """One vector of the elements of `parts`, each where its group says."""
    order = [at for group in groups for at in group]
    picks = [order.index(at) for at in range(len(order))]
    if len({count_of(part.type) for part in parts}) == 1 and len(parts).bit_count() == 1:
        return b.shuffle(b.concat(parts), picks)
    scalars = [b.extract(part, at) for part in parts for at in range(count_of(part.type))]
    return b.vector([scalars[pick] for pick in picks])
