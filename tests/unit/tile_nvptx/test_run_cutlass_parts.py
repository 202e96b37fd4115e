"""Small kernels of cutlass: each operation runs in the simulator in check mode, and is right."""

from __future__ import annotations

import numpy as np
import pytest
from support.cutlass_parts import (
    BULK,
    CLEAR,
    COUNTED,
    GENERIC,
    MODS,
    NAMED,
    SEQUENCE,
    STRIPES,
    WAITS,
    asks,
    ring,
    ring_of_cluster,
)
from support.cutlass_run import ptx
from tile_cute.cutlass import schedules
from tile_cute.cutlass.dialect.checks.barriers import ATOMICS
from tile_cute.cutlass.numbers import Integers
from tile_cute.cutlass.records import Problem, pack
from tile_sim import Module, SimError

N = Integers()


def launch(text: str, name: str, arguments: list[object], grid: int = 1, **how: object) -> None:
    """Run a kernel; nothing is found."""
    report = Module(text).launch(name, (grid, 1, 1), None, arguments, check=True, **how)  # type: ignore[arg-type]
    assert not report.findings, "\n".join(map(str, report.findings))


def without_each(text: str, *marks: str) -> list[str]:
    """The text without one of the lines that have a mark, for each of them."""
    lines = text.split("\n")
    places = [at for at, line in enumerate(lines) if any(mark in line for mark in marks)]
    return ["\n".join([*lines[:at], *lines[at + 1 :]]) for at in places]


def copies(text: str, name: str, items: int, schedule: str = "late") -> None:
    x = np.arange(64 * 64, dtype=np.float32)
    y = np.full((2, 64, 64), -1, np.float32)
    launch(text, name, [x, y, np.int32(items)], schedule=schedule)
    wanted = np.full((64, 64), -1, np.float32)
    wanted[:items] = x.reshape(64, 64)[:items]
    np.testing.assert_array_equal(y, np.stack([wanted, wanted]))


@pytest.mark.parametrize("consumes", ["region", "tried"])
@pytest.mark.parametrize("produces", ["region", "tried"])
@pytest.mark.parametrize("schedule", ["late", "random"])
def test_two_producers(produces: str, consumes: str, schedule: str) -> None:
    copies(ptx(ring("cooperative", produces, consumes)), "ring", 8, schedule)


@pytest.mark.parametrize("executor", ["strided_urem", "strided_udiv"])
@pytest.mark.parametrize("produces", ["region", "masked"])
@pytest.mark.parametrize("stages", [2, 4])
def test_producers_that_take_turns(executor: str, produces: str, stages: int) -> None:
    copies(ptx(ring(executor, produces, "region", stages)), "ring", 9)


def run_cluster(text: str, schedule: str = "late") -> None:
    x = np.arange(64 * 64, dtype=np.float32)
    y = np.full((4, 64, 64), -1, np.float32)
    launch(text, "ring", [x, y, np.int32(7)], schedule=schedule)
    wanted = np.full((64, 64), -1, np.float32)
    wanted[:7] = x.reshape(64, 64)[:7]
    np.testing.assert_array_equal(y, np.stack([wanted] * 4))


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_cluster(schedule: str) -> None:
    run_cluster(ptx(ring_of_cluster()), schedule)


def test_blocks_of_a_cluster_wait_for_each_other() -> None:
    """All but the tail's waits: blocks end together in the simulator."""
    tail = '"cutlass.pipeline_producer_tail"(%p, %end) : (!pipe, !state) -> ()'
    texts = without_each(ptx(ring_of_cluster().replace(tail, "")), "mbarrier.", "barrier.cluster")
    assert len(texts) == 10
    for text in texts:
        with pytest.raises((AssertionError, SimError)):
            run_cluster(text)


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_bytes_of_copies(schedule: str) -> None:
    """Numbers, and the parity of the round: 1 more in every second one."""
    run_bulk(ptx(BULK), schedule)


def run_bulk(text: str, schedule: str = "late") -> None:
    x = np.arange(7 * 64, dtype=np.float32)
    y = np.zeros_like(x)
    launch(text, "bulk", [x, y, np.int32(7)], schedule=schedule)
    np.testing.assert_array_equal(y, x + np.repeat(np.arange(7) // 3 % 2, 64))


def test_bytes_have_to_be_announced() -> None:
    texts = without_each(ptx(BULK), "expect_tx", "try_wait", "cp.async.bulk.shared")
    assert len(texts) > 4
    caught = 0
    for text in texts:
        try:
            run_bulk(text)
        except (AssertionError, SimError):
            caught += 1
    assert caught >= len(texts) - 3, "all but the tail's three waits"


def test_turns() -> None:
    log = np.full((2, 9), -1, np.int32)
    launch(ptx(SEQUENCE), "sequence", [log, np.int32(6)])
    np.testing.assert_array_equal(log, np.tile([0, 1, 2], (2, 3)))


@pytest.mark.parametrize("mark", ["try_wait", "mbarrier.arrive"])
def test_turns_are_waited_for(mark: str) -> None:
    for text in without_each(ptx(SEQUENCE), mark):
        with pytest.raises((AssertionError, SimError)):
            launch(text, "sequence", [np.full((2, 9), -1, np.int32), np.int32(6)])


def test_named_barriers() -> None:
    y = np.zeros(32, np.int32)
    launch(ptx(NAMED), "named", [y])
    np.testing.assert_array_equal(y, np.arange(32))
    for text in without_each(ptx(NAMED), "bar.sync", "barrier.cta", "bar.arrive"):
        with pytest.raises((AssertionError, SimError)):
            launch(text, "named", [y])


@pytest.mark.parametrize("wait", WAITS)
def test_counters(wait: str) -> None:
    text = ptx(GENERIC.replace("WAIT", wait))

    def go(text: str) -> None:
        x, y, counter = np.zeros(192, np.int32), np.zeros(192, np.int32), np.zeros(1, np.int32)
        launch(text, "generic", [x, counter, y], 3)
        np.testing.assert_array_equal(y, np.tile(np.arange(192).reshape(3, 64).sum(0), 3))

    go(text)
    for broken in without_each(text, "red.release", "ld.acquire", "bar.sync"):
        with pytest.raises((AssertionError, SimError)):
            go(broken)


@pytest.mark.parametrize(
    ("reduction", "element"), [(how, element) for how in ATOMICS for element in ATOMICS[how]]
)
def test_stripes(element: str, reduction: str) -> None:
    kind = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "f64": np.float64,
            "i64": np.int64, "bf16": np.uint16}[element]  # fmt: skip
    random = np.random.default_rng(1)
    x, z, w = (random.integers(-8, 8, 256).astype(np.float32) for _ in range(3))

    def stored(a: np.ndarray) -> np.ndarray:
        return (a.view(np.uint32) >> 16).astype(kind) if element == "bf16" else a.astype(kind)

    given = [stored(x), stored(z), stored(np.zeros(256, np.float32)), stored(w)]
    text = ptx(STRIPES.replace("ELEMENT", element).replace("REDUCTION", reduction))
    launch(text, "stripes", list(given), 2)
    total = x + z
    np.testing.assert_array_equal(given[2], stored(total))
    # Two blocks reduce the same values.
    wanted = w + 2 * total if reduction == "add" else np.maximum(w, total)
    np.testing.assert_array_equal(given[3], stored(wanted.astype(np.float32)))


@pytest.mark.parametrize("kind", ["dp", "static_persistent", "streamk"])
@pytest.mark.parametrize("tiles", [(3, 2, 8, 2), (5, 1, 4, 1)])
def test_work(kind: str, tiles: tuple[int, int, int, int]) -> None:
    """What generated code finds is what the formulas say of numbers."""
    ctas = 4
    fields = schedules.filled(Problem(tiles, ctas=ctas), split=kind == "streamk")
    text = ptx(asks(kind))
    for number in range(0, tiles[0] * tiles[1] * tiles[3] + 3, 2):
        y = np.zeros(16, np.int32)
        numbers = [np.int32(i) for i in (*tiles, ctas, number)]
        launch(text, "asks", [y, *numbers])
        work = schedules.work_of(N, kind, fields, number, "along_m", 1)
        following, _ = schedules.next_work(N, kind, fields, work, "along_m", 1, 1)
        coordinates = [work[name] for name in ("m", "n", "k_tile_start", "l", "k_tile_count")]
        grid = [tiles[0], tiles[1], tiles[3]] if kind == "dp" else [ctas, 1, 1]
        sizes = schedules.workspace(N, fields, 512) if kind == "streamk" else (0, 0, 0)
        wanted = [*coordinates, following["linear_id"], following["valid"], work["m"], work["n"],
                  7, *grid, *sizes]  # fmt: skip
        assert y.tolist() == wanted, number


def _streamk(m: int, k: int, ctas: int) -> tuple[dict[str, int], np.ndarray]:
    fields = schedules.filled(Problem((m, 1, k, 1), ctas=ctas), split=True)
    return fields, np.frombuffer(pack(fields), np.uint8).copy()


def test_counters_of_the_workspace_are_cleared() -> None:
    fields, record = _streamk(3, 8, 8)
    total, sums, counters = schedules.workspace(N, fields, 512)
    store = np.full(total // 4, -1, np.int32)
    launch(ptx(CLEAR), "clear", [record, store], 8)
    wanted = np.full(total // 4, -1, np.int32)
    wanted[sums // 4 : (sums + counters) // 4] = 0
    np.testing.assert_array_equal(store, wanted)


def test_parts_are_counted() -> None:
    fields, record = _streamk(3, 8, 8)
    text = ptx(COUNTED)

    def go(text: str) -> None:
        store = np.zeros(schedules.workspace(N, fields, 512)[0] // 4, np.int32)
        x, y = np.zeros((3, 8), np.int32), np.zeros(3, np.int32)
        launch(text, "counted", [record, store, x, y], 8)
        assert y.tolist() == [8, 8, 8]

    go(text)
    for broken in without_each(text, "red.release", "ld.acquire"):
        with pytest.raises((AssertionError, SimError)):
            go(broken)


def test_mods() -> None:
    _, record = _streamk(1, 1, 2)
    y = np.full(4, -1, np.int32)
    launch(ptx(MODS), "mods", [record, y], 1)
    assert y[1] == y[3] == 1
    assert min(y[0], y[2]) >= 0
    text = ptx(MODS)
    for mark in ("barrier.cluster.arrive", "barrier.cluster.wait", "nanosleep", "%smid",
                 "cp.async.bulk.wait_group"):  # fmt: skip
        assert mark in text
