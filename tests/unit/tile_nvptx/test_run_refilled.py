"""Loops with room for one stage of each tile, filled again as soon as it has been read; or for one
more, which all tiles have in turns.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tile_sim
from support.removals import SCHEDULES, is_caught, without
from tile_tileas.pipelining import refilled, stage_count, wgmma_parts

import tile_core

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs

SMALL, LARGE = "attention_f16", "attention_large_f16"  # of 64 and of 128: one warpgroup, and two


#: Stages that tiles have in turns, or one of each.
WAYS = ["ring", "own"]


@cache
def ptx(
    name: str,
    strategy: str = "unspecialize",
    tensor_maps: str = "host",
    target: str = "sm_90",
    way: str = "ring",
    width: int = wgmma_parts.WIDTH,
) -> str:
    """Attention, made as if two stages did not fit; products in parts of `width` columns."""
    bytecode = (EXAMPLES / "bytecode" / f"{name}.tileirbc").read_bytes()
    options = {"pipeline-strategy": strategy, "tma-descriptors": tensor_maps}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage_count, "depth", lambda _demand, _room: 0)
        patch.setattr(wgmma_parts, "WIDTH", width)
        if way == "own":
            patch.setattr(refilled, "stages_in_common", lambda _one, _turns: 0)
        made = tile_core.compile(bytecode, target, opt_level=2, options=options, emit="ptx")
    return str(made.stage("ptx"))


def attend(text: str, length: int, schedule: str = "late") -> np.ndarray:
    name, rows = (LARGE, 128) if LARGE in text else (SMALL, 64)
    case = cases.attention(name, "float16", (1, length, rows), rows)
    report = tile_sim.Module(text).launch(
        name, (1, 1, 1), None, case.flat, check=True, schedule=schedule
    )
    assert not report.findings
    np.testing.assert_allclose(case.arguments[3][:, :rows], case.expected[3][:, :rows], atol=2e-3)
    return case.arguments[3]


def fails(text: str, length: int) -> bool:
    return is_caught(lambda schedule: attend(text, length, schedule))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)])
def test_every_trip_count_gives_the_same_bits(name: str, schedule: str, way: str) -> None:
    rows = 64 if name == SMALL else 128
    text, still = ptx(name, way=way, width=rows), ptx(name, "none")
    for length in (rows - 24, rows + 8, 2 * rows + 8, 5 * rows + 8):
        np.testing.assert_array_equal(attend(text, length, schedule), attend(still, length))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("width", [16, 32])
def test_parts_add_up(width: int, schedule: str, way: str) -> None:
    """Sums of rows are added in another order, and nothing else is: NumPy judges."""
    text, whole = ptx(SMALL, way=way, width=width), ptx(SMALL, way=way)
    begun = "wgmma.commit_group"
    assert text.count(begun) - whole.count(begun) == 64 // width - 1
    assert text.count("wgmma.wait_group") == whole.count("wgmma.wait_group")
    for length in (40, 72, 136, 328):
        attend(text, length, schedule)


def test_three_stages_are_filled_in_turns_while_tensor_cores_work() -> None:
    text = ptx(SMALL)
    sizes = re.findall(r"mbarrier\.arrive\.expect_tx[^;]*, (\d+);", text)
    assert sizes == ["8192"] * 4
    inside = text[text.index("wgmma.mma_async") :]
    order = re.findall(r"wgmma\.wait_group|wgmma\.commit|mbarrier\.arrive\.expect_tx", inside)
    one = ["wgmma.commit", "mbarrier.arrive.expect_tx", "wgmma.wait_group"]
    assert order in (one * 2, (one * 2)[:-1])  # the last block may stand before the loop


def test_keys_and_values_have_one_stage_each_filled_in_its_place() -> None:
    """Before the loop, and in it: keys behind the first product, values behind the second."""
    text = ptx(SMALL, way="own")
    sizes = re.findall(r"mbarrier\.arrive\.expect_tx[^;]*, (\d+);", text)
    assert sizes == ["8192"] * 4
    inside = text[text.index("wgmma.mma_async") :]
    order = re.findall(r"wgmma\.wait_group|mbarrier\.arrive\.expect_tx", inside)
    assert order == ["wgmma.wait_group", "mbarrier.arrive.expect_tx"] * 2


def test_stages_are_filled_behind_loads_of_queries_and_before_those_are_stored() -> None:
    """They are under way at once, and queries do not stand in line behind whole stages."""
    for text in (ptx(SMALL), ptx(LARGE), ptx(SMALL, way="own")):
        events = re.findall(r"ld\.global\.v|cp\.async\.bulk\.tensor|st\.shared\.v", text)
        first = {event: events.index(event) for event in events}
        assert list(first) == ["ld.global.v", "cp.async.bulk.tensor", "st.shared.v"]
        assert "st.shared.v" not in events[: events.index("cp.async.bulk.tensor")]


def test_copies_of_threads_have_no_such_stages() -> None:
    text = ptx(SMALL, tensor_maps="off")
    assert "mbarrier" not in text
    assert "cp.async" not in text
    attend(text, 136)


@pytest.mark.parametrize(("name", "way"), [(SMALL, "ring"), (SMALL, "own"), (LARGE, "ring")])
@pytest.mark.parametrize(
    "instruction",
    [
        r"mbarrier\.arrive\.(?!expect)[^;]*;", r"mbarrier\.arrive\.expect_tx[^;]*;",
        r"wgmma\.wait_group[^;]*;", r"fence\.mbarrier_init[^;]*;", r"mbarrier\.init[^;]*;",
    ],
)  # fmt: skip
def test_nothing_of_it_can_go(name: str, way: str, instruction: str) -> None:
    rows = 64 if name == SMALL else 128
    mutants = without(ptx(name, way=way), instruction)
    assert mutants
    assert all(fails(text, 5 * rows + 8) for text in mutants)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "instruction",
    [
        r"wgmma\.fence[^;]*;", r"wgmma\.wait_group[^;]*;", r"mbarrier\.arrive\.(?!expect)[^;]*;",
        r"wgmma\.mma_async[^;]*;",
    ],
)  # fmt: skip
def test_nothing_of_parts_can_go(instruction: str, way: str) -> None:
    mutants = without(ptx(SMALL, way=way, width=32), instruction)
    assert mutants
    assert all(fails(text, 328) for text in mutants)


@pytest.mark.parametrize("way", WAYS)
def test_no_wait_of_two_warpgroups_can_go(way: str) -> None:
    mutants = without(ptx(LARGE, way=way), r"\{[^{}]*mbarrier\.try_wait[^{}]*\}")
    assert len(mutants) == 4  # for keys and for values: they are there, and they have been read
    assert all(fails(text, 648) for text in mutants)


@pytest.mark.parametrize("way", WAYS)
def test_bytes_that_are_expected_are_those_that_come(way: str) -> None:
    text = ptx(SMALL, way=way)
    for match in re.finditer(r"(mbarrier\.arrive\.expect_tx[^;]*, )8192;", text):
        for size in (4096, 16384):
            changed = f"{text[: match.start()]}{match[1]}{size};{text[match.end() :]}"
            assert fails(changed, 328)


@cache
def by_tensor(strategy: str = "unspecialize") -> str:
    """On sm_100, whose products are by tcgen05, and begin an iteration early."""
    return ptx(SMALL, strategy, target="sm_100")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_products_in_tensor_memory_read_such_stages(schedule: str) -> None:
    sizes = re.findall(r"mbarrier\.arrive\.expect_tx[^;]*, (\d+);", by_tensor())
    assert sizes == ["8192"] * 5  # with that of queries
    for length in (8, 40, 72, 136, 328):
        found = attend(by_tensor(), length, schedule)
        np.testing.assert_array_equal(found, attend(by_tensor("none"), length))


@pytest.mark.parametrize(
    "instruction",
    [
        r"mbarrier\.arrive\.shared[^;]*;", r"mbarrier\.arrive\.expect_tx[^;]*;",
        r"tcgen05\.commit[^;]*;", r"\{[^{}]*mbarrier\.try_wait[^{}]*\}", r"mbarrier\.init[^;]*;",
    ],
)  # fmt: skip
def test_nothing_of_them_can_go(instruction: str) -> None:
    mutants = without(by_tensor(), instruction)
    assert mutants
    missed = [at for at, text in enumerate(mutants) if not fails(text, 328)]
    # The last tile's product is one too many, and nobody reads it.
    assert len(missed) == (1 if "try_wait" in instruction else 0)
