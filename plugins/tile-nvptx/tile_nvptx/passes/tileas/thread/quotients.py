"""Divisions of a fragment, several elements at once: by divisors that they share, as rows that are
divided by their sums, or by their own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.division import quotients, reciprocals
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.groups import LEAST, MOST, call, cut, in_groups
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of

#: Elements with one divisor that are tested together. Windowed attention of 32 heads, 8192 x 1024
#: (model, us): B200 183 with 8 of them, 174 with 16 and with 32; H100 294, 288, 302.
_MOST = 16


def divided(cx: Kernel, numerators: ir.Value, divisors: ir.Value) -> ir.Value | None:
    """f32 quotients to nearest even, by reciprocals; None of few elements."""
    type_ = numerators.type
    if not isinstance(element_of(type_), ir.F32Type) or count_of(type_) < LEAST:
        return None
    groups = [group for one in _sharing(divisors) for group in cut(one, _MOST)]
    if groups and all(len(group) >= LEAST for group in groups):
        return in_groups(cx, groups, partial(_by_one, cx, numerators, divisors))
    groups = cut(range(count_of(type_)), MOST)
    return in_groups(cx, groups, partial(_by_each, cx, numerators, divisors))


def _by_one(cx: Kernel, numerators: ir.Value, divisors: ir.Value, group: Sequence[int]) -> ir.Value:
    """Quotients by the divisor that all of a group have."""
    b = Builder(cx)
    operands = [b.shuffle(numerators, group), b.extract(divisors, group[0])]
    return call(cx, quotients(len(group), shared=True), operands)


def _by_each(
    cx: Kernel, numerators: ir.Value, divisors: ir.Value, group: Sequence[int]
) -> ir.Value:
    """Quotients by divisors of their own."""
    b = Builder(cx)
    held = b.shuffle(divisors, group)
    if _is_one(numerators):
        return call(cx, reciprocals(len(group)), [held])
    return call(cx, quotients(len(group), shared=False), [b.shuffle(numerators, group), held])


def _is_one(vector: ir.Value) -> bool:
    """Whether all its elements are known to be 1."""
    if isinstance(vector.owner, ir.Block) or vector.owner.name != "arith.constant":
        return False
    value = ir.DenseElementsAttr(vector.owner.attributes["value"])
    return value.is_splat and ir.FloatAttr(value.get_splat_value()).value == 1


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
