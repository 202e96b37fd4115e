"""Tile schedulers of cutlass: each step along K of each output tile is done once: enumerated."""

from __future__ import annotations

import struct
from collections import Counter
from itertools import product

import pytest
from tile_cute.cutlass import schedules
from tile_cute.cutlass.numbers import Integers
from tile_cute.cutlass.records import FIELDS, RASTERS, SIZE, SWIZZLES, Problem, pack
from tile_cute.errors import LayoutError

N = Integers()
KINDS = ("dp", "static_persistent", "streamk")


def all_work(kind: str, problem: Problem, order: str = "along_m", swizzle: int = 1):  # type: ignore[no-untyped-def]
    """The work of each cluster, in order."""
    params = schedules.filled(problem, split=kind == "streamk")
    starts = schedules.tiles(N, params) if kind == "dp" else schedules.width(N, params)
    for start in range(starts):
        work = schedules.work_of(N, kind, params, start, order, swizzle)
        while work["valid"]:
            yield start, work
            work, _ = schedules.next_work(N, kind, params, work, order, swizzle, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", RASTERS)
@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_each_step_once(kind: str, order: str, swizzle: int) -> None:
    for m, n, batches, k, ctas in product((1, 3, 5), (1, 4, 7), (1, 2), (1, 3, 8), (1, 2, 5, 7)):
        problem = Problem((m, n, k, batches), ctas=ctas)
        seen = Counter(
            (work["m"], work["n"], work["l"], work["k_tile_start"] + step)
            for _, work in all_work(kind, problem, order, swizzle)
            for step in range(work["k_tile_count"])
        )
        assert seen == Counter(product(range(m), range(n), range(batches), range(k))), problem


def test_parts_of_a_tile() -> None:
    """Numbered in the order of their steps, one final, and no more than there is room for."""
    for m, k, ctas in product(range(1, 8), (1, 2, 7, 8), range(1, 9)):
        problem = Problem((m, 1, k, 1), ctas=ctas)
        most = schedules.filled(problem, split=True)["k_split_count"]
        parts: dict[int, list[dict[str, int]]] = {}
        for _, work in all_work("streamk", problem):
            parts.setdefault(work["tile"], []).append(work)
        for found in parts.values():
            found.sort(key=lambda work: work["split"])
            assert [work["split"] for work in found] == list(range(len(found)))
            assert {work["splits"] for work in found} == {len(found)}
            assert len(found) <= most
            starts = [work["k_tile_start"] for work in found]
            assert starts == sorted(starts)
            assert [schedules.is_final(N, w) for w in found] == [0] * (len(found) - 1) + [1]


def test_nobody_waits_in_a_circle() -> None:
    """A final part waits for parts of other clusters, which those do before what waits itself."""
    for m, k, ctas in product(range(1, 8), (1, 2, 7, 8), range(1, 9)):
        done: set[tuple[int, int]] = set()
        queues: dict[int, list[dict[str, int]]] = {}
        for start, work in all_work("streamk", Problem((m, 1, k, 1), ctas=ctas)):
            queues.setdefault(start, []).append(work)
        while any(queues.values()):
            moved = False
            for queue in queues.values():
                while queue:
                    work = queue[0]
                    needs = {(work["tile"], s) for s in range(work["splits"] - 1)}
                    if schedules.is_final(N, work) and not needs <= done:
                        break
                    done.add((work["tile"], work["split"]))
                    queue.pop(0)
                    moved = True
            assert moved


def test_runs_are_even() -> None:
    for m, k, ctas in product(range(1, 12), (1, 5, 8), range(1, 9)):
        problem = Problem((m, 1, k, 1), ctas=ctas)
        steps = Counter()
        for start, work in all_work("streamk", problem):
            steps[start] += work["k_tile_count"]
        total = m * k
        assert sum(steps.values()) == total
        if total >= ctas:
            # Whole tiles and runs alike: nobody does two steps more than another.
            assert max(steps.values()) - min(steps[c] for c in range(ctas)) <= 1


def test_eight_steps_in_runs_of_three_need_four_places() -> None:
    """The digest's example: runs begin anywhere, so that ceil(8 / 3) = 3 is one too few."""
    fields = schedules.filled(Problem((3, 1, 8, 1), ctas=8), split=True)
    assert schedules.streamk_units(N, fields) == (8, 3, 0)
    assert fields["k_split_count"] == 4
    assert (
        max(work["splits"] for _, work in all_work("streamk", Problem((3, 1, 8, 1), ctas=8))) == 4
    )


def test_workspace() -> None:
    fields = schedules.filled(Problem((3, 1, 8, 1), ctas=8), split=True)
    sums = 3 * 3 * 512
    assert schedules.workspace(N, fields, 512) == (-(-(sums + 12) // 128) * 128, sums, 12)
    even = schedules.filled(Problem((4, 2, 8, 1), ctas=8), split=True)
    assert schedules.workspace(N, even, 512) == (0, 0, 0)


def test_clusters() -> None:
    """Coordinates count tiles of blocks: those of a cluster's first one."""
    problem = Problem((2, 3, 4, 1), (2, 1, 1), ctas=4)
    found = {(work["m"], work["n"]) for _, work in all_work("static_persistent", problem)}
    assert found == set(product((0, 2), range(3)))


def test_rounds_of_the_pipe() -> None:
    params = schedules.filled(Problem((8, 1, 1, 1), ctas=1), split=False)
    work = schedules.work_of(N, "static_persistent", params, 0, "along_m", 1)
    ends = []
    for _ in range(7):
        work, end = schedules.next_work(N, "static_persistent", params, work, "along_m", 1, 3)
        ends.append(end)
    assert ends == [0, 0, 1, 0, 0, 1, 0]


def test_record() -> None:
    fields = schedules.filled(Problem((2, 3, 4, 5), (2, 1, 1), 6, 1 << 40), split=False)
    data = pack(fields)
    assert len(data) == SIZE
    for name, (offset, bits) in FIELDS.items():
        (found,) = struct.unpack_from("<Q" if bits == 64 else "<I", data, offset)
        assert found == fields[name]


@pytest.mark.parametrize(
    "problem",
    [Problem((0, 1, 1, 1)), Problem((1, 1, 1, 1), ctas=0), Problem((1, 1, 1, 1), (2, 1, 1), 3)],
)
def test_records_of_nothing(problem: Problem) -> None:
    with pytest.raises(LayoutError, match="expects positive counts, and whole clusters"):
        problem.fields()
