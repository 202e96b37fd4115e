"""Converting a tile or computing it again: the cheaper of the two, tile by tile."""

from __future__ import annotations

from itertools import product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tile_tileas.remat import Wanted, cheapest


def test_a_chain_is_cut_where_it_is_cheapest() -> None:
    """A wide tile made of a narrow one: the narrow one is converted."""
    assert cheapest([Wanted(100, 4, (1,)), Wanted(50, 4, (2,)), Wanted(60, None)]) == (
        True, False, False,
    )  # fmt: skip


def test_ties_are_conversions() -> None:
    assert cheapest([Wanted(10, 4, (1,)), Wanted(6, None)]) == (False, False)


def test_what_cannot_be_converted_is_computed_again() -> None:
    assert cheapest([Wanted(None, 1000, (1,)), Wanted(None, 0)]) == (True, True)


def test_what_cannot_be_done_is_never_asked_for() -> None:
    """An operand that can neither be converted nor computed forbids to repeat its user."""
    assert cheapest([Wanted(1000, 1, (1,)), Wanted(None, None)]) == (False, False)


@st.composite
def _trees(draw: st.DrawFn) -> list[Wanted]:
    """Each tile but the first is an operand of one earlier tile."""
    count = draw(st.integers(1, 7))
    users = [draw(st.integers(0, at - 1)) for at in range(1, count)]
    operands = [tuple(i + 1 for i, user in enumerate(users) if user == at) for at in range(count)]
    cost = st.integers(0, 20)
    return [
        Wanted(draw(cost), draw(st.one_of(st.none(), cost)), operands[at]) for at in range(count)
    ]


def _cost(tree: list[Wanted], again: tuple[bool, ...], at: int = 0) -> int | None:
    tile = tree[at]
    if not again[at]:
        return tile.convert
    below = [_cost(tree, again, operand) for operand in tile.operands]
    if tile.redo is None or None in below:
        return None
    return tile.redo + sum(cost for cost in below if cost is not None)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_trees())
def test_no_choice_is_cheaper(tree: list[Wanted]) -> None:
    choices = product((False, True), repeat=len(tree))
    costs = [cost for again in choices if (cost := _cost(tree, again)) is not None]
    assert _cost(tree, cheapest(tree)) == min(costs)
