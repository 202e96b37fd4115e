"""`tilec time`: a kernel's time as text, JSON and trace; what cannot be timed."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tile_core.cli.main import run

HAVE_CUTILE = bool(importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.tile"))
ROOT = Path(__file__).parents[3]
ADD = str(ROOT / "examples" / "bytecode" / "vector_add_f32.tileirbc")
SIZES = ["--grid", "1024", "--with-shape", *(["--arg", "f32[1048576]"] * 3)]


def test_a_copy_is_bound_by_dram(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, trace = tmp_path / "time.json", tmp_path / "trace.json"
    more = ["--json", str(out), "--chrome-trace", str(trace)]
    assert run(["time", ADD, "--gpu", "h100", *SIZES, *more]) == 0
    found = json.loads(out.read_text())["tilec"]
    assert 8 * 2**20 / 3.4e12 * 1e6 < found["us"] < 10
    assert sum(found["causes"].values()) == pytest.approx(1.0, abs=0.01)
    assert any("vector_add.py" in line for line in found["lines"])
    events = json.loads(trace.read_text())["traceEvents"]
    rows = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    warp = [e for e in events if e["ph"] == "X" and e["tid"] == rows["block 0 warp 0"]]
    assert "waits: DRAM" in {e["name"] for e in warp}
    ends = [e["ts"] + e["dur"] for e in warp]  # nothing of a warp overlaps
    assert all(e["ts"] >= end - 1e-3 for e, end in zip(warp[1:], ends, strict=False))
    assert "DRAM" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gpu", "h10", "--grid", "1"], "did you mean h100?"),
        (["--machine", "clock.bost=3", "--grid", "1"], "did you mean 'clock.boost'?"),
        (["--machine", "clock.boost=0", "--grid", "1"], "has to be positive"),
        (["--machine", "clock.boost=fast", "--grid", "1"], "is not a number"),
        ([], "--grid"),
        (["--grid", "1", "--", "more"], "by --arg"),
        (["--grid", "1", "--arg", "f16[4096,1000000000000]"], "no memory for the 7,629,395 GiB"),
    ],
)
def test_wrong_options(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["time", ADD, *arguments]) != 0
    captured = capsys.readouterr()
    assert words in captured.err + captured.out


def test_a_broken_cubin_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cubin = tmp_path / "k.cubin"
    cubin.write_bytes(b"\x7fELF" + bytes(100))
    assert run(["time", str(cubin), "--grid", "1"]) != 0
    assert "cubin" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["garbage", ""])
def test_what_is_called_ptx_is_read_as_ptx(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ptx = tmp_path / "k.ptx"
    ptx.write_text(text)
    assert run(["time", str(ptx), "--grid", "1"]) != 0
    said = capsys.readouterr().err
    assert "MLIR" not in said
    assert "ptx" in said.lower()


_LOOP = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 turns) .reqntid 32 {
.reg .b32 %r<3>; .reg .pred %p<2>; ld.param.u32 %r1, [turns]; mov.u32 %r2, 0;
LOOP: add.u32 %r2, %r2, 1; bar.sync 0; setp.lt.u32 %p1, %r2, %r1; @%p1 bra LOOP; ret;
}
"""


def test_ptx_without_locations_is_told_by_its_own_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """PTX that begins with a long comment is PTX."""
    ptx = tmp_path / "k.txt"
    ptx.write_text("// made by hand\n" * 500 + _LOOP)
    assert run(["time", str(ptx), "--grid", "1", "--arg", "u32=9"]) == 0
    said = capsys.readouterr().out
    shown = {int(line) for line in re.findall(r"ptx:(\d+):", said)}
    assert 506 in shown
    assert max(shown) <= 507


def test_what_is_too_large_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ptx = tmp_path / "k.ptx"
    ptx.write_text(_LOOP)
    assert run(["time", str(ptx), "--grid", "1", "--arg", "u32=9", "--shared", "300000"]) != 0
    said = capsys.readouterr().err
    assert "does not fit on an SM" in said
    assert "the limit is shared memory" in said
    assert run(["time", str(ptx), "--grid", "1,70000", "--arg", "u32=9"]) != 0
    assert "grid (1, 70000, 1) is too large" in capsys.readouterr().err


def test_missing_inputs_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["time", str(tmp_path / "no.cubin"), "--grid", "1"]) != 0
    assert "cannot read" in capsys.readouterr().err
    assert run(["time", ADD, "--grid", "1", "--arg", "@no.npy"]) != 0
    assert "no file 'no.npy'" in capsys.readouterr().err


def test_ptx_for_another_gpu_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ptx = tmp_path / "k.ptx"
    ptx.write_text(".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }\n")
    assert run(["time", str(ptx), "--gpu", "a100", "--grid", "1"]) != 0
    assert "does not run on NVIDIA A100" in capsys.readouterr().err


_SCRIPT = """
import numpy as np
import cuda.tile as ct

@ct.kernel
def scale(x, y):
    ct.store(y, (ct.bid(0),), ct.load(x, (ct.bid(0),), (128,)) * 2.5)

x, y = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
ct.launch(None, (8,), scale, (x, y))
"""


@pytest.mark.skipif(not HAVE_CUTILE, reason="cuda-tile is not installed")
@pytest.mark.parametrize(
    ("rest", "code", "said"),
    [
        ("", 0, ""),
        ("assert y[0] == 1", 0, "{script}:11:8: launches are timed and not run"),
        ("print(z)", 5, "NameError"),
    ],
)
def test_launches_of_a_program(tmp_path: Path, rest: str, code: int, said: str) -> None:
    """They are not run, so that a program which checks its results fails, and is timed."""
    script = tmp_path / "program.py"
    script.write_text(_SCRIPT + rest)
    command = [sys.executable, "-m", "tile_core", "time", str(script), "--gpu", "h100"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert said.format(script=script.name) in done.stderr
    assert ("h100-sxm" in done.stdout) == (code == 0)
