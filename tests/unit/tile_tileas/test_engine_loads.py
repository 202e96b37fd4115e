"""Loads that no product reads, by tensor maps and in bulk: the same bits as by threads, inside of
loops and outside, nothing too many.
"""

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

import tile_core

TILES = 7
WEAK = {"memory_ordering_semantics": "weak"}
SCHEDULES = ("late", "early", "random")
#: Tile, and elements from one row to the next.
PLAIN, APART, WIDE = ((512,), 512), ((8, 64), 96), ((4, 256), 256)
ENGINES = {
    "bulk": {"bulk-loads": "always", "tma-loads": "never"},
    "tma": {"tma-loads": "always"},
    "threads": {"tma-loads": "never", "bulk-loads": "never"},
}
_COPY = {"bulk": r"cp\.async\.bulk\.shared", "tma": r"cp\.async\.bulk\.tensor"}


def program(
    tile: tuple[int, ...], pitch: int, rows: int, parts: str = "both"
) -> tile_cudatile.tree.Module:
    """y = tile 0 of x, and tiles `first` to `last` added to it in order; or a part of that."""
    p, tiles = Program(), t.Tile(tile, t.F32)
    base = p.argument(t.Tile((), t.Pointer(t.F32)))
    base = p.emit("assume", [base], base.type, predicate=DivBy(16))
    shape = (rows, tile[-1]) if len(tile) == 2 else (rows,)
    tensor = t.TensorView(t.F32, shape, (pitch, 1) if len(tile) == 2 else (1,))
    view = p.emit("make_tensor_view", [base, (), ()], tensor)
    axes = tuple(range(len(tile)))
    view = p.emit("make_partition_view", [view], t.PartitionView(tile, tensor, axes, "zero"))
    bounds = [p.argument(I32), p.argument(I32), p.constant(I32, 1)]
    zero = p.constant(I32, 0)

    def load(i: object) -> tile_cudatile.tree.Value:
        place = (i, zero) if len(tile) == 2 else (i,)
        return p.emit("load_view_tko", [view, place], tiles, t.TOKEN, **WEAK)

    def body(i, total):
        return [p.emit("addf", [total, load(i)], tiles, rounding_mode="nearest_even")]

    done = p.constant(tiles, 0) if parts == "loop" else load(zero)
    if parts != "single":
        region = p.region([I32, tiles], body, "continue")
        done = p.emit("for", [*bounds, (done,)], tiles, regions=(region,))
    p.store(done, tile, t.F32)
    return p.module()


def rows_of(tile: tuple[int, ...], cut: int = 0) -> int:
    return TILES * tile[0] - cut


@cache
def ptx(
    shape: tuple[tuple[int, ...], int], engine: str, target: str = "sm_90", stages: int = 3,
    cut: int = 0, strategy: str = "unspecialize", parts: str = "both",
) -> str:  # fmt: skip
    tile, pitch = shape
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(program(tile, pitch, rows_of(tile, cut), parts))),
        target,
        opt_level=2,
        start_at="convert-cudatile-to-tileaa",
        emit="ptx",
        keep_stages=False,
        options={
            "unspecialized-pipeline-num-stages": stages, "pipeline-strategy": strategy,
            **ENGINES[engine],
        },
    )  # fmt: skip
    return str(made.stage("ptx"))


def check(
    text: str, shape: tuple[tuple[int, ...], int], first: int, last: int, schedule: str = "late",
    cut: int = 0, parts: str = "both",
) -> None:  # fmt: skip
    """Run it in check mode; the sum is that of NumPy, in the same order."""
    tile, pitch = shape
    rows = rows_of(tile, cut)
    size = (rows, pitch) if len(tile) == 2 else (rows,)
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    inside = np.zeros((TILES * tile[0], *tile[1:]), np.float32)
    inside[:rows] = x[:, : tile[-1]] if len(tile) == 2 else x
    tiles = inside.reshape(TILES, *tile)
    wanted = tiles[0] * (parts != "loop")
    for at in range(first, last if parts != "single" else first):
        wanted += tiles[at]
    y = np.ones(tile, np.float32)
    arguments = [x, np.int32(first), np.int32(last), y]
    report = Module(text).launch(
        "k", (1, 1, 1), None, arguments, check=True, schedule=schedule, max_steps=100_000
    )
    assert not report.findings, "\n".join(map(str, report.findings))
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("target", ["sm_90", "sm_120"])
@pytest.mark.parametrize("engine", ["bulk", "tma"])
@pytest.mark.parametrize("shape", [PLAIN, APART, WIDE])
def test_any_trip_count(
    shape: tuple[tuple[int, ...], int], engine: str, target: str, schedule: str
) -> None:
    text = ptx(shape, engine, target)
    assert re.search(_COPY[engine], text)
    assert "ld.global" not in text
    for first, last in ((0, 0), (3, 2), (0, 1), (2, 4), (0, TILES)):
        check(text, shape, first, last, schedule)


def test_a_loop_that_does_not_run_ahead_is_left_to_threads() -> None:
    """The load before it is not."""
    text = ptx(PLAIN, "bulk", strategy="none")
    assert len(re.findall(_COPY["bulk"], text)) == 1
    assert "ld.global" in text
    check(text, PLAIN, 0, TILES)


@pytest.mark.parametrize("cut", [4])
def test_what_is_outside(cut: int) -> None:
    """Tensor maps fill in zeros; bulk copies cannot, and threads copy then."""
    by_maps, in_bulk = ptx(APART, "tma", cut=cut), ptx(APART, "bulk", cut=cut)
    assert re.search(_COPY["tma"], by_maps)
    assert len(re.findall(_COPY["bulk"], in_bulk)) == 8  # tile 0, which is inside
    check(by_maps, APART, 0, TILES, cut=cut)
    check(in_bulk, APART, 0, TILES, cut=cut)


def test_runs_that_touch_are_one() -> None:
    """Four rows side by side are copied at once, eight that lie apart one by one."""
    inside = [len(re.findall(_COPY["bulk"], ptx(shape, "bulk"))) for shape in (WIDE, APART)]
    assert inside == [4, 4 * 8]  # before the loop, two for the first iterations, in it


def test_by_threads() -> None:
    for target, engine in (("sm_90", "threads"), ("sm_80", "bulk"), ("sm_80", "tma")):
        text = ptx(PLAIN, engine, target)
        assert "cp.async.bulk" not in text
        check(text, PLAIN, 0, TILES)


MUTANTS = {
    "no wait": (r"\n[^\n]*mbarrier\.try_wait[^\n]*", ""),
    "half the bytes": (r"(expect_tx[^\n]*, )2048;", r"\g<1>1024;"),
    "more bytes": (r"(expect_tx[^\n]*, )2048;", r"\g<1>2064;"),
    "no expectation": (r"\n[^\n]*expect_tx[^\n]*", ""),
    "no copy": (r"\n[^\n]*cp\.async\.bulk[^\n]*", ""),
    "constant phase": (r"(try_wait\.parity[^\n]*\], )%r\d+;", r"\g<1>0;"),
    "no init": (r"\n[^\n]*mbarrier\.init[^\n]*", ""),
    "two arrivals": (r"(mbarrier\.init[^\n]*, )1;", r"\g<1>2;"),
    "no meeting": (r"\n[^\n]*\bbar\.sync[^\n]*", ""),
    "no fence": (r"\n[^\n]*fence\.(proxy\.async|mbarrier_init)[^\n]*", ""),
}


@pytest.mark.parametrize("engine", ["bulk", "tma"])
@pytest.mark.parametrize("parts", ["loop", "single"])
@pytest.mark.parametrize("mutant", MUTANTS)
def test_nothing_of_it_can_go(mutant: str, parts: str, engine: str) -> None:
    text = ptx(PLAIN, engine, parts=parts)
    pattern, instead = MUTANTS[mutant]
    found = list(re.finditer(pattern, text))
    if parts == "single" and mutant in ("constant phase", "no fence"):
        found = found[:0] if mutant == "constant phase" else found[:1]  # there is one phase
    assert found or parts == "single"
    for number, match in enumerate(found):
        broken = text[: match.start()] + match.expand(instead) + text[match.end() :]
        assert is_caught(broken, parts), f"{mutant} {number} of {len(found)}"


def is_caught(text: str, parts: str) -> bool:
    """Whether some schedule gives other bits, or a finding."""
    for schedule in SCHEDULES:
        try:
            check(text, PLAIN, 0, TILES, schedule, parts=parts)
        except (AssertionError, SimError):
            return True
    return False
