"""Divisions of a fragment, several elements at once: by divisors that they share, as rows that are
divided by their sums, or by their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.division import quotients, reciprocals
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of

#: Elements that are worth a reciprocal and a test of their own.
_LEAST = 4
#: Elements that are tested together: as many are divided one by one if one of them has to be.
#: Windowed attention of 32 heads, 8192 x 1024 (model, us): B200 183 with 8 of them, 174 with 16 and
#: with 32; H100 294, 288, 302.
_MOST = 16
#: The same of those with divisors of their own. Model, us, one by one and with 4 or 8 of them:
#: attention by sigmoids, 16 heads, 4096 x 4096, B200 289, 214, 214; H100 826, 372, 371; norms to
#: e4m3 of 16384 x 4096, B200 63, 43, 43; convolutions through SiLU, B200 393, 410, 417.
_MOST_EACH = 4


def divided(cx: Kernel, numerators: ir.Value, divisors: ir.Value) -> ir.Value | None:
    """f32 quotients to nearest even, by reciprocals; None of few elements."""
    type_ = numerators.type
    if not isinstance(element_of(type_), ir.F32Type) or count_of(type_) < _LEAST:
        return None
    groups = [group for one in _sharing(divisors) for group in _cut(one, _MOST)]
    if groups and all(len(group) >= _LEAST for group in groups):
        return _in_groups(cx, groups, partial(_by_one, cx, numerators, divisors))
    groups = _cut(range(count_of(type_)), _MOST_EACH)
    return _in_groups(cx, groups, partial(_by_each, cx, numerators, divisors))


def _by_one(cx: Kernel, numerators: ir.Value, divisors: ir.Value, group: Sequence[int]) -> ir.Value:
    """Quotients by the divisor that all of a group have."""
    b = Builder(cx)
    operands = [b.shuffle(numerators, group), b.extract(divisors, group[0])]
    return _call(cx, quotients(len(group), shared=True), operands)


def _by_each(
    cx: Kernel, numerators: ir.Value, divisors: ir.Value, group: Sequence[int]
) -> ir.Value:
    """Quotients by divisors of their own."""
    b = Builder(cx)
    held = b.shuffle(divisors, group)
    if _is_one(numerators):
        return _call(cx, reciprocals(len(group)), [held])
    return _call(cx, quotients(len(group), shared=False), [b.shuffle(numerators, group), held])


def _call(cx: Kernel, helper: tuple[str, str], operands: list[ir.Value]) -> ir.Value:
    return cx.state.helpers.call(cx, *helper, operands, operands[0].type).result


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


def _cut(group: Sequence[int], most: int) -> list[Sequence[int]]:
    return [group[at : at + most] for at in range(0, len(group), most)]


def _in_groups(
    cx: Kernel, groups: list[Sequence[int]], made: Callable[[Sequence[int]], ir.Value]
) -> ir.Value:
    """One vector of what is made of each group, elements where the groups say."""
    b = Builder(cx)
    parts = [made(group) for group in groups]
    order = [at for group in groups for at in group]
    picks = [order.index(at) for at in range(len(order))]
    if len({count_of(part.type) for part in parts}) == 1 and len(parts).bit_count() == 1:
        return b.shuffle(b.concat(parts), picks)
    scalars = [b.extract(part, at) for part in parts for at in range(count_of(part.type))]
    return b.vector([scalars[pick] for pick in picks])
