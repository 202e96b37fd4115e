"""`--tune`: candidates by the model; and `tile_sim.time`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tile_sim
import tomli
from tile_time.tune import AXES, MOST, Candidate, Search, Tuning
from tile_time.tuned import Kernel, Script

from tile_core.cache import Cache
from tile_core.cli.main import run
from tile_core.diagnostics import ConfigurationError, TileError
from tile_core.machines import builtin_machines

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "examples" / "bytecode" / "matmul_large_f16.tileirbc"
A100 = builtin_machines()["a100"]
SIZE = 512


def _arguments() -> list[Any]:
    from tile_sim.arguments import with_shape

    return with_shape([np.zeros((SIZE, SIZE), np.float16) for _ in range(3)])


def _search(
    axes: Sequence[tuple[str, Sequence[str]]], grid: tuple[int, int, int] = (4, 4, 1), **more: Any
) -> Search:
    return Search(Kernel(PROGRAM.read_bytes(), A100, grid, _arguments), axes=axes, **more)


WARPS = (("num-warps", ("4", "8")),)


def test_the_best_candidate_is_what_the_model_gives_for_its_options(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    tuning = _search(WARPS).run(cache)
    assert [c.options for c in tuning.candidates] == [{}, {"num-warps": "4"}, {"num-warps": "8"}]
    us = {c.text: c.us for c in tuning.candidates}
    assert len({us["num-warps=4"], us["num-warps=8"]}) == 2  # the option acts
    direct = tile_sim.time(
        PROGRAM.read_bytes(), "a100", grid=(4, 4), args=[np.zeros((SIZE, SIZE), np.float16)] * 3,
        with_shape=True, options=dict(tuning.best.options),
    )  # fmt: skip
    assert direct.us == pytest.approx(tuning.best.us, abs=0.001)
    assert tuning.best.us == min(c.us or 0 for c in tuning.candidates)

    again = _search(WARPS).run(cache)
    assert again.cached
    assert again.candidates == tuning.candidates
    assert not _search((), (4, 2, 1)).run(cache).cached  # another launch, another search


def test_a_search_is_bounded_and_what_was_asked_for_stays() -> None:
    assert 1 + sum(len(values) for _, values in AXES) <= MOST
    assert len(_search(WARPS, most=2).run().candidates) == 2
    given = _search(WARPS, given={"num-warps": "8"}).run()
    assert [c.options for c in given.candidates] == [{}]


def test_candidates_that_fail_are_told_and_left_out() -> None:
    tuning = _search((("num-warps", ("3", "4")),)).run()
    failed = tuning.candidates[1]
    assert failed.us is None
    assert failed.why
    assert tuning.best is not failed
    assert "failed  num-warps=3" in tuning.text


def test_the_pipelines_own_choice_stays_unless_one_gains() -> None:
    own, little, much = (
        Candidate({}, 100.0), Candidate({"a": "1"}, 99.5), Candidate({"b": "1"}, 90.0)
    )  # fmt: skip
    assert Tuning((own, little)).best is own
    assert Tuning((own, little, much)).best is much


def test_axes_are_options_of_the_pipeline() -> None:
    known = tomli.loads((ROOT / "pipelines" / "O0.toml").read_text())["options"]
    assert {name for name, _ in AXES} <= set(known)


@pytest.mark.slow
def test_a_tuned_pipeline_compiles_to_the_same_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tuned.toml"
    sizes = ["--grid", "4,4", "--with-shape", *(["--arg", f"f16[{SIZE},{SIZE}]"] * 3)]
    options = ["--gpu", "a100", "--set", "tma-descriptors=off", "--set", "mma=mma.sync"]
    assert run(["time", str(PROGRAM), *options, *sizes, "--tuned", str(file)]) == 0
    said = capsys.readouterr().out
    assert "candidates, by the model:" in said
    assert 'extends = "O3"' in file.read_text()
    out = tmp_path / "k.cubin"
    compiled = ["compile", str(PROGRAM), "--gpu-name", "sm_80", "--pipeline", str(file)]
    assert run([*compiled, "-o", str(out)]) == 0
    assert out.stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cutile", "--with", "tileiras"], "--with tileiras is for one kernel"),
        (["--grid", "1", "--tune", "--block", "32"], "how many threads"),
    ],
)
def test_what_cannot_be_tuned(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["time", str(PROGRAM), *arguments]) != 0
    assert words in capsys.readouterr().err


PROGRAM_OF_TWO_LAUNCHES = """
import sys
import cuda.tile as ct
import numpy as np

@ct.kernel
def product(a, b, c, tile: ct.Constant[int]):
    sums = ct.full((tile, tile), 0, np.float32)
    for k in range(ct.cdiv(a.shape[1], tile)):
        left = ct.load(a, (ct.bid(0), k), (tile, tile))
        sums = ct.mma(left, ct.load(b, (k, 0), (tile, tile)), sums)
    ct.store(c, (ct.bid(0), 0), sums.astype(c.dtype))

a, b, c = (np.zeros((int(sys.argv[1]), 64), np.float16) for _ in range(3))
for _ in range(2):
    ct.launch(None, (a.shape[0] // 64,), product, (a, b[:64], c, 64))
"""


def _script(folder: Path) -> list[str]:
    path = folder / "program.py"
    path.write_text(PROGRAM_OF_TWO_LAUNCHES)
    return [str(path), "--", "128"]


def test_a_program_is_measured_with_all_its_launches(tmp_path: Path) -> None:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    subject = Script(["time", "--cutile", "--gpu=a100"], _script(tmp_path))
    tuning = Search(subject, axes=(("num-warps", ("3", "16")),)).run()
    own, wrong, many = tuning.candidates
    assert wrong.why.startswith("option 'num-warps' must be one of")
    assert own.us is not None
    assert many.us is not None
    assert 2 < own.us < many.us  # 16 warps of one tile of 64 rows have less to do each


def test_a_program_is_timed_with_what_was_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    tuned, times, trace = (tmp_path / name for name in ("tuned.toml", "times.json", "trace.json"))
    found = {"": 3.0, "num-warps=16": 2.0}
    monkeypatch.setattr(Script, "measure", lambda _, options, __: _named(options, found))
    given = ["--gpu", "a100", "--tuned", str(tuned), "--json", str(times)]
    given += ["--chrome-trace", str(trace)]
    assert run(["time", "--cutile", *given, *_script(tmp_path)]) == 0
    assert "*       2.00 us  num-warps=16" in capsys.readouterr().out
    assert "num-warps = 16" in tuned.read_text()
    results = json.loads(times.read_text())
    assert [one["block"] for one in results.values()] == [512, 512]
    events = json.loads(trace.read_text())["traceEvents"]
    assert len({event["pid"] for event in events if event["ph"] == "X"}) == 2  # both launches


def _named(options: Mapping[str, str], us: Mapping[str, float]) -> tuple[str, float]:
    name = " ".join(f"{k}={v}" for k, v in options.items())
    return name, us.get(name, 9.0)


def test_ptx_is_not_tuned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(".version 8.0\n.target sm_80\n.visible .entry k() { ret; }\n")
    assert run(["time", str(path), "--gpu", "a100", "--grid", "1", "--tune"]) != 0
    assert "--tune needs TileIR bytecode" in capsys.readouterr().err


def test_time_from_python() -> None:
    ptx = """.version 8.0
.target sm_80
.visible .entry k(.param .u64 p) .reqntid 32 { .reg .b64 %rd<2>; .reg .f32 %f<2>;
ld.param.u64 %rd1, [p]; mov.f32 %f1, 0f3F800000; st.global.f32 [%rd1], %f1; ret; }
"""
    x = np.zeros(4, np.float32)
    result = tile_sim.time(ptx, "a100", grid=1, args=[x])
    assert 0 < result.us < 10
    assert tile_sim.time(ptx, A100, grid=(1, 1), args=[x]).us == result.us
    with pytest.raises(ConfigurationError, match="no GPU 'a10'"):
        tile_sim.time(ptx, "a10", grid=1, args=[x])
    with pytest.raises(TileError, match="unsupported Tile version"):
        tile_sim.time(b"\x7fTileIR\x00garbage", "a100", grid=1)


PROGRAM_THAT_TUNES_ITSELF = """
import cuda.tile as ct
import numpy as np
from cuda.tile.tune import exhaustive_search

@ct.kernel
def scale(x, y, n: ct.Constant[int]):
    ct.store(y, (ct.bid(0),), ct.load(x, (ct.bid(0),), (n,)) * 2.5)

x, y = np.zeros(1 << 18, np.float32), np.zeros(1 << 18, np.float32)
found = exhaustive_search(
    [64, 1024], 0, lambda n: ((1 << 18) // n,), scale, lambda n: (x, y, n), quiet=True
)
times = {one.config: one.mean_us for one in found.successes}
print("tuner:", found.best.config, times[64] > 1.2 * times[1024])
ct.launch(None, ((1 << 18) // found.best.config,), scale, (x, y, found.best.config))
"""


def test_a_program_that_tunes_itself_is_tuned_by_the_model(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`cuda.tile.tune` takes what is fastest on that GPU; only what the program launches itself
    is a result."""
    pytest.importorskip("cuda.tile", reason="cuTile programs; `make test` installs it")
    script, times = tmp_path / "program.py", tmp_path / "times.json"
    script.write_text(PROGRAM_THAT_TUNES_ITSELF)
    assert run(["time", "--cutile", "--gpu=b200", "--json", str(times), str(script)]) == 0
    assert "tuner: 1024 True" in capfd.readouterr().out
    (launch,) = json.loads(times.read_text())
    assert "I1024" in launch
