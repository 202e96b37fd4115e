"""Attention of blocks that share a multiprocessor: weights lie where scores were."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.removals import SCHEDULES, is_caught
from support.tensor_attention import ROOT, Attention, compiled, ptx
from support.tensor_attention import attend as run

import tile_core

SIZE = 128


def what(warps: int, *, causal: bool = False, keys: int = SIZE) -> Attention:
    """Of so many warps in each of two blocks, by tiles of `keys`."""
    hints = f"occupancy=2, num_worker_warps={warps}"
    return Attention(keys=keys, causal=causal, hints=hints)


def attention(warps: int, *, causal: bool = False, keys: int = SIZE) -> str:
    """Its PTX."""
    return ptx(what(warps, causal=causal, keys=keys))


def attend(
    text: str, schedule: str, block: int = 0, *, causal: bool = False, keys: int = SIZE
) -> np.ndarray:
    """One block of queries, three tiles of keys, or as many as causal ones have."""
    return run(Attention(keys=keys, causal=causal), text, schedule, block)


def test_two_blocks_have_room() -> None:
    """Half of the columns each; both parts of the weights' product begin where they are stored."""
    for warps in (4, 8):
        text = attention(warps)
        assert re.findall(r"tcgen05\.alloc[^;]*, (\d+);", text) == ["256"]
        assert ".minnctapersm 2" in text
        # Queries by the first keys; in the loop six steps of 16 keys and two, then all of depth.
        sizes = [len(re.findall(r"tcgen05\.mma", one)) for one in text.splitlines()]
        assert [size for size in sizes if size] == [8, 6, 2, 8]


def test_two_blocks_where_no_hint_says_how_many() -> None:
    """They are worth more than registers; one, where the hint says so."""
    made = compiled(Attention(hints="occupancy=None"))
    assert ".minnctapersm 2" in str(made.stage("ptx"))
    assert any("2 blocks of a multiprocessor at once" in one.message for one in made.remarks)
    assert ".minnctapersm 2" not in ptx(Attention(hints="occupancy=1"))


#: Sums of 128 columns: S of 64, and O of 64. Short tiles have four blocks where the hint says two.
FOUR = [
    Attention(rows, 64, 64, causal, f"occupancy={blocks}")
    for rows, blocks in ((64, 2), (128, 4))
    for causal in (False, True)
]


@pytest.mark.parametrize("what", FOUR, ids=["64", "64 masked", "128", "128 masked"])
def test_four_blocks_have_room(what: Attention) -> None:
    """Of four warps each, with as many registers in all as two of eight."""
    text = ptx(what)
    assert ".minnctapersm 4" in text
    assert ".reqntid 128" in text
    assert re.findall(r"tcgen05\.alloc[^;]*, (\d+);", text) == ["128"]
    for schedule in SCHEDULES:
        run(what, text, schedule, int(what.causal))


def test_one_block_where_the_hint_says_one() -> None:
    text = ptx(Attention(64, 64, 64, hints="occupancy=1"))
    assert ".minnctapersm" not in text or ".minnctapersm 1" in text


def test_four_warps_have_the_rows_of_short_tiles() -> None:
    """Eight would have half of each row, and meet for what folds rows."""
    text = ptx(Attention(64, 64, 128, hints="occupancy=2"))
    assert ".minnctapersm 2" in text
    assert ".reqntid 128" in text
    assert ".reqntid 256" in ptx(Attention(64, 64, 128, hints="occupancy=2, num_worker_warps=8"))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_results(schedule: str) -> None:
    attend(attention(4), schedule)


@pytest.mark.parametrize("schedule", ["late", "random"])
def test_results_of_threads_that_share_rows(schedule: str) -> None:
    """Eight warps: four lanes have a row, and what each adds is added up behind the products."""
    attend(attention(8), schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_with_a_mask(schedule: str) -> None:
    """A branch around the mask changes scores in tensor memory: all else is as without one."""
    text = attention(8, causal=True)
    sizes = [len(re.findall(r"tcgen05\.mma", one)) for one in text.splitlines()]
    assert [size for size in sizes if size] == [8, 6, 2, 8]
    attend(text, schedule, 1, causal=True)


@pytest.mark.parametrize("keys", [32, 64])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_sum_that_threads_would_hold_twice(schedule: str, keys: int) -> None:
    """64 registers of 128, though weights had columns of their own: by 64 keys it is scaled in
    tensor memory, a few columns at a time; by 32 weights are stored at once, where scores were.
    """
    text = attention(8, keys=keys)
    assert re.findall(r"tcgen05\.alloc[^;]*, (\d+);", text) == ["256"]
    stores = text.count("tcgen05.st")  # of weights beside scores: two
    assert stores == 1 if keys == 32 else stores > 4
    attend(text, schedule, keys=keys)


@pytest.mark.parametrize(
    "dropped", [r"tcgen05\.st[^;]*; ", r"tcgen05\.wait::st[^;]*;", r"tcgen05\.wait::ld[^;]*;"]
)
def test_nothing_of_a_mask_can_go(dropped: str) -> None:
    """The branch reads scores, adds to them and stores them before all read what is there."""
    text = attention(8, causal=True)
    loop = text[text.index("tcgen05.commit") :]
    branch = re.search(r"tcgen05\.ld.*?tcgen05\.wait::st[^;]*;", loop, re.DOTALL)
    assert branch is not None
    assert "ex2" not in branch[0]  # the mask alone
    start, end = (len(text) - len(loop) + place for place in branch.span())
    one = re.compile(dropped).search(text, start, end)
    assert one is not None
    broken = text[: one.start()] + text[one.end() :]
    assert is_caught(lambda schedule: attend(broken, schedule, 1, causal=True))


def fails(text: str) -> bool:
    return is_caught(lambda schedule: attend(text, schedule))


#: By instruction, how many of those in the loop the simulator does not miss.
IN_LOOP = {
    r"tcgen05\.commit": 0,
    r"mbarrier\.arrive\.shared": 0,
    r"mbarrier\.arrive\.expect_tx": 0,
    r"tcgen05\.st": 0,
}


def loop_of(text: str) -> tuple[int, int]:
    """Where what follows the first product begins and ends: the loop's own, and its last reads."""
    first = next(one.end() for one in re.finditer(r"tcgen05\.commit[^;]*;", text))
    return first, text.rindex("stmatrix") if "stmatrix" in text else len(text)


@pytest.mark.slow
@pytest.mark.parametrize("instruction", IN_LOOP)
def test_nothing_of_the_loop_can_go(instruction: str) -> None:
    text = attention(4)
    start, end = loop_of(text)
    found = [one for one in re.finditer(rf"{instruction}[^;]*;", text) if start < one.start() < end]
    assert found
    missed = [one for one in found if not fails(text[: one.start()] + text[one.end() :])]
    assert len(missed) <= IN_LOOP[instruction], (instruction, len(missed), len(found))


def waits(text: str) -> list[re.Match[str]]:
    pattern = r"mbarrier\.try_wait\.parity\.shared\.b64 (%\w+), (\[[^\]]*\]), (%\w+);"
    start = loop_of(text)[0]
    return [one for one in re.finditer(pattern, text) if one.start() > start]


def test_waits_for_each_part_of_the_weights() -> None:
    """The thread that begins products waits for all: once for each part."""
    text = attention(4)
    arrivals = re.findall(r"mbarrier\.arrive\.shared\.b64 [^;]*, (\[[^\]]*\]);", text)
    assert len(arrivals) == 2
    for place in arrivals:
        (one,) = [found for found in waits(text) if found[2] == place]
        broken = f"setp.eq.u32 {one[1]}, 0, 0;"
        assert fails(text[: one.start()] + broken + text[one.end() :]), place


@pytest.mark.slow
def test_waits_are_for_what_is_read_behind_them() -> None:
    text = attention(4)
    # The last one is for a product that nobody reads, and for all that began before it.
    for place, one in enumerate(waits(text)):
        other = (
            f"{{ .reg .b32 wrong; xor.b32 wrong, {one[3]}, 1; "
            f"mbarrier.try_wait.parity.shared.b64 {one[1]}, {one[2]}, wrong; }}"
        )
        for instead in (f"setp.eq.u32 {one[1]}, 0, 0;", other):
            assert fails(text[: one.start()] + instead + text[one.end() :]), (place, instead)


#: Blocks of queries in turn by one thread block, each with as many tiles of keys as it is told.
_PERSISTENT = """
import sys
sys.path[:0] = sys.argv[2:]
from tile_sim import cutile
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = "sm_100", "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule=sys.argv[1])
import cuda.tile as ct
import numpy as np
from wide_attention import attend
rng = np.random.default_rng(0)
q, k, v = (rng.normal(size=(384, 128)).astype(np.float16) for _ in range(3))
q = (q * 0.1).astype(np.float16)
for lengths in ([2, 0, 1], [0, 1, 3]):
    out = np.ones((384, 128), np.float16)
    ct.launch(None, (1, 1, 1), attend, (q, k, v, np.array(lengths, np.int32), out, 3, 1))
    for block, tiles in enumerate(lengths):
        rows = slice(128 * block, 128 * block + 128)
        scores = q[rows].astype(np.float64) @ k[: 128 * tiles].T.astype(np.float64)
        weights = np.exp2(scores - scores.max(1, keepdims=True, initial=-1e30))
        total = np.maximum(weights.sum(1, keepdims=True), 1e-30)
        np.testing.assert_allclose(out[rows], weights / total @ v[: 128 * tiles], atol=6e-3)
"""


#: Scores that a branch changes, by 128 keys, and what NumPy has in their place.
_BRANCHES = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from tile_sim import cutile
cutile.settings.arch, cutile.settings.compiler, cutile.settings.opt_level = "sm_100", "tilec", 3
cutile.settings.strict = True
cutile.settings.launch.update(schedule="random")
made = []
cutile.compiler.watch = made.append
import cuda.tile as ct
import numpy as np
from wide_attention import attend
rng = np.random.default_rng(0)
q, k, v = (rng.normal(size=(384, 128)).astype(np.float16) for _ in range(3))
q = (q * 0.1).astype(np.float16)
out = np.ones((128, 128), np.float16)
kernel = attend.replace_hints(num_worker_warps=8)
ct.launch(None, (1, 1, 1), kernel, (q[:128], k, v, np.array([3], np.int32), out, 1, 1))
Path(sys.argv[1]).write_bytes(made[-1].bytecode)
scores = q[:128].astype(np.float64) @ k.astype(np.float64).T
CHANGE
weights = np.exp2(scores - scores.max(1, keepdims=True))
wanted = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
np.testing.assert_allclose(out, wanted, atol=6e-3)
"""
_SCORES = "            now = max(largest"
#: By what the branch does: its program, NumPy's, and why sums then stay in registers.
BRANCHES = {
    "each": ("scores * scores", "scores[:, 128:256] **= 2", None),
    "rows": (
        "scores - ct.max(scores, axis=-1, keepdims=True)",
        "scores[:, 128:256] -= scores[:, 128:256].max(1, keepdims=True)",
        "the branch that changes the first one has 'nv_tileas.reduce'",
    ),
}


@pytest.mark.parametrize("kind", BRANCHES)
def test_branches_change_each_element_by_itself(kind: str, tmp_path: Path) -> None:
    """In tensor memory; those that fold rows keep the form of registers, and say so."""
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    change, wanted, why = BRANCHES[kind]
    source = (ROOT / "tests" / "support" / "persistent_attention.py").read_text()
    branch = f"            if j % 2 == 1:\n                scores = {change}\n{_SCORES}"
    for before, after in (
        ("_SIZE = 64", "_SIZE = 128"), ("@ct.kernel", "@ct.kernel(occupancy=2)"), (_SCORES, branch),
    ):  # fmt: skip
        assert before in source
        source = source.replace(before, after)
    (tmp_path / "wide_attention.py").write_text(source)
    file, program = tmp_path / "attention.tileirbc", _BRANCHES.replace("CHANGE", wanted)
    command = [sys.executable, "-c", program, str(file), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    made = tile_core.compile(file.read_bytes(), "sm_100", opt_level=3, emit="ptx")
    sizes = [len(re.findall(r"tcgen05\.mma", one)) for one in str(made.stage("ptx")).splitlines()]
    assert [size for size in sizes if size] == ([8, 6, 2, 8] if why is None else [8, 8, 8])
    said = [remark.message for remark in made.remarks if "sum in registers" in remark.message]
    assert len(said) == (why is not None)
    assert all(str(why) in one for one in said)


@pytest.mark.parametrize("schedule", ["late", pytest.param("random", marks=pytest.mark.slow)])
def test_loops_that_run_several_times_or_not_at_all(schedule: str, tmp_path: Path) -> None:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    source = (ROOT / "tests" / "support" / "persistent_attention.py").read_text()
    for before, after in (("_SIZE = 64", "_SIZE = 128"), ("@ct.kernel", "@ct.kernel(occupancy=2)")):
        assert before in source
        source = source.replace(before, after)
    (tmp_path / "wide_attention.py").write_text(source)
    command = [sys.executable, "-c", _PERSISTENT, schedule, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
