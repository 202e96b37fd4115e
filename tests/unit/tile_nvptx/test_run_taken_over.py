"""Products of tile blocks that blocks take over while sums of the last one leave tensor memory."""

from __future__ import annotations

import re
from functools import cache, partial

import numpy as np
import pytest
import tile_cudatile
import tile_sim
from support.pipelined import Steps
from support.removals import SCHEDULES, is_caught, without, without_meetings, wrong_waits

import tile_core
from tile_core.artifact import Artifact

_OVER, _ASKED = "takes over tile blocks", {"dynamic-persistent": True}
_LEAST_STEPS = 20_000  # of a kernel that ends; mutants may wait for ever
_MOST = 7
#: More tile blocks than accumulators and answers, so that each is used again.
_BLOCKS = 5
#: Two accumulators; one; two of a pair of blocks.
KINDS = {
    "two": (Steps(blocks=_BLOCKS, most=_MOST), 1),
    "one": (Steps(blocks=_BLOCKS, most=_MOST, tile=(256, 16, 256)), 1),
    "pair": (Steps(blocks=_BLOCKS, most=_MOST, tile=(256, 16, 32)), 2),
}
#: First and last step: of the last tile block, those before it begin three later each; some have
#: none.
RANGES = ((-8, _MOST), (0, _MOST), (0, 4), (1, 1))


def made(kind: str) -> Artifact:
    steps, blocks = KINDS[kind]
    module = steps.program().module()
    tile_cudatile.verify(module)
    return tile_core.compile(
        str(tile_cudatile.to_mlir(module)), "sm_100", opt_level=2, emit="ptx",
        start_at="convert-cudatile-to-tileaa",
        options={"num-ctas": blocks, "unspecialized-pipeline-num-stages": 2, **_ASKED},
        keep_stages=False,
    )  # fmt: skip


@cache
def ptx(kind: str) -> str:
    found = made(kind)
    assert any("agents that copy and multiply" in str(remark) for remark in found.remarks)
    return str(found.stage("ptx"))


def check(kind: str, text: str, first: int, last: int, schedule: str, resident: int = 1) -> None:
    """All tile blocks against NumPy, with so many clusters at a time."""
    steps, ctas = KINDS[kind]
    arguments = steps.arguments(first, last)
    a, b = (one.astype(np.float32) for one in arguments[:2])
    meant = np.zeros_like(arguments[-1])
    for block, part in enumerate(np.split(meant, _BLOCKS)):
        for i in range(first + 3 * (_BLOCKS - 1 - block), last):
            part += a[i] @ b[i] if 0 <= i < len(a) else 0
    threads = int(re.findall(r"\.reqntid (\d+)", text)[0])
    report = tile_sim.Module(text).launch(
        "k", (_BLOCKS, 1, 1), None, arguments, check=True, schedule=schedule,
        wave_threads=threads * ctas * resident, max_steps=_BLOCKS * _LEAST_STEPS,
    )  # fmt: skip
    assert not report.findings
    assert report.waves == 1, "those that are launched take over the others"
    np.testing.assert_array_equal(arguments[-1], meant)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_trip_count(kind: str, schedule: str) -> None:
    for first, last in RANGES:
        for resident in (1, 2):
            check(kind, ptx(kind), first, last, schedule, resident)


def fails(kind: str, text: str) -> bool:
    ranges = ((0, _MOST), (0, 4))
    return any(is_caught(partial(check, kind, text, *one)) for one in ranges)


@pytest.mark.parametrize("kind", KINDS)
def test_no_wait_can_go_or_be_for_another_phase(kind: str) -> None:
    for number, broken in enumerate(wrong_waits(ptx(kind))):
        assert fails(kind, broken), number


#: What the simulator does not miss: fences of barriers that are made once more where agents part,
#: and those between an answer that an agent has read and the next one, which it orders by what
#: arrives between; of the meetings behind the agents of a pair, that of the block or that of both.
_MEETING, _MADE, _PROXY = "meeting of blocks", "fence.mbarrier_init", "fence.proxy"
SPARE = {
    r"\bbar\.sync[^;]*;": {"one": 1, "pair": 1},
    _MEETING: {"pair": 1},
    _MADE: {"two": 2, "one": 2, "pair": 1},
    _PROXY: {"two": 2, "one": 2, "pair": 1},
}


@pytest.mark.parametrize("kind", ["two", "pair", pytest.param("one", marks=pytest.mark.slow)])
def test_nothing_of_it_can_go(kind: str) -> None:
    text = ptx(kind)
    for pattern in (
        r"\bbar\.sync[^;]*;", _MEETING, r"tcgen05\.commit[^;]*;",
        r"mbarrier\.arrive\.expect_tx[^;]*;", r"mbarrier\.arrive\.shared[^;]*;",
        r"mbarrier\.init[^;]*;", r"clusterlaunchcontrol\.try_cancel[^;]*;", _MADE, _PROXY,
    ):  # fmt: skip
        instruction = pattern + r"[^;]*;" if pattern in (_MADE, _PROXY) else pattern
        broken = without_meetings(text) if pattern == _MEETING else without(text, instruction)
        assert broken or pattern == _MEETING, pattern
        missed = [number for number, one in enumerate(broken) if not fails(kind, one)]
        assert len(missed) <= SPARE.get(pattern, {}).get(kind, 0), (pattern, missed, len(broken))


# -- where nobody asks for it ---------------------------------------------------------------------


def remarks_of(steps: Steps, options: dict[str, bool] | None = None) -> list[str]:
    module = steps.program().module()
    found = tile_core.compile(
        str(tile_cudatile.to_mlir(module)), "sm_100", emit="ptx", pass_options=options,
        start_at="convert-cudatile-to-tileaa", keep_stages=False,
    )  # fmt: skip
    return [str(remark) for remark in found.remarks]


_LARGE = Steps(blocks=_BLOCKS, most=_MOST, tile=(128, 128, 128))


def test_it_is_chosen() -> None:
    assert any(_OVER in remark for remark in remarks_of(_LARGE))
    option = {"tileas-unspecialized-pipeline.take-over": False}
    assert not any(_OVER in remark for remark in remarks_of(_LARGE, option))


def test_where_other_blocks_hide_the_ends() -> None:
    remarks = remarks_of(Steps(blocks=_BLOCKS, most=_MOST))
    assert any("blocks of a multiprocessor hide each other's" in remark for remark in remarks)


def test_where_barriers_are_for_one_tile_block() -> None:
    """No pass of ours makes some that early; one of somebody else's may."""
    module = str(tile_cudatile.to_mlir(_LARGE.program().module()))
    compiled = partial(tile_core.compile, target="sm_100", keep_stages=False)
    stop = "buffers/lower-tma-load-store-to-async"
    text = str(compiled(module, start_at="convert-cudatile-to-tileaa", stop_after=stop).output)
    words = '!nv_tileas.buffer<tensor<1xi64, #nv_tileas.layout<": 1">>, "shared", 1 : i32>'
    barriers = f"""
      %words = "nv_tileas.alloc_tensor"() {{alignment = 8 : i32}} : () -> {words}
      %made = "nv_tileas.barrier_init"(%words) : ({words}) -> !nv_tileas.barrier<1 : i32, 1 : i32>
    """
    head = re.search(r"func\.func @[^\n]*\{\n", text)
    assert head is not None
    with_barriers = text[: head.end()] + barriers + text[head.end() :]
    start = "tileas-unspecialized-pipeline"
    said = [
        " ".join(map(str, compiled(one, start_at=start, emit="ptx").remarks))
        for one in (text, with_barriers)
    ]
    assert [_OVER in one for one in said] == [True, False]
    assert "it has barriers already" in said[1]
