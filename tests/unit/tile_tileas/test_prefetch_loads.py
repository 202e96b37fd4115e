"""Loads of loops without products run ahead: the same bits, no barrier, no wait too many."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
import tile_cudatile
from support.programs import I32, Program
from tile_cudatile import types as t
from tile_cudatile.attrs import DivBy
from tile_sim import Module, SimError
from tile_tileas.pipelining.depth import Demand, Room, depth_of_stream

import tile_core

TILES, WIDTH = 7, 512
#: Two stages of so many do not fit four times, as they would for sixteen warps.
WIDE = 8192
WEAK = {"memory_ordering_semantics": "weak"}


@cache
def ptx(stages: int, when: str = "always", width: int = WIDTH, *, persistent: bool = False) -> str:
    """The sum of tiles `first` to `last` of x, tile by tile; of each n-th one for n blocks where
    that is `persistent`.
    """
    p, tile = Program(), t.Tile((width,), t.F32)
    base = p.argument(t.Tile((), t.Pointer(t.F32)))
    base = p.emit("assume", [base], base.type, predicate=DivBy(16))
    tensor = t.TensorView(t.F32, (TILES * width,), (1,))
    view = p.emit("make_tensor_view", [base, (), ()], tensor)
    view = p.emit("make_partition_view", [view], t.PartitionView((width,), tensor, (0,), "zero"))
    step = p.constant(I32, 1)
    if persistent:
        step = p.emit("get_num_tile_blocks", [], I32, I32, I32)
    bounds = [p.argument(I32), p.argument(I32), step]

    def body(i, total):
        x = p.emit("load_view_tko", [view, (i,)], tile, t.TOKEN, **WEAK)
        return [p.emit("addf", [total, x], tile, rounding_mode="nearest_even")]

    region = p.region([I32, tile], body, "continue")
    done = p.emit("for", [*bounds, (p.constant(tile, 0),)], tile, regions=(region,))
    p.store(done, (width,), t.F32)
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(p.module())),
        "sm_80",
        opt_level=2,
        start_at="convert-cudatile-to-tileaa",
        emit="ptx",
        keep_stages=False,
        options={"unspecialized-pipeline-num-stages": stages},
        pass_options={"tileas-prefetch-loads.when": when},
    )
    return str(made.stage("ptx"))


def check(text: str, first: int, last: int, schedule: str = "late", width: int = WIDTH) -> None:
    x = np.random.default_rng(0).standard_normal(TILES * width).astype(np.float32)
    wanted = np.zeros(width, np.float32)
    for at in range(first, last):
        wanted += x[at * width : (at + 1) * width]
    y = np.ones(width, np.float32)
    arguments = [x, np.int32(first), np.int32(last), y]
    report = Module(text).launch("k", (1, 1, 1), None, arguments, check=True, schedule=schedule)
    assert not report.findings
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("stages", [2, 4])
def test_any_trip_count(stages: int) -> None:
    text = ptx(stages)
    assert "cp.async" in text
    assert "bar.sync" not in text
    for first, last in ((0, 0), (3, 2), (0, 1), (2, 4), (0, TILES)):
        for schedule in ("late", "early", "random"):
            check(text, first, last, schedule)


def test_one_stage_is_no_pipeline() -> None:
    assert "cp.async" not in ptx(1)


def test_an_estimate_leaves_loops_alone_that_have_enough_in_flight() -> None:
    """16 blocks of 2 KiB keep an A100 at work."""
    assert "cp.async" in ptx(3, when="always")
    assert "cp.async" not in ptx(3, when="estimate")


def test_a_persistent_loop_counts_on_no_further_block() -> None:
    """Its blocks are as many as there are multiprocessors, whatever else would have room."""
    assert "cp.async" not in ptx(4, width=WIDE)
    text = ptx(4, width=WIDE, persistent=True)
    assert "cp.async" in text
    for schedule in ("late", "early", "random"):
        check(text, 0, TILES, schedule, WIDE)


def test_no_wait_or_commit_can_go() -> None:
    lines = ptx(3).split("\n")
    places = [
        at for at, line in enumerate(lines) if re.search(r"cp\.async\.(wait|commit)_group", line)
    ]
    assert len(places) >= 3
    for at in places:
        with pytest.raises((AssertionError, SimError)):
            check("\n".join([*lines[:at], "", *lines[at + 1 :]]), 0, TILES)


def test_bytes_in_flight() -> None:
    """16 blocks of 2 KiB keep an A100 at work; 4 do not, and two stages of 4 KiB in each do."""
    room = Room(166912, latency=520.0)

    def stages(size: int, registers: int) -> int:
        demand = Demand(0, size, 0, most=4, warps=4, registers=registers)
        return depth_of_stream(demand, room, bandwidth=11.0)

    assert stages(2048, 0) == 0
    assert stages(4096, 160) == 3
    assert stages(512, 160) == 4
