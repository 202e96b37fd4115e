"""Forms: what is the same, what is not, and how far on something is."""

from __future__ import annotations

import itertools
import random

import pytest
from tile_cute.linear import LinearLayout, blocked
from tile_tileas.analysis.forms import Form, Forms, TooDeepError
from tile_tileas.reuse import Shifted, loaded, sources

BITS = 8


class Numbers:
    """Forms beside what they are for coordinates and symbols."""

    def __init__(self, seed: int) -> None:
        self.forms, self._random = Forms(), random.Random(seed)

    def made(self, depth: int) -> tuple[Form, str]:
        """A form, and the same in Python."""
        choose = self._random
        kind = choose.choice(("axis", "symbol", "number") if not depth else ("add", "times", "f"))
        if kind == "axis":
            axis = choose.randrange(2)
            return self.forms.coordinate(axis, BITS), f"c{axis}"
        if kind == "symbol":
            name = choose.choice("st")
            return self.forms.applied(name, [], BITS), name
        if kind == "number":
            number = choose.randrange(-300, 300)
            return self.forms.constant(number, BITS), f"{number}"
        left, a = self.made(depth - 1)
        if kind == "f":
            return self.forms.applied("f", [left], BITS), f"f({a})"
        right, b = self.made(depth - 1)
        if kind == "times":
            return self.forms.multiply(left, right), f"({a}) * ({b})"
        times = choose.choice((1, -1, 3))
        return self.forms.add(left, right, times), f"({a}) + {times} * ({b})"


def value(text: str, c0: int, c1: int) -> int:
    """f is a function that nothing is known of."""
    names = {"c0": c0, "c1": c1, "s": 77, "t": 201, "f": lambda x: (x % 256) ** 2 * 31 % 251}
    return eval(text, names) % (1 << BITS)


@pytest.mark.parametrize("seed", range(40))
def test_equal_forms_have_equal_values(seed: int) -> None:
    """And moved ones the values of what stands where they are moved to."""
    numbers = Numbers(seed)
    found: dict[Form, str] = {}
    for _ in range(30):
        form, text = numbers.made(3)
        moved = numbers.forms.moved(form, ((0, (0, 2)), (1, (None, 5))))
        places = list(itertools.product(range(3), range(3)))
        one = found.setdefault(form, text)
        assert [value(one, *p) for p in places] == [value(text, *p) for p in places]
        other = found.setdefault(moved, f"(lambda c0, c1: {text})(c0 + 2, 5)")
        wanted = [value(text, a + 2, 5) for a, _ in places]
        assert [value(other, *p) for p in places] == wanted


def test_sums_are_the_same_in_any_order_and_wrap_around() -> None:
    forms = Forms()
    c, s = forms.coordinate(0, BITS), forms.applied("s", [], BITS)
    assert forms.add(forms.add(c, s), c, -1) == s
    assert forms.add(c, s, 256) == c
    assert forms.multiply(forms.add(c, s), forms.add(s, c)) == forms.add(
        forms.add(forms.multiply(c, c), forms.multiply(s, s)), forms.multiply(c, s), 2
    )


def address(forms: Forms, d0: int, d1: int, row: int = 1) -> list[Form]:
    """x + 2 * (stride * sext(c0 + i + d0) + sext(row * c1 + j + d1)), and a mask of the latter."""
    i, j = (forms.applied(name, [], 32) for name in "ij")
    first = forms.add(forms.add(forms.coordinate(0, 32), i), forms.constant(d0, 32))
    second = forms.add(forms.add(j, forms.coordinate(1, 32), row), forms.constant(d1, 32))
    wide = [forms.applied("sext", [each], 64) for each in (first, second)]
    stride, x = (forms.applied(name, [], 64) for name in ("stride", "x"))
    offset = forms.add(forms.multiply(wide[0], stride), wide[1])
    return [forms.add(x, offset, 2), forms.applied("small", [second], 1)]


def key(forms: Forms, of: list[Form]) -> tuple[tuple[int, ...], tuple[Form, ...]]:
    starts = tuple(forms.start(of, axis) for axis in (0, 1))
    back = tuple((axis, (axis, -by)) for axis, by in enumerate(starts))
    return starts, tuple(forms.moved(form, back) for form in of)


def test_how_far_on() -> None:
    forms = Forms()
    at, wanted = key(forms, address(forms, 0, 0))
    for d0, d1 in ((0, 1), (-3, 2), (7, -1)):
        start, found = key(forms, address(forms, d0, d1))
        assert found == wanted
        assert (start[0] - at[0], start[1] - at[1]) == (d0, d1)


def test_how_far_on_where_places_are_counted_by_two() -> None:
    """What lies between has other elements."""
    forms = Forms()
    found = [key(forms, address(forms, 0, d, row=2)) for d in range(-2, 4)]
    assert len({each for _, each in found}) == 2
    assert [start[1] for start, _ in found] == [-1, -1, 0, 0, 1, 1]


def test_of_a_bound_that_moves_along_nothing_is_shared() -> None:
    forms = Forms()
    bounds = [forms.applied("bound", [forms.constant(d, 32)], 1) for d in (0, 1)]
    keys = [key(forms, [*address(forms, 0, d), bounds[d]])[1] for d in (0, 1)]
    assert keys[0] != keys[1]


def nested(forms: Forms, form: Form, times: int) -> Form:
    for _ in range(times):
        form = forms.applied("f", [form], 32)
    return form


def test_forms_that_grow_without_end() -> None:
    """Sums and products of many terms are told apart still; functions of functions are given up."""
    forms = Forms()
    total = forms.coordinate(0, 32)
    for number in range(60):
        total = forms.add(total, forms.applied(number, [], 32))
    assert forms.add(total, total, -1) != total
    square = forms.coordinate(0, 32)
    for _ in range(20):
        square = forms.multiply(square, square)
    with pytest.raises(TooDeepError):
        nested(forms, total, 100)


def test_who_loads_what() -> None:
    layout = blocked((16, 32), (2, 4), (4, 8), (2, 1), (1, 0))
    around = [Shifted((0, d), 1, 4 if d == 0 else 1) for d in (-1, 0, 1)]
    assert loaded(layout, around) == [2, 2, 2]
    below = [Shifted((d, 0), 1, 4) for d in (0, 1)]
    assert loaded(layout, below) == [2, 1]
    first, second = sources(layout, below)
    assert set(first) == {None}
    # Rows 1 of the first are rows 0 of the second.
    assert second[:4] == [(0, register) for register in range(4, 8)]
    assert second[4:8] == [None] * 4


def test_threads_whose_elements_differ_load_their_own() -> None:
    """With swizzled registers, what is one further on is another place in each thread."""
    swizzled = LinearLayout(
        {
            "register": ((1,), (2,)),
            "lane": ((5,), (10,), (4,), (8,), (16,)),
            "warp": ((32,), (64,)),
        },
        (128,),
    )
    loads = [Shifted((0,), 0, 1), Shifted((1,), 0, 1)]
    assert loaded(swizzled, loads) == [4, 4]
