"""Chained products by tcgen05 that run beside the rest of a loop: attention, nothing too many."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tile_sim
from support.removals import SCHEDULES, is_caught

import tile_core

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs

_MOST_STEPS = 20_000  # of a kernel that ends; mutants may wait for ever


@cache
def attention(strategy: str = "unspecialize", tensor_maps: str = "host") -> str:
    """`attention_f16` (64 rows, 64 keys, depth 64) for sm_100 at -O2."""
    bytecode = (EXAMPLES / "bytecode" / "attention_f16.tileirbc").read_bytes()
    options = {
        "pipeline-strategy": strategy,
        "tma-descriptors": tensor_maps,
        "unspecialized-pipeline-num-stages": 2,
    }
    made = tile_core.compile(bytecode, "sm_100", opt_level=2, options=options, emit="ptx")
    return str(made.stage("ptx"))


def attend(text: str, length: int, schedule: str = "late") -> np.ndarray:
    """One block of it: 64 queries, so many keys."""
    case = cases.attention("attention_f16", "float16", (1, length, 64), 64)
    report = tile_sim.Module(text).launch(
        "attention_f16", (1, 1, 1), None, case.flat, check=True, schedule=schedule,
        max_steps=_MOST_STEPS,
    )  # fmt: skip
    assert not report.findings
    np.testing.assert_allclose(case.arguments[3][:, :64], case.expected[3][:, :64], atol=2e-3)
    return case.arguments[3]


def products(text: str) -> int:
    """Groups of products that somebody waits for."""
    return len(re.findall(r"tcgen05\.commit", text))


def test_the_first_product_is_begun_before_the_loop() -> None:
    """It and those of the loop are awaited in the loop and behind it; nothing is, by threads."""
    assert products(attention("none")) == 2
    # That of the first tile, one each in the loop, and what says that there is none yet.
    assert products(attention()) == 4
    assert products(attention(tensor_maps="off")) == 2  # threads copy: one after the other


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_same_bits(schedule: str) -> None:
    for length in (8, 64, 72, 136, 328):
        found = attend(attention(), length, schedule)
        np.testing.assert_array_equal(found, attend(attention("none"), length))


#: What the simulator does not miss. Meetings behind initialisations of barriers and behind what is
#: stored before the loop: another follows, or threads read what they stored themselves. Fences in
#: front of meetings and behind them: around allocation, deallocation and the epilogue, as in
#: test_run_tensor_dot; behind a wait for the first product, and for one that nobody reads.
SPARE = {
    r"\bbar(rier)?\.\w*\.?sync": 7,
    r"tcgen05\.fence::before_thread_sync": 4,
    r"tcgen05\.fence::after_thread_sync": 6,
}
INSTRUCTIONS = (
    r"tcgen05\.commit", r"mbarrier\.arrive\.shared", r"tcgen05\.wait::ld",
    r"tcgen05\.st", r"\bbar(rier)?\.\w*\.?sync", r"mbarrier\.arrive\.expect_tx",
    r"cp\.async\.bulk\.tensor", r"mbarrier\.init",
    r"tcgen05\.fence::before_thread_sync", r"tcgen05\.fence::after_thread_sync",
)  # fmt: skip


#: Instructions of which there are so many that to leave out each in turn takes minutes.
MANY = [one for one in INSTRUCTIONS if "fence" in one]


@pytest.mark.parametrize(
    "instruction",
    [pytest.param(i, marks=pytest.mark.slow) if i in MANY else i for i in INSTRUCTIONS],
)
def test_nothing_of_it_can_go(instruction: str) -> None:
    text = attention()
    found = list(re.finditer(rf"{instruction}[^;]*;", text))
    assert found
    missed = [one for one in found if not fails(text[: one.start()] + text[one.end() :])]
    assert len(missed) <= SPARE.get(instruction, 0), (instruction, len(missed), len(found))


#: A wait that another one makes good, by place: for the last tile's product, which nobody reads.
#: Waits for another phase are seen.
COVERED = {8: ("drop",)}


def test_waits_are_for_what_is_read_behind_them() -> None:
    text = attention()
    pattern = r"mbarrier\.try_wait\.parity\.shared\.b64 (%\w+), (\[[^\]]*\]), (%\w+);"
    found = list(re.finditer(pattern, text))
    # Those of queries and of the first tile; two stages', two products' and two for all others in
    # the loop.
    assert len(found) == 10
    for place, one in enumerate(found):
        other = (
            f"{{ .reg .b32 wrong; xor.b32 wrong, {one[3]}, 1; "
            f"mbarrier.try_wait.parity.shared.b64 {one[1]}, {one[2]}, wrong; }}"
        )
        mutants = {"drop": f"setp.eq.u32 {one[1]}, 0, 0;", "phase": other}
        for kind, instead in mutants.items():
            if kind not in COVERED.get(place, ()):
                broken = text[: one.start()] + instead + text[one.end() :]
                assert fails(broken), (place, kind)


def fails(text: str) -> bool:
    return is_caught(lambda schedule: attend(text, 328, schedule))


#: Causal attention of the benchmarks: one loop for tiles below the diagonal, one for those on it,
#: which become one where bodies may differ in so many values.
_CAUSAL = """
import sys
sys.path[:0] = sys.argv[2:]
from tile_sim import cutile
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = "sm_100", "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=sys.argv[1])
cutile.settings.pass_options = {"cuda-tile-loop-join.differences": MOST}
import cuda.tile as ct
import numpy as np
from speed_kernels import attention
rng = np.random.default_rng(0)
q, k, v = (rng.normal(size=(1, 1, 256, 64)).astype(np.float16) for _ in range(3))
out = np.zeros_like(q)
ct.launch(None, (4, 1, 1), attention, (q, k, v, out, 0.125, 0, 64, 1, 64, 64, 1, True, True))
a, b, c = (x[0, 0].astype(np.float64) for x in (q, k, v))
scores = np.where(np.tril(np.ones((256, 256), bool)), 0.125 * (a @ b.T), -np.inf)
weights = np.exp(scores - scores.max(1, keepdims=True))
wanted = weights / weights.sum(1, keepdims=True) @ c
np.testing.assert_allclose(out[0, 0], wanted, atol=4e-3)
"""


@pytest.mark.parametrize("most", [2, pytest.param(-1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_two_loops_of_chained_products(schedule: str, most: int) -> None:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    paths = [str(EXAMPLES.parent / "benchmarks"), str(EXAMPLES)]
    command = [sys.executable, "-c", _CAUSAL.replace("MOST", str(most)), schedule, *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


def test_stages_of_few_warps_and_two_blocks() -> None:
    """What a product leaves in tensor memory takes no registers of those that blocks share."""
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    hinted = "attention.replace_hints(occupancy=2, num_worker_warps=4)"
    program = _CAUSAL.replace("(4, 1, 1), attention", f"(2, 1, 1), {hinted}").replace("MOST", "2")
    program = program.replace("1, 64, 64, 1, True, True", "1, 128, 128, 1, True, True")
    assert hinted in program
    assert "128, 128" in program
    paths = [str(EXAMPLES.parent / "benchmarks"), str(EXAMPLES)]
    command = [sys.executable, "-c", program, "late", *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


#: Blocks of queries in turn by one thread block, each with as many tiles of keys as it is told.
_PERSISTENT = """
import sys
from tile_sim import cutile
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = "sm_100", "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=sys.argv[1])
sys.path[:0] = sys.argv[2:]
import numpy as np
from speed_kernels import ct
from support.persistent_attention import attend
rng = np.random.default_rng(0)
q, k, v = (rng.normal(size=(256, 64)).astype(np.float16) for _ in range(3))
for lengths in ([4, 0, 1, 3], [0, 0, 2, 1]):
    out = np.ones((256, 64), np.float16)
    ct.launch(None, (1, 1, 1), attend, (q, k, v, np.array(lengths, np.int32), out, 4, 1))
    for block, tiles in enumerate(lengths):
        rows = slice(64 * block, 64 * block + 64)
        scores = q[rows].astype(np.float64) @ k[: 64 * tiles].T.astype(np.float64)
        weights = np.exp2(scores - scores.max(1, keepdims=True, initial=-1e30))
        total = np.maximum(weights.sum(1, keepdims=True), 1e-30)
        np.testing.assert_allclose(out[rows], weights / total @ v[: 64 * tiles], atol=4e-3)
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_persistent_attention_with_loops_of_no_trips(schedule: str) -> None:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    paths = [str(EXAMPLES.parent / "benchmarks"), str(EXAMPLES), str(EXAMPLES.parent / "tests")]
    command = [sys.executable, "-c", _PERSISTENT, schedule, *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


#: What a step loads beside the tiles of its products, threads load where they use it; in a cluster,
#: whose products are made one after the other, it stays as it is.
_BIASED = """
import sys
from tile_sim import cutile
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = "sm_100", "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=sys.argv[1])
sys.path[:0] = sys.argv[3:]
import cuda.tile as ct
import numpy as np
import tile_core
from support.biased_attention import biased
(tile, ctas), made = map(int, sys.argv[2].split(",")), []
cutile.compiler.watch = lambda done: made.append(done.bytecode)
rng = np.random.default_rng(0)
q, k, v = (rng.normal(size=(3 * tile, 64)).astype(np.float16) / 2 for _ in range(3))
bias = rng.normal(size=(3 * tile, 3 * tile)).astype(np.float16)
slopes = rng.normal(size=3 * tile).astype(np.float32)
out = np.zeros_like(q)
follow = {"tileas-plan-cta.follow-hints": True}
cutile.settings.pass_options = follow
kernel = biased.replace_hints(num_ctas=ctas)
ct.launch(None, (3, 1, 1), kernel, (q, k, v, bias, slopes, out, 64, tile))
a, b, c = (x.astype(np.float64) for x in (q, k, v))
scores = a @ b.T + bias + slopes
weights = np.exp2(scores - scores.max(1, keepdims=True))
np.testing.assert_allclose(out, weights / weights.sum(1, keepdims=True) @ c, atol=4e-3)
def found(text, **options):
    done = tile_core.compile(made[-1], "sm_100", opt_level=3, emit="ptx", **options)
    return any(text in str(remark) for remark in done.remarks)
assert found("one after the other", pass_options=follow) == (ctas > 1)
assert not found("one after the other")
assert found("not the cluster of 2 of its hint") == (ctas > 1)
"""


@pytest.mark.parametrize(("tile", "ctas"), [(64, 1), (128, 1), (128, 2)])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_bias_is_loaded_beside_products(schedule: str, tile: int, ctas: int) -> None:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    paths = [str(EXAMPLES.parent / "tests")]
    command = [sys.executable, "-c", _BIASED, schedule, f"{tile},{ctas}", *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
