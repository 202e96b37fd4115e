"""Blocks of a cluster that share a tile block: the same bits as one block, nothing too many."""

from __future__ import annotations

import re
import subprocess
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

_DYNAMIC = -(2**63)  # extent
_LEAST_STEPS = 5_000  # of a kernel that ends; mutants may wait for ever


@cache
def ptx(name: str, ctas: int, warps: int = 0, target: str = "sm_90") -> str:
    """At -O2; 0 warps are the compiler's choice. Three stages, so that short loops go around."""
    bytecode = (EXAMPLES / "bytecode" / f"{name}.tileirbc").read_bytes()
    options = {"num-ctas": ctas, "num-warps": warps, "unspecialized-pipeline-num-stages": 3}
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
    ("name", "ctas"),
    [
        ("matmul_f16", 2), ("matmul_f16", 4),
        pytest.param("matmul_large_f16", 2, marks=pytest.mark.slow),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize("ctas", [2, 4])
def test_blocks_that_copy_nothing_to_one_another_give_the_same_bits(
    ctas: int, schedule: str
) -> None:
    """Four have a square of the sums each: rows and columns of the tile block are cut."""
    shared, alone = (ptx("matmul_f16", count, target="sm_120") for count in (ctas, 1))
    assert f".reqnctapercluster {ctas}" in shared
    assert "multicast::cluster" not in shared
    for k in (8, 3 * 32 + 8, 7 * 32):
        np.testing.assert_array_equal(product(shared, k, schedule), product(alone, k))


def test_each_bit_of_a_rank_cuts_one_axis() -> None:
    """With one of them in place of the other, some parts are made twice and others never."""
    text = ptx("matmul_f16", 4, target="sm_120")
    shifts = list(re.finditer(r"(%[\w]+), (%r\d+), 1;", text))
    ranks = set(re.findall(r"mov\.u32\s+(%r\d+), %cluster_ctarank;", text))
    halved = [m for m in shifts if m[2] in ranks]
    assert halved
    for m in halved:
        broken = text[: m.start()] + f"{m[1]}, {m[2]}, 0;" + text[m.end() :]
        with pytest.raises((AssertionError, SimError)):
            product(broken, 3 * 32)


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


def _row_and_corner() -> Kernel:
    """out = a b + row of 64 x 64, which is cut along rows, and then along columns; the row is
    stored, which is cut the second time alone, and then a corner, which is never cut.
    """
    kernel = Kernel()
    kernel.load("%a", (64, 32), "f16")
    kernel.load("%b", (32, 64), "f16")
    kernel.load("%row", (1, 64), "f32")
    kernel.load("%corner", (1, 1), "f32")
    sums, row, corner = (tile(shape, "f32") for shape in ((64, 64), (1, 64), (1, 1)))
    sizes = "operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>"
    for line in (
        f"%none = arith.constant dense<0.0> : {sums}",
        f'%c = "nv_tileaa.dot"(%a, %b, %none) {{{sizes}}} : ({tile((64, 32), "f16")}, '
        f"{tile((32, 64), 'f16')}, {sums}) -> {sums}",
        f'%rows = "nv_tileaa.broadcast"(%row) : ({row}) -> {sums}',
        f'%sum = "nv_tileaa.addf"(%c, %rows) : ({sums}, {sums}) -> {sums}',
    ):
        kernel.op(line)
    token = ""
    for number, (value, shape, type_) in enumerate(
        (("%row", (1, 64), row), ("%corner", (1, 1), corner))
    ):
        out, kind = kernel.view(shape, "f32")
        kernel.op(
            f'%t{number} = "nv_tileaa.tiled_store"({out}, {value}, %zero, %zero{token}) '
            f'{{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, {number}>}} : '
            f"({kind}, {type_}, i32, i32{', !nv_tileaa.mem_token' if token else ''}) -> "
            "!nv_tileaa.mem_token"
        )
        token = f", %t{number}"
    kernel.store("%sum", (64, 64), "f32")
    return kernel


def test_blocks_meet_where_all_of_them_are() -> None:
    """And not in a branch that some take for a store of what was whole in the first halving."""
    text = _row_and_corner().text().replace("tt.num_ctas = 1", "tt.num_ctas = 4")
    made = tile_core.compile(
        text, "sm_120", opt_level=2, start_at="tileas-plan-cta", stop_after="tileas-plan-cta",
        registry=registry(), keep_stages=False,
    )  # fmt: skip
    lines = str(made.output).splitlines()
    meetings = [line for line in lines if "nv_tileas.cluster_sync" in line]
    top = next(line for line in lines if "nv_tileas.cta_rank" in line)
    assert [line.index('"') for line in meetings] == [top.index("%")]


def _large(target: str) -> str:
    """out = a b of 256 x 32 x 256, f16 in, f32 out, and a print; at -O3."""
    kernel = Kernel(num_warps=0)
    kernel.load("%a", (256, 32), "f16")
    kernel.load("%b", (32, 256), "f16")
    sums = tile((256, 256), "f32")
    for line in (
        f"%none = arith.constant dense<0.0> : {sums}",
        '%c = "nv_tileaa.dot"(%a, %b, %none) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : '
        f"({tile((256, 32), 'f16')}, {tile((32, 256), 'f16')}, {sums}) -> {sums}",
        '%said = "nv_tileaa.print"(%zero) {format = "once %d\\0A", '
        f"operandSegmentSizes = array<i32: 1, {', '.join('0' * 16)}>}} : (i32) -> "
        "!nv_tileaa.mem_token",
    ):
        kernel.op(line)
    kernel.store("%c", (256, 256), "f32")
    made = tile_core.compile(
        kernel.text(), target, opt_level=3, start_at="tileas-plan-cta", emit="ptx",
        registry=registry(), keep_stages=False,
    )  # fmt: skip
    return str(made.stage("ptx"))


@pytest.mark.parametrize("target", ["sm_80", "sm_89"])
def test_where_there_are_no_clusters_one_block_makes_the_parts_in_turn(target: str) -> None:
    """Each sum once, and what the program does once, once."""
    text = _large(target)
    assert "cluster" not in text
    draw = np.random.default_rng(4)
    a, b = (draw.integers(-3, 4, shape).astype(np.float16) for shape in ((256, 32), (32, 256)))
    for schedule in ("late", "early", "random"):
        out = np.full((256, 256), np.nan, np.float32)
        report = tile_sim.Module(text).launch(
            "kernel", (1, 1, 1), None, [a, b, out], check=True, schedule=schedule
        )
        np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
        assert not report.findings
        assert report.text == "once 0\n"


def _column_sums(columns: int, ctas: int, target: str) -> str:
    """Sums and sums of squares along the rows of x, of `columns` in tiles of 32 x 1024."""
    x = f"!nv_tileaa.memref<f32, array<i64: {_DYNAMIC}, {columns}>, array<i64: {columns}, 1>>"
    of_x = f'!nv_tileaa.tiled_view<{x}, array<i32: 32, 1024>, array<i32: 0, 1>, "zero">'
    out = f"!nv_tileaa.memref<f32, array<i64: {columns}>, array<i64: 1>>"
    of_out = f'!nv_tileaa.tiled_view<{out}, array<i32: 1024>, array<i32: 0>, "">'
    big, line, pointer = tile((32, 1024), "f32"), tile((1024,), "f32"), "!nv_tileaa.ptr<f32, 1>"
    kernel = Kernel(num_warps=0)
    given, sums, squares = (kernel.param(pointer) for _ in range(3))
    rows, steps = (kernel.param("i32") for _ in range(2))
    body = [
        f'%xm = "nv_tileaa.make_memref"({given}, {rows}) {{operandSegmentSizes = '
        f"array<i32: 1, 1, 0>}} : ({pointer}, i32) -> {x}",
        f'%xv = "nv_tileaa.block_tile"(%xm) : ({x}) -> {of_x}',
        "%zero = arith.constant 0 : i32", "%one = arith.constant 1 : i32",
        '%at = "nv_tileaa.get_program_id"() {axis = 0 : i32} : () -> i32',
        f"%none = arith.constant dense<0.0> : {big}",
        f"%r:2 = scf.for %i = %zero to {steps} step %one iter_args(%s = %none, %q = %none) -> "
        f"({big}, {big}) : i32 {{",
        '%x, %read = "nv_tileaa.tiled_load"(%xv, %i, %at) {mem_semantic = "weak", '
        f"operandSegmentSizes = array<i32: 1, 2, 0>}} : ({of_x}, i32, i32) -> "
        f"({big}, !nv_tileaa.mem_token)",
        f"%t = arith.addf %s, %x : {big}", f"%p = arith.mulf %x, %x : {big}",
        f"%u = arith.addf %q, %p : {big}", f"scf.yield %t, %u : {big}, {big}", "}",
    ]  # fmt: skip
    for number, where in enumerate((sums, squares)):
        body += [
            f'%f{number} = "nv_tileaa.reduce"(%r#{number}) ({{', "^bb0(%a: f32, %b: f32):",
            "%c = arith.addf %a, %b : f32", '"nv_tileaa.yield"(%c) : (f32) -> ()',
            f"}}) {{axis = 0 : i32, identities = [0.0 : f32]}} : ({big}) -> {line}",
            f'%m{number} = "nv_tileaa.make_memref"({where}) {{operandSegmentSizes = '
            f"array<i32: 1, 0, 0>}} : ({pointer}) -> {out}",
            f'%v{number} = "nv_tileaa.block_tile"(%m{number}) : ({out}) -> {of_out}',
            f'%w{number} = "nv_tileaa.tiled_store"(%v{number}, %f{number}, %at) '
            '{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 0>} : '
            f"({of_out}, {line}, i32) -> !nv_tileaa.mem_token",
        ]  # fmt: skip
    for each in body:
        kernel.op(each)
    made = tile_core.compile(
        kernel.text().replace("tt.num_ctas = 1", f"tt.num_ctas = {ctas}"), target, opt_level=3,
        start_at="tileas-plan-cta", emit="ptx", registry=registry(), keep_stages=False,
    )  # fmt: skip
    return str(made.stage("ptx"))


@pytest.mark.parametrize(
    ("target", "ctas", "found"),
    [("sm_90", 0, 4), ("sm_100", 0, 4), ("sm_120", 0, 4), ("sm_90", 8, 8), ("sm_80", 0, 1)],
)
def test_tiles_that_a_loop_carries_are_cut(target: str, ctas: int, found: int) -> None:
    """Where registers do not suffice; the last tiles leave the tensor both ways."""
    rows, columns = 70, 1024 + 300
    text = _column_sums(columns, ctas, target)
    assert (f".reqnctapercluster {found}" in text) == (found > 1)
    x = np.random.default_rng(5).integers(-4, 5, (rows, columns)).astype(np.float32)
    for schedule in ("late", "early", "random"):
        sums, squares = np.full((2, columns), np.nan, np.float32)
        report = tile_sim.Module(text).launch(
            "kernel", (2, 1, 1), None, [x, sums, squares, rows, -(-rows // 32)], check=True,
            schedule=schedule,
        )  # fmt: skip
        np.testing.assert_array_equal(sums, x.sum(axis=0))
        np.testing.assert_array_equal(squares, (x * x).sum(axis=0))
        assert not report.findings


#: Causal attention in two loops, whose stages lie in the same memory; with more arguments, without
#: what makes blocks meet between them.
_TWO_LOOPS = """
import sys
sys.path[:0] = sys.argv[1:3]
from tile_sim import cutile
from tile_tileas.passes import insert_barriers
if sys.argv[3:]:
    assert insert_barriers.goes_to_all, "what is replaced has another name"
    insert_barriers.goes_to_all = lambda op: False
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = "sm_90", "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule="late")
cutile.settings.pass_options = {
    "cuda-tile-loop-join.differences": -1, "tileas-plan-cta.follow-hints": True,
}
import cuda.tile as ct
import numpy as np
from speed_kernels import attention
rng = np.random.default_rng(0)
q, k, v = (rng.normal(size=(1, 1, 256, 64)).astype(np.float16) for _ in range(3))
out = np.zeros_like(q)
hinted = attention.replace_hints(num_ctas=2)
ct.launch(None, (4, 1, 1), hinted, (q, k, v, out, 0.125, 0, 64, 1, 64, 64, 1, True, True))
a, b, c = (x[0, 0].astype(np.float64) for x in (q, k, v))
scores = np.where(np.tril(np.ones((256, 256), bool)), 0.125 * (a @ b.T), -np.inf)
weights = np.exp(scores - scores.max(1, keepdims=True))
np.testing.assert_allclose(out[0, 0], weights / weights.sum(1, keepdims=True) @ c, atol=4e-3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [False, True])
def test_blocks_meet_before_a_loop_fills_what_others_may_read(mutant: bool) -> None:
    """One block copies to all, of which another one may still read stages of the loop before."""
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    command = [sys.executable, "-c", _TWO_LOOPS, str(EXAMPLES.parent / "benchmarks"), str(EXAMPLES)]
    command += ["mutant"] * mutant
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode != 0) == mutant, done.stderr[-2000:]
    assert not mutant or "still being written" in done.stderr


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
