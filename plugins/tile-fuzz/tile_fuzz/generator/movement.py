"""Operations that move elements without computing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_cudatile.ops.constraints import INTS, NUMBER_TILE_I4
from tile_cudatile.tree import Value
from tile_cudatile.types import F4E2M1FN, I8, I32, TF32, Scalar, Tile

from tile_fuzz.generator.guards import ordered
from tile_fuzz.generator.maker import Item, Maker, count, element, tile


def spread(maker: Maker, scalar: Value, shape: Sequence[int]) -> Value:
    """A scalar in every element of a tile."""
    kind = tile(scalar).element
    if not shape:
        return scalar
    one = maker.emit("reshape", [scalar], Tile((1,) * len(shape), kind))
    return maker.emit("broadcast", [one], Tile(tuple(shape), kind))


def move(maker: Maker) -> None:
    """A random movement of a value in scope."""
    movement = maker.rng.choice(MOVEMENTS)
    if not maker.may(movement.__name__.removeprefix("_")):
        return
    item = maker.pick(lambda item: isinstance(item.value.type, Tile) and _fits(item, movement))
    if item is None:
        return
    made = movement(maker, item)
    if made is not None:
        maker.keep(made, item.exact)


def _fits(item: Item, movement: Callable[..., object]) -> bool:
    type_ = tile(item.value)
    if not isinstance(type_.element, Scalar):
        return False
    if movement in (_permute, _extract, _insert, _cat):
        return bool(type_.shape)
    return movement is not _pack or len(type_.shape) == 1


def _even(kind: object, shape: Sequence[int]) -> bool:
    """Whether tiles of a kind can have a shape: four-bit floats come in pairs."""
    return kind != F4E2M1FN or any(extent > 1 for extent in shape)


def _permute(maker: Maker, item: Item) -> Value | None:
    source = tile(item.value)
    if len(source.shape) < 2:
        return None
    order = maker.rng.sample(range(len(source.shape)), len(source.shape))
    shape = tuple(source.shape[axis] for axis in order)
    return maker.emit(
        "permute", [item.value], Tile(shape, source.element), permutation=tuple(order)
    )


def _reshape(maker: Maker, item: Item) -> Value | None:
    """The factors of two dealt anew, with extents of 1 in between."""
    source = tile(item.value)
    same = [s for s in maker.shapes if count(s) == count(source.shape)]
    if same and maker.chance(0.5):
        shape = maker.rng.choice(same)
    else:
        extents = [1] * maker.rng.randint(1, 4)
        for _ in range(count(source.shape).bit_length() - 1):
            extents[maker.rng.randrange(len(extents))] *= 2
        shape = tuple(extents)
    if not _even(source.element, shape):
        return None
    return maker.emit("reshape", [item.value], Tile(shape, source.element))


def _broadcast(maker: Maker, item: Item) -> Value | None:
    """Along an extent of 1, made if there is none."""
    source, value = tile(item.value), item.value
    if 1 not in source.shape:
        at = maker.rng.randint(0, len(source.shape))
        source = Tile((*source.shape[:at], 1, *source.shape[at:]), source.element)
        value = maker.emit("reshape", [value], source)
    room = maker.settings.elements // count(source.shape)
    shape = []
    for extent in source.shape:
        grown = extent
        if extent == 1 and room > 1 and maker.chance(0.8):
            grown = 1 << maker.rng.randint(0, min(room.bit_length() - 1, 5))
            room //= grown
        shape.append(grown)
    return maker.emit("broadcast", [value], Tile(tuple(shape), source.element))


def _cat(maker: Maker, item: Item) -> Value | None:
    source = tile(item.value)
    if 2 * count(source.shape) > maker.settings.elements:
        return None
    dim = maker.rng.randrange(len(source.shape))
    other = item.value if not item.exact else maker.value(source)
    shape = tuple(e * (1 + (axis == dim)) for axis, e in enumerate(source.shape))
    pair = [item.value, other]
    maker.rng.shuffle(pair)
    return maker.emit("cat", pair, Tile(shape, source.element), dim=dim)


def _part(maker: Maker, shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(1 << maker.rng.randint(0, extent.bit_length() - 1) for extent in shape)


def _slices(maker: Maker, whole: Sequence[int], part: Sequence[int]) -> tuple[Value, ...]:
    from tile_fuzz.generator.values import index_below

    return tuple(index_below(maker, w // p, I32) for w, p in zip(whole, part, strict=True))


def _extract(maker: Maker, item: Item) -> Value | None:
    source = tile(item.value)
    part = _part(maker, source.shape)
    if not _even(source.element, part):
        return None
    indices = _slices(maker, source.shape, part)
    return maker.emit("extract", [item.value, indices], Tile(part, source.element))


def _insert(maker: Maker, item: Item) -> Value | None:
    target = tile(item.value)
    part = _part(maker, target.shape)
    if not item.exact or not _even(target.element, part):
        return None
    source = maker.value(Tile(part, target.element))
    indices = _slices(maker, target.shape, part)
    return maker.emit("insert", [source, item.value, indices], target)


def _pack(maker: Maker, item: Item) -> Value | None:
    """To bytes, and perhaps back in another format."""
    source = tile(item.value)
    kind = element(item.value)
    size = count(source.shape) * (32 if kind == TF32 else kind.width)
    if kind.width == 8 or size % 8 or not item.exact:
        return None
    packed = maker.emit("pack", [ordered(maker, item.value)], Tile((size // 8,), I8))
    if maker.chance(0.5):
        return packed
    maker.keep(packed)
    assert NUMBER_TILE_I4.elements is not None
    others = [
        e for e in sorted(NUMBER_TILE_I4.elements, key=lambda e: e.name)
        if e.width != 8 and e != TF32 and size % e.width == 0 and _even(e, (size // e.width,))
    ]  # fmt: skip
    target = maker.element(others)
    return maker.emit("unpack", [packed], Tile((size // target.width,), target))


def iota(maker: Maker) -> None:
    """0, 1, 2, ..."""
    kind = maker.element(INTS)
    extent = 1 << maker.rng.randint(0, min(kind.width, maker.settings.elements.bit_length() - 1))
    maker.keep(maker.emit("iota", [], Tile((extent,), kind)))


MOVEMENTS: tuple[Callable[[Maker, Item], Value | None], ...] = (
    _permute, _reshape, _broadcast, _cat, _extract, _insert, _pack,
)  # fmt: skip
