"""Stores of one block of a cluster that another one loads: the meetings between them are needed."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
import tile_sim
from support.removals import SCHEDULES, is_caught
from support.tiles import Kernel, registry, tile
from tile_tileas.cluster import cutting

import tile_core
from tile_core.insertion import Before
from tile_core.mlir import ir

_LEAST_STEPS = 5_000  # of a kernel that ends; mutants may wait for ever
_BIG, _ROW, _CORNER = (64, 64), (1, 64), (1, 1)


def _stored(kernel: Kernel, number: int, value: str, shape: tuple[int, int]) -> tuple[str, str]:
    """A store behind the one before; the view that it goes to."""
    view, kind = kernel.view(shape, "f32")
    after, of = (f", %t{number - 1}", ", !nv_tileaa.mem_token") if number else ("", "")
    kernel.op(
        f'%t{number} = "nv_tileaa.tiled_store"({view}, {value}, %zero, %zero{after}) '
        f'{{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, {int(number > 0)}>}} '
        f": ({kind}, {tile(shape, 'f32')}, i32, i32{of}) -> !nv_tileaa.mem_token"
    )
    return view, kind


def _kernel() -> str:
    """out = a b + row + corner of 64 x 64, over four blocks: the row is stored, which is cut the
    second time alone, and twice the corner, which is never cut; the last one is read back.
    """
    kernel = Kernel()
    for name, shape, type_ in (
        ("%a", (64, 32), "f16"), ("%b", (32, 64), "f16"), ("%row", _ROW, "f32"),
        ("%corner", _CORNER, "f32"),
    ):  # fmt: skip
        kernel.load(name, shape, type_)
    sums, row, corner = (tile(shape, "f32") for shape in (_BIG, _ROW, _CORNER))
    kernel.op(f"%none = arith.constant dense<0.0> : {sums}")
    kernel.op(
        '%c = "nv_tileaa.dot"(%a, %b, %none) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : '
        f"({tile((64, 32), 'f16')}, {tile((32, 64), 'f16')}, {sums}) -> {sums}"
    )
    for number, (value, shape) in enumerate((("%row", _ROW), ("%corner", _CORNER))):
        _stored(kernel, number, value, shape)
    view, kind = _stored(kernel, 2, "%corner", _CORNER)
    kernel.op(
        f'%back, %read = "nv_tileaa.tiled_load"({view}, %zero, %zero, %t2) '
        f'{{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>}} : '
        f"({kind}, i32, i32, !nv_tileaa.mem_token) -> ({corner}, !nv_tileaa.mem_token)"
    )
    for name, small, type_ in (("%rows", "%row", row), ("%corners", "%back", corner)):
        kernel.op(f'{name} = "nv_tileaa.broadcast"({small}) : ({type_}) -> {sums}')
    for name, left, right in (("%most", "%c", "%rows"), ("%all", "%most", "%corners")):
        kernel.op(f'{name} = "nv_tileaa.addf"({left}, {right}) : ({sums}, {sums}) -> {sums}')
    kernel.store("%all", _BIG, "f32")
    return kernel.text().replace("tt.num_ctas = 1", "tt.num_ctas = 4")


def _ptx() -> str:
    made = tile_core.compile(
        _kernel(), "sm_120", opt_level=2, start_at="tileas-plan-cta", emit="ptx",
        registry=registry(), keep_stages=False,
    )  # fmt: skip
    return str(made.stage("ptx"))


ptx = cache(_ptx)


def _findings(text: str, schedule: str) -> list[str]:
    """The kinds of what check mode finds, with right results."""
    draw = np.random.default_rng(2)
    a, b = (draw.integers(-3, 4, shape).astype(np.float16) for shape in ((64, 32), (32, 64)))
    row, corner = (draw.integers(-3, 4, shape).astype(np.float32) for shape in (_ROW, _CORNER))
    row_out, first, second, out = (np.zeros(s, np.float32) for s in (_ROW, _CORNER, _CORNER, _BIG))
    report = tile_sim.Module(text).launch(
        "kernel", (1, 1, 1), None, [a, b, row, corner, row_out, first, second, out], check=True,
        schedule=schedule, max_steps=_LEAST_STEPS,
    )  # fmt: skip
    np.testing.assert_array_equal(row_out, row)
    np.testing.assert_array_equal((first, second), (corner, corner))
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32) + row + corner)
    return sorted({finding.kind for finding in report.findings})


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_load_behind_stores_of_another_block(schedule: str) -> None:
    text = ptx()
    assert ".reqnctapercluster 4" in text
    assert _findings(text, schedule) == []


def _meet_in_the_branch(op: ir.OpView) -> None:
    """As it was once: the meeting stands where the access does."""
    unit = {cutting.ORDERS_ACCESSES: ir.UnitAttr.get()}
    Before(op).create("nv_tileas.cluster_sync", attributes=unit)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_meetings_in_the_branch_of_one_block(
    monkeypatch: pytest.MonkeyPatch, schedule: str
) -> None:
    """Blocks meet others somewhere else; results are right, as the branch runs first."""
    monkeypatch.setattr(cutting, "_meet_before", _meet_in_the_branch)
    monkeypatch.setattr(cutting, "_taken_by_all", lambda op: op)
    text = _ptx()
    assert text != ptx()
    assert _findings(text, schedule) == ["race"]


_MEETING = r"barrier\.cluster\.arrive\.aligned;\s*barrier\.cluster\.wait\.aligned;"


def test_the_meeting_before_the_load_is_needed_and_stands_where_all_blocks_are() -> None:
    """Those before it are between stores to different places: moved into the branches behind them,
    they let some blocks meet once too often.
    """
    text = ptx()
    meetings = list(re.finditer(_MEETING, text))
    assert len(meetings) == 3
    last = meetings[-1]
    assert _caught(text[: last.start()] + text[last.end() :])
    for half in ("arrive", "wait"):
        assert _caught(
            text[: last.start()]
            + re.sub(rf"barrier\.cluster\.{half}\.aligned;", "", last[0])
            + text[last.end() :]
        )
    moved = re.sub(rf"({_MEETING})((?:(?!{_MEETING}).)*?bra[^;]*;)", r"\2 \1", text, flags=re.S)
    assert moved != text
    assert _caught(moved)


def _check(text: str, schedule: str) -> None:
    assert _findings(text, schedule) == []


def _caught(text: str) -> bool:
    return is_caught(lambda schedule: _check(text, schedule))
