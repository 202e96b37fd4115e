"""Variables of the environment: each acts, or is refused by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tile_dropin.environment import Wishes, wishes_of
from tile_dropin.main import run

from tile_core.diagnostics import ConfigurationError

PROGRAM = Path(__file__).parents[3] / "examples" / "bytecode" / "vector_add_f32.tileirbc"


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, Wishes()),
        ({"TILEIR_PREFER_TMA_FOR_LOAD_STORE": "false"}, Wishes()),
        ({"TILEIR_DELAY_TMA_STORE_WAIT": " 0x"}, Wishes()),  # as std::stoi has it
        ({"TILE_AS_DEBUG_VERBOSE": "true"}, Wishes()),
        ({"TILE_AS_DEBUG_VERBOSE": "1"}, Wishes(verbose=True)),
        ({"TILEIR_DEBUG_DUMP_BC": "0"}, Wishes(dump_program=True)),
        ({"TILEIR_DEBUG_DUMP_LLVM": ""}, Wishes(dump_llvm=True)),
        ({"PTX_KNOBS_PATH": "k"}, Wishes()),
        ({"TILE_AS_DEBUG_UNLIMITED_SMEM": "true"}, Wishes()),
        ({"MLIR_ENABLE_EVO": ""}, Wishes()),
        ({"MLIR_ENABLE_EVO": "0", "PTX_KNOBS_PATH": "k"}, Wishes(("--knobs-file=k",))),
    ],
)
def test_each_has_its_own_rule(variables: dict[str, str], wanted: Wishes) -> None:
    assert wishes_of(variables) == wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TILEIR_PREFER_TMA_FOR_LOAD_STORE", "true"),
        ("TILEIR_PREFER_TMA_FOR_LOAD_STORE", "1"),
        ("TILEIR_DELAY_TMA_STORE_WAIT", "1"),
        ("TILEIR_DELAY_TMA_STORE_WAIT", "-7 and more"),
        ("TILEIR_DELAY_TMA_STORE_WAIT", ""),
        ("TILEIR_DELAY_TMA_STORE_WAIT", "foo"),
        ("TILEIR_DELAY_TMA_STORE_WAIT", "99999999999"),
        ("TILEIR_ALWAYS_SWIZZLE", "0"),
        ("TILE_AS_DEBUG_UNLIMITED_SMEM", "1"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        wishes_of({name: value})


def compiled(capfd: pytest.CaptureFixture[str], path: Path) -> tuple[int, str]:
    code = run([str(PROGRAM), "--gpu-name=sm_90", "-o", str(path)], "tileiras")
    return code, capfd.readouterr().err


def test_dumps_and_progress_are_printed(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert compiled(capfd, tmp_path / "plain") == (0, "")
    monkeypatch.setenv("TILEIR_DEBUG_DUMP_BC", "0")
    monkeypatch.setenv("TILEIR_DEBUG_DUMP_LLVM", "0")
    monkeypatch.setenv("TILE_AS_DEBUG_VERBOSE", "1")
    code, said = compiled(capfd, tmp_path / "watched")
    assert code == 0
    assert "entry @vector_add_f32" in said
    assert "define ptx_kernel void @vector_add_f32" in said
    assert "pass convert-tileas-to-llvm: " in said
    assert (tmp_path / "watched").read_bytes() == (tmp_path / "plain").read_bytes()


def test_a_file_of_knobs_reaches_ptxas(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLIR_ENABLE_EVO", "0")
    monkeypatch.setenv("PTX_KNOBS_PATH", str(tmp_path / "no knobs here"))
    code, said = compiled(capfd, tmp_path / "out")
    assert (code, (tmp_path / "out").exists()) == (5, False)
    assert "no knobs here" in said


def test_a_refusal_is_an_error_of_the_run(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TILEIR_ALWAYS_SWIZZLE", "0")
    code, said = compiled(capfd, tmp_path / "out")
    assert (code, (tmp_path / "out").exists()) == (2, False)
    assert said.startswith("error: TILEIR_ALWAYS_SWIZZLE is set")
