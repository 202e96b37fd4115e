"""Layouts with numbers known at run time only: `?` and `?{div=8}`.

What the algebra says of them has to hold for every layout that they may become: random static
layouts are compared with themselves, some leaves made unknown.
"""

from collections.abc import Callable

import numpy as np
import pytest
from tile_cute import int_tuple as it
from tile_cute.errors import LayoutError
from tile_cute.int_tuple import Dynamic
from tile_cute.layout import Layout, identity_layout, ordered_layout
from tile_cute.layout_algebra import (
    coalesce,
    complement,
    composition,
    equivalent,
    filter_zeros,
    group_modes,
    recast,
    right_inverse,
    select,
    slice_layout,
)
from tile_cute.text import parse_int_tuple, parse_layout
from tile_cute.tiling import flat_divide, local_tile, logical_divide, zipped_divide

SEEDS = range(60)


def hidden(rng: np.random.Generator, value: it.IntTuple) -> it.IntTuple:
    """Some leaves made unknown, with a divisor that the number really has."""

    def leaf(number: int) -> it.IntTuple:
        if rng.random() < 0.5:
            return number
        divisors = [d for d in (1, 2, 4, 8, 16) if number % d == 0]
        return Dynamic(int(rng.choice(divisors)))

    return it.transform(leaf, value)


def covers(general: it.IntTuple, actual: it.IntTuple) -> bool:
    """Whether what is said of a tuple holds for this one."""
    if it.is_tuple(general) or it.is_tuple(actual):
        return (
            it.is_tuple(general)
            and it.is_tuple(actual)
            and len(general) == len(actual)
            and all(map(covers, general, actual))
        )
    if isinstance(general, Dynamic):
        return isinstance(actual, int) and actual % general.divby == 0
    return general == actual


def random_layout(rng: np.random.Generator) -> Layout:
    def tree(depth: int) -> it.IntTuple:
        if depth and rng.random() < 0.4:
            return tuple(tree(depth - 1) for _ in range(int(rng.integers(1, 3))))
        return int(rng.choice([1, 2, 3, 4, 8, 16]))

    shape = tuple(tree(1) for _ in range(int(rng.integers(1, 4))))
    return Layout(shape, it.transform(lambda _: int(rng.choice([0, 1, 2, 8, 24, 64])), shape))


def agrees(general: Layout, actual: Layout) -> None:
    """Strides of extents that are 1 do not matter."""
    assert covers(general.shape, actual.shape), (general, actual)
    sizes, steps = it.flatten(actual.shape), it.flatten(actual.stride)
    for said, extent, step in zip(it.flatten(general.stride), sizes, steps, strict=True):
        assert extent == 1 or covers(said, step), (general, actual)


TREES: dict[str, Callable[[Layout], Layout]] = {
    "compact": lambda l: Layout(l.shape),
    "ordered": lambda l: ordered_layout(l.shape, tuple(range(len(l), 0, -1))),
    "grouped": lambda l: group_modes(l, 0, len(l)),
    "selected": lambda l: select(l, list(range(len(l)))[::-1]),
    "sliced": lambda l: slice_layout(l, (None, *[0] * (len(l) - 1)))[0],
    "composed with a mode": lambda l: composition(l[0], Layout(1, 0)),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_said_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    actual = random_layout(rng)
    general = Layout(hidden(rng, actual.shape), hidden(rng, actual.stride))
    for function in TREES.values():
        agrees(function(general), function(actual))
    assert covers(general.extent, actual.size)
    point = it.transform(lambda extent: int(rng.integers(extent)), actual.shape)
    assert covers(general(point), actual(point))
    assert parse_layout(str(general)) == general


@pytest.mark.parametrize("seed", SEEDS)
def test_divides_by_mode(seed: int) -> None:
    """Extents that the tile divides: the static division has to be one that is covered."""
    rng = np.random.default_rng(seed)
    tile = tuple(int(rng.choice([1, 2, 4, 8])) for _ in range(2))
    shape = tuple(t * int(rng.integers(1, 6)) for t in tile)
    stride = tuple(int(rng.choice([1, 8, 40, 128])) for _ in range(2))
    actual, general = Layout(shape, stride), Layout(hidden(rng, shape), hidden(rng, stride))
    for divide in (logical_divide, zipped_divide, flat_divide):
        agrees(divide(general, tile), divide(actual, tile))
    coordinate = tuple(int(rng.integers(s // t)) for s, t in zip(shape, tile, strict=True))
    agrees(local_tile(general, tile, coordinate)[0], local_tile(actual, tile, coordinate)[0])
    assert covers(local_tile(general, tile, coordinate)[1], local_tile(actual, tile, coordinate)[1])
    unknown = local_tile(general, tile, tuple(Dynamic() for _ in tile))
    assert covers(unknown[0].stride, local_tile(actual, tile, coordinate)[0].stride)


@pytest.mark.parametrize("seed", SEEDS)
def test_coalesced_layouts_are_the_same_function(seed: int) -> None:
    """Modes are merged only where that is right whatever the unknown numbers are.

    Each unknown number is given itself as divisor: products keep it, so that the result can be
    read with the numbers put back.
    """
    rng = np.random.default_rng(seed)
    actual = random_layout(rng)

    def hide(number: int) -> it.IntTuple:
        return Dynamic(number) if number and rng.random() < 0.4 else number

    def reveal(leaf: it.IntTuple) -> it.IntTuple:
        return leaf.divby if isinstance(leaf, Dynamic) else leaf

    general = Layout(*(it.transform(hide, part) for part in (actual.shape, actual.stride)))
    merged = coalesce(general)
    known = Layout(*(it.transform(reveal, part) for part in (merged.shape, merged.stride)))
    assert known.indices() == actual.indices()


def test_examples() -> None:
    tall = parse_layout("(?,?):(1,?{div=8})")
    assert isinstance(tall, Layout)
    assert str(Layout((Dynamic(16), 4))) == "(?{div=16},4):(1,?{div=16})"
    assert str(zipped_divide(tall, (8, 16))) == "((8,16),(?,?)):((1,?{div=8}),(8,?{div=128}))"
    assert str(zipped_divide(parse_layout("(?{div=64},8):(8,1)"), (16,))) == (  # type: ignore[arg-type]
        "((16),(?{div=4},8)):((8),(128,1))"
    )
    assert str(coalesce(parse_layout("(4,?):(1,4)"))) == "?{div=4}:1"  # type: ignore[arg-type]
    assert str(coalesce(parse_layout("(?,4):(1,?)"))) == "(?,4):(1,?)"  # type: ignore[arg-type]
    assert str(filter_zeros(parse_layout("(?,4):(0,?)"))) == "(1,4):(0,?)"  # type: ignore[arg-type]
    assert it.text(it.arithmetic("add", Dynamic(8), 12)) == "?{div=4}"
    assert it.text(it.arithmetic("mod", Dynamic(8), 4)) == "0"
    assert it.text(it.ceil_div((Dynamic(8), 9), (4, 4))) == "(?{div=2},3)"
    assert parse_int_tuple("(?{div=1},(_,?))") == (Dynamic(), (None, Dynamic()))


REFUSED: list[tuple[str, Callable[[Layout], object], str]] = [
    ("(?,4):(1,8)", lambda l: l.size, "size of .* is known at run time only"),
    ("(4,4):(1,?)", lambda l: l.cosize, "this needs a static layout"),
    ("(4,4):(1,?)", right_inverse, "expects an input with static shape"),
    ("(4,4):(1,?)", complement, "this needs a static layout"),
    ("(4,?):(1,4)", lambda l: recast(l, 8, 16), "this needs a static layout"),
    ("(4,?):(1,4)", lambda l: equivalent(l, l), "equivalent is known at run time only"),
    ("(?,4):(1,?)", lambda l: composition(l, Layout(8, 2)), "where modes end is known at run time"),
    ("(4,4):(1,8)", lambda l: composition(l, Layout((2, Dynamic()), (1, 2))), "run time only"),
    ("(?,4):(1,8)", lambda l: identity_layout(l.shape)(Dynamic()), "cannot unpack"),
]


@pytest.mark.parametrize(("source", "function", "message"), REFUSED)
def test_refused(source: str, function: Callable[[Layout], object], message: str) -> None:
    layout = parse_layout(source)
    assert isinstance(layout, Layout)
    with pytest.raises(LayoutError, match=message):
        function(layout)


@pytest.mark.parametrize("source", ["(?{div=0}):(1)", "?{div}:1", "?{div=-4}:1", "(4,8):(1@?,1)"])
def test_bad_text(source: str) -> None:
    with pytest.raises(LayoutError):
        parse_layout(source)
