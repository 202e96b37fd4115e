"""`tilec run` and `tilec check`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tile_sim.arguments import parse_argument, parse_extent
from tile_sim.cli import check, run
from tile_sim.errors import SimError

from tile_core.cli.main import Application
from tile_core.diagnostics import TileError

CUDA = Path(__file__).parent / "cuda"
SAXPY = [
    str(CUDA / "saxpy.ptx"), "--grid", "2", "--block", "64", "--arg", "i32=100", "--arg", "f32=2",
    "--arg", "f32[100]=ones", "--arg", "f32[100]=arange",
]  # fmt: skip


def _invoke(command, arguments: list[str]) -> Result:
    return CliRunner().invoke(command, arguments, obj=Application(), standalone_mode=False)


def test_run_prints_and_compares(tmp_path: Path) -> None:
    expected, saved = tmp_path / "expected.npy", tmp_path / "saved.npy"
    np.save(expected, np.arange(100, dtype=np.float32) + 2)
    options = [f"--expect=3={expected}", f"--save=3={saved}", "--stats"]
    options.append(f"--stats-json={tmp_path / 'stats.json'}")
    result = _invoke(run, [*SAXPY, *options])
    assert result.return_value == 0, result.output
    assert "argument 3: float32[100] = [2.0, 3.0" in result.output
    assert "argument 3: as expected" in result.output
    assert "global sectors" in result.output
    [stats] = json.loads((tmp_path / "stats.json").read_text())
    # 100 elements of 4 bytes, read twice and written once.
    assert stats["total"]["lsu_global_bytes"] == 1200
    assert stats["total"]["global_bytes"] == 1200
    assert stats["total"]["global_sectors"] == 3 * 13
    np.testing.assert_array_equal(np.load(saved), np.arange(100) + 2)
    np.save(expected, np.zeros(100, np.float32))
    result = _invoke(run, [*SAXPY, options[0]])
    assert result.return_value == 5
    assert "100 elements differ" in result.output


def test_check_exit_codes(tmp_path: Path) -> None:
    assert _invoke(check, SAXPY).return_value == 0
    text = (CUDA / "matmul.ptx").read_text()
    arrays = [x for _ in range(3) for x in ("--arg", "f32[32,32]=ones")]
    sizes = [x for _ in range(3) for x in ("--arg", "i32=32")]
    lines = text.split("\n")
    second = [i for i, line in enumerate(lines) if "bar.sync" in line][1]
    lines[second] = ""
    broken = tmp_path / "broken.ptx"
    broken.write_text("\n".join(lines))
    result = _invoke(check, [str(broken), "--grid", "2,2", "--block", "16,16", *arrays, *sizes])
    assert result.return_value == 5
    assert "race: write to shared memory that another warp reads" in result.output


@pytest.mark.parametrize(
    ("change", "message", "code"),
    [
        (["--arg", "i32=1"], "takes 4 arguments, got 5", 1),
        (["--entry", "nothing"], "no kernel 'nothing'", 1),
        (["--arg", "q7=1"], "unknown type 'q7'", 1),
        (["--block", "2048"], "too large", 1),
    ],
)
def test_wrong_launches(change: list[str], message: str, code: int) -> None:
    result = _invoke(run, [*SAXPY, *change])
    assert isinstance(result.exception, TileError)
    assert message in str(result.exception)
    assert result.exception.exit_code == code


def test_kernel_errors_have_their_place() -> None:
    arguments = [text.replace("f32[100]=ones", "f32[50]=ones") for text in SAXPY]
    result = _invoke(run, arguments)
    assert isinstance(result.exception, TileError)
    text = str(result.exception)
    assert text.startswith('loc("saxpy.cu":')
    assert "out-of-bounds: 4 bytes at offset 200 of argument 2, which has 200 bytes" in text
    assert "in tile block (0, 0, 0) of 'saxpy'" in text
    assert "the instruction is" in text
    assert "saxpy.ptx" in text


def test_argument_spellings() -> None:
    assert parse_argument("bf16=1.5").dtype.name == "bfloat16"
    assert parse_argument("u8[3]=7").tolist() == [7, 7, 7]
    assert parse_argument("i64=0x10") == 16
    assert parse_argument("f64[2,2]").tolist() == [[0, 0], [0, 0]]
    assert parse_extent("4x2") == (4, 2, 1)
    for text in ("f32", "f32[2]=abc", "@nothing.npy"):
        with pytest.raises(SimError):
            parse_argument(text)
    with pytest.raises(SimError):
        parse_extent("1,2,3,4")


BYTECODE = Path(__file__).parents[3] / "examples" / "bytecode"
VECTOR_ADD = [
    str(BYTECODE / "vector_add_tail_f32.tileirbc"), "--grid", "3", "--gpu-name", "sm_80",
    "--with-shape", *(x for _ in range(3) for x in ("--arg", "f32[2500]=random")),
]  # fmt: skip


def test_bytecode_is_compiled_and_compared_with_the_evaluator() -> None:
    result = _invoke(run, [*VECTOR_ADD, "--reference"])
    assert result.return_value == 0, result.output
    assert "vector_add_tail_f32.tileirbc (ptx for sm_80): grid 3x1x1, block" in result.output
    assert "argument 2: equal to the reference evaluator's" in result.output


def test_what_compiles_a_kernel_can_be_watched(tmp_path: Path) -> None:
    """With the options of `tilec compile`."""
    watch = ["--dump-dir", str(tmp_path), "--time-passes", "--remarks", str(tmp_path / "r.yaml")]
    result = _invoke(run, [*VECTOR_ADD, *watch, "--emit", "llvm"])
    assert result.return_value == 0, result.output
    assert (tmp_path / "output.ptx").read_text().count(".entry") == 1
    assert len(list(tmp_path.glob("0*-tileas-*.mlir"))) > 3
    assert "LoadInstructionSelected" in (tmp_path / "r.yaml").read_text()
    assert "define ptx_kernel void @vector_add_tail_f32" in result.stderr
    assert "Pass execution timing report" in result.stderr


def test_reference_sees_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    import tile_sim.reference as reference

    honest = reference.reference_values

    def planted(*args):
        values = honest(*args)
        next(v for v in reversed(values) if isinstance(v, np.ndarray))[7] += 1
        return values

    monkeypatch.setattr(reference, "reference_values", planted)
    result = _invoke(run, [*VECTOR_ADD, "--reference"])
    assert result.return_value == 5
    assert "argument 2: 1 elements differ, first at (7,)" in result.output


def test_reference_needs_bytecode_and_a_grid() -> None:
    result = _invoke(run, [*SAXPY, "--reference"])
    assert "--reference needs TileIR bytecode" in str(result.exception)
    result = _invoke(run, [SAXPY[0]])
    assert "--grid X,Y,Z is needed" in str(result.exception)
