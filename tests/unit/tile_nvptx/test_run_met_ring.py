"""Loops by mma.sync whose tiles have one to three stages in turns; threads meet for each tile."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tile_sim
from support.removals import SCHEDULES, is_caught, without
from tile_tileas.pipelining import met_ring

import tile_core

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs

NAME, ROWS = "attention_f16", 64
TARGETS, STAGES = ["sm_80", "sm_120"], [1, 2, 3]


@cache
def ptx(stages: int, target: str = "sm_120") -> str:
    """Attention, made as if so many stages were what fits; 0: with none."""
    bytecode = (EXAMPLES / "bytecode" / f"{NAME}.tileirbc").read_bytes()
    options = {} if stages else {"pipeline-strategy": "none"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(met_ring, "stages_in_turns", lambda _one, turns, _stages: turns and stages)
        made = tile_core.compile(bytecode, target, opt_level=3, options=options, emit="ptx")
    return str(made.stage("ptx"))


def attend(text: str, length: int, schedule: str = "late") -> np.ndarray:
    case = cases.attention(NAME, "float16", (1, length, ROWS), ROWS)
    report = tile_sim.Module(text).launch(
        NAME, (1, 1, 1), None, case.flat, check=True, schedule=schedule
    )
    assert not report.findings
    np.testing.assert_allclose(case.arguments[3][:, :ROWS], case.expected[3][:, :ROWS], atol=2e-3)
    return case.arguments[3]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("stages", STAGES)
def test_every_trip_count_gives_the_same_bits(stages: int, schedule: str, target: str) -> None:
    text, still = ptx(stages, target), ptx(0, target)
    for length in (40, 72, 136, 200, 328):
        np.testing.assert_array_equal(attend(text, length, schedule), attend(still, length))


@pytest.mark.parametrize(("stages", "meetings"), [(1, 4), (2, 2), (3, 2)])
def test_threads_meet_before_each_tile(stages: int, meetings: int) -> None:
    """They copy, and wait for all but what is to come later; of one stage, they meet behind too."""
    text = ptx(stages)
    waits = set(re.findall(r"cp\.async\.wait_group (\d+)", text))
    assert waits == {str(max(0, stages - 2))}
    blocks = re.split(r"^\$L\w+:", text, flags=re.MULTILINE)
    loop = [block for block in blocks if "mma.sync" in block or "cp.async.wait_group" in block]
    assert sum(block.count("bar.sync") for block in loop) == meetings


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("instruction", [r"bar\.sync[^;]*;", r"cp\.async\.wait_group[^;]*;"])
def test_nothing_of_the_loop_can_go(instruction: str, stages: int, target: str) -> None:
    text = ptx(stages, target)
    first, last = text.index("cp.async.wait_group"), text.rindex("cp.async.commit_group")
    mutants = [text[:first] + one + text[last:] for one in without(text[first:last], instruction)]
    assert mutants
    assert all(is_caught(lambda how, text=text: attend(text, 328, how)) for text in mutants)


_BIASED = """
import sys
schedule, target, stages, *paths = sys.argv[1:]
sys.path[:0] = paths
from tile_sim import cutile
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = target, "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=schedule)
import cuda.tile as ct
import numpy as np
from support.biased_attention import biased
from tile_tileas.pipelining import met_ring, stage_count
stage_count.depth = lambda _demand, _room: 0
asked = []
def in_turns(_one, turns, _stages):
    asked.append(len(turns))
    return int(stages) if turns else 0
met_ring.stages_in_turns = in_turns
rng, tile = np.random.default_rng(0), 64
q, k, v = (rng.normal(size=(3 * tile, 64)).astype(np.float16) / 2 for _ in range(3))
bias = rng.normal(size=(3 * tile, 3 * tile)).astype(np.float16)
slopes = rng.normal(size=3 * tile).astype(np.float32)
out = np.zeros_like(q)
ct.launch(None, (3, 1, 1), biased, (q, k, v, bias, slopes, out, 64, tile))
assert asked == [2], asked
a, b, c = (x.astype(np.float64) for x in (q, k, v))
scores = a @ b.T + bias + slopes
weights = np.exp2(scores - scores.max(1, keepdims=True))
np.testing.assert_allclose(out, weights / weights.sum(1, keepdims=True) @ c, atol=4e-3)
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("stages", [1, 3])
def test_what_no_product_reads_is_loaded_beside_it(stages: int, schedule: str, target: str) -> None:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    paths = [str(EXAMPLES.parent / "tests")]
    command = [sys.executable, "-c", _BIASED, schedule, target, str(stages), *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
