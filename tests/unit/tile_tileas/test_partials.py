"""Places of partial results, by plain arithmetic: each is written once, and read where it is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tile_cute.gf2 import combine
from tile_cute.linear import LinearLayout
from tile_tileas.partials import Partials, partials_of
from tile_tileas.reductions import ReductionPlan, plan_reduction

#: Text of a layout -> how its columns are folded, by f32.
LAYOUTS = {
    # Rows of 16 bytes, as threads load them: 16 columns of a thread, in eight warps.
    "register=[[0,1],[0,2],[0,4],[0,8],[32,0],[64,0]] lane=[[0,16],[0,32],[0,64],[1,0],[2,0]] "
    "warp=[[4,0],[8,0],[16,0]] : 128x128": "once",
    # Four columns of a thread.
    "register=[[0,1],[0,2]] lane=[[0,4],[0,8],[0,16],[0,32],[0,64]] warp=[[1,0],[2,0]] : 4x128":
        "by part",
    # One column of a warp.
    "register=[] lane=[[1,0],[2,0],[4,0],[8,0],[16,0]] warp=[[32,0],[64,0]] : 128x1": "by result",
}  # fmt: skip


def planned(text: str) -> ReductionPlan:
    plan = plan_reduction(LinearLayout.parse(text), 0)
    assert plan is not None
    return plan


def chosen(plan: ReductionPlan, widths: Sequence[int] = (4,)) -> list[Partials]:
    return partials_of(plan, widths)


def kind(places: Partials) -> str:
    return "by result" if places.stride == 1 else "once" if places.once else "by part"


@pytest.mark.parametrize(("text", "wanted"), LAYOUTS.items())
def test_the_cheapest_places(text: str, wanted: str) -> None:
    assert kind(chosen(planned(text))[0]) == wanted


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("text", LAYOUTS)
def test_each_result_has_places_of_its_own(text: str, width: int) -> None:
    plan = planned(text)
    (places,) = chosen(plan, [width])
    result = plan.result
    of_result: dict[int, set[int]] = {}
    for register in range(result.elements_per_thread):
        for thread in range(1 << len(places.threads)):
            lane, warp = thread % 32, thread // 32
            element = result.apply_flat({"register": register, "lane": lane, "warp": warp})
            place = combine(places.threads, thread) ^ places.of_register(register)
            parts = range(place, place + places.number * places.stride, places.stride)
            of_result.setdefault(element, set()).update(parts)
    assert len(of_result) == result.size
    assert all(len(parts) == places.number for parts in of_result.values())
    assert set.union(*of_result.values()) == set(range(result.size * places.number))


@pytest.mark.parametrize("text", LAYOUTS)
def test_a_thread_reads_all_of_its_results(text: str) -> None:
    plan = planned(text)
    (places,) = chosen(plan)
    parts = 1 if places.once else places.number
    wanted = {
        places.of_register(register) + part * places.stride
        for register in range(plan.result.elements_per_thread)
        for part in range(parts)
    }
    read = [place + i for place in places.reads for i in range(places.together)]
    assert sorted(read) == sorted(wanted)


def test_tiles_that_are_folded_together_go_alike() -> None:
    found = chosen(planned(next(iter(LAYOUTS))), (8, 4, 1))
    assert len({kind(places) for places in found}) == 1
    assert [places.together for places in found] == [2, 4, 16]
