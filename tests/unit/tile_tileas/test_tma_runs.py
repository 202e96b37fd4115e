"""Tensor maps whose boxes a launch may find to be one run of memory: rows of 16 bytes of tiles that
are copied from memory to memory, whatever their arrays look like.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import tile_cudatile
from support.programs import I32, Program
from tile_cudatile import types as t
from tile_cudatile.attrs import Bounded, DivBy
from tile_cudatile.evaluator.formats import dtype_of
from tile_cudatile.tree import Value
from tile_cute.map_recipe import MapRecipe, recipes_in
from tile_sim import Module, SimError

import tile_core

WEAK = {"memory_ordering_semantics": "weak"}
ROW_BYTES, STEPS = 16, 3
ELEMENTS = [t.I8, t.F16, t.F32]
SCHEDULES = ("late", "early", "random")
Extents = tuple[int, int, int]


def tile_of(element: t.Scalar) -> Extents:
    return 8, 32, ROW_BYTES * 8 // element.width


def _view(p: Program, element: t.Scalar, *, single: bool = False) -> Value:
    """Tiles of an array of any extents and strides, whose rows lie without gaps. `single`: with one
    more axis, of extent 1.
    """
    base = p.argument(t.Tile((), t.Pointer(element)))
    base = p.emit("assume", [base], base.type, predicate=DivBy(16))
    numbers = [p.argument(I32) for _ in range(5)]
    numbers = [p.emit("assume", [one], I32, predicate=Bounded(0, None)) for one in numbers]
    row = DivBy(tile_of(element)[2])
    steps = [p.emit("assume", [one], I32, predicate=row) for one in numbers[3:]]
    more = (1,) if single else ()
    tensor = t.TensorView(element, (*more, None, None, None), (*more, None, None, 1))
    view = p.emit("make_tensor_view", [base, tuple(numbers[:3]), tuple(steps)], tensor)
    axes = tuple(range(3 + single))
    kind = t.PartitionView((*more, *tile_of(element)), tensor, axes, "zero")
    return p.emit("make_partition_view", [view], kind)


@cache
def ptx(
    element: t.Scalar,
    target: str,
    *,
    maps: str = "host",
    inner: bool = False,
    single: bool = False,
) -> str:
    """X's tiles (i, 0, 0) to Y's, in a loop; `inner`: tiles (i, 0, j), j an argument; `single`:
    tiles (j, i, 0, 0) of X, which has one along the first axis.
    """
    p = Program()
    source, other = _view(p, element, single=single), _view(p, element)
    count, zero, one = p.argument(I32), p.constant(I32, 0), p.constant(I32, 1)
    number = p.argument(I32) if inner or single else zero
    before = p.emit("make_token", [], t.TOKEN)

    def body(i: Value, _: Value) -> list[Value]:
        place, kind = (i, zero, number if inner else zero), t.Tile(tile_of(element), element)
        if single:
            first = t.Tile((1, *tile_of(element)), element)
            there = (number, i, zero, zero)
            tile = p.emit("load_view_tko", [source, there, None], first, t.TOKEN, **WEAK)
            tile = p.emit("reshape", [tile], kind)
        else:
            tile = p.emit("load_view_tko", [source, place, None], kind, t.TOKEN, **WEAK)
        return [p.emit("store_view_tko", [tile, other, place, None], t.TOKEN, **WEAK)]

    region = p.region([I32, t.TOKEN], body, "continue")
    p.emit("for", [zero, count, one, (before,)], t.TOKEN, regions=(region,))
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(p.module())), target, opt_level=3, emit="ptx", keep_stages=False,
        start_at="convert-cudatile-to-tileaa", options={"tma-descriptors": maps},
    )  # fmt: skip
    return str(made.stage("ptx"))


def recipes(text: str) -> list[MapRecipe]:
    return recipes_in(text, "// ").get("k", [])


def _flat(array: np.ndarray, extents: Extents) -> list[Any]:
    """Arguments: the beginning of an array, as one of these extents."""
    steps = (stride // array.itemsize for stride in array.strides[:2])
    return [array, *map(np.int32, extents), *map(np.int32, steps)]


def case(name: str, row: int) -> tuple[Extents, Extents]:
    """Extents of an array, and of what it is a part of."""
    one_run = (21, 32, row)
    return {
        "one run": (one_run, one_run),
        "gaps between rows": (one_run, (21, 32, 2 * row)),
        "gaps between tiles": (one_run, (21, 48, row)),
        "more rows": ((21, 48, row), (21, 48, row)),
        "fewer rows": ((21, 24, row), (21, 24, row)),
        "longer rows": ((21, 32, 2 * row), (21, 32, 2 * row)),
        "shorter rows": ((21, 32, row // 2), one_run),
        "no tiles": ((0, 32, row), one_run),
        "no rows": ((21, 0, row), one_run),
    }[name]


CASES = (
    "one run", "gaps between rows", "gaps between tiles", "more rows", "fewer rows",
    "longer rows", "shorter rows", "no tiles", "no rows",
)  # fmt: skip


@pytest.mark.parametrize("target", ["sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("element", ELEMENTS, ids=lambda element: element.name)
def test_tiles_arrive_whatever_the_array_is(name: str, target: str, element: t.Scalar) -> None:
    """Of X and of Y, while the other one is one run."""
    text, row = ptx(element, target), tile_of(element)[2]
    assert [recipe.joined for recipe in recipes(text)] == [2, 2]
    draw = np.random.default_rng(0)
    sides = [case(name, row), case("one run", row)]
    for schedule, (source, goal) in zip(SCHEDULES, (sides, sides[::-1], sides), strict=True):
        x, y = (
            draw.integers(-100, 100, whole).astype(dtype_of(element)) for _, whole in (source, goal)
        )
        wanted = y.copy()
        _copied(_part(x, source[0]), _part(wanted, goal[0]), tile_of(element))
        arguments = [*_flat(x, source[0]), *_flat(y, goal[0]), np.int32(STEPS)]
        report = Module(text).launch(
            "k", (1, 1, 1), None, arguments, check=True, schedule=schedule
        )  # fmt: skip
        assert not report.findings, "\n".join(map(str, report.findings))
        np.testing.assert_array_equal(y, wanted)


def _part(array: np.ndarray, extents: Extents) -> np.ndarray:
    return array[tuple(map(slice, extents))]


def _copied(x: np.ndarray, y: np.ndarray, tile: Extents) -> None:
    """Tiles (i, 0, 0) of X to Y; what is outside of X is zero, and outside of Y is left out."""
    for first in range(0, STEPS * tile[0], tile[0]):
        found = np.zeros(tile, x.dtype)
        part = _part(x[first:], tile)
        _part(found, part.shape)[...] = part
        goal = _part(y[first:], tile)
        goal[...] = _part(found, goal.shape)


def test_a_launch_that_takes_any_array_for_one_run_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the cases above are for: those whose tiles are no runs."""
    monkeypatch.setattr(MapRecipe, "_is_one_run", lambda self, dims, strides: self.joined > 0)
    wrong: list[str] = []
    for name in CASES:
        try:
            test_tiles_arrive_whatever_the_array_is(name, "sm_90", t.I8)
        except (AssertionError, SimError):
            wrong.append(name)
    assert wrong == ["gaps between rows", "fewer rows", "longer rows", "shorter rows"]


@pytest.mark.parametrize("number", [0, 1])
def test_tiles_that_are_outside_are_zero_whichever_rows_a_map_has(number: int) -> None:
    """Maps leave out an axis of extent 1: what lies beyond it begins before all rows."""
    text = ptx(t.I8, "sm_90", single=True)
    assert recipes(text)[0].joined == 2
    shape, _ = case("one run", ROW_BYTES)
    x = np.random.default_rng(0).integers(1, 100, shape).astype(np.int8)
    y, wanted = np.ones(shape, np.int8), np.ones(shape, np.int8)
    _copied(x * np.int8(number == 0), wanted, tile_of(t.I8))
    arguments = [*_flat(x, shape), *_flat(y, shape), np.int32(STEPS), np.int32(number)]
    Module(text).launch("k", (1, 1, 1), None, arguments, check=True)
    np.testing.assert_array_equal(y, wanted)


def test_a_tile_that_may_be_further_inside_keeps_its_rows() -> None:
    found = recipes(ptx(t.F16, "sm_90", inner=True))
    assert found
    assert not any(recipe.joined for recipe in found)


def test_maps_of_the_kernel_keep_their_rows() -> None:
    text = ptx(t.F16, "sm_90", maps="device")
    x = np.arange(8 * 256, dtype=np.float16).reshape(8, 32, 8)
    y = np.zeros_like(x)
    arguments = [*_flat(x, x.shape), *_flat(y, y.shape), np.int32(1)]
    Module(text).launch("k", (1, 1, 1), None, arguments, check=True)
    np.testing.assert_array_equal(x, y)
