"""Reductions, scans and matrix products."""

from __future__ import annotations

import numpy as np
from tile_cudatile.attrs import Attr, Float, Integer
from tile_cudatile.evaluator.formats import dtype_of, encode
from tile_cudatile.rules.arith import _PRODUCTS
from tile_cudatile.tree import Value
from tile_cudatile.types import F4E2M1FN, F8E4M3FN, F8E5M2, F8E8M0FNU, F32, I8, I32, Scalar, Tile

from tile_fuzz.generator.laws import LAWS, draw
from tile_fuzz.generator.maker import Maker, count, element
from tile_fuzz.generator.values import whole


def aggregate(maker: Maker) -> None:
    """A reduction or scan along a dimension of a value in scope."""
    item = maker.pick(
        lambda item: (
            item.exact
            and isinstance(item.value.type, Tile)
            and bool(item.value.type.shape)
            and item.value.type.element in LAWS
        )
    )
    if item is None:
        return
    source, kind = item.value, element(item.value)
    name = maker.rng.choice(("reduce", "scan"))
    type_ = source.type
    assert isinstance(type_, Tile)
    law = draw(maker, kind, commutative=name == "reduce", extent=max(type_.shape))
    types = [Tile(type_.shape, k) for k in law.kinds(kind)]
    operands = [whole(maker, type_) if law.small else source]
    for other in types[1:]:
        operands.append(whole(maker, other) if law.small else maker.value(other))
    dim = maker.rng.randrange(len(type_.shape))

    def build(*pairs: Value) -> tuple[str, list[Value]]:
        before, later = (0, 1) if name == "scan" else (1, 0)
        return "yield", law.combine(maker, pairs[before::2], pairs[later::2])

    body = maker.region([Tile((), k) for k in law.kinds(kind) for _ in range(2)], build)
    attrs: dict[str, Attr] = {"dim": dim}
    pairs = zip(law.kinds(kind), law.identities, strict=True)
    attrs["identities"] = tuple(number(k, value) for k, value in pairs)
    if name == "scan":
        attrs["reverse"] = maker.chance(0.3)
        results = types
    else:
        shape = type_.shape[:dim] + type_.shape[dim + 1 :]
        results = [Tile(shape, k) for k in law.kinds(kind)]
    maker.emit(name, [tuple(operands)], *results, regions=(body,), **attrs)
    for value in maker.ops[-1].results:
        maker.keep(value)


def number(kind: Scalar, value: float) -> Float | Integer:
    """A number as an identity."""
    if not kind.is_float:
        return Integer(kind, int(value) & ((1 << kind.width) - 1))
    held = np.asarray(value).astype(dtype_of(kind)).reshape(1)
    return Float(kind, int.from_bytes(encode(held, kind).tobytes(), "little"))


# --- matrix products ------------------------------------------------------------------------------


def product(maker: Maker) -> None:
    """A matrix product of small whole numbers, whose sum is exact."""
    batch = (1 << maker.rng.randint(0, 2),) if maker.chance(0.25) else ()
    m, n, k = (1 << maker.rng.randint(1, 5) for _ in range(3))
    while count((*batch, max(m, k), max(n, k))) > maker.settings.elements:
        if m == n == k == 1:
            return
        m, n, k = (max(extent // 2, 1) for extent in (m, n, k))
    shapes = (*batch, m, k), (*batch, k, n), (*batch, m, n)
    ways = {"mmaf": _floats, "mmai": _integers, "mmaf_scaled": _scaled}
    name = maker.rng.choice(("mmaf", "mmaf", "mmai", "mmaf_scaled", "mmaf_scaled"))
    if maker.may(name):
        ways[name](maker, *shapes)


def _floats(maker: Maker, lhs: tuple[int, ...], rhs: tuple[int, ...], acc: tuple[int, ...]) -> None:
    allowed = [s for s, targets in _PRODUCTS.items() if any(maker.may(t.name) for t in targets)]
    source = maker.element(allowed)
    target = maker.element(_PRODUCTS[source])
    operands = [whole(maker, Tile(s, source)) for s in (lhs, rhs)]
    result = Tile(acc, target)
    flags = {"fast_acc": True} if maker.chance(0.15) else {}
    maker.keep(maker.emit("mmaf", [*operands, whole(maker, result)], result, **flags))


def _integers(
    maker: Maker, lhs: tuple[int, ...], rhs: tuple[int, ...], acc: tuple[int, ...]
) -> None:
    """Bytes of any value; sums wrap."""
    result = Tile(acc, I32)
    operands = [maker.value(Tile(s, I8)) for s in (lhs, rhs)]
    signs = [maker.rng.choice(("signed", "unsigned")) for _ in range(2)]
    made = maker.emit(
        "mmai", [*operands, maker.value(result)], result,
        signedness_lhs=signs[0], signedness_rhs=signs[1],
    )  # fmt: skip
    maker.keep(made)


def _scaled(maker: Maker, lhs: tuple[int, ...], rhs: tuple[int, ...], acc: tuple[int, ...]) -> None:
    """Blocks of 16 or 32 elements along K have a scale, a power of two."""
    source = maker.rng.choice((F8E4M3FN, F8E5M2, F4E2M1FN))
    block = 32 if source != F4E2M1FN else maker.rng.choice((16, 32))
    k = block * maker.rng.choice((1, 2))
    lhs, rhs = (*lhs[:-1], k), (*rhs[:-2], k, rhs[-1])
    if max(count(lhs), count(rhs)) > maker.settings.elements:
        return
    scales = Tile((*lhs[:-1], k // block), F8E8M0FNU), Tile((*rhs[:-2], k // block, rhs[-1]),
                                                            F8E8M0FNU)  # fmt: skip
    result = Tile(acc, F32)
    operands = [whole(maker, Tile(s, source)) for s in (lhs, rhs)]
    operands += [whole(maker, result), *(whole(maker, s) for s in scales)]
    maker.keep(maker.emit("mmaf_scaled", operands, result))
