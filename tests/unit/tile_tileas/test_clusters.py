"""Blocks of a cluster that share a tile block: the same bits as one block, nothing too many."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tile_sim
from support.tiles import Kernel, registry, tile
from tile_sim import SimError

import tile_core

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs

_LEAST_STEPS = 5_000  # of a kernel that ends; mutants may wait for ever


@cache
def ptx(name: str, ctas: int, warps: int = 0, target: str = "sm_90") -> str:
    """At -O2; 0 warps are the compiler's choice."""
    bytecode = (EXAMPLES / "bytecode" / f"{name}.tileirbc").read_bytes()
    options = {"num-ctas": ctas, "num-warps": warps}
    made = tile_core.compile(
        bytecode, target, opt_level=2, options=options, emit="ptx", keep_stages=False
    )
    return str(made.stage("ptx"))


def product(
    text: str, k: int, schedule: str = "late", name: str = "matmul_f16", seed: int = 0
) -> np.ndarray:
    """Tile blocks of it for that K, the last ones cut at both edges."""
    tile = (64, 64) if name == "matmul_f16" else (128, 128)
    case = cases.matmul(name, "float16", tile[0] + 24, tile[1] + 8, k, tile)
    report = tile_sim.Module(text).launch(
        name, case.grid, None, case.flat, check=True, schedule=schedule, seed=seed,
        max_steps=_LEAST_STEPS,
    )  # fmt: skip
    assert case.errors() == []
    assert not report.findings
    return case.arguments[2]


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize(
    ("name", "ctas"), [("matmul_f16", 2), ("matmul_f16", 4), ("matmul_large_f16", 2)]
)
def test_every_trip_count_gives_the_same_bits(name: str, ctas: int, schedule: str) -> None:
    """Columns are cut where rows would be fewer than an instruction has: boxes of A, too."""
    shared, alone = ptx(name, ctas), ptx(name, 1)
    assert f".reqnctapercluster {ctas}" in shared
    assert ".blocksareclusters" in shared
    assert "multicast::cluster" in shared
    assert "cluster" not in alone.replace("shared::cluster", "").replace("release.cluster", "")
    step = 32 if name == "matmul_f16" else 64
    for k in (8, 3 * step + 8, 7 * step):
        np.testing.assert_array_equal(
            product(shared, k, schedule, name), product(alone, k, name=name)
        )


def test_a_loop_that_does_not_run() -> None:
    a, b = np.zeros((64, 0), np.float16), np.zeros((0, 64), np.float16)
    out = np.ones((64, 64), np.float16)
    flat = cases.Case("matmul_f16", (1, 1, 1), (a, b, out), (None, None, None)).flat
    tile_sim.Module(ptx("matmul_f16", 2)).launch("matmul_f16", (1, 1, 1), None, flat, check=True)
    assert not out.any()


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_chained_products_are_cut_along_rows(schedule: str) -> None:
    """Attention: keys and values go to all blocks, queries and results are each block's own."""
    name = next(name for name in cases.NAMES if name.startswith("attention"))
    case, text = cases.case(name), ptx(name, 2)
    assert ".reqnctapercluster 2" in text
    report = tile_sim.Module(text).launch(
        name, case.grid, None, case.flat, check=True, schedule=schedule
    )
    assert case.errors() == []
    assert not report.findings


def _turned(ctas: int) -> str:
    """out = a b, then turned = transpose(out) read back; 64 x 64, f32, and a print."""
    kernel = Kernel()
    kernel.load("%a", (64, 32), "f16")
    kernel.load("%b", (32, 64), "f16")
    out, kind = kernel.view((64, 64), "f32")
    sums = tile((64, 64), "f32")
    sizes = "operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>"
    weak = 'mem_semantic = "weak"'
    for line in (
        f"%none = arith.constant dense<0.0> : {sums}",
        f'%c = "nv_tileaa.dot"(%a, %b, %none) {{{sizes}}} : ({tile((64, 32), "f16")}, '
        f"{tile((32, 64), 'f16')}, {sums}) -> {sums}",
        f'%stored = "nv_tileaa.tiled_store"({out}, %c, %zero, %zero) {{{weak}, '
        f"operandSegmentSizes = array<i32: 1, 1, 2, 0>}} : ({kind}, {sums}, i32, i32) -> "
        "!nv_tileaa.mem_token",
        f'%back, %read = "nv_tileaa.tiled_load"({out}, %zero, %zero, %stored) {{{weak}, '
        f"operandSegmentSizes = array<i32: 1, 2, 1>}} : ({kind}, i32, i32, "
        f"!nv_tileaa.mem_token) -> ({sums}, !nv_tileaa.mem_token)",
        '%turned = "nv_tileaa.permute"(%back) {permutation = array<i32: 1, 0>} : '
        f"({sums}) -> {sums}",
        '%said = "nv_tileaa.print"(%zero) {format = "once %d\\0A", '
        f"operandSegmentSizes = array<i32: 1, {', '.join('0' * 16)}>}} : (i32) -> "
        "!nv_tileaa.mem_token",
    ):
        kernel.op(line)
    kernel.store("%turned", (64, 64), "f32")
    text = kernel.text().replace("tt.num_ctas = 1", f"tt.num_ctas = {ctas}")
    made = tile_core.compile(
        text, "sm_90", opt_level=2, start_at="tileas-plan-cta", emit="ptx", registry=registry(),
        keep_stages=False,
    )  # fmt: skip
    return str(made.stage("ptx"))


def _run_turned(text: str, schedule: str) -> None:
    draw = np.random.default_rng(2)
    a, b = (draw.integers(-3, 4, shape).astype(np.float16) for shape in ((64, 32), (32, 64)))
    out, turned = (np.zeros((64, 64), np.float32) for _ in range(2))
    report = tile_sim.Module(text).launch(
        "kernel", (1, 1, 1), None, [a, b, out, turned], check=True, schedule=schedule,
        max_steps=_LEAST_STEPS,
    )  # fmt: skip
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(turned, wanted.T)
    assert not report.findings
    assert report.text == "once 0\n"


def test_blocks_meet_before_they_read_what_others_wrote() -> None:
    """And what the program does once is done by one of them."""
    text = _turned(2)
    assert ".reqnctapercluster 2" in text
    for schedule in ("late", "early", "random"):
        _run_turned(text, schedule)
    for half in re.finditer(r"\n[^\n]*barrier\.cluster\.[^\n]*", text):
        with pytest.raises((AssertionError, SimError)):
            _run_turned(text[: half.start()] + text[half.end() :], "late")


MUTANTS = {
    "no arrival": (r"\n[^\n]*mapa\.shared::cluster[^\n]*", ""),
    "arrivals at one block": (r"(mapa\.shared::cluster\.u64 %there, [^;]*), %r\d+;", r"\1, 0;"),
    "no wait": (r"\n[^\n]*mbarrier\.try_wait[^\n]*", ""),
    "constant phase": (r"(try_wait\.parity[^\n]*\], )%r\d+;", r"\g<1>0;"),
    "no meeting of the cluster": (r"\n[^\n]*barrier\.cluster\.[^\n]*", ""),
    "no meeting": (r"\n[^\n]*\bbar(rier)?\.\w*\.?sync[^\n]*", ""),
    "no expectation": (r"\n[^\n]*expect_tx[^\n]*", ""),
    "fewer bytes": (r"(expect_tx[^\n]*, )\d+;", r"\g<1>1024;"),
    "no copy": (r"\n[^\n]*cp\.async\.bulk\.tensor[^\n]*", ""),
    "to one block": (r"\.multicast::cluster (\[[^;]*\]), %rs\d+;", r" \1;"),
    "no init": (r"\n[^\n]*mbarrier\.init[^\n]*", ""),
    "one arrival fewer": (r"(mbarrier\.init[^\n]*, )2;", r"\g<1>1;"),
    "one arrival more": (r"(mbarrier\.init[^\n]*, )([12]);", r"\g<1>3;"),
    "no fence of initialisation": (r"\n[^\n]*fence\.mbarrier_init[^\n]*", ""),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_nothing_of_it_can_go(mutant: str) -> None:
    """Two warpgroups, which run apart: one alone is a meeting of its warps in each product."""
    text = ptx("matmul_f16", 2, warps=8)
    pattern, instead = MUTANTS[mutant]
    found = list(re.finditer(pattern, text))
    assert found
    if mutant == "no meeting":
        del found[1:]  # behind the loop, where no copy follows
    if mutant == "arrivals at one block":
        del found[:1]  # which that one is for
    for number, m in enumerate(found):
        broken = text[: m.start()] + m.expand(instead) + text[m.end() :]
        assert _is_caught(broken), f"{mutant} {number} of {len(found)} was not found out"


def _is_caught(text: str) -> bool:
    for schedule, seed in (("late", 0), ("early", 0), ("random", 0), ("random", 1)):
        try:
            product(text, 32 * 9, schedule, seed=seed)
        except (AssertionError, SimError):
            return True
    return False
