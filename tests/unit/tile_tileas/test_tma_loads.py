"""Loops whose stages tensor maps fill: the same bits as copies by threads, nothing too many."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tile_sim
from tile_sim import SimError
from tile_tileas.pipelining import stage_count
from tile_tileas.pipelining.depth import Room

import tile_core
from tile_core.machines import Machine
from tile_core.target import Target

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs


def ptx(target: str, maps: str, mma: str = "mma.sync", stages: int = 4) -> str:
    """`matmul_f16` (tiles of 64 x 64 x 32) at -O2."""
    options = {
        "tma-descriptors": maps, "mma": mma, "unspecialized-pipeline-num-stages": stages,
    }  # fmt: skip
    bytecode = (EXAMPLES / "bytecode" / "matmul_f16.tileirbc").read_bytes()
    made = tile_core.compile(
        bytecode, target, opt_level=2, options=options, emit="ptx", keep_stages=False
    )
    return str(made.stage("ptx"))


def product(text: str, k: int, schedule: str = "late", rows: int = 56) -> np.ndarray:
    """One column of blocks; the last one is cut."""
    case = cases.matmul("matmul_f16", "float16", rows, 64, k, (64, 64))
    report = tile_sim.Module(text).launch(
        "matmul_f16", case.grid, None, case.flat, check=True, schedule=schedule, max_steps=100_000
    )
    assert case.errors() == []
    assert not report.findings
    return case.arguments[2]


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize(("target", "mma"), [("sm_90", "mma.sync"), ("sm_90", "wgmma"),
                                             ("sm_120", "mma.sync")])  # fmt: skip
def test_every_trip_count_gives_the_same_bits(target: str, mma: str, schedule: str) -> None:
    """None, fewer than stages, and more; boxes that reach past the end along K and M, too."""
    by_maps, by_threads = ptx(target, "host", mma), ptx(target, "off", mma)
    own = ptx(target, "device", mma)
    assert "cp.async.cg" not in by_maps + own
    assert "tensor-map {" not in own
    assert "cp.async.bulk.tensor" not in by_threads
    for k in (8, 32, 72, 224):
        np.testing.assert_array_equal(product(by_maps, k, schedule), product(by_threads, k))
        if k in (8, 72):
            np.testing.assert_array_equal(product(own, k, schedule), product(by_threads, k))


@pytest.mark.parametrize("stages", [2, 3])
def test_stages(stages: int) -> None:
    text = ptx("sm_90", "host", stages=stages)
    assert len(re.findall(r"mbarrier\.init", text)) == stages
    product(text, 32 * (2 * stages + 1), rows=100)


def test_barriers_need_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four stages would fill shared memory to the last byte."""
    of_target = stage_count.room_of

    def tight(target: Target) -> tuple[Room, Machine | None]:
        room, machine = of_target(target)
        return replace(room, block_bytes=4 * (64 * 32 * 2) * 2), machine

    monkeypatch.setattr(stage_count, "room_of", tight)
    assert len(re.findall(r"mbarrier\.init", ptx("sm_90", "host"))) == 3


@pytest.mark.parametrize("maps", ["host", "device"])
def test_a_loop_that_does_not_run(maps: str) -> None:
    """Its arrays have an extent of 0, which a map cannot say."""
    a, b = np.zeros((64, 0), np.float16), np.zeros((0, 64), np.float16)
    out = np.ones((64, 64), np.float16)
    flat = cases.Case("matmul_f16", (1, 1, 1), (a, b, out), (None, None, None)).flat
    module = tile_sim.Module(ptx("sm_90", maps))
    module.launch("matmul_f16", (1, 1, 1), None, flat, check=True)
    assert not out.any()


def _mutants(text: str, pattern: str, instead: str) -> list[str]:
    """`text` with each match of `pattern` replaced, one at a time."""
    found = list(re.finditer(pattern, text))
    return [text[: m.start()] + m.expand(instead) + text[m.end() :] for m in found]


def test_maps_of_the_kernel_share_an_arena() -> None:
    """Twelve blocks and eight places: the last ones wait until others give theirs back."""
    text = ptx("sm_90", "device").replace("and.b32 %word, %word, 255;", "and.b32 %word, %word, 0;")
    product(text, 64, "random", rows=64 * 12)
    without = re.sub(r"red\.release\.gpu[^;]*;", "", text)
    assert without != text
    with pytest.raises(SimError):
        product(without, 64, rows=64 * 12)


OWN_MAPS = {
    "no acquire": (r"\n[^\n]*fence\.proxy\.tensormap[^\n]*", ""),
    "no copy to memory": (r"tensormap\.cp_fenceproxy[^;]*;", ""),
    "a field less": (r"@%leads tensormap\.replace\.tile\.(?!element|inter|fill)[^;]*;", ""),
}


@pytest.mark.parametrize("mutant", OWN_MAPS)
def test_nothing_of_the_maps_can_go(mutant: str) -> None:
    text = ptx("sm_90", "device", stages=3)
    broken = _mutants(text, *OWN_MAPS[mutant])
    assert broken
    for number, one in enumerate(broken):
        try:
            product(one, 96)
        except (AssertionError, SimError):
            continue
        pytest.fail(f"{mutant} {number} was not found out")


MUTANTS = {
    "no wait": (r"\n[^\n]*mbarrier\.try_wait[^\n]*", ""),
    "half the bytes": (r"(expect_tx[^\n]*, )8192;", r"\g<1>4096;"),
    "more bytes": (r"(expect_tx[^\n]*, )8192;", r"\g<1>8208;"),
    "no expectation": (r"\n[^\n]*expect_tx[^\n]*", ""),
    "no copy": (r"\n[^\n]*cp\.async\.bulk\.tensor[^\n]*", ""),
    "constant phase": (r"(try_wait\.parity[^\n]*\], )%r\d+;", r"\g<1>0;"),
    "no meeting": (r"\n[^\n]*\bbar(rier)?\.\w*\.?sync[^\n]*", ""),
    "no fence": (r"\n[^\n]*fence\.(proxy\.async|mbarrier_init)[^\n]*", ""),
    "no init": (r"\n[^\n]*mbarrier\.init[^\n]*", ""),
    "two arrivals": (r"(mbarrier\.init[^\n]*, )1;", r"\g<1>2;"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_nothing_of_it_can_go(mutant: str) -> None:
    text = ptx("sm_90", "host", stages=3)
    broken = _mutants(text, *MUTANTS[mutant])
    if mutant == "no fence":
        del broken[2:]  # behind the loop, where no copy follows
    if mutant == "constant phase":
        del broken[:1]  # before the loop there is one phase
    assert broken
    for number, one in enumerate(broken):
        caught = False
        for schedule in ("late", "early"):
            try:
                product(one, 224, schedule)
            except (AssertionError, SimError):
                caught = True
                break
        assert caught, f"{mutant} {number} of {len(broken)} was not found out"
